//! Statistics of rounds in which two programs ran side by side: the middle of what the rounds
//! said, and how far it can be believed.

#![expect(clippy::float_arithmetic, reason = "times are measured, no money is near")]

/// Chance, in either direction, that the interval misses what it should hold.
const TAIL: f64 = 0.025;

/// The median of all rounds and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The median.
    pub middle: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Summary {
    /// The median of the rounds, and the interval that holds the true one in 95 of 100 runs,
    /// whatever the distribution (two order statistics of the rounds). With fewer than six rounds
    /// no two of them say so much: the interval is then all that was seen.
    ///
    /// `None` without a round, or when one is no number.
    pub fn of(rounds: &[f64]) -> Option<Self> {
        let mut sorted = rounds.to_vec();
        if sorted.is_empty() || sorted.iter().any(|value| !value.is_finite()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let cut = outside(sorted.len());
        Some(Self {
            middle: quantile_of_sorted(&sorted, 1, 2),
            low: sorted[cut],
            high: sorted[sorted.len() - 1 - cut],
        })
    }
}

/// Number of the smallest (and largest) of `count` values that the interval can leave out: with
/// as many below it the true median is outside in [`TAIL`] of the runs at most.
fn outside(count: usize) -> usize {
    let mut below = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let (mut sum, mut cut) = (below, 0);
    // The binomial distribution with one half, term by term.
    while sum <= TAIL && cut + 1 < count.div_ceil(2) {
        below *= exact(count - cut) / exact(cut + 1);
        sum += below;
        cut += 1;
    }
    cut.saturating_sub(usize::from(sum > TAIL))
}

fn exact(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

/// The value below which `part` of `whole` of the values are; `None` without a value.
pub fn quantile(values: &[f64], part: usize, whole: usize) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| quantile_of_sorted(&sorted, part, whole))
}

/// Between two values where the place is between them.
fn quantile_of_sorted(sorted: &[f64], part: usize, whole: usize) -> f64 {
    let place = (sorted.len() - 1) * part;
    let (index, rest) = (place / whole, place % whole);
    let next = sorted[(index + 1).min(sorted.len() - 1)];
    sorted[index] + (next - sorted[index]) * exact(rest) / exact(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(count: u32) -> Vec<f64> {
        (1..=count).rev().map(f64::from).collect()
    }

    #[test]
    fn the_middle_is_the_median() {
        assert_eq!(Summary::of(&to(5)).unwrap().middle, 3.0);
        assert_eq!(Summary::of(&to(4)).unwrap().middle, 2.5);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn the_interval_is_the_one_of_the_tables_for_the_median() {
        // Order statistics of the 95 % interval, as printed for the sign test: 6 rounds (1, 6),
        // 9 rounds (2, 8), 11 (2, 10), 12 (3, 10), 20 (6, 15), 50 (18, 33).
        for (rounds, low, high) in
            [(6, 1, 6), (9, 2, 8), (11, 2, 10), (12, 3, 10), (20, 6, 15), (50, 18, 33)]
        {
            let summary = Summary::of(&to(rounds)).unwrap();
            let expected = (f64::from(low), f64::from(high));
            assert_eq!((summary.low, summary.high), expected, "{rounds} rounds");
        }
    }

    #[test]
    fn few_rounds_say_no_more_than_what_was_seen() {
        for rounds in 1..6 {
            let summary = Summary::of(&to(rounds)).unwrap();
            assert_eq!((summary.low, summary.high), (1.0, f64::from(rounds)));
        }
    }

    #[test]
    fn a_quantile_lies_between_its_neighbours() {
        assert_eq!(quantile(&to(101), 99, 100), Some(100.0));
        assert_eq!(quantile(&[1.0, 2.0], 1, 4), Some(1.25));
        assert_eq!(quantile(&[], 1, 2), None);
    }
}
