//! The account that money leaves and arrives at.

use iban::{Iban, IbanLike as _};
use serde::{Deserialize, Serialize};

/// Longest name of a holder, in characters: the bound of SEPA.
pub(crate) const NAME_CHARS_MAX: usize = 70;

/// Currencies that ISO 4217 gives no decimals.
const WHOLE: [&str; 16] = [
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV",
    "XAF", "XOF", "XPF",
];
/// Currencies to which it gives three.
const THOUSANDTHS: [&str; 7] = ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"];

/// Countries of SEPA, as their IBANs begin.
const SEPA: [&str; 42] = [
    "AD", "AL", "AT", "BE", "BG", "CH", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GB", "GI",
    "GR", "HR", "HU", "IE", "IS", "IT", "LI", "LT", "LU", "LV", "MC", "MD", "ME", "MK", "MT", "NL",
    "NO", "PL", "PT", "RO", "RS", "SE", "SI", "SK", "SM", "VA",
];

/// The account, as the configuration has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Account {
    /// Its holder's name, 1 to 70 characters.
    pub(crate) name: String,
    /// Its IBAN, with blanks or not.
    #[serde(deserialize_with = "iban")]
    pub(crate) iban: String,
    /// BIC of its bank, where the bank asks for it.
    pub(crate) bic: Option<String>,
    /// Its currency.
    #[serde(default = "euro")]
    pub(crate) currency: String,
}

/// The account as a payer is told it.
#[derive(Serialize)]
pub(crate) struct Payee<'a> {
    name: &'a str,
    iban: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bic: Option<&'a str>,
    reference: &'a str,
}

impl Account {
    /// The account and the reference that a payer must quote.
    pub(crate) fn payee<'a>(&'a self, reference: &'a str) -> Payee<'a> {
        Payee { name: &self.name, iban: &self.iban, bic: self.bic.as_deref(), reference }
    }

    /// True if its transfers are SEPA's.
    pub(crate) fn is_sepa(&self) -> bool {
        self.currency == "EUR"
    }

    /// True if one of its transfers reaches this IBAN: one of SEPA reaches no other country.
    pub(crate) fn reaches(&self, iban: &str) -> bool {
        !self.is_sepa() || SEPA.iter().any(|country| iban.starts_with(country))
    }

    /// Checks that money in this currency leaves it or arrives at it as it is.
    ///
    /// # Errors
    /// One sentence for any other currency than its own.
    pub(crate) fn takes(&self, currency: &str) -> Result<(), String> {
        match currency == self.currency {
            true => Ok(()),
            false => Err(format!("the account is in {}, not in {currency}", self.currency)),
        }
    }

    /// Decimals of an amount in its currency: a bank refuses a file with more.
    pub(crate) fn decimals(&self) -> u8 {
        let is_in = |codes: &[&str]| codes.contains(&self.currency.as_str());
        match (is_in(&WHOLE), is_in(&THOUSANDTHS)) {
            (true, _) => 0,
            (_, true) => 3,
            _ => 2,
        }
    }

    /// Checks bounds.
    ///
    /// # Errors
    /// One sentence with the setting's key.
    pub(crate) fn check(&self) -> Result<(), String> {
        let name = &self.name;
        let is_line = name.trim() == name && !name.chars().any(char::is_control);
        if !is_line
            || name.chars().nth(NAME_CHARS_MAX).is_some()
            || latin(name, NAME_CHARS_MAX).is_none()
        {
            return Err("account.name: one line of 1 to 70 characters, one a letter".to_owned());
        }
        if !self.bic.as_deref().is_none_or(is_bic) {
            return Err("account.bic: 8 or 11 capitals and digits".to_owned());
        }
        let is_code =
            self.currency.len() == 3 && self.currency.bytes().all(|b| b.is_ascii_uppercase());
        if !is_code {
            return Err("account.currency: three capitals".to_owned());
        }
        Ok(())
    }
}

fn euro() -> String {
    "EUR".to_owned()
}

fn iban<'de, D: serde::Deserializer<'de>>(source: D) -> Result<String, D::Error> {
    let text = String::deserialize(source)?;
    valid_iban(&text).ok_or_else(|| serde::de::Error::custom("this is no valid IBAN"))
}

/// An IBAN without blanks; `None` if its form or its check digits are wrong.
pub(crate) fn valid_iban(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let iban: Iban = compact.to_ascii_uppercase().parse().ok()?;
    Some(iban.electronic_str().to_owned())
}

fn is_bic(text: &str) -> bool {
    let (bank, rest) = text.split_at_checked(4).unwrap_or_default();
    matches!(text.len(), 8 | 11)
        && bank.bytes().chain(rest.bytes().take(2)).all(|b| b.is_ascii_uppercase())
        && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
}

/// A text in the characters that every bank of SEPA takes, at most `max` of them; `None` if no letter
/// or digit remains.
pub(crate) fn latin(text: &str, max: usize) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-?:().,'+ ".contains(c);
    let spelled = deunicode::deunicode(text);
    let kept: String = spelled.chars().map(|c| if plain(c) { c } else { ' ' }).collect();
    let words: Vec<&str> = kept.split_whitespace().collect();
    let cut: String = words.join(" ").chars().take(max).collect();
    let cut = cut.trim().to_owned();
    cut.bytes().any(|b| b.is_ascii_alphanumeric()).then_some(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iban_has_the_right_check_digits() {
        assert_eq!(valid_iban("nl02 abna 0123 4567 89").as_deref(), Some("NL02ABNA0123456789"));
        for text in ["", "NL03ABNA0123456789", "NL02", "../../etc", "NL02ABNA0123456789X"] {
            assert_eq!(valid_iban(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_spelled_in_the_characters_of_sepa() {
        for (text, spelled) in [
            ("Zoë Łukasiewicz", "Zoe Lukasiewicz"),
            ("Strauß & Söhne", "Strauss Sohne"),
            ("A\n<B>", "A B"),
            ("Иван", "Ivan"),
        ] {
            assert_eq!(latin(text, 70).as_deref(), Some(spelled), "{text}");
        }
        assert_eq!(latin("&&&", 70), None);
        assert_eq!(latin("abcdef", 3).as_deref(), Some("abc"));
    }

    #[test]
    fn a_wrong_account_is_named_by_its_key() {
        let account = |name: &str, bic: &str, currency: &str| {
            let text = format!(
                "name = \"{name}\"\niban = \"NL02 ABNA 0123 4567 89\"\nbic = \"{bic}\"\n\
                 currency = \"{currency}\"\n"
            );
            toml::from_str::<Account>(&text).unwrap().check()
        };
        assert_eq!(account("Rampart", "ABNANL2A", "EUR"), Ok(()));
        for (name, bic, currency, key) in [
            ("", "ABNANL2A", "EUR", "account.name"),
            (" Rampart", "ABNANL2A", "EUR", "account.name"),
            ("a".repeat(71).as_str(), "ABNANL2A", "EUR", "account.name"),
            ("Rampart", "abnanl2a", "EUR", "account.bic"),
            ("Rampart", "ABNÄNL2A", "EUR", "account.bic"),
            ("Rampart", "ABNANL2A", "euro", "account.currency"),
        ] {
            assert!(account(name, bic, currency).unwrap_err().starts_with(key), "{key}");
        }
        assert!(toml::from_str::<Account>("name = \"A\"\niban = \"NL00\"\n").is_err());
    }
}
