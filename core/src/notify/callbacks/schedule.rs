//! When a failed delivery is tried again.

use chrono::{DateTime, TimeDelta, Utc};

/// Pauses between two attempts, in seconds: ten attempts over more than three days (section 8 of
/// the contract). A pause starts when the attempt before it has failed.
const PAUSES_SECONDS: [i64; 9] =
    [5, 5 * 60, 30 * 60, 2 * 3_600, 5 * 3_600, 10 * 3_600, 14 * 3_600, 20 * 3_600, 24 * 3_600];

/// Parts in a thousand by which entropy may lengthen a pause, so that what failed together is not
/// tried together.
const JITTER_PER_MILLE_MAX: i64 = 50;

/// Longest pause that a receiver can ask for.
const RETRY_AFTER_MAX: TimeDelta = TimeDelta::hours(24);

/// Longest `Retry-After` that is read, in bytes: an HTTP date has 29.
const RETRY_AFTER_BYTES_MAX: usize = 64;

/// The pause after the `failed`th attempt (from 1); `None` when it was the last. `asked` is the
/// receiver's `Retry-After`: it may lengthen a pause up to a day, never shorten it.
pub(super) fn pause_after(
    failed: u16,
    asked: Option<TimeDelta>,
    entropy: u64,
) -> Option<TimeDelta> {
    let index = usize::from(failed).checked_sub(1)?;
    let pause_ms = PAUSES_SECONDS.get(index)? * 1_000;
    // Below 51 for every entropy: the remainder is taken before the conversion.
    let jitter = i64::try_from(entropy % (JITTER_PER_MILLE_MAX.unsigned_abs() + 1)).unwrap_or(0);
    let pause = TimeDelta::milliseconds(pause_ms + pause_ms * jitter / 1_000);
    Some(asked.map_or(pause, |asked| pause.max(asked.min(RETRY_AFTER_MAX))))
}

/// Reads `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date. `None` when it is neither
/// or has passed.
pub(super) fn retry_after(text: &str, now: DateTime<Utc>) -> Option<TimeDelta> {
    if text.len() > RETRY_AFTER_BYTES_MAX {
        return None;
    }
    let pause = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large to read asks for the most there is.
        text.parse().ok().and_then(TimeDelta::try_seconds).unwrap_or(RETRY_AFTER_MAX)
    } else {
        DateTime::parse_from_rfc2822(text).ok()?.with_timezone(&Utc) - now
    };
    (pause > TimeDelta::zero()).then(|| pause.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pauses(entropy: u64) -> Vec<TimeDelta> {
        (1..).map_while(|failed| pause_after(failed, None, entropy)).collect()
    }

    #[test]
    fn the_pauses_are_those_of_the_contract() {
        let minutes: Vec<_> = pauses(0).iter().map(TimeDelta::num_minutes).collect();
        assert_eq!(minutes, [0, 5, 30, 120, 300, 600, 840, 1_200, 1_440]);
        assert_eq!(pauses(0)[0], TimeDelta::seconds(5));
    }

    #[test]
    fn the_last_attempt_comes_after_three_days() {
        assert!(pauses(0).iter().sum::<TimeDelta>() > TimeDelta::days(3));
        assert_eq!(pause_after(10, None, 0), None);
        assert_eq!(pause_after(0, None, 0), None);
        assert_eq!(pause_after(u16::MAX, None, 0), None);
    }

    #[test]
    fn a_receiver_lengthens_a_pause_within_a_day_and_never_shortens_it() {
        let asked = |seconds| pause_after(2, Some(TimeDelta::seconds(seconds)), 0).unwrap();
        assert_eq!(asked(1), TimeDelta::minutes(5));
        assert_eq!(asked(3_600), TimeDelta::hours(1));
        assert_eq!(asked(i64::from(i32::MAX)), TimeDelta::hours(24));
        assert_eq!(pause_after(10, Some(TimeDelta::hours(1)), 0), None);
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
        ] {
            let read = retry_after(text, now);
            assert_eq!(read, seconds.map(TimeDelta::seconds), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_pause_is_at_most_a_twentieth_longer(failed in 1u16..10, entropy in any::<u64>()) {
            let least = pause_after(failed, None, 0).unwrap();
            let pause = pause_after(failed, None, entropy).unwrap();
            prop_assert!(least <= pause && pause <= least + least / 20);
        }

        #[test]
        fn any_retry_after_is_read_without_a_panic(text in ".{0,80}") {
            let read = retry_after(&text, DateTime::UNIX_EPOCH);
            prop_assert!(read.is_none_or(|pause| pause <= RETRY_AFTER_MAX));
        }
    }
}
