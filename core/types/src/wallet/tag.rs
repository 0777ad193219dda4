//! Destination tags, which identify the account behind a shared address.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Longest text memo on Stellar, in bytes (Stellar protocol, `MEMO_TEXT`).
const MEMO_BYTES_MAX: usize = 28;
/// A hash or return memo on Stellar: 32 bytes in hexadecimal.
const MEMO_HASH_CHARS: usize = 64;
/// Digits of the largest tag on the XRP Ledger, 4294967295.
const NUMBER_DIGITS_MAX: usize = 10;

/// The kind of tag that a chain's payments can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    /// No tag at all.
    None,
    /// An integer from 0 to 4294967295 (XRP Ledger).
    Number,
    /// A memo: text of at most 28 bytes, or 64 hexadecimal digits (Stellar).
    Memo,
}

/// The reason a destination tag was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidTag {
    /// The chain has no tags (`ER044`).
    Unsupported,
    /// Not a tag of the chain's kind (`ER015`).
    Malformed,
}

impl fmt::Display for InvalidTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsupported => "the chain has no destination tags",
            Self::Malformed => "not a destination tag of this chain",
        })
    }
}

impl std::error::Error for InvalidTag {}

/// A destination tag; on the wire an integer for XRP and a string otherwise (API document, Order).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DestinationTag(Form);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Form {
    Number(u32),
    Memo(String),
}

impl DestinationTag {
    /// Reads a tag from a request: `null` is no tag. A number may come as an integer or as a string
    /// of digits, a memo only as a string.
    ///
    /// # Errors
    /// [`InvalidTag::Unsupported`] for any value but `null` where the chain has no tags, else
    /// [`InvalidTag::Malformed`].
    pub fn read(kind: TagKind, value: &Value) -> Result<Option<Self>, InvalidTag> {
        match (kind, value) {
            (_, Value::Null) => Ok(None),
            (_, Value::String(text)) => Self::parse(kind, text).map(Some),
            (TagKind::None, _) => Err(InvalidTag::Unsupported),
            (TagKind::Number, Value::Number(number)) => {
                Self::parse(kind, number.as_str()).map(Some)
            }
            _ => Err(InvalidTag::Malformed),
        }
    }

    /// Reads a tag from text, such as its stored form.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn parse(kind: TagKind, text: &str) -> Result<Self, InvalidTag> {
        let form = match kind {
            TagKind::None => return Err(InvalidTag::Unsupported),
            TagKind::Number => parse_number(text).map(Form::Number),
            TagKind::Memo => is_memo(text).then(|| Form::Memo(text.to_owned())),
        };
        form.map(Self).ok_or(InvalidTag::Malformed)
    }
}

fn parse_number(text: &str) -> Option<u32> {
    let plain = text.len() <= NUMBER_DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// A blank at either end is a copying mistake that would lose the coins; it is refused rather than
/// trimmed. Blanks inside are part of the memo.
fn is_memo(text: &str) -> bool {
    let hash = text.len() == MEMO_HASH_CHARS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let short = (1..=MEMO_BYTES_MAX).contains(&text.len());
    hash || (short && text.trim() == text && !text.chars().any(char::is_control))
}

impl fmt::Display for DestinationTag {
    /// The stored form, which [`parse`](Self::parse) reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Number(number) => fmt::Display::fmt(number, f),
            Form::Memo(text) => f.write_str(text),
        }
    }
}

crate::inline_schema!(DestinationTag, {"type": ["string", "integer"]});

impl Serialize for DestinationTag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Form::Number(number) => serializer.serialize_u32(*number),
            Form::Memo(text) => serializer.serialize_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn serialized(kind: TagKind, value: &Value) -> Result<String, InvalidTag> {
        DestinationTag::read(kind, value).map(|tag| serde_json::to_string(&tag).unwrap())
    }

    #[test]
    fn a_number_comes_as_integer_or_digits_and_leaves_as_integer() {
        for (value, text) in [
            (json!(0), "0"),
            (json!(4_294_967_295_u32), "4294967295"),
            (json!("12345"), "12345"),
            (json!("007"), "7"),
            (Value::Null, "null"),
        ] {
            assert_eq!(serialized(TagKind::Number, &value).as_deref(), Ok(text), "{value}");
        }
        let numbers: Value =
            serde_json::from_str("[4294967296, -1, -0, 1.0, 1e2, 1.5, 1e400]").unwrap();
        let others = json!([
            "",
            "-1",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "0x1",
            "4294967296",
            "00000000001",
            "memo",
            "١",
            true,
            [],
            {}
        ]);
        for value in numbers.as_array().unwrap().iter().chain(others.as_array().unwrap()) {
            assert_eq!(serialized(TagKind::Number, value), Err(InvalidTag::Malformed), "{value}");
        }
    }

    #[test]
    fn a_memo_is_text_of_28_bytes_or_a_hash() {
        let hash = "0123456789abcdefABCDEF0123456789abcdefABCDEF0123456789abcdefABCD";
        for text in
            ["1", "two words", &"a".repeat(28), &"é".repeat(14), "18446744073709551615", hash]
        {
            let value = json!(text);
            assert_eq!(serialized(TagKind::Memo, &value), Ok(value.to_string()), "{text}");
        }
        let long = "a".repeat(29);
        let wide = "é".repeat(15);
        for value in
            json!(["", long, wide, " a", "a ", "a\n", "a\u{0}b", &hash[1..], 12, true, [], {}])
                .as_array()
                .unwrap()
        {
            assert_eq!(serialized(TagKind::Memo, value), Err(InvalidTag::Malformed), "{value}");
        }
    }

    #[test]
    fn a_chain_without_tags_takes_none() {
        for value in [json!(1), json!("1"), json!(""), json!(true)] {
            assert_eq!(serialized(TagKind::None, &value), Err(InvalidTag::Unsupported), "{value}");
        }
        assert_eq!(DestinationTag::read(TagKind::None, &Value::Null), Ok(None));
    }

    proptest! {
        #[test]
        fn the_stored_form_parses_back(number: u32, memo in "\\PC{0,32}") {
            for (kind, text) in [(TagKind::Number, number.to_string()), (TagKind::Memo, memo)] {
                if let Ok(tag) = DestinationTag::parse(kind, &text) {
                    prop_assert_eq!(tag.to_string(), text);
                } else {
                    prop_assert_eq!(kind, TagKind::Memo);
                }
            }
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".*") {
            for kind in [TagKind::None, TagKind::Number, TagKind::Memo] {
                let _ = DestinationTag::parse(kind, &text);
            }
        }
    }
}
