//! Other amounts for an order by its own rules: another payment, or another price.

use rust_decimal::Decimal;

use crate::money::ledger::entries::OrderAmounts;
use crate::trading::quotes::Side;
use rampart_types::FeeBreakdown;
use rampart_types::decimal::{divide_down, sum};
use rampart_types::money::{fiat_value, round_fiat};

/// Decimals of an order's currencies and its payment method's fixed fee, by the catalogue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    /// Decimals of the fiat currency.
    pub(crate) fiat_exponent: u32,
    /// Decimals of crypto amounts.
    pub(crate) crypto_scale: u32,
    /// The payment method's fixed fee, which does not grow with the amount.
    pub(crate) method_fixed: Decimal,
}

/// The order for this payment at this price. Its fees keep their rates; the network's fee and the
/// method's fixed fee stay what they are. `None` if nothing is left after the fees, or a number does
/// not fit.
pub(crate) fn reprice(
    order: &OrderAmounts,
    paid: Decimal,
    price: Decimal,
    units: Units,
) -> Option<OrderAmounts> {
    let Units { fiat_exponent: exponent, crypto_scale, .. } = units;
    let basis = fee_basis(order.side, paid, price, exponent)?;
    let fees = scaled_fees(order, basis, units)?;
    let rest = sum([basis, -fees.total()?])?;
    let repriced = match order.side {
        Side::Buy => {
            let crypto = divide_down(rest, price, crypto_scale)?;
            let fees = fees.with_residue_in_spread(paid, crypto, price, exponent)?;
            OrderAmounts { fiat: paid, crypto, price, fees, ..order.clone() }
        }
        Side::Sell => OrderAmounts { fiat: rest, crypto: paid, price, fees, ..order.clone() },
    };
    let positive = repriced.fiat > Decimal::ZERO && repriced.crypto > Decimal::ZERO;
    positive.then_some(repriced)
}

/// The fiat that the fees of an order are parts of. `None` if it does not fit.
fn fee_basis(side: Side, paid: Decimal, price: Decimal, exponent: u32) -> Option<Decimal> {
    match side {
        Side::Buy => Some(paid),
        Side::Sell => fiat_value(paid, price, exponent),
    }
}

/// The order's fees for another basis.
fn scaled_fees(order: &OrderAmounts, basis: Decimal, units: Units) -> Option<FeeBreakdown> {
    let fees = &order.fees;
    let before = fee_basis(order.side, order.paid().0, order.price, units.fiat_exponent)?;
    if before == basis {
        return Some(*fees);
    }
    let scale = |fee: Decimal| {
        let scaled = fee.checked_mul(basis)?.checked_div(before)?;
        Some(round_fiat(scaled, units.fiat_exponent))
    };
    let fixed = units.method_fixed.min(fees.payment_method);
    Some(FeeBreakdown {
        partner: scale(fees.partner)?,
        provider: scale(fees.provider)?,
        payment_method: sum([fixed, scale(fees.payment_method - fixed)?])?,
        network: fees.network,
        spread: scale(fees.spread)?,
        affiliate: scale(fees.affiliate)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNITS: Units = Units {
        fiat_exponent: 2,
        crypto_scale: 8,
        method_fixed: Decimal::from_parts(25, 0, 0, false, 2),
    };

    /// 250 EUR at 90,000 for a bitcoin.
    fn order(side: Side) -> OrderAmounts {
        let fees = FeeBreakdown {
            partner: Decimal::new(250, 2),
            provider: Decimal::new(250, 2),
            payment_method: Decimal::new(650, 2),
            network: Decimal::new(150, 2),
            spread: Decimal::new(119, 2),
            affiliate: Decimal::ZERO,
        };
        let fiat = if side == Side::Buy { 25_000 } else { 22_162 };
        OrderAmounts {
            side,
            fiat: Decimal::new(fiat, 2),
            fiat_currency: "EUR".to_owned(),
            crypto: Decimal::new(262_011, 8),
            crypto_currency: "BTC".to_owned(),
            price: Decimal::from(90_000),
            fees,
        }
    }

    fn holds(order: &OrderAmounts) -> bool {
        let OrderAmounts { side, fiat, crypto, price, fees, .. } = order;
        let worth = fiat_value(*crypto, *price, 2).unwrap();
        let total = fees.total().unwrap();
        match side {
            Side::Buy => *fiat == worth + total,
            Side::Sell => *fiat == worth - total,
        }
    }

    #[test]
    fn twice_the_payment_has_twice_the_fees_but_for_fixed_ones() {
        let twice = reprice(&order(Side::Buy), Decimal::from(500), Decimal::from(90_000), UNITS);
        let twice = twice.unwrap();
        assert_eq!(twice.fees.partner, Decimal::new(500, 2));
        assert_eq!(twice.fees.payment_method, Decimal::new(1_275, 2));
        assert_eq!(twice.fees.network, Decimal::new(150, 2));
        assert!(holds(&twice) && twice.crypto > Decimal::new(524_000, 8), "{twice:?}");
    }

    #[test]
    fn another_price_moves_the_coins_alone() {
        let moved = reprice(&order(Side::Buy), Decimal::from(250), Decimal::from(91_000), UNITS);
        let moved = moved.unwrap();
        assert_eq!((moved.fiat, moved.crypto), (Decimal::from(250), Decimal::new(259_131, 8)));
        assert!(holds(&moved));
    }

    #[test]
    fn nothing_is_left_of_too_little() {
        let little = reprice(&order(Side::Buy), Decimal::ONE, Decimal::from(90_000), UNITS);
        assert_eq!(little, None);
    }

    proptest! {
        #[test]
        fn the_identity_holds_for_every_payment_and_price(
            cents in 1_i64..100_000_000, price in 1_i64..100_000_000,
        ) {
            for (side, scale) in [(Side::Buy, 2), (Side::Sell, 8)] {
                let paid = Decimal::new(cents, scale);
                if let Some(order) = reprice(&order(side), paid, Decimal::new(price, 2), UNITS) {
                    prop_assert!(holds(&order), "{order:?}");
                    prop_assert_eq!(order.paid().0, paid);
                }
            }
        }
    }
}
