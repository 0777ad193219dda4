//! The retry schedule of failed deliveries.

use chrono::{DateTime, TimeDelta, Utc};

/// Delays between attempts, in seconds: ten attempts over more than three days (section 8 of the
/// contract). A delay starts when the previous attempt has failed.
const DELAYS_SECONDS: [i64; 9] =
    [5, 5 * 60, 30 * 60, 2 * 3_600, 5 * 3_600, 10 * 3_600, 14 * 3_600, 20 * 3_600, 24 * 3_600];

/// Most jitter in parts per thousand of a delay, so that deliveries that failed together are not
/// retried together.
const JITTER_PER_MILLE_MAX: i64 = 50;

/// Longest delay that a receiver can request.
const RETRY_AFTER_MAX: TimeDelta = TimeDelta::hours(24);

/// Longest `Retry-After` that is read, in bytes: an HTTP date has 29.
const RETRY_AFTER_BYTES_MAX: usize = 64;

/// The delay after the `failed`th attempt (from 1); `None` after the last. The receiver's
/// `Retry-After` may extend it up to a day, never shorten it.
pub(super) fn retry_delay(
    failed: u16,
    retry_after: Option<TimeDelta>,
    entropy: u64,
) -> Option<TimeDelta> {
    let index = usize::from(failed).checked_sub(1)?;
    let delay_ms = DELAYS_SECONDS.get(index)? * 1_000;
    // Below 51 for every entropy: the remainder is taken before the conversion.
    let jitter = i64::try_from(entropy % (JITTER_PER_MILLE_MAX.unsigned_abs() + 1)).unwrap_or(0);
    let delay = TimeDelta::milliseconds(delay_ms + delay_ms * jitter / 1_000);
    Some(retry_after.map_or(delay, |requested| delay.max(requested.min(RETRY_AFTER_MAX))))
}

/// Parses `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date. `None` when it is neither
/// or has passed.
pub(super) fn parse_retry_after(text: &str, now: DateTime<Utc>) -> Option<TimeDelta> {
    if text.len() > RETRY_AFTER_BYTES_MAX {
        return None;
    }
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let delay = if is_number {
        // A number that overflows requests the maximum.
        text.parse().ok().and_then(TimeDelta::try_seconds).unwrap_or(RETRY_AFTER_MAX)
    } else {
        DateTime::parse_from_rfc2822(text).ok()?.with_timezone(&Utc) - now
    };
    (delay > TimeDelta::zero()).then(|| delay.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn delays(entropy: u64) -> Vec<TimeDelta> {
        (1..).map_while(|failed| retry_delay(failed, None, entropy)).collect()
    }

    #[test]
    fn the_delays_are_those_of_the_contract() {
        let minutes: Vec<_> = delays(0).iter().map(TimeDelta::num_minutes).collect();
        assert_eq!(minutes, [0, 5, 30, 120, 300, 600, 840, 1_200, 1_440]);
        assert_eq!(delays(0)[0], TimeDelta::seconds(5));
    }

    #[test]
    fn the_last_attempt_comes_after_three_days() {
        assert!(delays(0).iter().sum::<TimeDelta>() > TimeDelta::days(3));
        assert_eq!(retry_delay(10, None, 0), None);
        assert_eq!(retry_delay(0, None, 0), None);
        assert_eq!(retry_delay(u16::MAX, None, 0), None);
    }

    #[test]
    fn a_receiver_extends_a_delay_within_a_day_and_never_shortens_it() {
        let delay = |seconds| retry_delay(2, Some(TimeDelta::seconds(seconds)), 0).unwrap();
        assert_eq!(delay(1), TimeDelta::minutes(5));
        assert_eq!(delay(3_600), TimeDelta::hours(1));
        assert_eq!(delay(i64::from(i32::MAX)), TimeDelta::hours(24));
        assert_eq!(retry_delay(10, Some(TimeDelta::hours(1)), 0), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = DateTime::from_timestamp(784_111_777, 0).unwrap();
        for (text, seconds) in [
            ("120", Some(120)),
            ("99999999999999999999999", Some(86_400)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some(2 * 60)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", None),
            ("0", None),
            ("-5", None),
            ("soon", None),
            ("", None),
        ] {
            let read = parse_retry_after(text, now);
            assert_eq!(read, seconds.map(TimeDelta::seconds), "{text}");
        }
    }

    proptest! {
        #[test]
        fn jitter_is_at_most_a_twentieth(failed in 1u16..10, entropy in any::<u64>()) {
            let least = retry_delay(failed, None, 0).unwrap();
            let delay = retry_delay(failed, None, entropy).unwrap();
            prop_assert!(least <= delay && delay <= least + least / 20);
        }

        #[test]
        fn any_retry_after_is_read_without_a_panic(text in ".{0,80}") {
            let read = parse_retry_after(&text, DateTime::UNIX_EPOCH);
            prop_assert!(read.is_none_or(|delay| delay <= RETRY_AFTER_MAX));
        }
    }
}
