//! XRP Ledger accounts: Base58Check in the ledger's own alphabet, version 0, 20 bytes.

use bs58::Alphabet;

use super::bitcoin_like::base58_version;
use super::{InvalidAddress, Spelling};

const ACCOUNT_VERSION: u8 = 0;

/// Classic `r…` addresses only. An X-address carries a tag inside, which could contradict the one
/// sent beside it, so it is refused.
pub(super) fn check(text: &str) -> Result<Spelling, InvalidAddress> {
    match base58_version(text, Alphabet::RIPPLE) {
        Some(ACCOUNT_VERSION) => Ok(Spelling::Exact),
        _ => Err(InvalidAddress),
    }
}
