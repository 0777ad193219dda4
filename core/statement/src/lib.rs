//! Statements of accounts: ISO 20022 camt.053, or CSV with named columns. The bytes come from
//! outside; every part of them is bounded.
//!
//! The edge's reconciliation and the connector of bank accounts read statements by this package
//! alone: a line has the same name for both, so that what one has recorded the other does not
//! record again.

mod camt;
mod columns;
mod stored;

use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveTime, Utc};
use ring::digest;
use rust_decimal::Decimal;

pub use self::stored::{REFERENCE_CHARS_MAX, stored_reference};

/// Most lines of a statement.
pub const LINES_MAX: usize = 10_000;
/// Longest text of a line that is kept, in characters.
const TEXT_CHARS_MAX: usize = 255;
/// Longest amount, in bytes.
const AMOUNT_BYTES_MAX: usize = 32;
/// Years in which a line is booked.
const YEARS: RangeInclusive<i32> = 2_000..=9_999;
/// Largest amount, in whole units of its currency: sums of any number of lines fit a [`Decimal`].
const AMOUNT_MAX: i64 = 1_000_000_000_000_000;
/// The text between two lines of a payer's words.
const LINE_END: &str = "; ";
/// Digits of an order's number in a payment reference.
const ORDER_DIGITS: usize = 16;

/// The text of banks where a name or an id must stand and nobody has given one.
pub const NOT_PROVIDED: &str = "NOTPROVIDED";
/// The same of banks that make camt.053 out of MT940.
pub const NO_REFERENCE: &str = "NONREF";

/// True for a text that stands where nobody has given a name or an id.
#[must_use]
pub fn is_placeholder(text: &str) -> bool {
    matches!(text, NOT_PROVIDED | NO_REFERENCE)
}

/// A booked line of a statement. Texts are empty where the statement has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// IBAN of the account; empty in CSV.
    pub account: String,
    /// Day of the booking.
    pub date: Option<NaiveDate>,
    /// In whole units of the currency; negative for what left the account.
    pub amount: Decimal,
    /// Its code, such as `EUR`, or an asset's code or CAIP-19 id.
    pub currency: String,
    /// The payer's words.
    pub reference: String,
    /// The bank's own name for it; made of the line's contents where the bank gives none.
    pub provider_reference: String,
    /// Names under which earlier versions have recorded it. A placeholder may be among them, which is
    /// the name of any number of payments.
    pub earlier_references: Vec<String>,
    /// The other side's name.
    pub name: String,
    /// The other side's account.
    pub iban: String,
    /// The payer's own id of the transfer. Anybody can write anything into it.
    pub end_to_end_id: String,
    /// The bank's reason for which a transfer came back, such as `AC04` or words of its own; empty for
    /// any other line.
    pub return_reason: String,
    /// The words are those of an entry with several transactions: they name the order of none of them.
    pub has_batch_reference: bool,
}

impl Line {
    /// The number of the order that the payer has written: a word of sixteen digits, whatever
    /// stands beside it, else a run of as many with blanks or the ends of lines between them.
    #[must_use]
    pub fn order_digits(&self) -> Option<String> {
        if self.has_batch_reference {
            return None;
        }
        // The id of a transfer, which a bank may have made of as many digits, stands before the words.
        let words = self.reference.strip_prefix(&*self.end_to_end_id);
        let words = words.and_then(|rest| rest.strip_prefix(LINE_END));
        words.and_then(order_number).or_else(|| order_number(&self.reference))
    }

    /// The begin of its day.
    #[must_use]
    pub fn at(&self) -> Option<DateTime<Utc>> {
        Some(self.date?.and_time(NaiveTime::MIN).and_utc())
    }

    /// The name of a transfer that came back, which another return of it has not: a bank may name all of
    /// them as it has named the transfer.
    #[must_use]
    pub fn return_reference(&self) -> String {
        let day = self.date.map(|day| day.to_string()).unwrap_or_default();
        let amount = self.amount.normalize();
        stored_reference(&format!("{}/{day}/{amount}", self.provider_reference))
    }

    /// The contents that tell a line without a name from others of its account.
    fn contents(&self) -> String {
        let Self { date, amount, currency, reference, iban, .. } = self;
        format!("{date:?}/{amount}/{currency}/{reference}/{iban}")
    }
}

/// The reason that a statement cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

/// The lines of a statement in either format, each with a name.
#[cfg(test)]
fn read(bytes: &[u8]) -> Result<Vec<Line>, Unreadable> {
    parse(bytes).map(named)
}

/// The lines of a statement in either format, for who spells currencies in one way, or takes the lines
/// of one account, before [`named`]: the name of a line that has none of the bank's follows from its
/// contents, and is empty as yet.
///
/// # Errors
/// In one sentence, with the place.
pub fn parse(bytes: &[u8]) -> Result<Vec<Line>, Unreadable> {
    let text = std::str::from_utf8(bytes).map_err(|_| Unreadable("it is not UTF-8".to_owned()))?;
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let lines = if text.starts_with('<') { camt::read(text)? } else { columns::read(text)? };
    if lines.len() > LINES_MAX {
        return Err(Unreadable(format!("it has more than {LINES_MAX} lines")));
    }
    Ok(lines)
}

/// The lines of one statement with names for those that have none: of their account and contents, and
/// the number among equal ones.
#[must_use]
pub fn named(lines: Vec<Line>) -> Vec<Line> {
    let mut seen = std::collections::HashMap::new();
    let mut name = |contents: &str| {
        let nth = seen.entry(contents.to_owned()).or_insert(0_usize);
        *nth += 1;
        let digest = digest::digest(&digest::SHA256, format!("{contents}/{nth}").as_bytes());
        format!("line-{}", hex::encode(&digest.as_ref()[..16]))
    };
    let named = lines.into_iter().map(|mut line| {
        if !line.provider_reference.is_empty() {
            return line;
        }
        let contents = line.contents();
        line.provider_reference = name(&contents);
        if !line.account.is_empty() {
            // Earlier versions took equal lines of two accounts for one payment.
            let own = name(&format!("{contents}/{}", line.account));
            let earlier = std::mem::replace(&mut line.provider_reference, own);
            line.earlier_references.insert(0, earlier);
        }
        line
    });
    named.collect()
}

/// The first number of an order in a text.
fn order_number(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| !c.is_ascii_digit());
    let word = words.find(|word| word.len() == ORDER_DIGITS).map(str::to_owned);
    // Banks cut the payer's words into lines of a fixed length.
    word.or_else(|| run_of_digits(text)).or_else(|| run_of_digits(&text.replace(LINE_END, "")))
}

/// The first run of as many digits as an order's number has, with blanks and dashes among them.
fn run_of_digits(text: &str) -> Option<String> {
    let mut run = String::new();
    for c in text.chars().chain(['.']) {
        match c {
            '0'..='9' => run.push(c),
            ' ' | '-' => {}
            _ if run.len() == ORDER_DIGITS => return Some(run),
            _ => run.clear(),
        }
    }
    None
}

/// The first characters of a text, without those of control.
fn bounded(text: &str) -> String {
    beginning(&plain(text))
}

/// A text without the blanks around it, and without characters of control.
fn plain(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control()).collect()
}

/// The first characters of a plain text.
fn beginning(plain: &str) -> String {
    plain.chars().take(TEXT_CHARS_MAX).collect()
}

/// A day as ISO 8601 spells it. In the years that the calendar begins and ends with, the day after has
/// no number.
fn day(text: &str) -> Option<NaiveDate> {
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    day.filter(|day| YEARS.contains(&day.year()))
}

/// A number as banks write it: digits, with a point or not. `None` for anything else, and beyond
/// [`AMOUNT_MAX`].
fn amount(text: &str) -> Option<Decimal> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if text.len() > AMOUNT_BYTES_MAX || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let amount = Decimal::from_str_exact(text).ok().map(|amount| amount.normalize());
    amount.filter(|amount| amount.abs() <= Decimal::from(AMOUNT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(reference: &str) -> Option<String> {
        Line { reference: reference.to_owned(), ..Line::default() }.order_digits()
    }

    #[test]
    fn the_orders_number_is_found_in_what_people_write() {
        let number = Some("1234567890123456".to_owned());
        for text in [
            "1234567890123456",
            "Order 1234 5678 9012 3456, thanks",
            "/RFB/1234567890123456/",
            "ref 1234-5678-9012-3456.",
            "1234567890123456 250 EUR",
            "2026-03-01 1234567890123456 2026-03-02",
            "order 12345; 67890123456; thanks",
            "7; 1234 5678 9012 3456; 8",
        ] {
            assert_eq!(digits(text), number, "{text}");
        }
        for text in ["", "123456789012345", "12345678901234567", "NL58ABNA0000000001"] {
            assert_eq!(digits(text), None, "{text}");
        }
    }

    #[test]
    fn the_payers_words_come_before_the_id_of_the_transfer() {
        let found = |reference: &str| {
            let end_to_end_id = "2026030112345678".to_owned();
            Line { reference: reference.to_owned(), end_to_end_id, ..Line::default() }
                .order_digits()
        };
        for (reference, number) in [
            ("2026030112345678; order 1234567890123456", "1234567890123456"),
            ("2026030112345678; 1234567890; 123456", "1234567890123456"),
            ("2026030112345678; thanks", "2026030112345678"),
            ("2026030112345678", "2026030112345678"),
        ] {
            assert_eq!(found(reference).as_deref(), Some(number), "{reference}");
        }
    }

    #[test]
    fn amounts_are_digits_with_a_point_or_not() {
        for (text, expected) in [("250.00", "250"), ("-0.10", "-0.1"), ("+7", "7")] {
            assert_eq!(amount(text).unwrap().to_string(), expected);
        }
        for text in ["", "1e2", ".5", "5.", "1,5", "--1", " 1", "NaN", "-1000000000000001"] {
            assert_eq!(amount(text), None, "{text}");
        }
    }

    #[test]
    fn equal_payments_of_two_people_are_two_lines() {
        let csv = "date,amount,currency,name\n2026-03-01,50,EUR,Ada\n2026-03-01,50,EUR,Bob\n";
        let lines = read(csv.as_bytes()).unwrap();
        assert_ne!(lines[0].provider_reference, lines[1].provider_reference);
    }

    #[test]
    fn returns_of_one_transfer_have_names_of_their_own() {
        let names = |columns: &str, rows: [&str; 3]| {
            let csv = format!("date,amount,currency{columns}\n{}\n", rows.join("\n"));
            let lines = read(csv.as_bytes()).unwrap();
            let names = lines.iter().map(Line::return_reference);
            names.collect::<std::collections::BTreeSet<_>>()
        };
        let named_alike = names(
            ",providerReference",
            ["2026-03-01,60.00,EUR,T1", "2026-03-02,60,EUR,T1", "2026-03-02,5,EUR,T1"],
        );
        let expected = ["T1/2026-03-01/60", "T1/2026-03-02/5", "T1/2026-03-02/60"];
        assert!(named_alike.iter().eq(expected), "{named_alike:?}");
        let without = names("", ["2026-03-01,60,EUR", "2026-03-01,60,EUR", "2026-03-01,5,EUR"]);
        assert_eq!(without.len(), 3, "{without:?}");
    }

    #[test]
    fn equal_lines_of_two_accounts_have_names_of_their_own_in_one_statement_or_in_two() {
        let line = |account: &str| Line { account: account.to_owned(), ..Line::default() };
        let accounts = ["", "one", "other"];
        let [none, one, other] = accounts.map(|account| named(vec![line(account)]).remove(0));
        assert_ne!(one.provider_reference, other.provider_reference);
        assert!(none.earlier_references.is_empty(), "{none:?}");
        for line in [&one, &other] {
            assert_eq!(line.earlier_references, [&*none.provider_reference]);
        }
        let names = |lines: Vec<Line>| lines.into_iter().map(|line| line.provider_reference);
        let together = names(named(accounts.map(line).into()));
        assert!(together.eq(names(vec![none, one, other])));
    }

    #[test]
    fn lines_without_a_name_are_named_alike_each_time_and_apart() {
        let csv = "date,amount,currency\n2026-03-01,50,EUR\n2026-03-01,50,EUR\n";
        let (one, other) = (read(csv.as_bytes()).unwrap(), read(csv.as_bytes()).unwrap());
        assert_eq!(one, other);
        assert_ne!(one[0].provider_reference, one[1].provider_reference);
    }
}
