//! The price that follows from what the sources of a pair say.

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;

/// Sources that agree on a price far from the last one, so that it is believed.
const CONFIRMATIONS_MIN: usize = 2;

/// Rules for the price of a pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Least number of fresh prices.
    pub(super) sources_min: usize,
    /// Largest move of a price that nobody needs to confirm, in percent of the last one.
    pub(super) deviation_percent_max: Decimal,
    /// Age from which a price is stale, where the pair has none of its own.
    pub(super) max_age_seconds: u32,
}

/// The price of one source, with the source's own time.
pub(super) type Observed = (Decimal, DateTime<Utc>);

/// The consequence of the readings for a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Too few are fresh: the price stays, and ends when its own time is over.
    TooFew,
    /// The pair's price, as old as the oldest of those `sources_min` readings that are newest: it
    /// ends when fewer are fresh.
    Price(Observed),
    /// A price that is too far from the last one, and that no second source confirms.
    Deviates(Decimal),
}

/// The readings that are not stale at `now`.
pub(super) fn fresh(
    readings: impl IntoIterator<Item = Observed>,
    max_age_seconds: u32,
    now: DateTime<Utc>,
) -> Vec<Observed> {
    let oldest = now - TimeDelta::seconds(max_age_seconds.into());
    readings.into_iter().filter(|(_, observed_at)| *observed_at > oldest).collect()
}

/// Decides on the price of a pair by its fresh readings and its last price.
pub(super) fn judge(last: Option<Decimal>, fresh: &[Observed], rules: &Rules) -> Verdict {
    let mut times: Vec<_> = fresh.iter().map(|(_, observed_at)| *observed_at).collect();
    times.sort_unstable_by(|a, b| b.cmp(a));
    let oldest_needed = times.get(rules.sources_min.max(1) - 1);
    let Some((median, &observed_at)) = median(fresh).zip(oldest_needed) else {
        return Verdict::TooFew;
    };
    let percent = rules.deviation_percent_max;
    let is_near = last.is_none_or(|last| !deviates(median, last, percent));
    let confirms = |price: Decimal| {
        last.is_some_and(|last| deviates(price, last, percent)) && !deviates(price, median, percent)
    };
    let confirmations = fresh.iter().filter(|(price, _)| confirms(*price)).count();
    match is_near || confirmations >= CONFIRMATIONS_MIN {
        true => Verdict::Price((median, observed_at)),
        false => Verdict::Deviates(median),
    }
}

/// True if `price` is more than `percent` of `last` away from it.
fn deviates(price: Decimal, last: Decimal, percent: Decimal) -> bool {
    let moved = price.checked_sub(last).and_then(|by| by.abs().checked_mul(Decimal::ONE_HUNDRED));
    moved.zip(last.checked_mul(percent)).is_none_or(|(moved, most)| moved > most)
}

/// The middle price, of an even number the mean of the two in the middle.
fn median(readings: &[Observed]) -> Option<Decimal> {
    let mut prices: Vec<_> = readings.iter().map(|(price, _)| *price).collect();
    prices.sort_unstable();
    let (low, high) =
        (prices.get(prices.len().checked_sub(1)? / 2)?, prices.get(prices.len() / 2)?);
    if low == high {
        return Some(*low);
    }
    low.checked_add(high.checked_sub(*low)?.checked_div(Decimal::TWO)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules(sources_min: usize) -> Rules {
        Rules { sources_min, deviation_percent_max: Decimal::TEN, max_age_seconds: 60 }
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    /// Readings of these prices, the first one second old, the next two ...
    fn readings(prices: &[i64]) -> Vec<Observed> {
        let reading = |(age, price): (i64, &i64)| (Decimal::from(*price), at(1_000 - age));
        (1..).zip(prices).map(reading).collect()
    }

    fn verdict(last: Option<i64>, prices: &[i64], sources_min: usize) -> Verdict {
        judge(last.map(Decimal::from), &readings(prices), &rules(sources_min))
    }

    fn price(price: i64, age: i64) -> Verdict {
        Verdict::Price((Decimal::from(price), at(1_000 - age)))
    }

    #[test]
    fn the_price_is_the_median_and_ends_with_the_last_reading_that_is_needed() {
        assert_eq!(verdict(None, &[100], 1), price(100, 1));
        assert_eq!(verdict(None, &[104, 100], 1), price(102, 1));
        assert_eq!(verdict(Some(100), &[300, 101, 100], 2), price(101, 2));
        assert_eq!(verdict(Some(100), &[300, 101, 100], 3), price(101, 3));
    }

    #[test]
    fn too_few_readings_give_no_price() {
        assert_eq!(verdict(None, &[], 1), Verdict::TooFew);
        assert_eq!(verdict(Some(100), &[100], 2), Verdict::TooFew);
    }

    #[test]
    fn a_price_far_from_the_last_one_waits_for_a_second_source() {
        assert_eq!(verdict(Some(100), &[110], 1), price(110, 1));
        let alone = Verdict::Deviates(Decimal::from(111));
        assert_eq!(verdict(Some(100), &[111], 1), alone);
        assert_eq!(verdict(Some(100), &[89], 1), Verdict::Deviates(Decimal::from(89)));
        assert_eq!(verdict(Some(100), &[111, 113], 1), price(112, 1));
        assert_eq!(verdict(Some(100), &[50, 51, 100], 1), price(51, 1));
    }

    #[test]
    fn sources_that_disagree_confirm_nothing() {
        assert_eq!(verdict(Some(100), &[200, 100], 1), Verdict::Deviates(Decimal::from(150)));
        assert_eq!(
            verdict(Some(100), &[200, 200, 100, 100], 1),
            Verdict::Deviates(Decimal::from(150))
        );
        assert_eq!(verdict(Some(100), &[200, 400], 1), Verdict::Deviates(Decimal::from(300)));
    }

    #[test]
    fn a_reading_is_stale_by_its_own_time() {
        let stale = fresh(readings(&[1, 2, 3]), 2, at(1_000));
        assert_eq!(stale, readings(&[1]));
    }

    proptest! {
        #[test]
        fn one_liar_among_three_moves_the_price_no_further_than_the_others_are(
            honest in prop::array::uniform2(90_i64..=110), lie in 1_i64..10_000_000,
        ) {
            let (low, high) = (honest[0].min(honest[1]), honest[0].max(honest[1]));
            if let Verdict::Price((price, _)) = verdict(Some(100), &[lie, honest[0], honest[1]], 2) {
                prop_assert!((low.into()..=high.into()).contains(&price), "{price}");
            }
        }

        #[test]
        fn prices_of_any_size_are_judged(
            last in any::<i64>(), prices in prop::collection::vec(1..=i64::MAX, 0..5),
        ) {
            let huge = prices.iter().map(|price| (Decimal::MAX / Decimal::from(*price), at(0)));
            let _ = judge(Some(last.into()), &huge.collect::<Vec<_>>(), &rules(1));
        }
    }
}
