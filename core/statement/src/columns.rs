//! A statement as CSV: `date`, `amount`, `currency`, `reference`, `providerReference`, `name`,
//! `iban`, `endToEndId`, `returnReason`, in any order; the first three must be there. A line with a
//! `returnReason` is a transfer that came back, under the id that its `endToEndId` has. A `date` is a day,
//! or a time whose day counts as it is written.

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use csv::{ReaderBuilder, Trim};
use serde::Deserialize;

use super::{
    LINES_MAX, Line, TEXT_CHARS_MAX, Unreadable, amount, beginning, bounded, day, is_placeholder,
    plain, stored_reference,
};

/// Shortest code of a currency, in characters.
const CURRENCY_CHARS_MIN: usize = 2;
/// Length of a day at the begin of a time, in bytes.
const DAY_BYTES: usize = 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    date: String,
    amount: String,
    currency: String,
    #[serde(default)]
    reference: String,
    #[serde(default)]
    provider_reference: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    iban: String,
    #[serde(default)]
    end_to_end_id: String,
    #[serde(default)]
    return_reason: String,
}

/// Reads the lines.
pub(super) fn read(text: &str) -> Result<Vec<Line>, Unreadable> {
    let first = text.lines().next().unwrap_or_default();
    let separator = if first.contains(';') && !first.contains(',') { b';' } else { b',' };
    let mut reader =
        ReaderBuilder::new().delimiter(separator).trim(Trim::All).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|_| Unreadable("line 1: no names".to_owned()))?;
    if !["date", "amount", "currency"].iter().all(|name| headers.iter().any(|h| h == *name)) {
        return Err(Unreadable("line 1: date, amount and currency must be there".to_owned()));
    }
    let rows = reader.deserialize().take(LINES_MAX + 1);
    rows.enumerate().map(|(index, row)| line(index + 2, row)).collect()
}

fn line(number: usize, row: Result<Row, csv::Error>) -> Result<Line, Unreadable> {
    let wrong = |what: &str| Unreadable(format!("line {number}: {what}"));
    let row = row.map_err(|_| wrong("not a row with date, amount and currency"))?;
    if !has_form_of_currency(&row.currency) {
        return Err(wrong("currency: neither a code such as EUR nor a CAIP-19 id"));
    }
    let name = plain(&row.provider_reference);
    let is_name = !is_placeholder(&name);
    let provider_reference = if is_name { stored_reference(&name) } else { String::new() };
    // Earlier versions took what stands for no name for one, and cut a long one.
    let earlier = beginning(&name);
    let earlier_references = if earlier == provider_reference { Vec::new() } else { vec![earlier] };
    let end_to_end_id = plain(&row.end_to_end_id);
    let is_id = !is_placeholder(&end_to_end_id);
    Ok(Line {
        date: Some(day_of(&row.date).ok_or_else(|| wrong("date: not as 2026-03-01"))?),
        amount: amount(&row.amount).ok_or_else(|| wrong("amount: not a number"))?,
        currency: row.currency,
        reference: bounded(&row.reference),
        provider_reference,
        earlier_references,
        name: bounded(&row.name),
        iban: bounded(&row.iban),
        end_to_end_id: if is_id { stored_reference(&end_to_end_id) } else { String::new() },
        return_reason: bounded(&row.return_reason),
        ..Line::default()
    })
}

/// A day, or that of a time (ISO 8601), which may be without a zone.
fn day_of(text: &str) -> Option<NaiveDate> {
    let is_time =
        DateTime::parse_from_rfc3339(text).is_ok() || text.parse::<NaiveDateTime>().is_ok();
    day(if is_time { text.get(..DAY_BYTES)? } else { text })
}

/// True for the form of a currency's or an asset's code, or of an asset's CAIP-19 id. Which ones
/// there are is looked at where the line is booked.
fn has_form_of_currency(text: &str) -> bool {
    let is_code = text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    let is_id = text.contains('/') && text.bytes().all(|b| b.is_ascii_graphic());
    (CURRENCY_CHARS_MIN..=TEXT_CHARS_MAX).contains(&text.len()) && (is_code || is_id)
}

#[cfg(test)]
mod tests {
    use rust_decimal::Decimal;

    use super::*;
    use crate::{NO_REFERENCE, NOT_PROVIDED};

    #[test]
    fn columns_stand_in_any_order_and_may_be_missing() {
        let lines = read(
            "amount,date,currency,providerReference,reference\n\
             250.00,2026-03-01,EUR,bank-1,\"order 1234567890123456, thanks\"\n-12.5,2026-03-02,EUR,b2,\n",
        );
        let lines = lines.unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].amount, Decimal::from(250));
        assert_eq!(lines[0].reference, "order 1234567890123456, thanks");
        assert_eq!((lines[1].amount, &*lines[1].provider_reference), (Decimal::new(-125, 1), "b2"));
        assert_eq!(read("date;amount;currency\n2026-03-01;1;EUR\n").unwrap().len(), 1);
    }

    #[test]
    fn a_time_stands_for_its_day() {
        for date in [
            "2026-03-01",
            "2026-03-01T23:30:00Z",
            "2026-03-01T23:30:00-05:00",
            "2026-03-01T23:30:00",
        ] {
            let lines = read(&format!("date,amount,currency\n{date},1,EUR\n")).unwrap();
            assert_eq!(lines[0].date, "2026-03-01".parse().ok(), "{date}");
        }
    }

    #[test]
    fn assets_are_named_by_code_or_by_caip19_id() {
        for name in ["EUR", "USDC", "eip155:1/slip44:60"] {
            let lines = read(&format!("date,amount,currency\n2026-03-01,1,{name}\n")).unwrap();
            assert_eq!(lines[0].currency, name);
        }
    }

    #[test]
    fn a_transfer_that_came_back_has_its_reason_and_the_id_that_it_was_sent_under() {
        let lines = read(
            "date;amount;currency;endToEndId;returnReason\n2026-03-01;100;EUR;T1;AC04\n\
             2026-03-01;100;EUR;NOTPROVIDED; Account closed \n2026-03-01;100;EUR;rent;\n",
        );
        let lines = lines.unwrap();
        let told = lines.iter().map(|line| (&*line.end_to_end_id, &*line.return_reason));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [("T1", "AC04"), ("", "Account closed"), ("rent", "")]
        );
    }

    #[test]
    fn columns_of_a_return_leave_the_name_of_a_line_as_it_is() {
        let named = |csv: &str| crate::read(csv.as_bytes()).unwrap().remove(0).provider_reference;
        let without = named("date,amount,currency\n2026-03-01,100,EUR\n");
        let with = "date,amount,currency,endToEndId,returnReason\n2026-03-01,100,EUR,T1,AC04\n";
        assert_eq!(named(with), without);
    }

    #[test]
    fn what_stands_for_no_name_names_no_payment() {
        for none in [NOT_PROVIDED, NO_REFERENCE] {
            let csv = format!(
                "date,amount,currency,providerReference,endToEndId\n\
                 2026-03-01,1,EUR,{none},{none}\n2026-03-01,1,EUR,{none},{none}\n"
            );
            let lines = crate::read(csv.as_bytes()).unwrap();
            assert_ne!(lines[0].provider_reference, lines[1].provider_reference);
            for line in lines {
                assert!(line.provider_reference.starts_with("line-"), "{line:?}");
                assert_eq!(line.earlier_references, [none]);
                assert!(line.end_to_end_id.is_empty(), "{}", line.end_to_end_id);
            }
        }
    }

    #[test]
    fn long_names_that_begin_alike_are_those_of_two_payments() {
        let long = "x".repeat(255);
        let csv = format!(
            "date,amount,currency,providerReference\n\
             2026-03-01,1,EUR,{long}1\n2026-03-01,1,EUR,{long}2\n2026-03-01,1,EUR,{long}\n"
        );
        let lines = crate::read(csv.as_bytes()).unwrap();
        assert_ne!(lines[0].provider_reference, lines[1].provider_reference);
        assert_eq!(lines[0].provider_reference, stored_reference(&format!("{long}1")));
        // Earlier versions have recorded the first two under the name of the third.
        assert_eq!(lines[1].earlier_references, [&*long]);
        assert_eq!((&lines[2].provider_reference, lines[2].earlier_references.len()), (&long, 0));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, line) in [
            ("date,amount\n2026-03-01,1\n", "line 1"),
            ("date,amount,currency\n2026-03-01,1,EUR\n2026-03-01,one,EUR\n", "line 3: amount"),
            ("date,amount,currency\n01.03.2026,1,EUR\n", "line 2: date"),
            ("date,amount,currency\n2026-03-01T25:00:00Z,1,EUR\n", "line 2: date"),
            ("date,amount,currency\n2026-03-01 noon,1,EUR\n", "line 2: date"),
            ("date,amount,currency\n+262142-12-31,1,EUR\n", "line 2: date"),
            ("date,amount,currency\n1999-12-31,1,EUR\n", "line 2: date"),
            ("date,amount,currency\n2026-03-01,1,euro\n", "line 2: currency"),
            ("date,amount,currency\n2026-03-01,1,\n", "line 2: currency"),
            ("date,amount,currency\n2026-03-01,1,a / b\n", "line 2: currency"),
        ] {
            let Err(Unreadable(why)) = read(text) else { panic!("{text} was read") };
            assert!(why.starts_with(line), "{why}");
        }
    }
}
