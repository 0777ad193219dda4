//! The books in the format of beancount, so that another program can check them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::NaiveDate;

use super::Line;

/// Shortest and longest name of a commodity, in characters.
const COMMODITY_CHARS: std::ops::RangeInclusive<usize> = 2..=24;
/// Words that are values to beancount.
const RESERVED: [&str; 3] = ["TRUE", "FALSE", "NULL"];

/// The entries as a journal: accounts are opened on the day of their first posting.
pub(super) fn journal(lines: &[Line]) -> String {
    let mut opened: BTreeMap<String, NaiveDate> = BTreeMap::new();
    for line in lines {
        let day = line.occurred_at.date_naive();
        opened.entry(account(line)).and_modify(|first| *first = day.min(*first)).or_insert(day);
    }
    let mut text = "option \"title\" \"Rampart\"\n\n".to_owned();
    // Writing to a string cannot fail.
    for (account, day) in &opened {
        let _ = writeln!(text, "{day} open {account}");
    }
    for entry in lines.chunk_by(|one, next| one.entry_id == next.entry_id) {
        let Some(first) = entry.first() else { continue };
        let day = first.occurred_at.date_naive();
        let order = first.order_id.map_or_else(String::new, |order| format!("order {order}"));
        let _ = writeln!(text, "\n{day} * \"{}\" \"{order}\"", first.entry);
        let _ = writeln!(text, "  entry: \"{}\"", first.entry_id);
        for line in entry {
            let (amount, unit) = (line.amount.normalize(), commodity(&line.currency));
            let _ = writeln!(text, "  {}  {amount} {unit}", account(line));
        }
    }
    text
}

/// The account of a posting: its kind decides under which of the five roots it stands.
fn account(line: &Line) -> String {
    let root = match line.account.as_str() {
        "provider" | "treasury" => "Assets",
        "customer" | "suspense" | "refund_payable" | "payout_payable" => "Liabilities",
        "conversion" => "Equity",
        "dispute" => "Expenses",
        _ => "Income",
    };
    let mut account = format!("{root}:{}:{}", component(&line.slug), component(&line.account));
    if !line.holder.is_empty() {
        account += ":";
        account += &component(&line.holder);
    }
    account
}

/// A part of an account's name: a capital or a digit first, then letters, digits and dashes.
fn component(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let capitalised = words.filter(|word| !word.is_empty()).map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    capitalised.collect::<Vec<_>>().join("-")
}

/// A commodity's name: capitals, digits and dashes, a capital first and no dash last.
fn commodity(currency: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '-' };
    let name: String = currency.chars().map(allowed).collect();
    if COMMODITY_CHARS.contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && !name.ends_with('-')
        && !RESERVED.contains(&&*name)
    {
        return name;
    }
    // The end tells assets of one chain apart.
    let end = name.len().saturating_sub(COMMODITY_CHARS.end() - 2);
    let end: String = name.chars().skip(end).collect();
    format!("XX{}", end.trim_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_form_that_beancount_reads() {
        assert_eq!(component("payout_payable"), "Payout-Payable");
        assert_eq!(component("shop-7.example"), "Shop-7-Example");
        assert_eq!(commodity("BTC"), "BTC");
        let token = commodity("eip155:1/erc20:0x6b175474e89094c44da98b954eedeac495271d0f");
        assert!(token.ends_with("EEDEAC495271D0F"), "{token}");
        assert!(COMMODITY_CHARS.contains(&token.len()) && token.starts_with('X'), "{token}");
        for (currency, name) in [("€", "XX"), ("E", "XXE"), ("EUR=", "XXEUR"), ("TRUE", "XXTRUE")]
        {
            assert_eq!(commodity(currency), name);
        }
    }
}
