//! The account to which a payer by bank transfer pays, with buttons that copy.

use maud::{Markup, html};
use rampart_types::Iban;
use rust_decimal::Decimal;

use crate::http::html::components::copy_button;
use crate::http::language::Texts;
use crate::money::connectors::bank_transfer::BankTransfer;

/// The account with the reference and the amount, also as the catalogue formats it.
pub(super) fn bank_transfer(
    texts: Texts,
    account: &BankTransfer,
    amount: Decimal,
    formatted: &str,
) -> Markup {
    let shown = texts.amount(formatted);
    // Banks' forms take no mark between groups.
    let typed = texts.number(amount);
    html! {
        dl {
            dt { (texts.get("pay-transfer-name")) } dd { (copied(&account.name, &account.name)) }
            dt { "IBAN" } dd { (copied(&in_groups(&account.iban), account.iban.as_str())) }
            @if let Some(bic) = &account.bic { dt { "BIC" } dd { (copied(bic, bic)) } }
            dt { (texts.get("pay-transfer-reference")) }
            dd { (copied(&account.reference, &account.reference)) }
            dt { (texts.get("pay-transfer-amount")) } dd { (copied(&shown, &typed)) }
        }
        p.note { (texts.get("pay-transfer-exactly")) }
    }
}

/// A text that is selected by a click, and copied by a button.
fn copied(shown: &str, text: &str) -> Markup {
    html! { span.address { (shown) } " " (copy_button(text)) }
}

/// An IBAN as it is printed, in groups of four.
fn in_groups(iban: &Iban) -> String {
    let mut text = String::new();
    for (index, char) in iban.as_str().chars().enumerate() {
        if index > 0 && index.is_multiple_of(4) {
            text.push(' ');
        }
        text.push(char);
    }
    text
}
