//! Deposit addresses: made by index from one extended public key, watched from then on.

mod watch;

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use alloy::primitives::{Address, hex};
use bip32::{ChildNumber, DerivationPath, XPrv, XPub};
use rampart_connector::{Client, Command, Held, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::settings::{DepositKeys, DepositSettings, Settings};
use crate::state::{State, StateFile, lock};

/// Below it are the addresses, by index: the first account of BIP-44.
const PATH: &str = "m/44'/60'/0'/0";
/// Most addresses of one command.
const ADDRESSES_MAX: u32 = 1_000;
/// Name of the file in the state folder by which one process has its deposits.
const LOCK: &str = "deposits.lock";

/// The body of `deposit.address`.
#[derive(Debug, Deserialize)]
struct AddressBody {
    asset: String,
    count: u32,
}

/// The addresses that a command was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Range {
    first: u32,
    count: u32,
}

/// The addresses of this connector.
pub(crate) struct Deposits {
    keys: XPub,
    file: StateFile,
    first_block: Option<u64>,
    known: Mutex<Known>,
    /// Held as long as the process lives.
    _lock: File,
}

struct Known {
    state: State,
    addresses: HashSet<Address>,
}

impl Deposits {
    /// Derives the addresses that were made so far, and locks their folder for this process: another
    /// one, such as that of another chain, would give the same addresses again, and pass over blocks.
    ///
    /// # Errors
    /// One sentence for a person, such as that another process has the folder.
    pub(crate) fn open(settings: &DepositSettings, folder: &Path) -> Result<Self, String> {
        let keys = extended_key(&settings.keys)?;
        let lock = lock(folder, LOCK, "the deposits of this folder")?;
        let file = StateFile::new(folder);
        let mut state = file.read().map_err(|error| format!("cannot read the state: {error}"))?;
        state.next_index = state.next_index.max(settings.first_index);
        let addresses = derive(&keys, 0..state.next_index)?;
        let known = Mutex::new(Known { state, addresses: addresses.into_iter().collect() });
        Ok(Self { keys, file, first_block: settings.first_block, known, _lock: lock })
    }

    /// Makes the addresses that a command wants. No address is made for two commands: the next index
    /// is on the disk before the checkpoint names the range. None is made for an asset that is not
    /// watched. `None` if the lease is lost.
    ///
    /// # Errors
    /// One sentence; the command then comes again.
    pub(crate) async fn make(
        &self,
        settings: &Settings,
        edge: &Client,
        command: &Command,
    ) -> Result<Option<Outcome>, String> {
        let body: AddressBody = match command.body() {
            Ok(body) => body,
            Err(error) => {
                let reason = format!("the body cannot be read: {error}");
                return Ok(Some(Outcome::rejected(reason)));
            }
        };
        if settings.asset(&body.asset).is_none() {
            return Ok(Some(Outcome::rejected(format!("{} is not configured", body.asset))));
        }
        let earlier: Option<Range> = command.checkpoint().map_err(|error| error.to_string())?;
        let range = match earlier {
            Some(range) => range,
            None => self.reserve(body.count.clamp(1, ADDRESSES_MAX))?,
        };
        let held = edge.checkpoint(command, &range, settings.payouts.lease_seconds).await;
        if held.map_err(|error| error.to_string())? == Held::No {
            return Ok(None);
        }
        let addresses = self.addresses(range)?;
        tracing::info!(asset = body.asset, count = range.count, "deposit addresses are made");
        let addresses: Vec<Value> = addresses
            .into_iter()
            .map(|address| json!({ "address": address.to_checksum(None) }))
            .collect();
        Ok(Some(Outcome::Done { result: Value::Array(addresses) }))
    }

    /// Takes the next indices for good.
    fn reserve(&self, count: u32) -> Result<Range, String> {
        let mut known = self.lock();
        let first = known.state.next_index;
        let next = first.checked_add(count).filter(|next| *next < ChildNumber::HARDENED_FLAG);
        let next_index = next.ok_or("there are no more addresses")?;
        let state = State { next_index, ..known.state };
        self.file.write(state).map_err(|error| format!("cannot write the state: {error}"))?;
        known.state = state;
        Ok(Range { first, count })
    }

    /// Derives the addresses of a range, which are watched from now on.
    fn addresses(&self, range: Range) -> Result<Vec<Address>, String> {
        let end = range.first.saturating_add(range.count);
        let addresses = derive(&self.keys, range.first..end)?;
        let mut known = self.lock();
        known.addresses.extend(&addresses);
        // A command from before the state was lost.
        known.state.next_index = known.state.next_index.max(end);
        Ok(addresses)
    }

    fn is_ours(&self, address: &Address) -> bool {
        self.lock().addresses.contains(address)
    }

    fn next_block(&self) -> Option<u64> {
        self.lock().state.next_block.or(self.first_block)
    }

    /// Notes that every block before this one was looked at and told of.
    fn looked_at(&self, next: u64) -> Result<(), String> {
        let mut known = self.lock();
        let state = State { next_block: Some(next), ..known.state };
        self.file.write(state).map_err(|error| format!("cannot write the state: {error}"))?;
        known.state = state;
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key above the addresses.
fn extended_key(keys: &DepositKeys) -> Result<XPub, String> {
    let wrong = |error: bip32::Error| format!("deposits.keys: {error}");
    match keys {
        DepositKeys::Xpub(text) => text.parse().map_err(wrong),
        DepositKeys::Seed(source) => {
            let secret = source.read().map_err(|error| format!("deposits.keys: {error}"))?;
            let seed = hex::decode(secret.expose());
            let seed = seed.map_err(|_| "deposits.keys: the seed is not in hex".to_owned())?;
            let path: DerivationPath = PATH.parse().map_err(wrong)?;
            Ok(XPrv::derive_from_path(&seed, &path).map_err(wrong)?.public_key())
        }
    }
}

fn derive(keys: &XPub, indices: std::ops::Range<u32>) -> Result<Vec<Address>, String> {
    let address = |index| {
        let child = ChildNumber::new(index, false).and_then(|number| keys.derive_child(number));
        let child = child.map_err(|error| format!("cannot derive address {index}: {error}"))?;
        Ok(Address::from_public_key(child.public_key()))
    };
    indices.map(address).collect()
}

/// Confirmations with which a deposit is told: the most that an asset wants.
fn confirmations(settings: &Settings) -> u64 {
    settings.assets.values().map(|asset| asset.confirmations).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use rampart_connector::{EdgeSettings, SecretSource};

    use super::*;

    /// The seed of twelve words that every development node uses: "test … junk".
    const SEED: &str = "9dfc3c64c2f8bede1533b6a79f8570e5943e0b8fd1cf77107adf7b72cef42185d564a3aee24cab43f80e3c4538087d70fc824eabbad596a23c97b6ee8322ccc0";

    fn settings(folder: &Path, first_index: u32) -> DepositSettings {
        let file = folder.join("seed");
        std::fs::write(&file, SEED).unwrap();
        let keys = DepositKeys::Seed(SecretSource::File(file));
        DepositSettings { keys, first_index, first_block: None }
    }

    #[test]
    fn addresses_are_those_of_every_wallet_and_come_once() {
        let folder = std::env::temp_dir().join(format!("rampart-bip32-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let deposits = Deposits::open(&settings(&folder, 0), &folder).unwrap();
        let range = deposits.reserve(2).unwrap();
        let made = deposits.addresses(range).unwrap();
        let expected = [
            "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
            "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        ];
        assert_eq!(made.iter().map(|made| made.to_checksum(None)).collect::<Vec<_>>(), expected);
        assert!(made.iter().all(|made| deposits.is_ours(made)));
        let refused = Deposits::open(&settings(&folder, 0), &folder).err().unwrap();
        assert!(refused.starts_with("another process has the deposits"), "{refused}");
        // Killed here: the range was reserved, so that nobody else gets it.
        drop(deposits);
        let again = Deposits::open(&settings(&folder, 0), &folder).unwrap();
        assert!(again.is_ours(&made[1]));
        assert_eq!(again.reserve(1).unwrap(), Range { first: 2, count: 1 });
        again.looked_at(77).unwrap();
        drop(again);
        let later = Deposits::open(&settings(&folder, 9), &folder).unwrap();
        assert_eq!(later.next_block(), Some(77));
        assert_eq!(later.reserve(1).unwrap().first, 9);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// The extended public key of the seed's addresses.
    pub(super) fn public_key() -> DepositKeys {
        let seed = hex::decode(SEED).unwrap();
        let public = XPrv::derive_from_path(&seed, &PATH.parse().unwrap()).unwrap().public_key();
        DepositKeys::Xpub(public.to_string(bip32::Prefix::XPUB))
    }

    #[test]
    fn a_public_key_is_enough() {
        let made = derive(&extended_key(&public_key()).unwrap(), 0..1).unwrap();
        assert_eq!(made[0].to_checksum(None), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
        assert!(extended_key(&DepositKeys::Xpub("xpub661".to_owned())).is_err());
    }

    #[tokio::test]
    async fn no_address_is_made_for_coins_that_nobody_watches() {
        let folder = std::env::temp_dir().join(format!("rampart-asset-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let deposits = Deposits::open(&settings(&folder, 0), &folder).unwrap();
        let configured: Settings = rampart_connector::program::read(Path::new("evm.toml")).unwrap();
        std::fs::write(folder.join("token"), "rcn_abc").unwrap();
        let token = SecretSource::File(folder.join("token"));
        let edge = EdgeSettings { url: "http://127.0.0.1:9".to_owned(), token, ca_file: None };
        let edge = Client::new(&edge).unwrap();
        let command = json!({"id": "c-1", "kind": "deposit.address", "attempt": 1,
            "leaseToken": "lease", "checkpoint": null, "body": {"asset": "DAI", "count": 5}});
        let command: Command = serde_json::from_value(command).unwrap();
        let made = deposits.make(&configured, &edge, &command).await.unwrap();
        assert!(matches!(made, Some(Outcome::Rejected { reason, .. })
            if reason == "DAI is not configured"));
        assert_eq!(deposits.reserve(1).unwrap().first, 0, "no index is used up");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
