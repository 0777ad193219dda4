//! Addresses of Bitcoin and of chains with its address formats: Base58Check with a version byte per
//! chain, and segregated witness addresses (BIP-173, BIP-350) under the chain's own prefix.

use bs58::Alphabet;

use super::{InvalidAddress, Spelling};

/// A version byte and a 20-byte hash.
const PAYLOAD_BYTES: usize = 21;

/// Version bytes and prefix of one chain's mainnet addresses.
pub(super) struct Format {
    /// Version bytes of pay-to-public-key-hash and pay-to-script-hash.
    versions: &'static [u8],
    /// The human-readable part of segregated witness addresses, on chains that have them.
    prefix: Option<&'static str>,
}

pub(super) const BITCOIN: Format = Format { versions: &[0x00, 0x05], prefix: Some("bc") };
/// 0x05 is the older script version, still in use beside 0x32.
pub(super) const LITECOIN: Format = Format { versions: &[0x30, 0x32, 0x05], prefix: Some("ltc") };
pub(super) const DOGECOIN: Format = Format { versions: &[0x1e, 0x16], prefix: None };

impl Format {
    pub(super) fn check(&self, text: &str) -> Result<Spelling, InvalidAddress> {
        if let Some(version) = base58_version(text, Alphabet::BITCOIN) {
            return self
                .versions
                .contains(&version)
                .then_some(Spelling::Exact)
                .ok_or(InvalidAddress);
        }
        // The decoder checks the rules: one case throughout, witness version and program length,
        // the Bech32 checksum for version 0 and Bech32m for all later ones.
        let (prefix, _, _) = bech32::segwit::decode(text).map_err(|_| InvalidAddress)?;
        let matches = self.prefix.is_some_and(|expected| prefix.to_lowercase() == expected);
        if matches { Ok(Spelling::AnyCase) } else { Err(InvalidAddress) }
    }
}

/// The version byte of a Base58Check text over a 20-byte hash; `None` for anything else.
pub(super) fn base58_version(text: &str, alphabet: &Alphabet) -> Option<u8> {
    let bytes = bs58::decode(text).with_alphabet(alphabet).with_check(None).into_vec().ok()?;
    if bytes.len() == PAYLOAD_BYTES { bytes.first().copied() } else { None }
}
