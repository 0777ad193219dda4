//! Bounded free text chosen by partners.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::checked_text::text_form;

/// Characters of a partner's order reference.
const REFERENCE_CHARS_MAX: usize = 255;
/// Characters of a user identifier.
const IDENTIFIER_CHARS: RangeInclusive<usize> = 36..=255;

/// The reason a partner's order reference was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidReference {
    /// The text is empty.
    Empty,
    /// More than 255 characters.
    TooLong,
    /// It holds a control character.
    Character,
}

impl fmt::Display for InvalidReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the reference is empty",
            Self::TooLong => "the reference is longer than 255 characters",
            Self::Character => "the reference holds a control character",
        })
    }
}

impl std::error::Error for InvalidReference {}

/// A partner's own name for an order (`partnerOrderIdentifier`): 1 to 255 characters, none of them
/// a control character (contract, section 6.7). Stored as given; it need not be unique.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartnerReference(String);

impl PartnerReference {
    /// The reference as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PartnerReference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        if text.is_empty() {
            Err(InvalidReference::Empty)
        } else if text.chars().nth(REFERENCE_CHARS_MAX).is_some() {
            Err(InvalidReference::TooLong)
        } else if text.chars().any(char::is_control) {
            Err(InvalidReference::Character)
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl fmt::Display for PartnerReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_form!(PartnerReference);

/// The reason a user identifier was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidIdentifier {
    /// The text is empty.
    Empty,
    /// Not 36 to 255 characters.
    Length,
    /// A character outside `[A-Za-z0-9]`, such as the dashes of a UUID.
    Character,
}

impl fmt::Display for InvalidIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the identifier is empty",
            Self::Length => "the identifier is not 36 to 255 characters",
            Self::Character => "the identifier is not alphanumeric (a UUID's dashes are not)",
        })
    }
}

impl std::error::Error for InvalidIdentifier {}

/// A partner's own name for a user: 36 to 255 of `[A-Za-z0-9]` (contract, section 3).
///
/// It serves as a credential, so it has no `Display`, and `Debug` hides it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UserIdentifier(String);

impl UserIdentifier {
    /// The identifier itself; not for logs, errors or URLs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserIdentifier {
    type Err = InvalidIdentifier;

    fn from_str(text: &str) -> Result<Self, InvalidIdentifier> {
        if text.is_empty() {
            Err(InvalidIdentifier::Empty)
        } else if !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            Err(InvalidIdentifier::Character)
        } else if !IDENTIFIER_CHARS.contains(&text.len()) {
            Err(InvalidIdentifier::Length)
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

crate::opaque_debug!(UserIdentifier);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_reference_is_counted_in_characters() {
        let read = |text: &str| text.parse::<PartnerReference>();
        assert_eq!(read(&"é".repeat(255)).unwrap().as_str(), "é".repeat(255));
        assert_eq!(read(&"é".repeat(256)), Err(InvalidReference::TooLong));
        assert_eq!(read(""), Err(InvalidReference::Empty));
        assert_eq!(read(" order 7 ").unwrap().as_str(), " order 7 ");
        for text in ["a\0", "a\nb", "\u{7f}", "\u{85}"] {
            assert_eq!(read(text), Err(InvalidReference::Character), "{text:?}");
        }
    }

    #[test]
    fn an_identifier_is_alphanumeric_and_bounded() {
        let read = |text: &str| text.parse::<UserIdentifier>();
        assert!(read(&"a".repeat(36)).is_ok() && read(&"Z9".repeat(127)).is_ok());
        assert_eq!(read(""), Err(InvalidIdentifier::Empty));
        assert_eq!(read(&"a".repeat(35)), Err(InvalidIdentifier::Length));
        assert_eq!(read(&"a".repeat(256)), Err(InvalidIdentifier::Length));
        let uuid = "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c";
        assert_eq!(read(uuid), Err(InvalidIdentifier::Character));
        assert_eq!(read(&"é".repeat(36)), Err(InvalidIdentifier::Character));
    }

    #[test]
    fn an_identifier_is_not_printed() {
        let identifier: UserIdentifier = "secret".repeat(6).parse().unwrap();
        assert_eq!(format!("{identifier:?}"), "UserIdentifier(…)");
    }

    proptest! {
        #[test]
        fn accepted_text_is_stored_as_given(text in ".{0,300}", id in "[A-Za-z0-9]{30,260}") {
            if let Ok(reference) = text.parse::<PartnerReference>() {
                prop_assert_eq!(reference.as_str(), text);
            }
            let accepted = id.parse::<UserIdentifier>().map(|read| read.0);
            prop_assert_eq!(accepted.is_ok(), (36..=255).contains(&id.len()));
        }
    }
}
