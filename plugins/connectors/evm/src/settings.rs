//! The configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use alloy::primitives::Address;
use rampart_connector::{EdgeSettings, SecretSource};
use rust_decimal::Decimal;
use serde::Deserialize;

use crate::amounts::DECIMALS_MAX;
use crate::payout::NATIVE_DECIMALS;

/// The whole configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) edge: EdgeSettings,
    pub(crate) chain: ChainSettings,
    pub(crate) key: KeySettings,
    #[serde(default)]
    pub(crate) payouts: PayoutSettings,
    /// By the code that an edge calls them.
    pub(crate) assets: BTreeMap<String, Asset>,
    /// Without it no deposit addresses are made, and nothing is watched.
    pub(crate) deposits: Option<DepositSettings>,
    /// Folder of locks and of what is known of deposits. Must outlive the process.
    pub(crate) state_folder: PathBuf,
}

/// The node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChainSettings {
    /// URL of its JSON-RPC.
    pub(crate) rpc_url: String,
    /// The chain's id.
    pub(crate) id: u64,
    /// Pause between two looks at the chain.
    #[serde(default = "poll_milliseconds")]
    pub(crate) poll_milliseconds: u64,
}

impl ChainSettings {
    pub(crate) const fn poll(&self) -> Duration {
        Duration::from_millis(self.poll_milliseconds)
    }
}

/// The key of the account that pays.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "KeyPlace")]
pub(crate) enum KeySettings {
    /// 32 bytes in hex, in a file or the environment.
    Secret(SecretSource),
    /// A program that signs by `eth_signTransaction`.
    Signer {
        /// Its URL.
        url: String,
        /// The account.
        address: Address,
    },
}

/// As it is written. Untagged, because what is there instead may be the key, which no error shows.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a key's place is { file = \"…\" }, { environment = \"NAME\" }, or a signer with \
                 url and address"
)]
enum KeyPlace {
    Secret(SecretSource),
    Elsewhere(Elsewhere),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Elsewhere {
    signer: SignerPlace,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignerPlace {
    url: String,
    address: Address,
}

impl From<KeyPlace> for KeySettings {
    fn from(place: KeyPlace) -> Self {
        match place {
            KeyPlace::Secret(source) => Self::Secret(source),
            KeyPlace::Elsewhere(Elsewhere { signer: SignerPlace { url, address } }) => {
                Self::Signer { url, address }
            }
        }
    }
}

/// Limits and times of payouts.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PayoutSettings {
    /// Most payouts at once that are on their way into a block.
    pub(crate) in_flight_max: u16,
    /// Length of a command's lease: a killed connector's payouts go on after it.
    pub(crate) lease_seconds: u16,
    /// Time without a block after which a transaction is replaced by one with higher fees.
    pub(crate) stuck_seconds: u64,
    /// Pause before a transaction that no block has is sent once more.
    pub(crate) resend_seconds: u64,
    /// Most coins of the chain that the network may have for a payout whose order pays no network fee.
    pub(crate) network_fee_max: Decimal,
}

impl Default for PayoutSettings {
    fn default() -> Self {
        Self {
            in_flight_max: 50,
            lease_seconds: 60,
            stuck_seconds: 180,
            resend_seconds: 30,
            network_fee_max: Decimal::new(1, 2),
        }
    }
}

/// An asset of the chain.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asset {
    /// The token's contract; the chain's own coin if left out.
    pub(crate) contract: Option<Address>,
    /// Decimals of its smallest unit.
    pub(crate) decimals: u8,
    /// Blocks, its own included, with which a transaction is final.
    pub(crate) confirmations: u64,
    /// Coins of the chain that one token is worth, by which `networkFeeMax` is read.
    pub(crate) native_price: Option<Decimal>,
}

/// Deposits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DepositSettings {
    /// The seed or the extended public key that addresses are derived from.
    pub(crate) keys: DepositKeys,
    /// Index of the first address, for a state folder that was lost.
    #[serde(default)]
    pub(crate) first_index: u32,
    /// First block to look at; the latest one at the first start if left out.
    pub(crate) first_block: Option<u64>,
}

/// The keys of deposit addresses.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "KeysPlace")]
pub(crate) enum DepositKeys {
    /// A BIP-32 seed in hex; addresses are `m/44'/60'/0'/0/index`.
    Seed(SecretSource),
    /// The extended public key of `m/44'/60'/0'/0`, without which no coin can be moved.
    Xpub(String),
}

/// As it is written. Untagged, because what is there instead may be the seed, which no error shows.
#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "keys are { seed = { file = \"…\" } }, { seed = { environment = \"NAME\" } }, or \
                 { xpub = \"…\" }"
)]
enum KeysPlace {
    Seed { seed: SecretSource },
    Xpub { xpub: String },
}

impl From<KeysPlace> for DepositKeys {
    fn from(place: KeysPlace) -> Self {
        match place {
            KeysPlace::Seed { seed } => Self::Seed(seed),
            KeysPlace::Xpub { xpub } => Self::Xpub(xpub),
        }
    }
}

const fn poll_milliseconds() -> u64 {
    2_000
}

impl Settings {
    /// The chain's own coin, which network fees are paid in, with its code; `None` where the connector
    /// has tokens alone.
    pub(crate) fn native_asset(&self) -> Option<(&str, &Asset)> {
        let mut assets = self.assets.iter().map(|(code, asset)| (code.as_str(), asset));
        assets.find(|(_, asset)| asset.contract.is_none())
    }

    /// Checks what types do not.
    ///
    /// # Errors
    /// One sentence that begins with the key.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let within = |key: &str, value: u64, from: u64, to: u64| {
            let good = (from..=to).contains(&value);
            good.then_some(()).ok_or_else(|| format!("{key}: {from} to {to}"))
        };
        within("chain.poll_milliseconds", self.chain.poll_milliseconds, 50, 60_000)?;
        let payouts = &self.payouts;
        within("payouts.in_flight_max", payouts.in_flight_max.into(), 1, 100)?;
        within("payouts.lease_seconds", payouts.lease_seconds.into(), 10, 600)?;
        within("payouts.stuck_seconds", payouts.stuck_seconds, 1, 86_400)?;
        within("payouts.resend_seconds", payouts.resend_seconds, 1, 3_600)?;
        if payouts.network_fee_max <= Decimal::ZERO {
            return Err("payouts.network_fee_max: above 0".to_owned());
        }
        if self.assets.is_empty() {
            return Err("assets: none".to_owned());
        }
        for (code, asset) in &self.assets {
            let key = |member: &str| format!("assets.{code}.{member}");
            within(&key("decimals"), asset.decimals.into(), 0, DECIMALS_MAX.into())?;
            within(&key("confirmations"), asset.confirmations, 1, 10_000)?;
            match (asset.contract, asset.native_price) {
                (Some(_), Some(price)) if price > Decimal::ZERO => {}
                (Some(_), _) => return Err(format!("{}: missing", key("native_price"))),
                (None, Some(_)) => {
                    return Err(format!("{}: only of a token", key("native_price")));
                }
                // Every chain of this kind counts its own coin so, and fees are paid in it.
                (None, None) if asset.decimals != NATIVE_DECIMALS => {
                    return Err(format!("{}: {NATIVE_DECIMALS}", key("decimals")));
                }
                (None, None) => {}
            }
            // A deposit would be told as one of both.
            let same = |other: &&String| self.assets[*other].contract == asset.contract;
            if let Some(other) = self.assets.keys().take_while(|other| *other != code).find(same) {
                return Err(format!("{}: that of {other} too", key("contract")));
            }
        }
        Ok(())
    }

    /// The asset that an edge calls so.
    pub(crate) fn asset(&self, code: &str) -> Option<&Asset> {
        self.assets.get(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../evm.toml");

    fn read(text: &str) -> Result<Settings, String> {
        let settings: Settings = toml::from_str(text).map_err(|error| error.to_string())?;
        settings.validate().map(|()| settings)
    }

    #[test]
    fn the_example_is_a_configuration() {
        let settings = read(EXAMPLE).unwrap();
        assert!(matches!(settings.key, KeySettings::Secret(SecretSource::File(_))));
        assert!(settings.asset("USDC").unwrap().contract.is_some());
        assert!(settings.deposits.is_some());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, named) in [
            ("confirmations = 12", "confirmations = 0", "confirmations"),
            ("decimals = 18", "decimals = 99", "decimals"),
            ("decimals = 18", "decimals = 8", "assets.ETH.decimals"),
            (
                "[payouts]",
                "[assets.WEI]\ndecimals = 18\nconfirmations = 1\n[payouts]",
                "assets.WEI",
            ),
            ("native_price = \"0.0003\"", "", "native_price"),
            ("lease_seconds = 60", "lease_seconds = 1", "lease_seconds"),
            ("network_fee_max = \"0.01\"", "network_fee_max = \"0\"", "network_fee_max"),
            ("poll_milliseconds = 2000", "poll_ms = 5", "poll_ms"),
        ] {
            let refused = read(&EXAMPLE.replace(from, to)).unwrap_err();
            assert!(refused.contains(named), "{from}: {refused}");
        }
    }

    #[test]
    fn a_key_may_be_elsewhere() {
        let external = "[key.signer]\nurl = \"http://127.0.0.1:9000\"\n\
            address = \"0x52908400098527886E0F7030069857D2E4169EE7\"";
        let own = "[key]\nfile = \"/etc/rampart/evm.key\"";
        assert!(EXAMPLE.contains(own));
        let settings = read(&EXAMPLE.replace(own, external)).unwrap();
        assert!(matches!(settings.key, KeySettings::Signer { .. }));
        let settings = read(&EXAMPLE.replace(own, "[key]\nenvironment = \"EVM_KEY\"")).unwrap();
        assert!(matches!(settings.key, KeySettings::Secret(SecretSource::Environment(_))));
    }

    #[test]
    fn a_key_that_is_written_itself_is_not_shown() {
        for keys in ["\"4646\"", "{ seed = \"4646\" }", "{ file = \"4646\" }"] {
            let deposits = toml::from_str::<DepositSettings>(&format!("keys = {keys}\n"));
            let told = deposits.unwrap_err().message().to_owned();
            assert!(told.starts_with("keys are {") && !told.contains("4646"), "{told}");
        }
        for key in ["\"4646\"", "{ file = \"a\", environment = \"4646\" }", "{ signer = \"4646\" }"]
        {
            let key = toml::from_str::<BTreeMap<String, KeySettings>>(&format!("key = {key}\n"));
            let told = key.unwrap_err().message().to_owned();
            assert!(told.starts_with("a key's place is {") && !told.contains("4646"), "{told}");
        }
        let own = "keys = { seed = { environment = \"SEED\" } }";
        let deposits: DepositSettings = toml::from_str(own).unwrap();
        assert!(matches!(deposits.keys, DepositKeys::Seed(SecretSource::Environment(_))));
    }
}
