//! One payout: what is commanded, and what must not be forgotten of it.
//!
//! A payout's transactions all have one nonce, so that the chain takes at most one of them, and they
//! are in the checkpoint before the network has them. Only when another transaction, one of somebody
//! else, has used the nonce for good is there a second nonce: then none of the first can ever count.

mod follow;

use alloy::primitives::{Address, B256, Bytes};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::follow::carry_out;
use crate::amounts::to_units;
use crate::settings::{Asset, Settings};
use crate::transaction::{Transfer, decode, hash};

/// Decimals of the coin of every chain of this kind.
pub(crate) const NATIVE_DECIMALS: u8 = 18;
/// Most transactions of one nonce, the first and its replacements. They fit a checkpoint.
const TRANSACTIONS_MAX: usize = 24;

/// The body of `payout.send`, as far as it matters here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PayoutBody {
    pub(crate) asset: String,
    pub(crate) amount: Decimal,
    address: String,
    #[serde(default)]
    tag: Value,
    network_fee_max: Decimal,
    #[serde(default)]
    pub(crate) order_id: Value,
}

/// A body as it is carried out on this chain.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) transfer: Transfer,
    /// Most wei that the network may have.
    pub(crate) fee_max: alloy::primitives::U256,
    /// Blocks with which it is final.
    pub(crate) confirmations: u64,
}

impl PayoutBody {
    /// Reads it for this chain.
    ///
    /// # Errors
    /// One sentence when it can never be carried out.
    pub(crate) fn order(&self, settings: &Settings) -> Result<Order, String> {
        let asset = settings.asset(&self.asset);
        let asset = asset.ok_or_else(|| format!("{} is not configured", self.asset))?;
        if !matches!(&self.tag, Value::Null) && self.tag != "" {
            return Err("an address of this chain has no tag".to_owned());
        }
        let units = to_units(self.amount, asset.decimals).filter(|units| !units.is_zero());
        let units = units.ok_or("the amount is not of whole units above zero")?;
        let fee_max = self.fee_max(asset, settings.payouts.network_fee_max);
        let fee_max = fee_max.ok_or("networkFeeMax is out of range")?;
        let to = recipient(&self.address).ok_or("the address is none of this chain")?;
        let transfer = Transfer { token: asset.contract, to, units };
        Ok(Order { transfer, fee_max, confirmations: asset.confirmations })
    }

    /// `networkFeeMax` is in coins of the asset; the network takes the chain's own, of which `own_max`
    /// are the bound of an order that pays no fee: a bound of nothing would let no coins go.
    fn fee_max(&self, asset: &Asset, own_max: Decimal) -> Option<alloy::primitives::U256> {
        let price = asset.native_price.unwrap_or(Decimal::ONE);
        let native = match self.network_fee_max.is_zero() {
            true => own_max,
            false => self.network_fee_max.checked_mul(price)?,
        };
        to_units(native.trunc_with_scale(NATIVE_DECIMALS.into()), NATIVE_DECIMALS)
    }
}

/// An address in hex. One with letters of both cases has a checksum, which must be right.
fn recipient(text: &str) -> Option<Address> {
    let digits = text.strip_prefix("0x")?;
    let has = |test: fn(&char) -> bool| digits.chars().any(|letter| test(&letter));
    if has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase) {
        return Address::parse_checksummed(text, None).ok();
    }
    text.parse().ok()
}

/// The checkpoint of a payout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Checkpoint {
    attempts: Vec<Attempt>,
}

/// Everything that was signed with one nonce.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attempt {
    pub(crate) nonce: u64,
    /// Number of the latest block when it was taken.
    pub(crate) since_block: u64,
    /// Bytes as they were, or will be, sent; the last ones have the highest fees.
    pub(crate) signed: Vec<Bytes>,
    /// The transaction of somebody else that has used the nonce for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) taken_by: Option<B256>,
}

impl Attempt {
    /// The account whose nonce it is: that of the key which has signed it, which may not be the one that
    /// pays now. `None` without signed bytes.
    pub(crate) fn account(&self) -> Option<Address> {
        self.signed.last().and_then(decode).map(|(_, account)| account)
    }

    /// Hashes of what was signed, the last one first.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = B256> {
        self.signed.iter().rev().map(hash)
    }

    /// True if there is room for a replacement.
    pub(crate) const fn can_grow(&self) -> bool {
        self.signed.len() < TRANSACTIONS_MAX
    }
}

impl Checkpoint {
    /// The attempt that may still count.
    pub(crate) fn live(&self) -> Option<&Attempt> {
        self.attempts.last().filter(|attempt| attempt.taken_by.is_none())
    }

    /// Another nonce with its first transaction.
    ///
    /// The last one is dead: there never are two that may count.
    pub(crate) fn begin(&mut self, attempt: Attempt) {
        debug_assert!(self.live().is_none());
        self.attempts.push(attempt);
    }

    /// Another transaction with the same nonce.
    pub(crate) fn replace(&mut self, signed: Bytes) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.signed.push(signed);
        }
    }

    /// Notes that the nonce is used by another's transaction for good.
    pub(crate) fn bury(&mut self, taken_by: B256) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.taken_by = Some(taken_by);
            // Nobody needs the bytes of what cannot count.
            attempt.signed.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use alloy::primitives::U256;
    use serde_json::json;

    use super::*;

    fn settings() -> Settings {
        rampart_connector::program::read(std::path::Path::new("evm.toml")).unwrap()
    }

    fn body(change: Value) -> PayoutBody {
        let mut body = json!({"orderId": 7, "asset": "ETH", "amount": 0.05, "tag": null,
            "address": "0x52908400098527886E0F7030069857D2E4169EE7", "networkFeeMax": 0.0002});
        for (member, value) in change.as_object().unwrap() {
            body[member] = value.clone();
        }
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn a_body_means_a_transfer() {
        let order = body(json!({})).order(&settings()).unwrap();
        assert_eq!(order.transfer.units, U256::from(50_000_000_000_000_000_u64));
        assert_eq!((order.transfer.token, order.confirmations), (None, 12));
        assert_eq!(order.fee_max, U256::from(200_000_000_000_000_u64));
        let order = body(json!({"asset": "USDC", "amount": 12.5, "networkFeeMax": 2}));
        let order = order.order(&settings()).unwrap();
        assert_eq!(order.transfer.units, U256::from(12_500_000));
        assert_eq!(order.fee_max, U256::from(600_000_000_000_000_u64), "2 USDC are 0.0006 ETH");
    }

    #[test]
    fn a_payout_whose_order_pays_no_network_fee_is_bounded_by_the_configuration() {
        for asset in ["ETH", "USDC"] {
            let order =
                body(json!({"asset": asset, "networkFeeMax": 0})).order(&settings()).unwrap();
            assert_eq!(order.fee_max, U256::from(10_000_000_000_000_000_u64), "{asset}");
        }
    }

    #[test]
    fn what_can_never_be_sent_is_refused() {
        for wrong in [
            json!({"asset": "DOGE"}),
            json!({"amount": 0}),
            json!({"amount": -1}),
            json!({"asset": "USDC", "amount": 0.000_000_1}),
            json!({"tag": "7"}),
            json!({"address": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}),
            json!({"address": "0x52908400098527886e0F7030069857D2E4169EE7"}),
            json!({"networkFeeMax": -1}),
        ] {
            assert!(body(wrong.clone()).order(&settings()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_full_checkpoint_fits() {
        let mut checkpoint = Checkpoint::default();
        let signed = || Bytes::from(vec![0xff; 190]);
        for nonce in 0..6 {
            checkpoint.begin(Attempt {
                nonce,
                since_block: u64::MAX,
                signed: vec![signed()],
                taken_by: None,
            });
            while checkpoint.live().unwrap().can_grow() {
                checkpoint.replace(signed());
            }
            let bytes = serde_json::to_vec(&checkpoint).unwrap().len();
            assert!(bytes < 16 * 1024, "{bytes}");
            checkpoint.bury(B256::repeat_byte(1));
            assert_eq!(checkpoint.live(), None);
        }
    }

    #[test]
    fn a_checkpoint_is_read_as_it_was_written() {
        let mut checkpoint = Checkpoint::default();
        let signed = vec![Bytes::from(vec![2, 7])];
        checkpoint.begin(Attempt { nonce: 7, since_block: 9, signed, taken_by: None });
        checkpoint.replace(Bytes::from(vec![2, 8]));
        let text = serde_json::to_string(&checkpoint).unwrap();
        assert_eq!(serde_json::from_str::<Checkpoint>(&text).unwrap(), checkpoint);
        let hashes: Vec<_> = checkpoint.live().unwrap().hashes().collect();
        assert_eq!(hashes[0], hash(&Bytes::from(vec![2, 8])), "the last one first");
    }
}
