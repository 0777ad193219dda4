//! Rules of partner fee, payment method fee and spread: the built-in ones, or those of a partner's
//! policy. The host computes the fees and clamps them to the operator's bounds.

use rampart_plugins::contract::FeeKind;
use rampart_plugins::{Charge, FeeSchedule};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::trading::catalogue::PaymentMethod;
use crate::trading::packed;
use rampart_types::decimal::{multiply_rounded, percent_of, sum};
use rampart_types::money::{AMOUNT_MAX, round_fiat};

/// Largest payment method fee, in percent of the basis, beyond the method's own fixed fee.
pub const PAYMENT_METHOD_PERCENT_MAX: i64 = 20;
/// Largest spread, in percent.
pub const SPREAD_PERCENT_MAX: i64 = 20;
/// Smallest spread, in percent. A negative spread costs the operator, so a policy may not give
/// much.
pub const SPREAD_PERCENT_MIN: i64 = -1;

const POLICY_AMOUNT_DECIMALS: u32 = 10;
/// Decimals of parts per million as a percentage.
const PPM_PERCENT_DECIMALS: u32 = 4;

/// A fee as a function of a basis; amounts are fiat, unrounded.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Rule {
    #[serde(with = "packed")]
    fixed: Decimal,
    #[serde(with = "packed")]
    percentage: Decimal,
    #[serde(with = "packed::optional")]
    at_least: Option<Decimal>,
    #[serde(with = "packed::optional")]
    at_most: Option<Decimal>,
}

impl Rule {
    const fn plain(fixed: Decimal, percentage: Decimal) -> Self {
        Self { fixed, percentage, at_least: None, at_most: None }
    }

    fn for_method(method: &PaymentMethod) -> Self {
        Self::plain(method.fee_fixed, method.fee_percentage)
    }

    fn fee(&self, basis: Decimal) -> Option<Decimal> {
        let fee = sum([self.fixed, percent_of(basis, self.percentage)?])?;
        let fee = self.at_least.map_or(fee, |least| fee.max(least));
        Some(self.at_most.map_or(fee, |most| fee.min(most)))
    }

    fn is_plain_rate(&self) -> bool {
        self.fixed.is_zero() && self.at_least.is_none() && self.at_most.is_none()
    }
}

/// Rules of the fees that a policy may set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rules {
    partner: Vec<Rule>,
    payment_method: Vec<Rule>,
    /// In percent, within its bounds.
    #[serde(with = "packed")]
    spread: Decimal,
    spread_clamped: bool,
}

/// Bounds of the fees.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Bounds {
    /// The partner's fee, in percent of the basis.
    #[serde(with = "packed")]
    pub partner_percentage_max: Decimal,
    /// The payment method's own fixed fee, on top of [`PAYMENT_METHOD_PERCENT_MAX`].
    #[serde(with = "packed")]
    pub payment_method_fixed: Decimal,
}

impl Rules {
    /// The rules without a policy: the partner's percentage, the method's fixed fee and percentage,
    /// the pair's spread in percent.
    pub fn built_in(
        partner_percentage: Decimal,
        method: &PaymentMethod,
        spread_percentage: Decimal,
    ) -> Self {
        Self {
            partner: vec![Rule::plain(Decimal::ZERO, partner_percentage)],
            payment_method: vec![Rule::for_method(method)],
            ..Self::default()
        }
        .with_spread(spread_percentage)
    }

    /// The rules of a policy's schedule. Its amounts are in the currency that the user pays; `unit`
    /// is the fiat value of one unit of it: one when buying, the mid price when selling. Without a
    /// line for the payment method, the method's own fees apply: a partner cannot waive them.
    ///
    /// `None` when a price has too many digits.
    pub fn from_schedule(
        schedule: &FeeSchedule,
        method: &PaymentMethod,
        unit: Decimal,
    ) -> Option<Self> {
        let mut rules = Self::default();
        for line in &schedule.lines {
            let rule = match line.charge {
                Charge::Flat(amount) => Rule::plain(in_fiat(amount, unit)?, Decimal::ZERO),
                Charge::Rate { ppm, at_least, at_most } => {
                    let bound = |amount: Option<Decimal>| match amount {
                        Some(amount) => in_fiat(amount, unit).map(Some),
                        None => Some(None),
                    };
                    let (at_least, at_most) = (bound(at_least)?, bound(at_most)?);
                    Rule { at_least, at_most, ..Rule::plain(Decimal::ZERO, percent(ppm)) }
                }
            };
            match line.kind {
                FeeKind::Partner => rules.partner.push(rule),
                FeeKind::PaymentMethod => rules.payment_method.push(rule),
            }
        }
        if rules.payment_method.is_empty() {
            rules.payment_method.push(Rule::for_method(method));
        }
        Some(rules.with_spread(percent(schedule.spread_ppm)))
    }

    fn with_spread(self, percentage: Decimal) -> Self {
        let (least, most) = (Decimal::from(SPREAD_PERCENT_MIN), Decimal::from(SPREAD_PERCENT_MAX));
        let spread = percentage.clamp(least, most);
        Self { spread, spread_clamped: spread != percentage, ..self }
    }

    /// The spread in percent of the rest after the other fees.
    pub(super) fn spread_percentage(&self) -> Decimal {
        self.spread
    }

    /// True if the spread was changed by its bounds.
    pub(super) fn is_spread_clamped(&self) -> bool {
        self.spread_clamped
    }

    /// The partner's fee on a basis, from zero to the partner's cap.
    pub(super) fn partner_fee(&self, basis: Decimal, bounds: &Bounds) -> Option<Bounded> {
        Some(Bounded::new(total(&self.partner, basis)?, bounds.partner(basis)?))
    }

    /// The payment method's fee on a basis, from zero to its bound.
    pub(super) fn payment_method_fee(&self, basis: Decimal, bounds: &Bounds) -> Option<Bounded> {
        Some(Bounded::new(total(&self.payment_method, basis)?, bounds.payment_method(basis)?))
    }

    /// The partner's fee in percent, if it is the same for every basis.
    pub(super) fn partner_rate(&self, bounds: &Bounds) -> Option<Decimal> {
        if !self.partner.iter().all(Rule::is_plain_rate) {
            return None;
        }
        let rate = sum(self.partner.iter().map(|rule| rule.percentage))?;
        Some(rate.clamp(Decimal::ZERO, bounds.partner_cap()))
    }
}

/// A fee within its bounds, unrounded.
pub(super) struct Bounded {
    pub(super) fee: Decimal,
    /// True if the bounds changed it.
    pub(super) clamped: bool,
}

impl Bounded {
    fn new(unbounded: Decimal, most: Decimal) -> Self {
        let fee = unbounded.clamp(Decimal::ZERO, most);
        Self { fee, clamped: fee != unbounded }
    }
}

impl Bounds {
    fn partner_cap(&self) -> Decimal {
        self.partner_percentage_max.max(Decimal::ZERO)
    }

    fn partner(&self, basis: Decimal) -> Option<Decimal> {
        percent_of(basis.max(Decimal::ZERO), self.partner_cap())
    }

    fn payment_method(&self, basis: Decimal) -> Option<Decimal> {
        let share =
            percent_of(basis.max(Decimal::ZERO), Decimal::from(PAYMENT_METHOD_PERCENT_MAX))?;
        sum([share, self.payment_method_fixed.max(Decimal::ZERO)])
    }
}

fn total(rules: &[Rule], basis: Decimal) -> Option<Decimal> {
    rules.iter().try_fold(Decimal::ZERO, |total, rule| sum([total, rule.fee(basis)?]))
}

/// A policy's amount in fiat, clamped so that sums do not overflow: the bounds exclude anything
/// beyond [`AMOUNT_MAX`], and rounding anything finer than the smallest unit.
fn in_fiat(amount: Decimal, unit: Decimal) -> Option<Decimal> {
    let most = Decimal::from(AMOUNT_MAX);
    let amount = round_fiat(amount.clamp(-most, most), POLICY_AMOUNT_DECIMALS);
    Some(multiply_rounded(amount, unit, POLICY_AMOUNT_DECIMALS)?.clamp(-most, most))
}

fn percent(ppm: i32) -> Decimal {
    Decimal::new(i64::from(ppm), PPM_PERCENT_DECIMALS)
}
