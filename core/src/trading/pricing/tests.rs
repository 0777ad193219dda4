use proptest::prelude::*;
use rampart_plugins::contract::FeeKind;
use rampart_plugins::{Charge, FeeLine, FeeSchedule};

use super::*;
use crate::trading::catalogue::{PaymentMethod, PaymentMethodKind};
use rampart_types::decimal::{fits_decimals, parse};

fn decimal(text: &str) -> Decimal {
    parse(text).unwrap()
}

fn method(fixed: &str, percentage: &str) -> PaymentMethod {
    PaymentMethod {
        code: "creditCard".to_owned(),
        label: String::new(),
        psp: String::new(),
        kind: PaymentMethodKind::Card,
        limit: Decimal::from(AMOUNT_MAX),
        fee_fixed: decimal(fixed),
        fee_percentage: decimal(percentage),
        expiration_period_seconds: 900,
        open_in_new_tab: false,
        uses_estimated_quote: false,
        enabled: true,
        context: serde_json::json!([]),
    }
}

pub(crate) fn card() -> PaymentMethod {
    method("0.25", "2.5")
}

fn bounds(partner: &str) -> Bounds {
    Bounds { partner_percentage_max: decimal(partner), payment_method_fixed: decimal("0.25") }
}

/// A purchase of BTC for EUR: partner 1 %, card 0.25 + 2.5 %, provider 1 %, network 1.50, spread
/// 0.5 %.
fn terms(side: Side) -> Terms {
    Terms {
        side,
        price: decimal("90000"),
        fiat_exponent: 2,
        crypto_scale: 8,
        provider_percentage: decimal("1"),
        network_fee: decimal("1.5"),
        rules: Rules::built_in(decimal("1"), &method("0.25", "2.5"), decimal("0.5")),
        bounds: bounds("5"),
    }
}

fn schedule(lines: Vec<(FeeKind, Charge)>, spread_ppm: i32) -> FeeSchedule {
    let line = |(kind, charge)| FeeLine { kind, code: "line".to_owned(), charge };
    FeeSchedule {
        lines: lines.into_iter().map(line).collect(),
        spread_ppm,
        rule: "rule".to_owned(),
    }
}

/// Invariants of every priced trade.
fn check(terms: &Terms, priced: &Priced) {
    let exponent = terms.fiat_exponent;
    let Priced { fiat, crypto, fees, .. } = *priced;
    assert!(fits_decimals(fiat, exponent) && fits_decimals(crypto, terms.crypto_scale));
    assert!(fiat > Decimal::ZERO && crypto > Decimal::ZERO);
    let worth = fiat_value(crypto, terms.price, exponent).unwrap();
    let total = fees.total().unwrap();
    match terms.side {
        Side::Buy => assert!(fees.holds(fiat, crypto, terms.price, exponent), "{priced:?}"),
        Side::Sell => assert_eq!(fiat, worth - total, "{priced:?}"),
    }
    let basis = if terms.side == Side::Buy { fiat } else { worth };
    for part in [fees.partner, fees.provider, fees.payment_method, fees.network, fees.affiliate] {
        assert!(part >= Decimal::ZERO && fits_decimals(part, exponent), "{priced:?}");
    }
    let unit = Decimal::new(1, exponent);
    let cap = basis * terms.bounds.partner_percentage_max / Decimal::ONE_HUNDRED;
    assert!(fees.partner <= cap + unit, "{priced:?}");
    if terms.rules.spread_percentage() >= Decimal::ZERO {
        assert!(fees.spread >= Decimal::ZERO, "{priced:?}");
    }
}

#[test]
fn a_purchase_for_a_hundred_euros_is_divided_as_documented() {
    let priced = terms(Side::Buy).price(Given::Fiat(decimal("100"))).unwrap();
    // 100 - 1.00 - 1.00 - 2.75 - 1.50 = 93.75; the spread is 0.47 of it, 93.28 buys coins.
    assert_eq!(priced.crypto, decimal("0.00103644"));
    let fees = FeeBreakdown {
        partner: decimal("1"),
        provider: decimal("1"),
        payment_method: decimal("2.75"),
        network: decimal("1.5"),
        spread: decimal("0.47"),
        affiliate: Decimal::ZERO,
    };
    assert_eq!((priced.fees, priced.fiat), (fees, decimal("100")));
    assert_eq!(priced.partner_fee_percentage, decimal("1"));
    assert!(priced.clamped.is_empty());
}

#[test]
fn a_purchase_of_a_given_amount_costs_the_least_that_covers_it() {
    let terms = terms(Side::Buy);
    let priced = terms.price(Given::Crypto(decimal("0.00103644"))).unwrap();
    assert_eq!(priced.fiat, decimal("100"));
    let less = terms.price(Given::Fiat(decimal("99.99"))).unwrap();
    assert!(less.crypto < decimal("0.00103644"));
    check(&terms, &priced);
}

#[test]
fn a_sale_is_the_mirror_of_a_purchase() {
    let terms = terms(Side::Sell);
    let priced = terms.price(Given::Crypto(decimal("0.01"))).unwrap();
    // Worth 900: 9 + 9 + 22.75 + 1.50 leave 857.75; the spread is 4.29 of it.
    assert_eq!(priced.fiat, decimal("853.46"));
    check(&terms, &priced);
    let back = terms.price(Given::Fiat(decimal("853.46"))).unwrap();
    assert!(back.crypto <= decimal("0.01") && back.fiat == priced.fiat);
    check(&terms, &back);
}

#[test]
fn an_amount_that_its_fees_eat_up_has_no_price() {
    let price = |given| terms(Side::Buy).price(given);
    assert_eq!(price(Given::Fiat(decimal("1.75"))), Err(Unpriceable::TooSmall));
    assert_eq!(price(Given::Fiat(decimal("0.01"))), Err(Unpriceable::TooSmall));
    assert!(price(Given::Crypto(decimal("0.00000001"))).is_ok());
    let sell = terms(Side::Sell).price(Given::Crypto(decimal("0.00001")));
    assert_eq!(sell, Err(Unpriceable::TooSmall));
}

#[test]
fn an_amount_beyond_the_bound_has_no_price() {
    for side in [Side::Buy, Side::Sell] {
        for given in [Given::Fiat, Given::Crypto] {
            let over = Decimal::from(AMOUNT_MAX) + Decimal::ONE;
            for amount in [over, Decimal::MAX] {
                assert_eq!(terms(side).price(given(amount)), Err(Unpriceable::TooLarge));
            }
        }
    }
}

#[test]
fn a_policy_is_kept_within_the_bounds_and_that_is_recorded() {
    let greedy = schedule(
        vec![
            (FeeKind::Partner, Charge::Flat(decimal("3"))),
            (FeeKind::Partner, Charge::Rate { ppm: 2_000_000, at_least: None, at_most: None }),
            (FeeKind::PaymentMethod, Charge::Flat(decimal("50"))),
        ],
        2_000_000,
    );
    let rules = Rules::from_schedule(&greedy, &card(), Decimal::ONE).unwrap();
    let terms = Terms { rules, ..terms(Side::Buy) };
    let priced = terms.price(Given::Fiat(decimal("100"))).unwrap();
    assert_eq!(priced.fees.partner, decimal("5"));
    assert_eq!(priced.partner_fee_percentage, decimal("5"));
    assert_eq!(priced.fees.payment_method, decimal("20.25"));
    // 20 % of 100 - 5 - 20.25 - 1 - 1.50.
    assert_eq!(priced.fees.spread, decimal("14.45"));
    assert_eq!(
        priced.clamped,
        [BoundedFee::Partner, BoundedFee::PaymentMethod, BoundedFee::Spread]
    );
    check(&terms, &priced);
}

#[test]
fn a_policy_cannot_pay_the_user_but_by_a_small_spread() {
    let generous = schedule(
        vec![
            (FeeKind::Partner, Charge::Flat(decimal("-3"))),
            (FeeKind::PaymentMethod, Charge::Rate { ppm: -1, at_least: None, at_most: None }),
        ],
        -30_000,
    );
    let rules = Rules::from_schedule(&generous, &card(), Decimal::ONE).unwrap();
    let terms = Terms { rules, ..terms(Side::Buy) };
    let priced = terms.price(Given::Fiat(decimal("100"))).unwrap();
    assert_eq!((priced.fees.partner, priced.fees.payment_method), (Decimal::ZERO, Decimal::ZERO));
    // 97.50 are left, and one percent of it is given.
    assert_eq!(priced.fees.spread, decimal("-0.98"));
    assert_eq!(
        priced.clamped,
        [BoundedFee::Partner, BoundedFee::PaymentMethod, BoundedFee::Spread]
    );
    check(&terms, &priced);
}

#[test]
fn a_policy_that_forgets_the_payment_method_leaves_its_fees() {
    let silent = Rules::from_schedule(&schedule(vec![], 0), &card(), Decimal::ONE).unwrap();
    let terms = Terms { rules: silent, ..terms(Side::Buy) };
    let priced = terms.price(Given::Fiat(decimal("100"))).unwrap();
    assert_eq!((priced.fees.partner, priced.fees.payment_method), (Decimal::ZERO, decimal("2.75")));
    let free = schedule(vec![(FeeKind::PaymentMethod, Charge::Flat(Decimal::ZERO))], 0);
    let rules = Rules::from_schedule(&free, &card(), Decimal::ONE).unwrap();
    let priced = Terms { rules, ..terms }.price(Given::Fiat(decimal("100"))).unwrap();
    assert_eq!(priced.fees.payment_method, Decimal::ZERO);
}

#[test]
fn bounds_of_a_rate_count_in_what_the_user_pays() {
    let bounded = |least: &str, most: &str| {
        let charge = Charge::Rate {
            ppm: 10_000,
            at_least: Some(decimal(least)),
            at_most: Some(decimal(most)),
        };
        schedule(vec![(FeeKind::Partner, charge)], 0)
    };
    let partner = |side, schedule: &FeeSchedule, unit: &str, given| {
        let rules = Rules::from_schedule(schedule, &card(), decimal(unit)).unwrap();
        Terms { rules, ..terms(side) }.price(given).unwrap()
    };
    let bought = partner(Side::Buy, &bounded("2", "3"), "1", Given::Fiat(decimal("100")));
    assert_eq!(bought.fees.partner, decimal("2"));
    assert_eq!(bought.partner_fee_percentage, decimal("2"));
    let bought = partner(Side::Buy, &bounded("2", "3"), "1", Given::Fiat(decimal("900")));
    assert_eq!(bought.fees.partner, decimal("3"));
    assert_eq!(bought.partner_fee_percentage, decimal("0.3333"));
    // Selling, the user pays coins: 0.0001 of them is 9.00.
    let sold =
        partner(Side::Sell, &bounded("0", "0.0001"), "90000", Given::Crypto(decimal("0.02")));
    assert_eq!(sold.fees.partner, decimal("9"));
}

#[test]
fn the_requested_fee_is_clamped_to_the_partners_cap() {
    let terms = Terms {
        bounds: bounds("2"),
        rules: Rules::built_in(decimal("5"), &method("0", "0"), Decimal::ZERO),
        ..terms(Side::Buy)
    };
    let priced = terms.price(Given::Fiat(decimal("100"))).unwrap();
    assert_eq!((priced.fees.partner, priced.partner_fee_percentage), (decimal("2"), decimal("2")));
    assert_eq!(priced.clamped, [BoundedFee::Partner]);
}

/// Orders keep what they were priced by: if this is meant to change, so does the format's number.
#[test]
fn rules_are_kept_as_before_and_nothing_else_is_read() {
    let kept = FeeRules::of(&terms(Side::Buy)).unwrap();
    let before = "01020001000002000000013202320100000a01000a003202";
    assert_eq!(hex::encode(kept.as_bytes()), before);
    let read = |bytes: &[u8]| {
        let rules = FeeRules::from(bytes.to_vec());
        rules.terms(Side::Buy, decimal("90000"), decimal("1.5"), 2, 8)
    };
    let bytes = kept.as_bytes();
    assert!(read(bytes).is_some());
    let longer = [bytes, &[0]].concat();
    let others: [&[u8]; 4] = [&[], &bytes[1..], &bytes[..bytes.len() - 1], &longer];
    for other in others {
        assert!(read(other).is_none(), "{other:?}");
    }
}

/// Any terms: exponents of JPY, EUR and KWD, every scale, cheap and dear coins, any built-in fees.
fn any_terms(side: Side) -> impl Strategy<Value = Terms> {
    let percentages = prop::array::uniform4(0_i64..=50_000);
    let price = (1_i64..10_000_000, 0_u32..=6);
    (prop::sample::select(vec![0_u32, 2, 3]), 0_u32..=8, price, percentages, 0_i64..500, 0_i64..500)
        .prop_map(move |(fiat_exponent, crypto_scale, price, percent, fixed, network)| {
            let [partner, card, spread, provider] =
                percent.map(|ten_thousandths| Decimal::new(ten_thousandths, 4));
            let fixed = Decimal::new(fixed, 2);
            let method =
                PaymentMethod { fee_fixed: fixed, fee_percentage: card, ..method("0", "0") };
            Terms {
                side,
                price: Decimal::new(price.0, price.1),
                fiat_exponent,
                crypto_scale,
                provider_percentage: provider,
                network_fee: Decimal::new(network, 2),
                rules: Rules::built_in(partner, &method, spread),
                bounds: Bounds { payment_method_fixed: fixed, ..bounds("5") },
            }
        })
}

fn any_charge() -> impl Strategy<Value = Charge> {
    let amount =
        (-100_000_i64..100_000, 0_u32..=6).prop_map(|(units, scale)| Decimal::new(units, scale));
    prop_oneof![
        amount.clone().prop_map(Charge::Flat),
        (-1_000_000_i32..=1_000_000, prop::option::of(amount.clone()), prop::option::of(amount))
            .prop_map(|(ppm, a, b)| match (a, b) {
                (Some(a), Some(b)) => {
                    Charge::Rate { ppm, at_least: Some(a.min(b)), at_most: Some(a.max(b)) }
                }
                (at_least, at_most) => Charge::Rate { ppm, at_least, at_most },
            }),
    ]
}

fn any_schedule() -> impl Strategy<Value = FeeSchedule> {
    let kind = prop_oneof![Just(FeeKind::Partner), Just(FeeKind::PaymentMethod)];
    let lines = prop::collection::vec((kind, any_charge()), 0..=16);
    (lines, -1_000_000_i32..=1_000_000).prop_map(|(lines, spread)| schedule(lines, spread))
}

/// Amounts from the smallest to 10^9, evenly over their orders of magnitude.
fn any_amount(decimals: u32) -> impl Strategy<Value = Decimal> {
    (0_u32..=9 + decimals, 1_i64..=9, any::<u32>()).prop_map(move |(power, digit, noise)| {
        let magnitude = 10_i64.pow(power);
        let units = magnitude.saturating_mul(digit).saturating_add(i64::from(noise) % magnitude);
        Decimal::new(units, decimals).min(Decimal::from(1_000_000_000))
    })
}

fn case(side: Side) -> impl Strategy<Value = (Terms, Decimal, Decimal)> {
    any_terms(side).prop_flat_map(|terms| {
        let (exponent, scale) = (terms.fiat_exponent, terms.crypto_scale);
        (Just(terms), any_amount(exponent), any_amount(scale))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_identity_holds_for_any_purchase((terms, fiat, crypto) in case(Side::Buy)) {
        for given in [Given::Fiat(fiat), Given::Crypto(crypto)] {
            if let Ok(priced) = terms.price(given) {
                check(&terms, &priced);
                prop_assert!(given == Given::Fiat(priced.fiat) || given == Given::Crypto(priced.crypto));
            }
        }
    }

    #[test]
    fn the_identity_holds_for_any_sale((terms, fiat, crypto) in case(Side::Sell)) {
        for given in [Given::Fiat(fiat), Given::Crypto(crypto)] {
            if let Ok(priced) = terms.price(given) {
                check(&terms, &priced);
                prop_assert!(given == Given::Fiat(priced.fiat) || given == Given::Crypto(priced.crypto));
            }
        }
    }

    #[test]
    fn the_fiat_of_a_coin_amount_buys_no_less((terms, _, crypto) in case(Side::Buy)) {
        if let Ok(there) = terms.price(Given::Crypto(crypto)) {
            let back = terms.price(Given::Fiat(there.fiat)).unwrap();
            prop_assert!(back.crypto >= crypto, "{} < {crypto}", back.crypto);
        }
    }

    #[test]
    fn the_coins_of_a_payout_sell_for_no_less((terms, fiat, _) in case(Side::Sell)) {
        if let Ok(there) = terms.price(Given::Fiat(fiat)) {
            let back = terms.price(Given::Crypto(there.crypto)).unwrap();
            prop_assert!(back.fiat >= fiat, "{} < {fiat}", back.fiat);
        }
    }

    #[test]
    fn any_amount_of_coins_that_can_be_bought_has_a_price((terms, _, crypto) in case(Side::Buy)) {
        // The dearest coin costs ten million.
        let crypto = crypto.min(Decimal::from(10_000_000));
        prop_assert!(terms.price(Given::Crypto(crypto)).is_ok());
    }

    #[test]
    fn kept_rules_price_as_before(
        (terms, fiat, _) in case(Side::Buy),
        schedule in any_schedule(),
    ) {
        let rules = Rules::from_schedule(&schedule, &card(), Decimal::ONE).unwrap();
        let terms = Terms { rules, ..terms };
        let Ok(priced) = terms.price(Given::Fiat(fiat)) else { return Ok(()) };
        let Terms { side, price, fiat_exponent: exponent, crypto_scale: scale, .. } = terms;
        let kept = FeeRules::of(&terms).unwrap();
        let kept = kept.terms(side, price, priced.fees.network, exponent, scale).unwrap();
        prop_assert_eq!(kept.price(Given::Fiat(fiat)), Ok(priced));
    }

    #[test]
    fn no_policy_breaks_the_identity_or_the_bounds(
        (terms, fiat, crypto) in case(Side::Buy),
        sold in any::<bool>(),
        schedule in any_schedule(),
    ) {
        let (side, unit) = if sold { (Side::Sell, terms.price) } else { (Side::Buy, Decimal::ONE) };
        let Some(rules) = Rules::from_schedule(&schedule, &card(), unit) else { return Ok(()) };
        let terms = Terms { side, rules, ..terms };
        for given in [Given::Fiat(fiat), Given::Crypto(crypto)] {
            if let Ok(priced) = terms.price(given) {
                check(&terms, &priced);
            }
        }
    }
}
