//! Signatures of webhooks: `t=<seconds>,v1=<hex>`, an HMAC with SHA-256 over `<seconds>.<body>`.

use ring::hmac;

/// Largest difference between a signature's time and ours, in seconds.
const TOLERANCE_SECONDS: i64 = 300;
/// Most signatures of one webhook: one for each secret while secrets are rotated.
const SIGNATURES_MAX: usize = 8;

/// The reason that a webhook is not the provider's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WrongSignature {
    /// The header is missing or has another form.
    #[error("the signature has another form")]
    Form,
    /// It was signed too long ago, or later than now.
    #[error("the signature's time is more than {TOLERANCE_SECONDS} s away")]
    Time,
    /// It was signed with another secret, or something else was signed.
    #[error("the signature does not fit")]
    Mismatch,
}

/// Checks that a webhook was signed with the secret within 300 s of `now`, in seconds since 1970.
/// Takes the same time wherever a signature differs.
///
/// # Errors
/// When it was not.
pub(crate) fn verify(
    secret: &str,
    header: &str,
    body: &[u8],
    now: i64,
) -> Result<(), WrongSignature> {
    let pairs = || header.split(',').filter_map(|pair| pair.trim().split_once('='));
    let time = pairs().find(|(name, _)| *name == "t").map(|(_, value)| value);
    let time = time.ok_or(WrongSignature::Form)?;
    let seconds: i64 = time.parse().map_err(|_| WrongSignature::Form)?;
    let signatures: Vec<_> = pairs()
        .filter(|(name, _)| *name == "v1")
        .filter_map(|(_, value)| hex::decode(value).ok())
        .take(SIGNATURES_MAX)
        .collect();
    if signatures.is_empty() {
        return Err(WrongSignature::Form);
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signed = [time.as_bytes(), b".", body].concat();
    if !signatures.iter().any(|signature| hmac::verify(&key, &signed, signature).is_ok()) {
        return Err(WrongSignature::Mismatch);
    }
    if now.abs_diff(seconds) > TOLERANCE_SECONDS.unsigned_abs() {
        return Err(WrongSignature::Time);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_772_000_000;
    const BODY: &[u8] = br#"{"id": "evt_1"}"#;

    fn signed(secret: &str, time: i64) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let tag = hmac::sign(&key, &[time.to_string().as_bytes(), b".", BODY].concat());
        format!("t={time},v1={}", hex::encode(tag))
    }

    #[test]
    fn a_known_signature_fits() {
        // Computed with `openssl dgst -sha256 -hmac whsec_1`.
        let header =
            "t=1772000000,v1=b54fbab206f83be987b0f418b2e778abf8349216fdcbdda87385ce0e7feaa70e";
        assert_eq!(verify("whsec_1", header, BODY, NOW), Ok(()));
    }

    #[test]
    fn any_of_several_signatures_may_fit() {
        let other = signed("whsec_old", NOW);
        let ours = signed("whsec_1", NOW);
        let both = format!("{other},{},v0=00", ours.split_once(',').unwrap().1);
        assert_eq!(verify("whsec_1", &both, BODY, NOW), Ok(()));
        assert_eq!(verify("whsec_1", &other, BODY, NOW), Err(WrongSignature::Mismatch));
    }

    #[test]
    fn what_is_old_altered_or_malformed_is_refused() {
        let header = signed("whsec_1", NOW);
        assert_eq!(verify("whsec_1", &header, b"{}", NOW), Err(WrongSignature::Mismatch));
        let moved = header.replace("t=1772000000", "t=1772000001");
        assert_eq!(verify("whsec_1", &moved, BODY, NOW), Err(WrongSignature::Mismatch));
        for (away, expected) in [
            (TOLERANCE_SECONDS, Ok(())),
            (TOLERANCE_SECONDS + 1, Err(WrongSignature::Time)),
            (-TOLERANCE_SECONDS - 1, Err(WrongSignature::Time)),
        ] {
            assert_eq!(verify("whsec_1", &header, BODY, NOW + away), expected, "{away}");
        }
        for wrong in ["", "t=1", "v1=00", "t=x,v1=00", "t=1772000000,v1=zz", "t=1772000000;v1=00"] {
            assert_eq!(verify("whsec_1", wrong, BODY, NOW), Err(WrongSignature::Form), "{wrong}");
        }
    }
}
