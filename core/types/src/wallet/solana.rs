//! Solana accounts: 32 bytes in Base58, without a checksum.

use super::{InvalidAddress, Spelling};

const ACCOUNT_BYTES: usize = 32;
/// 32 bytes never take more Base58 characters than this.
const ACCOUNT_CHARS_MAX: usize = 44;

pub(super) fn check(text: &str) -> Result<Spelling, InvalidAddress> {
    let mut account = [0_u8; ACCOUNT_BYTES];
    let sized = text.len() <= ACCOUNT_CHARS_MAX;
    match bs58::decode(text).onto(&mut account) {
        Ok(ACCOUNT_BYTES) if sized => Ok(Spelling::Exact),
        _ => Err(InvalidAddress),
    }
}
