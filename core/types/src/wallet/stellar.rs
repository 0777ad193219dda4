//! Stellar accounts: StrKey (SEP-23) of an ed25519 public key, `G…`.

use stellar_strkey::ed25519::PublicKey;

use super::{InvalidAddress, Spelling};

/// Muxed `M…` accounts carry a memo inside, which could contradict the one sent beside them, so
/// they are refused like every other kind of key.
pub(super) fn check(text: &str) -> Result<Spelling, InvalidAddress> {
    match PublicKey::from_string(text) {
        Ok(_) => Ok(Spelling::Exact),
        Err(_) => Err(InvalidAddress),
    }
}
