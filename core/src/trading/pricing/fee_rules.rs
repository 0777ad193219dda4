//! The rules by which a trade was priced, as its quote and its order keep them, so that another
//! amount or another price has the fees that the same rules give it.

use rust_decimal::Decimal;

use super::{Bounds, Rules, Terms};
use crate::platform::error::{Error, Result};
use crate::trading::packed::Packed;
use crate::trading::quotes::Side;

/// The first byte, the version of the encoding. Orders keep their bytes: any change to the encoded
/// types needs another one, beside which this one stays readable.
const FORMAT: u8 = 1;

/// Everything in the terms of a trade that neither the amounts of its order nor its currencies say,
/// encoded: some 25 bytes, of a policy with bounds more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeeRules(Vec<u8>);

impl FeeRules {
    /// The rules of these terms.
    ///
    /// # Errors
    /// When they cannot be encoded, which is our fault.
    pub(crate) fn of(terms: &Terms) -> Result<Self> {
        let rules = (Packed(terms.provider_percentage), &terms.rules, terms.bounds);
        postcard::to_extend(&rules, vec![FORMAT])
            .map(Self)
            .map_err(|error| Error::internal("write the rules of a quote", error))
    }

    /// The bytes, as an order's row has them.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The terms of a trade by these rules; the network's fee is that of its order. `None` if this
    /// version cannot read them.
    pub(crate) fn terms(
        &self,
        side: Side,
        price: Decimal,
        network_fee: Decimal,
        fiat_exponent: u32,
        crypto_scale: u32,
    ) -> Option<Terms> {
        let encoded = self.0.strip_prefix(&[FORMAT])?;
        let (rules, rest) = postcard::take_from_bytes::<(Packed, Rules, Bounds)>(encoded).ok()?;
        let (Packed(provider_percentage), rules, bounds) = rules;
        rest.is_empty().then_some(Terms {
            side,
            price,
            fiat_exponent,
            crypto_scale,
            provider_percentage,
            network_fee,
            rules,
            bounds,
        })
    }
}

impl From<Vec<u8>> for FeeRules {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trading::pricing::Given;
    use rampart_types::decimal::parse;

    /// Rules by which the partner gets 1 %, at least 2.50 and at most 4, as orders have kept them.
    const BOUNDED: &str = "0102000100000200013201010800013202320100000a01000a003202";

    #[test]
    fn the_bounds_of_a_fee_are_read_as_they_were_kept() {
        let decimal = |text| parse(text).unwrap();
        let kept = FeeRules::from(hex::decode(BOUNDED).unwrap());
        let terms = kept.terms(Side::Buy, decimal("90000"), decimal("1.5"), 2, 8).unwrap();
        for (paid, fee) in [("100", "2.5"), ("300", "3"), ("1000", "4")] {
            let priced = terms.price(Given::Fiat(decimal(paid))).unwrap();
            assert_eq!(priced.fees.partner, decimal(fee), "{paid}");
        }
        assert_eq!(FeeRules::of(&terms).unwrap(), kept);
    }
}
