//! Birth dates, and the minimum age of 18 by the current date in Amsterdam.

use chrono::{DateTime, Datelike as _, Days, NaiveDate, TimeDelta, Utc, Weekday};

/// Youngest age of a user, in years (API document, limits).
const AGE_MIN: i32 = 18;
/// Highest plausible age, in years: an earlier date is a typing error.
const AGE_MAX: i32 = 130;

/// Parses an ISO 8601 date `YYYY-MM-DD`, and none of its other forms.
pub(super) fn parse(text: &str) -> Option<NaiveDate> {
    let shape = text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    (shape && text.len() == 10).then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok())?
}

/// True if a user with this birth date may register. A birthday begins at midnight in Amsterdam;
/// that of 29 February falls on 1 March in other years.
pub(super) fn is_adult(born: NaiveDate, now: DateTime<Utc>) -> bool {
    let today = amsterdam_date(now);
    let before_birthday = (today.month(), today.day()) < (born.month(), born.day());
    let age = today.year() - born.year() - i32::from(before_birthday);
    (AGE_MIN..=AGE_MAX).contains(&age)
}

/// The date in Amsterdam: an hour ahead of UTC, two from the last Sunday of March to the last
/// Sunday of October, both at 01:00 UTC (Directive 2000/84/EC). A time zone database would be
/// disproportionate for this rule.
fn amsterdam_date(now: DateTime<Utc>) -> NaiveDate {
    let year = now.year();
    let one_o_clock = |month| {
        last_sunday(year, month).and_then(|date| date.and_hms_opt(1, 0, 0)).map(|at| at.and_utc())
    };
    let summer =
        one_o_clock(3).zip(one_o_clock(10)).is_some_and(|(start, end)| (start..end).contains(&now));
    (now + TimeDelta::hours(if summer { 2 } else { 1 })).date_naive()
}

/// The last Sunday of March or October: months of 31 days.
fn last_sunday(year: i32, month: u32) -> Option<NaiveDate> {
    let last = NaiveDate::from_ymd_opt(year, month, 31)?;
    last.checked_sub_days(Days::new(last.weekday().days_since(Weekday::Sun).into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn adult(born: &str, now: &str) -> bool {
        is_adult(parse(born).unwrap(), at(now))
    }

    #[test]
    fn an_adult_is_18_from_midnight_in_amsterdam() {
        // Winter: midnight is 23:00 UTC.
        assert!(!adult("2008-02-10", "2026-02-09T22:59:59Z"));
        assert!(adult("2008-02-10", "2026-02-09T23:00:00Z"));
        // Summer: 22:00 UTC.
        assert!(!adult("2008-07-10", "2026-07-09T21:59:59Z"));
        assert!(adult("2008-07-10", "2026-07-09T22:00:00Z"));
        // The days on which the clocks change: 29 March and 25 October 2026.
        assert!(!adult("2008-03-29", "2026-03-28T22:59:59Z"));
        assert!(adult("2008-03-29", "2026-03-28T23:00:00Z"));
        assert!(adult("2008-03-30", "2026-03-29T22:00:00Z"));
        assert!(!adult("2008-10-26", "2026-10-25T22:59:59Z"));
        assert!(adult("2008-10-25", "2026-10-24T22:00:00Z"));
    }

    #[test]
    fn a_leapling_is_18_on_the_first_of_march() {
        assert!(!adult("2008-02-29", "2026-02-28T12:00:00Z"));
        assert!(adult("2008-02-29", "2026-03-01T12:00:00Z"));
    }

    #[test]
    fn the_unborn_and_the_impossibly_old_are_refused() {
        let now = "2026-06-01T12:00:00Z";
        assert!(
            !adult("2030-01-01", now) && !adult("1850-01-01", now) && !adult("0000-01-01", now)
        );
        assert!(adult("1930-01-01", now));
    }

    #[test]
    fn a_date_has_one_form() {
        for bad in
            ["", "2008-2-10", "2008-02-30", "20080210", "+008-02-10", "2008-02-10T", "2008/02/10"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".*", near in "[0-9-]{10}") {
            let _ = (parse(&text), parse(&near));
        }

        #[test]
        fn an_adult_stays_an_adult(days in 0u64..40_000, later in 0i64..20_000) {
            let born = NaiveDate::from_ymd_opt(1930, 1, 1).unwrap() + Days::new(days);
            let now = at("2026-11-20T10:00:00Z");
            if is_adult(born, now) && later < 1_000 {
                prop_assert!(is_adult(born, now + TimeDelta::days(later)));
            }
        }
    }
}
