//! One-time codes by time (TOTP, RFC 6238) as authenticator apps show them: HMAC-SHA1, 6 digits, steps
//! of 30 seconds.

use data_encoding::BASE32_NOPAD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;

use crate::platform::clock::Clock;
use crate::platform::crypto::constant_time_eq;
use crate::platform::error::Result;
use crate::platform::rate_limit::Quota;

/// Random bytes of a secret: 160 bits (RFC 4226, section 4).
pub(crate) const SECRET_BYTES: usize = 20;
/// Most codes that are tried for one person in a day, so that a guess stays unlikely for years: three of a
/// million count at a time.
pub(crate) const DAY_QUOTA: Quota = Quota::new(30, 86_400, 30);
const STEP_SECONDS: i64 = 30;
/// Steps before and after the present one whose codes count, for clocks that are off.
const STEPS_OFF_MAX: i64 = 1;
/// Digits of a code.
const DIGITS: usize = 6;

/// A secret that an authenticator app shares.
pub struct TotpSecret([u8; SECRET_BYTES]);

rampart_types::opaque_debug!(TotpSecret);

impl TotpSecret {
    /// Generates a secret.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn generate(clock: &Clock) -> Result<Self> {
        Ok(Self(clock.random_bytes()?))
    }

    /// The secret of these bytes; `None` for another length.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The secret whose [`TotpSecret::key`] this is; `None` for any other text.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::from_bytes(&BASE32_NOPAD.decode(key.as_bytes()).ok()?)
    }

    /// Its bytes, to be sealed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key as a person types it into an app.
    pub fn key(&self) -> String {
        BASE32_NOPAD.encode(&self.0)
    }

    /// The `otpauth:` URI that an app opens.
    pub fn uri(&self, issuer: &str, account: &str) -> String {
        let issuer = utf8_percent_encode(issuer, NON_ALPHANUMERIC);
        let account = utf8_percent_encode(account, NON_ALPHANUMERIC);
        format!("otpauth://totp/{issuer}:{account}?secret={}&issuer={issuer}", self.key())
    }

    /// The time step of a code that counts now; `None` for any other text. A caller lets each step
    /// count once.
    pub(crate) fn verify(&self, code: &str, unix_seconds: i64) -> Option<i64> {
        let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
        let now = unix_seconds.div_euclid(STEP_SECONDS);
        let mut steps = (now - STEPS_OFF_MAX)..=(now + STEPS_OFF_MAX);
        steps.find(|step| constant_time_eq(self.code(*step).as_bytes(), code.as_bytes()))
    }

    /// The code of a step (RFC 4226, section 5.3).
    fn code(&self, step: i64) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        let tag = hmac::sign(&key, &step.to_be_bytes());
        let tag = tag.as_ref();
        let offset = usize::from(tag.last().copied().unwrap_or_default() & 0x0f);
        let mut word = [0; 4];
        word.copy_from_slice(&tag[offset..offset + 4]);
        let number = u32::from_be_bytes(word) & 0x7fff_ffff;
        format!("{:0DIGITS$}", number % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of RFC 6238, appendix B.
    fn secret() -> TotpSecret {
        TotpSecret::from_bytes(b"12345678901234567890").unwrap()
    }

    #[test]
    fn the_codes_are_those_of_the_standard() {
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(secret().verify(code, seconds), Some(seconds / 30), "{code}");
        }
    }

    #[test]
    fn a_code_counts_for_a_step_before_and_after() {
        for (seconds, counts) in [(0, true), (30, true), (60, true), (89, true), (90, false)] {
            assert_eq!(secret().verify("287 082", seconds).is_some(), counts, "{seconds}");
        }
        for code in ["", "287083", "28708", "2870820", "otp"] {
            assert_eq!(secret().verify(code, 59), None, "{code}");
        }
    }

    #[test]
    fn an_app_reads_the_key_and_the_uri() {
        assert_eq!(secret().key(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let again = TotpSecret::from_key(&secret().key()).unwrap();
        assert_eq!(again.bytes(), secret().bytes());
        let uri = secret().uri("Acme & Co", "ada@example.com");
        assert!(uri.starts_with("otpauth://totp/Acme%20%26%20Co:ada%40example%2Ecom?secret=GEZD"));
        assert!(TotpSecret::from_bytes(b"short").is_none());
    }
}
