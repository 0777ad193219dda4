//! The key that signs payouts, and the lock that keeps it to one process.

use std::fs::File;
use std::path::Path;

use alloy::consensus::{SignableTransaction as _, TxEip1559};
use alloy::primitives::{Address, B256, Bytes, U64, U256};
use k256::ecdsa::SigningKey;
use rampart_connector::Secret;
use serde::Deserialize;
use serde_json::json;

use crate::rpc::{Rpc, RpcError};
use crate::settings::KeySettings;
use crate::state::lock;
use crate::transaction::{decode, encode};

/// A signature that could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SigningError {
    /// The external signer does not sign.
    #[error("the signer: {0}")]
    External(#[from] RpcError),
    /// The external signer has signed something else, or with another key.
    #[error("the signer has not signed what it was given")]
    Other,
    /// The key cannot sign.
    #[error("the key cannot sign")]
    Key,
}

/// Signs with one account's key.
pub(crate) struct Signer {
    address: Address,
    key: Key,
    /// Held as long as the process lives.
    _lock: File,
}

enum Key {
    Local(Box<SigningKey>),
    External(Rpc),
}

/// Signed bytes, as signers answer them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Signed {
    Raw(Bytes),
    Object { raw: Bytes },
}

impl Signer {
    /// Reads the key and locks its account for this process.
    ///
    /// # Errors
    /// One sentence for a person, such as that another process has the key.
    pub(crate) fn open(settings: &KeySettings, folder: &Path, chain: u64) -> Result<Self, String> {
        let (address, key) = match settings {
            KeySettings::Secret(source) => {
                let secret = source.read().map_err(|error| format!("key: {error}"))?;
                let key =
                    signing_key(&secret).ok_or("key: not a private key of 32 bytes in hex")?;
                (Address::from_private_key(&key), Key::Local(Box::new(key)))
            }
            KeySettings::Signer { url, address } => {
                let rpc = Rpc::new(url).map_err(|error| format!("key.signer.url: {error}"))?;
                (*address, Key::External(rpc))
            }
        };
        let lock = lock(folder, &format!("{chain}-{address}.lock"), "this key")?;
        Ok(Self { address, key, _lock: lock })
    }

    /// The account that pays.
    pub(crate) const fn address(&self) -> Address {
        self.address
    }

    /// The signed bytes of a transaction.
    ///
    /// # Errors
    /// When an external signer does not answer, or signs something else.
    pub(crate) async fn sign(&self, transaction: TxEip1559) -> Result<Bytes, SigningError> {
        let rpc = match &self.key {
            Key::Local(key) => {
                let hash: B256 = transaction.signature_hash();
                let signature = key.sign_prehash_recoverable(&hash[..]);
                let signature = signature.map_err(|_| SigningError::Key)?;
                return Ok(encode(transaction, signature.into()));
            }
            Key::External(rpc) => rpc,
        };
        let request = json!({
            "from": self.address,
            "to": transaction.to,
            "gas": U64::from(transaction.gas_limit),
            "nonce": U64::from(transaction.nonce),
            "value": transaction.value,
            "data": transaction.input,
            "chainId": U64::from(transaction.chain_id),
            "maxFeePerGas": U256::from(transaction.max_fee_per_gas),
            "maxPriorityFeePerGas": U256::from(transaction.max_priority_fee_per_gas),
        });
        let raw = match rpc.call("eth_signTransaction", json!([request])).await? {
            Signed::Raw(raw) | Signed::Object { raw } => raw,
        };
        match decode(&raw) {
            Some((signed, signer)) if signed == transaction && signer == self.address => Ok(raw),
            _ => Err(SigningError::Other),
        }
    }
}

fn signing_key(secret: &Secret) -> Option<SigningKey> {
    let bytes: B256 = secret.expose().parse().ok()?;
    SigningKey::from_slice(&bytes[..]).ok()
}

#[cfg(test)]
mod tests {
    use rampart_connector::SecretSource;

    use super::*;
    use crate::fees::Fees;
    use crate::transaction::{Slot, Transfer};

    #[tokio::test]
    async fn one_process_has_a_key_and_signs_with_it() {
        let folder = std::env::temp_dir().join(format!("rampart-key-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("key");
        std::fs::write(&file, format!("0x{}\n", "46".repeat(32))).unwrap();
        let settings = KeySettings::Secret(SecretSource::File(file));
        let signer = Signer::open(&settings, &folder, 1).unwrap();
        let refused = Signer::open(&settings, &folder, 1).err().unwrap();
        assert!(refused.starts_with("another process has this key"), "{refused}");
        assert!(Signer::open(&settings, &folder, 5).is_ok(), "another chain is another account");
        let transfer = Transfer { token: None, to: Address::ZERO, units: U256::from(5) };
        let slot = Slot { chain_id: 1, nonce: 7 };
        let unsigned = transfer.transaction(slot, 21_000, Fees { max: 9, priority: 2 });
        let raw = signer.sign(unsigned.clone()).await.unwrap();
        assert_eq!(decode(&raw), Some((unsigned, signer.address())));
        drop(signer);
        assert!(Signer::open(&settings, &folder, 1).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "0x46", "zz", &"00".repeat(32), &"ff".repeat(32)] {
            assert!(signing_key(&Secret::from(text.to_owned())).is_none(), "{text}");
        }
    }
}
