//! The references of providers, as they are stored.

use ring::digest;

/// Longest reference that is stored, in characters.
pub const REFERENCE_CHARS_MAX: usize = 255;
/// Characters of a longer one before its digest, whose 64 digits and `~` fill the rest.
const BEGINNING_CHARS: usize = 190;

/// The name under which a provider's reference is stored: the reference itself, or of one with more than
/// [`REFERENCE_CHARS_MAX`] characters or with characters of control its beginning, `~` and the SHA-256 of
/// all of it. It is the same each time, and another one for another reference. Earlier versions stored
/// the first 255 characters: a payment keeps the name that it has.
#[must_use]
pub fn stored_reference(text: &str) -> String {
    let is_long = text.chars().nth(REFERENCE_CHARS_MAX).is_some();
    if !is_long && !text.contains(char::is_control) {
        return text.to_owned();
    }
    let plain = text.chars().filter(|c| !c.is_control());
    let beginning: String = plain.take(BEGINNING_CHARS).collect();
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    format!("{beginning}~{}", hex::encode(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_that_fits_is_stored_as_it_is() {
        for text in ["", "sepa-1", "Zoë ~ 1", &*"é".repeat(REFERENCE_CHARS_MAX)] {
            assert_eq!(stored_reference(text), text);
        }
    }

    #[test]
    fn long_references_that_begin_alike_stay_apart_within_the_bound() {
        let beginning = "é".repeat(REFERENCE_CHARS_MAX);
        let [one, other] = ["1", "2"].map(|end| stored_reference(&format!("{beginning}{end}")));
        assert_ne!(one, other);
        assert_eq!(one, stored_reference(&format!("{beginning}1")));
        assert_eq!(one.chars().count(), REFERENCE_CHARS_MAX);
        assert!(one.starts_with(&*"é".repeat(BEGINNING_CHARS)), "{one}");
        assert_eq!(stored_reference(&one), one);
    }

    #[test]
    fn characters_of_control_are_not_stored_and_tell_references_apart() {
        let [zero, tab] = ["a\0b", "a\tb"].map(stored_reference);
        assert!(zero.starts_with("ab~") && !zero.contains(char::is_control), "{zero}");
        assert_ne!(zero, tab);
    }
}
