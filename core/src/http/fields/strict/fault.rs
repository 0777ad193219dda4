//! The error of a strict reading, in the words of JSON: serde's have the names of Rust.

use std::fmt::{self, Display, Formatter};

/// Texts of chrono's errors, which tell neither the member nor the form that is wanted.
const NO_TIME: [&str; 6] = [
    "input contains invalid characters",
    "input is not enough for unique date and time",
    "input is out of range",
    "no possible date and time matching input",
    "premature end of input",
    "trailing input",
];

/// An error of a value, and the path of the member that has it.
#[derive(Debug)]
pub(super) struct Fault {
    /// Such as `documents[0].status`; empty for the whole document.
    path: String,
    message: String,
}

impl Fault {
    /// The same error, as that of the document that has the value as this member.
    pub(super) fn in_member(self, name: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{name}{separator}{}", self.path), ..self }
    }

    /// The same error, as that of the array that has the value as this item.
    pub(super) fn in_item(self, index: usize) -> Self {
        self.in_member(&format!("[{index}]"))
    }
}

impl serde::de::Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self { path: String::new(), message: message.to_string() }
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        serde::de::Error::custom(error)
    }
}

impl std::error::Error for Fault {}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&plain(&self.message))
    }
}

/// The message without the names of types and libraries.
fn plain(message: &str) -> String {
    if NO_TIME.contains(&message) {
        return "not a date or time in the form of RFC 3339".to_owned();
    }
    if message.starts_with("UUID parsing failed") {
        return "not a UUID".to_owned();
    }
    match message {
        "invalid IP address syntax" => {
            return "not a network in CIDR notation, such as 192.0.2.7/32".to_owned();
        }
        "invalid number" => return "not a whole number, or one out of range".to_owned(),
        "expected field with custom name" => return "expected a number".to_owned(),
        // The number of an order is the one identifier that is no text.
        "not a valid identifier" => return "not an order's number".to_owned(),
        _ => {}
    }
    let message = message.replacen("unknown variant", "unknown value", 1);
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return message };
    let found = match found {
        "invalid type: map" => "invalid type: object",
        "invalid type: sequence" => "invalid type: array",
        other => other,
    };
    format!("{found}, expected {}", kind(expected))
}

/// A kind of value, as JSON names it.
fn kind(expected: &str) -> String {
    let whole = |least: i128, most: i128| format!("a whole number from {least} to {most}");
    match expected {
        "u8" => whole(0, u8::MAX.into()),
        "u16" => whole(0, u16::MAX.into()),
        "u32" => whole(0, u32::MAX.into()),
        "u64" | "usize" => whole(0, u64::MAX.into()),
        "i16" => whole(i16::MIN.into(), i16::MAX.into()),
        "i32" => whole(i32::MIN.into(), i32::MAX.into()),
        "i64" => "a whole number".to_owned(),
        "a map" => "an object".to_owned(),
        "a sequence" => "an array".to_owned(),
        "string or map" => "a string".to_owned(),
        "a formatted date and time string" | "an RFC 3339 formatted date and time string" => {
            "a date and time in the form of RFC 3339".to_owned()
        }
        named if named.starts_with("struct ") => "an object".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::de::Error as _;

    use super::*;

    #[test]
    fn an_error_names_its_member_and_no_type_of_ours() {
        for (message, told) in [
            ("invalid type: string \"x\", expected struct Change", "expected an object"),
            ("invalid value: integer `-1`, expected u8", "expected a whole number from 0 to 255"),
            ("invalid type: map, expected a string", "invalid type: object, expected a string"),
            ("expected field with custom name", "expected a number"),
            ("invalid type: string \"x\", expected i64", "expected a whole number"),
            ("not a valid identifier", "not an order's number"),
            ("invalid number", "not a whole number, or one out of range"),
            ("premature end of input", "not a date or time in the form of RFC 3339"),
            ("UUID parsing failed: invalid length", "not a UUID"),
            ("invalid IP address syntax", "not a network in CIDR notation, such as 192.0.2.7/32"),
            ("unknown variant `x`, expected `a` or `b`", "unknown value `x`, expected `a` or `b`"),
        ] {
            let fault = Fault::custom(message).in_member("status").in_item(1).in_member("list");
            let text = fault.to_string();
            assert!(text.starts_with("list[1].status: ") && text.ends_with(told), "{text}");
        }
        let whole = Fault::custom("unknown field `x`, there are no fields").to_string();
        assert_eq!(whole, "unknown field `x`, there are no fields");
    }
}
