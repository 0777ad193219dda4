//! Statements of accounts: ISO 20022 camt.053, or CSV with named columns. The bytes come from
//! outside; every part of them is bounded.

mod camt;
mod columns;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use ring::digest;
use rust_decimal::Decimal;

/// Most lines of a statement.
pub(crate) const LINES_MAX: usize = 10_000;
/// Longest text of a line that is kept, in characters.
const TEXT_CHARS_MAX: usize = 255;
/// Digits of an order's number in a payment reference.
const ORDER_DIGITS: usize = 16;

/// A line of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    pub(crate) date: Option<NaiveDate>,
    /// Negative for what left the account.
    pub(crate) amount: Decimal,
    pub(crate) currency: String,
    /// The payer's words.
    pub(crate) reference: String,
    /// The bank's own name for it; made of the line's contents where the bank gives none.
    pub(crate) provider_reference: String,
    pub(crate) name: String,
    pub(crate) iban: String,
}

impl Line {
    /// The number of the order that the payer has written: a run of sixteen digits, with blanks or
    /// not.
    pub(crate) fn order_digits(&self) -> Option<String> {
        let mut run = String::new();
        for c in self.reference.chars().chain(['.']) {
            match c {
                '0'..='9' => run.push(c),
                ' ' | '-' => {}
                _ if run.len() == ORDER_DIGITS => return Some(run),
                _ => run.clear(),
            }
        }
        None
    }

    /// The begin of its day.
    pub(crate) fn at(&self) -> Option<DateTime<Utc>> {
        Some(self.date?.and_time(NaiveTime::MIN).and_utc())
    }

    /// Names it by its contents if the bank does not; `nth` tells equal ones apart.
    fn named(mut self, nth: usize) -> Self {
        if self.provider_reference.is_empty() {
            let text = format!(
                "{:?}/{}/{}/{}/{}/{nth}",
                self.date, self.amount, self.currency, self.reference, self.iban
            );
            let digest = digest::digest(&digest::SHA256, text.as_bytes());
            self.provider_reference = format!("line-{}", hex::encode(&digest.as_ref()[..16]));
        }
        self
    }
}

/// The reason that a statement cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable(pub(crate) String);

/// The lines of a statement in either format.
///
/// # Errors
/// In one sentence, with the place.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Line>, Unreadable> {
    let text = std::str::from_utf8(bytes).map_err(|_| Unreadable("it is not UTF-8".to_owned()))?;
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let lines = if text.starts_with('<') { camt::read(text)? } else { columns::read(text)? };
    if lines.len() > LINES_MAX {
        return Err(Unreadable(format!("it has more than {LINES_MAX} lines")));
    }
    let mut seen = std::collections::HashMap::new();
    let named = lines.into_iter().map(|line| {
        let nth = seen.entry(line.clone()).or_insert(0_usize);
        *nth += 1;
        line.named(*nth)
    });
    Ok(named.collect())
}

/// The first characters of a text, without those of control.
fn bounded(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect()
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
        ] {
            assert_eq!(digits(text), number, "{text}");
        }
        for text in ["", "123456789012345", "12345678901234567", "NL58ABNA0000000001"] {
            assert_eq!(digits(text), None, "{text}");
        }
    }

    #[test]
    fn lines_without_a_name_are_named_alike_each_time_and_apart() {
        let csv = "date,amount,currency\n2026-03-01,50,EUR\n2026-03-01,50,EUR\n";
        let (one, other) = (read(csv.as_bytes()).unwrap(), read(csv.as_bytes()).unwrap());
        assert_eq!(one, other);
        assert_ne!(one[0].provider_reference, one[1].provider_reference);
    }
}
