//! The books in the format of beancount, so that another program can check them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::NaiveDate;

use super::Line;
use crate::platform::crypto::sha256;

/// Shortest and longest name of a commodity, in characters.
const COMMODITY_CHARS: std::ops::RangeInclusive<usize> = 2..=24;
/// Bytes of the digest in a name that is made: eight capitals or digits.
const DIGEST_BYTES: usize = 4;
/// Most characters of a currency's end in such a name.
const END_CHARS: usize = 13;
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

/// A commodity's name: the currency's own where it is capitals, digits and dashes, a capital first and
/// no dash last. Any other has a digest of it before its end: two chains may have a token of one
/// address.
fn commodity(currency: &str) -> String {
    let allowed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
    if COMMODITY_CHARS.contains(&currency.len())
        && currency.starts_with(|c: char| c.is_ascii_uppercase())
        && currency.chars().all(allowed)
        && !currency.ends_with('-')
        && !RESERVED.contains(&currency)
    {
        return currency.to_owned();
    }
    let digest = sha256(currency);
    let digest = hex::encode_upper(digest.get(..DIGEST_BYTES).unwrap_or_default());
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '-' };
    let name: String = currency.chars().map(plain).collect();
    // It is ASCII, a byte for each character.
    let end = name.get(name.len().saturating_sub(END_CHARS)..).unwrap_or_default();
    match end.trim_matches('-') {
        "" => format!("XX{digest}"),
        end => format!("XX{digest}-{end}"),
    }
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
        assert!(token.ends_with("-DEAC495271D0F"), "{token}");
        assert!(COMMODITY_CHARS.contains(&token.len()) && token.starts_with('X'), "{token}");
        for (currency, end) in [("€", ""), ("E", "-E"), ("EUR=", "-EUR"), ("TRUE", "-TRUE")] {
            let name = commodity(currency);
            let made = name.strip_prefix("XX").and_then(|rest| rest.strip_suffix(end));
            assert_eq!(made.map(str::len), Some(2 * DIGEST_BYTES), "{name}");
        }
    }

    #[test]
    fn each_currency_has_a_name_of_its_own() {
        let token = "erc20:0x6b175474e89094c44da98b954eedeac495271d0f";
        let of = |chain: u32| commodity(&format!("eip155:{chain}/{token}"));
        assert_ne!(of(1), of(137));
        assert_ne!(commodity("eur"), commodity("EUR"));
        assert_ne!(commodity("€"), commodity("£"));
    }
}
