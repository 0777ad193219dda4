//! Signatures by which a wallet's holder signs a message, verified against its address.
//!
//! - EVM: EIP-191 (`personal_sign`) of an account with a key; a contract's wallet has none
//! - Bitcoin: BIP-322 in its simple form (segregated witness of version 0 and Taproot, by key), and
//!   the legacy form; Litecoin and Dogecoin the legacy form alone
//! - Solana: Ed25519 over the message

mod bip322;
mod bitcoin;
mod ed25519;
mod evm;

use rampart_types::{Chain, WalletAddress};

use crate::platform::crypto::sha256;

/// Longest signature, in bytes of its text.
pub(crate) const SIGNATURE_BYTES_MAX: usize = 1_024;

/// True for chains whose wallets sign messages that are verified here.
pub(crate) const fn is_supported(chain: Chain) -> bool {
    matches!(
        chain,
        Chain::Bitcoin | Chain::Litecoin | Chain::Dogecoin | Chain::Ethereum | Chain::Solana
    )
}

/// True if the text is a signature of the message by the holder of the address.
pub(crate) fn is_genuine(address: &WalletAddress, message: &str, signature: &str) -> bool {
    if signature.len() > SIGNATURE_BYTES_MAX {
        return false;
    }
    let (account, signature) = (address.as_str(), signature.trim());
    let verified = match address.chain() {
        Chain::Ethereum => evm::verify(account, message, signature),
        Chain::Solana => ed25519::verify(account, message, signature),
        Chain::Bitcoin => bitcoin::verify(&bitcoin::BITCOIN, account, message, signature)
            .or_else(|| bip322::verify(account, message, signature)),
        Chain::Litecoin => bitcoin::verify(&bitcoin::LITECOIN, account, message, signature),
        Chain::Dogecoin => bitcoin::verify(&bitcoin::DOGECOIN, account, message, signature),
        Chain::Xrp | Chain::Stellar | Chain::Cardano => None,
    };
    verified.is_some()
}

/// SHA-256 of SHA-256, Bitcoin's hash.
fn sha256d(bytes: &[u8]) -> [u8; 32] {
    sha256(&sha256(bytes))
}

#[cfg(test)]
mod tests;
