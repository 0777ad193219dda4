//! Personal identifiers, which are never printed (e-mail address, phone number), and the rule for
//! names and other free text of users.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;
use unicode_properties::UnicodeEmoji as _;

use super::checked_text::refusal;

refusal!(
    /// The text is not an e-mail address.
    InvalidEmail,
    "not an e-mail address"
);

refusal!(
    /// The text is not a phone number in international form.
    InvalidPhone,
    "not a phone number in international form"
);

/// Octets of an address, of its local part and of a label (RFC 5321, section 4.5.3.1; RFC 1035).
const EMAIL_MAX: usize = 254;
const LOCAL_MAX: usize = 64;
const LABEL_MAX: usize = 63;
/// Digits of a phone number with its country code: ITU-T E.164 allows 15; no number that can be
/// called from abroad has fewer than 7.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;
/// Signs that are listed as emoji (UTS #51) but are common in names of businesses.
const SIGNS: [char; 3] = ['©', '®', '™'];

/// Implements JSON encoding and a redacted `Debug` for a type that wraps personal text.
macro_rules! personal_text {
    ($type:ident, $schema:tt) => {
        crate::inline_schema!($type, $schema);

        crate::opaque_debug!($type);

        impl $type {
            /// The text itself; not for logs, errors or URLs.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
                String::deserialize(source)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// An e-mail address (RFC 5321, `Dot-string@Domain`) in small letters: no quoted local part, no
/// address literal, a domain of at least two labels, ASCII (an international domain in its `xn--`
/// form).
///
/// Domains are case-insensitive, and no mail service in use distinguishes case in the local part;
/// one person with two accounts would be the worse error.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EmailAddress(String);

personal_text!(EmailAddress, {"type": "string", "format": "email"});

impl FromStr for EmailAddress {
    type Err = InvalidEmail;

    fn from_str(text: &str) -> Result<Self, InvalidEmail> {
        let (local, domain) = text.rsplit_once('@').ok_or(InvalidEmail)?;
        let valid = text.len() <= EMAIL_MAX && is_local_part(local) && is_domain(domain);
        valid.then(|| Self(text.to_ascii_lowercase())).ok_or(InvalidEmail)
    }
}

fn is_local_part(text: &str) -> bool {
    let atom = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
    text.len() <= LOCAL_MAX
        && text.split('.').all(|part| !part.is_empty() && part.bytes().all(atom))
}

fn is_domain(text: &str) -> bool {
    let label = |label: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=LABEL_MAX).contains(&label.len())
            && label.bytes().all(allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let top = text.rsplit_once('.').map(|(_, top)| top);
    let named =
        top.is_some_and(|top| top.len() > 1 && top.bytes().any(|b| b.is_ascii_alphabetic()));
    named && text.split('.').all(label)
}

/// A phone number as E.164 writes it: `+`, country code and number, digits only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PhoneNumber(String);

personal_text!(PhoneNumber, {"type": "string", "pattern": "^\\+[1-9][0-9]{6,14}$"});

impl FromStr for PhoneNumber {
    type Err = InvalidPhone;

    fn from_str(text: &str) -> Result<Self, InvalidPhone> {
        let digits = text.strip_prefix('+').ok_or(InvalidPhone)?;
        let valid = PHONE_DIGITS.contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        valid.then(|| Self(text.to_owned())).ok_or(InvalidPhone)
    }
}

/// Normalizes a name or a line of an address for storage: trimmed, in normal form C, 1 to
/// `chars_max` characters; `None` if it is empty, too long, or holds emoji, `<`, `>` or control
/// characters.
#[must_use]
pub fn plain_text(text: &str, chars_max: usize) -> Option<String> {
    // Checked before normalization, so that a long text costs nothing.
    if text.chars().nth(chars_max * 4).is_some() {
        return None;
    }
    let normalized: String = text.trim().nfc().collect();
    let fits = !normalized.is_empty() && normalized.chars().nth(chars_max).is_none();
    (fits && normalized.chars().all(is_plain)).then_some(normalized)
}

/// A name as it is compared: words in small letters without accents and signs, in alphabetical order,
/// so that neither spelling nor order matter. Empty for a name without letters and digits.
#[must_use]
pub fn folded_name(name: &str) -> String {
    let plain: String = name.nfkd().filter(|c| !is_combining_mark(*c)).collect();
    let small = plain.to_lowercase();
    let mut words: Vec<_> =
        small.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.sort_unstable();
    words.join(" ")
}

fn is_plain(c: char) -> bool {
    // A variation selector and the keycap make an emoji of a plain character.
    let emoji = matches!(c, '\u{fe0f}' | '\u{20e3}')
        || (!c.is_ascii() && !SIGNS.contains(&c) && c.is_emoji_char());
    !emoji && !c.is_control() && c != '<' && c != '>'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_compared_without_accents_signs_and_order() {
        for same in [
            "Zoë van der Berg",
            "VAN DER BERG, Zoe",
            " berg  der van zoe ",
            "Zoe\u{308} Van-der Berg",
        ] {
            assert_eq!(folded_name(same), "berg der van zoe", "{same}");
        }
        assert_eq!(folded_name("山田 太郎"), "太郎 山田");
        assert_eq!((folded_name("- '"), folded_name("")), (String::new(), String::new()));
        assert_ne!(folded_name("Ada King"), folded_name("Ada Kings"));
    }

    #[test]
    fn an_address_has_a_plain_name_and_a_domain_with_a_dot() {
        let read = |text: &str| text.parse::<EmailAddress>().map(|email| email.0);
        assert_eq!(read("Ada.Lovelace+x@Example.COM").unwrap(), "ada.lovelace+x@example.com");
        assert!(read("o'brien@xn--bcher-kva.example").is_ok());
        for text in [
            "",
            "@",
            "ada",
            "ada@",
            "@example.com",
            "ada@b",
            "a@b.c",
            "ada@example.com.",
            "ada@.example.com",
            "ada@exa_mple.com",
            "ada@-a.com",
            "ada@a-.com",
            "ada@127.0.0.1",
            "ada@[127.0.0.1]",
            "\"ada\"@example.com",
            ".ada@example.com",
            "ada.@example.com",
            "a..a@example.com",
            "ada @example.com",
            "ada@example.com ",
            "a@b@example.com",
            "ada\n@example.com",
            "ädä@example.com",
            "ada@exämple.com",
        ] {
            assert_eq!(read(text), Err(InvalidEmail), "{text:?}");
        }
        let long = |local, label| format!("{}@{}.com", "a".repeat(local), "b".repeat(label));
        assert!(read(&long(64, 63)).is_ok());
        assert!(read(&long(65, 63)).is_err() && read(&long(64, 64)).is_err());
        assert!(read(&format!("a@{}com", "b.".repeat(130))).is_err());
    }

    #[test]
    fn a_phone_number_is_plus_and_digits() {
        for text in ["+31612345678", "+12025550123", "+1234567"] {
            assert_eq!(text.parse::<PhoneNumber>().unwrap().as_str(), text);
        }
        for text in [
            "",
            "+",
            "31612345678",
            "0031612345678",
            "+0612345678",
            "+31 612345678",
            "+31-612345678",
            "+316(12)345",
            "+123456",
            "+1234567890123456",
            "+3161234567x",
            "+٣١٦١٢٣٤٥٦٧",
        ] {
            assert!(text.parse::<PhoneNumber>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_name_is_composed_bounded_and_without_emoji() {
        let read = |text: &str| plain_text(text, 10);
        assert_eq!(read(" Zoe\u{308} ").as_deref(), Some("Zo\u{eb}"));
        assert_eq!(read("李小龙").as_deref(), Some("李小龙"));
        assert_eq!(read("Nr. 7 #2*").as_deref(), Some("Nr. 7 #2*"));
        assert!(read("Acme™").is_some() && read(&"é".repeat(10)).is_some());
        for text in
            ["", "  ", "<b>", "a>b", "Ada 🦀", "1\u{fe0f}\u{20e3}", "🇳🇱", "❤", "a\nb", "a\0"]
        {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert!(read(&"a".repeat(11)).is_none() && read(&"a".repeat(1000)).is_none());
    }

    #[test]
    fn nothing_of_a_person_is_printed() {
        let email: EmailAddress = "ada@example.com".parse().unwrap();
        let phone: PhoneNumber = "+31612345678".parse().unwrap();
        assert_eq!(format!("{email:?} {phone:?}"), "EmailAddress(…) PhoneNumber(…)");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".*", near in "[a-z.@+-]{0,20}") {
            for text in [text, near] {
                let _ = (text.parse::<EmailAddress>(), text.parse::<PhoneNumber>());
                let _ = plain_text(&text, 5);
            }
        }

        #[test]
        fn every_number_of_e_164_is_read(text in "\\+[1-9][0-9]{6,14}") {
            prop_assert!(text.parse::<PhoneNumber>().is_ok());
        }

        #[test]
        fn what_is_read_is_of_e_164(text in "\\+?[0-9 ()-]{0,18}") {
            let digits = text.strip_prefix('+').unwrap_or_default();
            let e_164 = (7..=15).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_digit())
                && !digits.starts_with('0');
            let read = text.parse::<PhoneNumber>();
            prop_assert_eq!(read.as_ref().ok().map(PhoneNumber::as_str), e_164.then_some(&*text));
        }

        #[test]
        fn what_is_kept_is_kept_again(text in "\\PC{0,30}") {
            if let Some(kept) = plain_text(&text, 20) {
                prop_assert_eq!(plain_text(&kept, 20), Some(kept));
            }
        }
    }
}
