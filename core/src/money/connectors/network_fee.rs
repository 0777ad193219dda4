//! The fee that a chain took for a payout, whether its coins arrived or its transaction failed.

use rampart_types::decimal;
use rampart_types::money::AMOUNT_MAX;
use rust_decimal::Decimal;
use serde_json::Value;

use crate::Core;
use crate::money::ledger::{self, AccountKind, Posting, Subject};
use crate::money::payments::store::currency_of;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Longest name of an asset, in characters.
const ASSET_CHARS_MAX: usize = 255;

/// The fee that a chain took, in coins of `asset`.
#[derive(Debug)]
pub(super) struct NetworkFee {
    amount: Decimal,
    /// An asset's code or CAIP-19 id, as the connector names it.
    asset: String,
}

impl NetworkFee {
    /// The fee that a document states in `networkFee` and `networkFeeAsset`; without the latter it is
    /// of the document's `asset`. One that has not this form is none: it is no reason to refuse what
    /// else the document tells.
    pub(super) fn read(document: &Value) -> Option<Self> {
        let amount = decimal::from_number(&document["networkFee"])?;
        let asset = document["networkFeeAsset"].as_str().or(document["asset"].as_str())?;
        let is_name = (1..=ASSET_CHARS_MAX).contains(&asset.chars().count())
            && !asset.contains(char::is_control);
        let is_amount = amount > Decimal::ZERO && amount <= Decimal::from(AMOUNT_MAX);
        (is_name && is_amount).then(|| Self { amount, asset: asset.to_owned() })
    }

    /// Books it: the treasury has paid it.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn book(
        &self,
        conn: &mut Connection,
        core: &Core,
        of: &Subject,
    ) -> Result<()> {
        let (asset, _) = currency_of(core, &self.asset);
        let paid = [
            Posting::new(AccountKind::FeeNetwork, &asset, self.amount),
            Posting::new(AccountKind::Treasury, &asset, -self.amount),
        ];
        Ok(ledger::post(conn, core, "network-fee", of, &paid).await?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fee_in_an_asset_without_a_name_is_none() {
        let read = |asset: &str| {
            NetworkFee::read(&json!({"networkFee": 1, "networkFeeAsset": asset, "asset": "USDC"}))
        };
        assert_eq!(read("ETH").unwrap().asset, "ETH");
        for wrong in ["", "a\u{0}b", "a\nb", &"x".repeat(ASSET_CHARS_MAX + 1)] {
            assert!(read(wrong).is_none(), "{wrong:?}");
        }
    }
}
