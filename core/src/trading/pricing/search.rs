//! Search for the least whole number of units whose rest after fees covers a target.

use rust_decimal::Decimal;

use rampart_types::decimal::divide_up;
use rampart_types::money::AMOUNT_MAX;

/// Most steps of doubling and of halving: each step determines one bit of the result.
const STEPS_MAX: u32 = 128;

/// The least multiple of `unit` whose rest is not below `target`, which is positive.
///
/// `rest` grows with its argument except for single units at which several fees round up at once,
/// so the result covers the target and one unit less does not. `None` when the fees absorb any
/// addition, or a number does not fit.
pub(super) fn least(
    unit: Decimal,
    target: Decimal,
    rest: impl Fn(Decimal) -> Option<Decimal>,
) -> Option<Decimal> {
    let covers = |basis: Decimal| Some(rest(basis)? >= target);
    let (mut low, mut high) = bracket(unit, guess(unit, target, &rest)?, &covers)?;
    for _ in 0..STEPS_MAX {
        if high - low <= unit {
            return Some(high);
        }
        let half = divide_up(high - low, unit + unit, 0)?.checked_mul(unit)?;
        let middle = low + half;
        if covers(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    None
}

/// Estimates the result by a straight line through two points of the fees.
fn guess(
    unit: Decimal,
    target: Decimal,
    rest: &impl Fn(Decimal) -> Option<Decimal>,
) -> Option<Decimal> {
    let fees = |basis: Decimal| basis.checked_sub(rest(basis)?);
    let first = fees(target)?;
    let second = fees(target.checked_add(first)?.max(unit))?;
    // The limit of the series of fees on fees; if it diverges, the search goes up from here.
    let slack = first.checked_add(first)?.checked_sub(second)?;
    let limit = match slack > Decimal::ZERO {
        true => first.checked_div(slack)?.checked_mul(first)?,
        false => second,
    };
    let units = target.checked_add(limit)?.checked_div(unit)?.ceil().max(Decimal::ONE);
    units.checked_mul(unit)
}

/// Brackets the result from `start` in steps that double: the lower bound does not cover, the upper
/// one does.
fn bracket(
    unit: Decimal,
    start: Decimal,
    covers: &impl Fn(Decimal) -> Option<bool>,
) -> Option<(Decimal, Decimal)> {
    let most = Decimal::from(AMOUNT_MAX);
    let (mut at, mut step) = (start, unit);
    if covers(start)? {
        for _ in 0..STEPS_MAX {
            // Zero does not cover a positive target.
            let below = (at - step).max(Decimal::ZERO);
            if below.is_zero() || !covers(below)? {
                return Some((below, at));
            }
            (at, step) = (below, step + step);
        }
        return None;
    }
    for _ in 0..STEPS_MAX {
        let above = at.checked_add(step)?;
        if above > most {
            return None;
        }
        if covers(above)? {
            return Some((at, above));
        }
        (at, step) = (above, step + step);
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fees_that_absorb_everything_have_no_result() {
        let nothing = |_: Decimal| Some(Decimal::ZERO);
        assert_eq!(least(Decimal::ONE, Decimal::ONE, nothing), None);
        let minus = |basis: Decimal| Some(-basis);
        assert_eq!(least(Decimal::ONE, Decimal::ONE, minus), None);
    }

    proptest! {
        #[test]
        fn one_unit_less_does_not_cover(
            target in 1_i64..1_000_000_000,
            fixed in 0_i64..100_000,
            percent in -20_i64..90,
            cap in 0_i64..1_000_000,
        ) {
            let rest = |basis: Decimal| {
                let rate = (basis * Decimal::new(percent, 2)).round().min(Decimal::from(cap));
                Some(basis - Decimal::from(fixed) - rate)
            };
            let (unit, target) = (Decimal::ONE, Decimal::from(target));
            let found = least(unit, target, rest).unwrap();
            prop_assert!(rest(found).unwrap() >= target);
            prop_assert!(found == unit || rest(found - unit).unwrap() < target);
        }
    }
}
