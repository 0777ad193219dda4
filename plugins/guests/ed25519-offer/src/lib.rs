//! Offers, assertions about wallets and onboarding links signed with Ed25519, each valid for a few
//! minutes and only once.
//!
//! `signature` is `t=SECONDS,n=NONCE,s=BASE64`: the signing time (Unix time), a value never used
//! before, and the signature of this line:
//!
//! ```text
//! callbackUrl=...&fee=...&returnUrl=...&walletAddress=...&walletAddressTag=...&t=SECONDS&n=NONCE
//! ```
//!
//! The fields are those that are set, values percent-encoded, in alphabetical order; those of an
//! assertion are `orderId`, `reason` and `walletAddress`, and an onboarding link covers all its
//! parameters. The nonce is 8 to 64 of `A-Z a-z 0-9 - _`.
//!
//! - `key`: name of the public key, `partner-ed25519` if not set
//! - `tolerance`: largest distance of the signing time from now, in seconds, 300 if not set

use rampart_guest::encoding::{base64_decode, percent_encode};
use rampart_guest::log;
use rampart_guest::signature::*;

struct Ed25519Offer;

rampart_guest::signature_policy!(Ed25519Offer);

const DEFAULT_KEY: &str = "partner-ed25519";
const DEFAULT_TOLERANCE_SECONDS: i32 = 300;
/// Fields of an offer, and of an assertion about an order's wallet, that the signature must cover.
const OFFER_FIELDS: [&str; 7] =
    ["callbackUrl", "fee", "orderId", "reason", "returnUrl", "walletAddress", "walletAddressTag"];

/// A parsed `signature` member.
struct Claim<'a> {
    signed_at: u32,
    nonce: &'a str,
    signature: Vec<u8>,
}

impl SignaturePolicy for Ed25519Offer {
    const ABOUT: About = About {
        name: "rampart/ed25519-offer",
        version: "1.0.0",
        summary: "Ed25519 signatures with a time and a nonce.",
        settings: &[
            Setting::optional("key", SettingType::Text, "name of the public key"),
            Setting::optional("tolerance", SettingType::Integer, "age allowed, in seconds"),
        ],
        keys: &[DEFAULT_KEY],
    };

    fn validate(config: &Config) -> Result<(), Problem> {
        match config.integer("tolerance") {
            Some(seconds) if !(1..=3600).contains(&seconds) => {
                Err(Problem::new("tolerance", "is not 1 to 3600 seconds"))
            }
            _ => Ok(()),
        }
    }

    fn judge(
        context: CallContext,
        config: Config,
        payload: SignedPayload,
    ) -> Result<Verdict, PolicyError> {
        Ok(match judge(&context, &config, &payload) {
            Ok(signer) => Verdict::Authentic(signer),
            Err(rejection) => Verdict::Rejected(rejection),
        })
    }
}

fn judge(
    context: &CallContext,
    config: &Config,
    payload: &SignedPayload,
) -> Result<Signer, Rejection> {
    let claimed = payload.claimed.as_deref().ok_or(Rejection::MissingSignature)?;
    let claim = Claim::parse(claimed).ok_or(Rejection::MalformedSignature)?;
    let key = config.text("key").unwrap_or(DEFAULT_KEY);
    let message = message(payload, &claim);
    match verify(key, Algorithm::Ed25519, message.as_bytes(), &claim.signature) {
        Ok(true) => {}
        Ok(false) => return Err(Rejection::BadSignature),
        Err(CryptoError::MalformedSignature) => return Err(Rejection::MalformedSignature),
        Err(error) => {
            log::warn(&format!("key `{key}`: {error}"));
            return Err(Rejection::UnknownKey);
        }
    }
    // Checked after the signature, so that the clock is not revealed without the key.
    let tolerance = config.integer("tolerance").unwrap_or(DEFAULT_TOLERANCE_SECONDS);
    if context.now.abs_diff(claim.signed_at) > tolerance.unsigned_abs() {
        return Err(Rejection::Stale);
    }
    Ok(Signer {
        key: key.into(),
        algorithm: Algorithm::Ed25519,
        signed_at: Some(claim.signed_at),
        replay_token: Some(claim.nonce.into()),
    })
}

impl<'a> Claim<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (time, rest) = text.strip_prefix("t=")?.split_once(",n=")?;
        let (nonce, signature) = rest.split_once(",s=")?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !(8..=64).contains(&nonce.len()) || !nonce.bytes().all(plain) {
            return None;
        }
        // One spelling for each time: `+5` and `05` are signed as `5` would be.
        let signed_at: u32 = time.parse().ok()?;
        if signed_at.to_string() != time {
            return None;
        }
        Some(Self { signed_at, nonce, signature: base64_decode(signature)? })
    }
}

/// The signed message. The host passes the fields in alphabetical order.
fn message(payload: &SignedPayload, claim: &Claim<'_>) -> String {
    let covered = payload.fields.iter().filter(|field| match payload.purpose {
        Purpose::Offer => OFFER_FIELDS.contains(&field.name.as_str()),
        Purpose::Onboarding => true,
    });
    let mut message = String::with_capacity(512);
    for field in covered {
        message.push_str(&field.name);
        message.push('=');
        percent_encode(&field.value, &mut message);
        message.push('&');
    }
    message.push_str(&format!("t={}&n={}", claim.signed_at, claim.nonce));
    message
}
