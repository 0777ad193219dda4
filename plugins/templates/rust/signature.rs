//! Offers and onboarding links signed with HMAC-SHA-256.
//!
//! The signed text is every field as `name=value` on a line of its own, sorted by name; `signature`
//! is the base64 of the MAC. The key stays in the host, the policy only names it.

use rampart_guest::encoding::base64_decode;
use rampart_guest::signature::*;

struct SharedKey;

rampart_guest::signature_policy!(SharedKey);

impl SignaturePolicy for SharedKey {
    const ABOUT: About = About {
        name: "example/@name@",
        version: "1.0.0",
        summary: "Offers and onboarding links signed with HMAC-SHA-256.",
        settings: &[Setting::optional(
            "key",
            SettingType::Text,
            "the name of the key; partner-hmac if not set",
        )],
        keys: &["partner-hmac"],
    };

    fn judge(
        _: CallContext,
        config: Config,
        payload: SignedPayload,
    ) -> Result<Verdict, PolicyError> {
        let Some(claimed) = &payload.claimed else {
            return Ok(Verdict::Rejected(Rejection::MissingSignature));
        };
        let Some(mac) = base64_decode(claimed) else {
            return Ok(Verdict::Rejected(Rejection::MalformedSignature));
        };
        if !payload.fields.iter().all(is_one_line) {
            return Ok(Verdict::Rejected(Rejection::NotCovered));
        }
        let key = config.text("key").unwrap_or("partner-hmac");
        Ok(match verify(key, Algorithm::HmacSha256, message(&payload).as_bytes(), &mac) {
            Ok(true) => Verdict::Authentic(Signer {
                key: key.into(),
                algorithm: Algorithm::HmacSha256,
                signed_at: None,
                replay_token: None,
            }),
            Ok(false) => Verdict::Rejected(Rejection::BadSignature),
            Err(CryptoError::MalformedSignature) => {
                Verdict::Rejected(Rejection::MalformedSignature)
            }
            Err(_) => Verdict::Rejected(Rejection::UnknownKey),
        })
    }
}

/// True if the field's line can be written by no other fields: else the signature of two would be that
/// of one whose name holds the first.
fn is_one_line(field: &Field) -> bool {
    !field.name.contains(['=', '\n']) && !field.value.contains('\n')
}

fn message(payload: &SignedPayload) -> String {
    payload.fields.iter().map(|field| format!("{}={}\n", field.name, field.value)).collect()
}
