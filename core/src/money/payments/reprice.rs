//! Other amounts for an order by its own rules: another payment, or another price.

use rust_decimal::Decimal;

use crate::money::ledger::entries::OrderAmounts;
use crate::trading::pricing::{FeeRules, Given, Priced};
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
    /// The payment method's fixed fee, which does not grow with the amount, for an order that kept
    /// no rules.
    pub(crate) method_fixed: Decimal,
}

/// The amounts of an order for another payment, or at another price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repriced {
    /// The amounts, which obey the fee identity.
    pub(crate) amounts: OrderAmounts,
    /// The partner's fee in percent of the new amounts; `None` is that of before.
    pub(crate) partner_fee_percentage: Option<Decimal>,
}

/// The order for this payment at this price, priced as a quote by the rules that it kept; the
/// network's fee stays what it is. `None` if nothing is left after the fees, or a number does not
/// fit.
pub(crate) fn reprice(
    order: &OrderAmounts,
    rules: Option<&FeeRules>,
    paid: Decimal,
    price: Decimal,
    units: Units,
) -> Option<Repriced> {
    let Some(rules) = rules else {
        let amounts = scaled(order, paid, price, units)?;
        return Some(Repriced { amounts, partner_fee_percentage: None });
    };
    let Units { fiat_exponent, crypto_scale, .. } = units;
    let terms = rules.terms(order.side, price, order.fees.network, fiat_exponent, crypto_scale)?;
    let given = match order.side {
        Side::Buy => Given::Fiat(paid),
        Side::Sell => Given::Crypto(paid),
    };
    let Priced { fiat, crypto, fees, partner_fee_percentage, .. } = terms.price(given).ok()?;
    Some(Repriced {
        amounts: OrderAmounts { fiat, crypto, price, fees, ..order.clone() },
        partner_fee_percentage: Some(partner_fee_percentage),
    })
}

/// An order that kept no rules, which edges of earlier versions have made. Its fees keep the rates
/// that they came to; the network's fee and the method's fixed fee stay what they are.
fn scaled(
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
    use rampart_plugins::contract::FeeKind;
    use rampart_plugins::{Charge, FeeLine, FeeSchedule};

    use super::*;
    use crate::trading::pricing::tests::card;
    use crate::trading::pricing::{Bounds, Rules, Terms};
    use rampart_types::decimal::parse;

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

    fn decimal(text: &str) -> Decimal {
        parse(text).unwrap()
    }

    /// Terms of a policy with this fee for the partner: for the service 1 %, for the card 0.25 and
    /// 2.5 %, for the network 1.50, and a spread of 0.5 %.
    fn terms(side: Side, charge: Charge) -> Terms {
        let line = FeeLine { kind: FeeKind::Partner, code: "line".to_owned(), charge };
        let schedule = FeeSchedule { lines: vec![line], spread_ppm: 5_000, rule: String::new() };
        Terms {
            side,
            price: decimal("90000"),
            fiat_exponent: 2,
            crypto_scale: 8,
            provider_percentage: decimal("1"),
            network_fee: decimal("1.5"),
            rules: Rules::from_schedule(&schedule, &card(), Decimal::ONE).unwrap(),
            bounds: Bounds {
                partner_percentage_max: decimal("5"),
                payment_method_fixed: decimal("0.25"),
            },
        }
    }

    fn given(side: Side, paid: Decimal) -> Given {
        match side {
            Side::Buy => Given::Fiat(paid),
            Side::Sell => Given::Crypto(paid),
        }
    }

    /// The order of a quote by these terms over what is paid, if it has a price.
    fn quoted(terms: &Terms, paid: Decimal) -> Option<OrderAmounts> {
        let Terms { side, price, .. } = *terms;
        let Priced { fiat, crypto, fees, .. } = terms.price(given(side, paid)).ok()?;
        Some(OrderAmounts { fiat, crypto, price, fees, ..order(side) })
    }

    /// A purchase for 100 EUR by these terms, once this much was paid for it, and the fixed fee of
    /// its payment method is another one.
    fn paid(terms: &Terms, amount: &str) -> Repriced {
        let (order, rules) = (quoted(terms, decimal("100")), FeeRules::of(terms).unwrap());
        let units = Units { method_fixed: decimal("2"), ..UNITS };
        reprice(&order.unwrap(), Some(&rules), decimal(amount), terms.price, units).unwrap()
    }

    #[test]
    fn fixed_fees_stay_as_they_were_quoted() {
        let repriced = paid(&terms(Side::Buy, Charge::Flat(decimal("0.35"))), "82");
        let fees = repriced.amounts.fees;
        assert_eq!((fees.partner, fees.provider), (decimal("0.35"), decimal("0.82")));
        assert_eq!((fees.payment_method, fees.network), (decimal("2.3"), decimal("1.5")));
        assert_eq!(repriced.partner_fee_percentage, Some(decimal("0.4268")));
        assert!(holds(&repriced.amounts), "{repriced:?}");
    }

    #[test]
    fn a_least_and_a_largest_fee_hold_for_the_new_amount() {
        let (at_least, at_most) = (Some(decimal("2.5")), Some(decimal("4")));
        let terms = terms(Side::Buy, Charge::Rate { ppm: 10_000, at_least, at_most });
        for (amount, fee) in [("82", "2.5"), ("100", "2.5"), ("300", "3"), ("1000", "4")] {
            assert_eq!(paid(&terms, amount).amounts.fees.partner, decimal(fee), "{amount}");
        }
    }

    #[test]
    fn rules_that_cannot_be_read_price_nothing() {
        let unknown = FeeRules::from(vec![0_u8]);
        let order = order(Side::Buy);
        let repriced = reprice(&order, Some(&unknown), decimal("250"), order.price, UNITS);
        assert_eq!(repriced, None);
    }

    #[test]
    fn twice_the_payment_has_twice_the_fees_but_for_fixed_ones() {
        let twice = scaled(&order(Side::Buy), Decimal::from(500), Decimal::from(90_000), UNITS);
        let twice = twice.unwrap();
        assert_eq!(twice.fees.partner, Decimal::new(500, 2));
        assert_eq!(twice.fees.payment_method, Decimal::new(1_275, 2));
        assert_eq!(twice.fees.network, Decimal::new(150, 2));
        assert!(holds(&twice) && twice.crypto > Decimal::new(524_000, 8), "{twice:?}");
    }

    #[test]
    fn another_price_moves_the_coins_alone() {
        let moved = scaled(&order(Side::Buy), Decimal::from(250), Decimal::from(91_000), UNITS);
        let moved = moved.unwrap();
        assert_eq!((moved.fiat, moved.crypto), (Decimal::from(250), Decimal::new(259_131, 8)));
        assert!(holds(&moved));
    }

    #[test]
    fn nothing_is_left_of_too_little() {
        let little = scaled(&order(Side::Buy), Decimal::ONE, Decimal::from(90_000), UNITS);
        assert_eq!(little, None);
    }

    proptest! {
        #[test]
        fn an_order_is_repriced_as_it_would_be_quoted(
            paid in 1_i64..10_000_000, other in 1_i64..10_000_000, price in 1_i64..100_000_000,
            ppm in 0_i32..60_000, least in 0_i64..2_000,
        ) {
            let at_least = Some(Decimal::new(least, 2));
            for (side, scale) in [(Side::Buy, 2), (Side::Sell, 8)] {
                let terms = terms(side, Charge::Rate { ppm, at_least, at_most: None });
                let (paid, other) = (Decimal::new(paid, scale), Decimal::new(other, scale));
                let Some(order) = quoted(&terms, paid) else { continue };
                let rules = FeeRules::of(&terms).unwrap();
                let again = |paid, price| {
                    reprice(&order, Some(&rules), paid, price, UNITS).map(|new| new.amounts)
                };
                prop_assert_eq!(again(paid, terms.price), Some(order.clone()));
                let moved = Terms { price: Decimal::new(price, 2), ..terms.clone() };
                prop_assert_eq!(again(other, moved.price), quoted(&moved, other));
            }
        }

        #[test]
        fn the_identity_holds_for_every_payment_and_price(
            cents in 1_i64..100_000_000, price in 1_i64..100_000_000,
        ) {
            for (side, scale) in [(Side::Buy, 2), (Side::Sell, 8)] {
                let paid = Decimal::new(cents, scale);
                if let Some(order) = scaled(&order(side), paid, Decimal::new(price, 2), UNITS) {
                    prop_assert!(holds(&order), "{order:?}");
                    prop_assert_eq!(order.paid().0, paid);
                }
            }
        }
    }
}
