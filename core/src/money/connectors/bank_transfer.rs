//! The account that a payer by bank transfer is told, as the result of a `payment.create` names it.

use rampart_types::Iban;
use serde_json::Value;

/// Longest name or reference, in characters: the bounds of ISO 20022.
const TEXT_CHARS_MAX: usize = 140;
/// Punctuation that every bank of SEPA takes in a reference.
const REFERENCE_MARKS: &str = "/-?:().,'+ ";

/// An account, and the reference by which its holder knows the payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BankTransfer {
    /// The holder's name.
    pub(crate) name: String,
    pub(crate) iban: Iban,
    /// The BIC of its bank, if payers are asked for one.
    pub(crate) bic: Option<String>,
    pub(crate) reference: String,
}

impl BankTransfer {
    /// The account of a result. `None` if it has none, or if a member of it is missing or wrong: money
    /// that is sent by half of it may never be found.
    pub(crate) fn of(result: &Value) -> Option<Self> {
        let told = &result["bankTransfer"];
        let text = |name: &str| told[name].as_str().filter(|text| is_bounded(text));
        let bic = match &told["bic"] {
            Value::Null => None,
            bic => Some(bic.as_str().filter(|bic| is_bic(bic))?.to_owned()),
        };
        let is_plain = |text: &&str| {
            text.chars().all(|c| c.is_ascii_alphanumeric() || REFERENCE_MARKS.contains(c))
        };
        Some(Self {
            name: text("name")?.to_owned(),
            iban: told["iban"].as_str()?.parse().ok()?,
            bic,
            reference: text("reference").filter(is_plain)?.to_owned(),
        })
    }

    /// True if a result names an account that no payer can be told.
    pub(crate) fn is_wrong(result: &Value) -> bool {
        !result["bankTransfer"].is_null() && Self::of(result).is_none()
    }
}

/// True for a line of 1 to 140 characters without blanks around it.
fn is_bounded(text: &str) -> bool {
    !text.is_empty()
        && text.trim() == text
        && text.chars().nth(TEXT_CHARS_MAX).is_none()
        && !text.chars().any(|c| c.is_control() || is_hidden(c))
}

/// True for a mark without a width: those of direction could show another name than is copied.
const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
    )
}

/// True for a BIC (ISO 9362) in capitals.
fn is_bic(text: &str) -> bool {
    matches!(text.len(), 8 | 11)
        && text
            .bytes()
            .enumerate()
            .all(|(index, byte)| byte.is_ascii_uppercase() || (index >= 6 && byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result() -> Value {
        json!({"providerReference": "1234567890123456", "bankTransfer": {"name": "Zoë & Söhne GmbH",
            "iban": "NL02 ABNA 0123 4567 89", "bic": "ABNANL2A", "reference": "1234567890123456"}})
    }

    #[test]
    fn an_account_is_told_whole_or_not_at_all() {
        let told = BankTransfer::of(&result()).unwrap();
        assert_eq!((&*told.name, told.iban.as_str()), ("Zoë & Söhne GmbH", "NL02ABNA0123456789"));
        assert_eq!((told.bic.as_deref(), &*told.reference), (Some("ABNANL2A"), "1234567890123456"));
        for (member, value) in [
            ("name", Value::Null),
            ("name", json!("")),
            ("name", json!(" Acme")),
            ("name", json!("Acme\nIBAN")),
            ("name", json!("Acme\u{202e}emcA")),
            ("name", json!("a".repeat(141))),
            ("iban", Value::Null),
            ("iban", json!(5)),
            ("iban", json!("NL03ABNA0123456789")),
            ("bic", json!("")),
            ("bic", json!("abnanl2a")),
            ("bic", json!("ABNA2L2A")),
            ("bic", json!("ABNANL2A1")),
            ("bic", json!(["ABNANL2A"])),
            ("reference", Value::Null),
            ("reference", json!(1_234_567_890_123_456_i64)),
            ("reference", json!("order #7")),
            ("reference", json!("7".repeat(141))),
        ] {
            let mut wrong = result();
            wrong["bankTransfer"][member] = value;
            assert_eq!(BankTransfer::of(&wrong), None, "{wrong}");
            assert!(BankTransfer::is_wrong(&wrong), "{wrong}");
        }
    }

    #[test]
    fn a_bic_may_be_missing_and_a_result_may_have_no_account() {
        let mut told = result();
        told["bankTransfer"]["bic"] = Value::Null;
        assert_eq!(BankTransfer::of(&told).unwrap().bic, None);
        for none in [json!({}), Value::Null, json!({"redirectUrl": "https://psp.example/"})] {
            assert_eq!((BankTransfer::of(&none), BankTransfer::is_wrong(&none)), (None, false));
        }
        for wrong in [json!("NL02ABNA0123456789"), json!([]), json!({}), json!(1)] {
            assert!(BankTransfer::is_wrong(&json!({ "bankTransfer": wrong })));
        }
    }
}
