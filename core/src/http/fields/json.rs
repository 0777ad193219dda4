//! Strict JSON: the checks of the contract (section 1) that serde_json does not make. They look at the
//! bytes: with exact numbers, a visitor of serde's sees each number as an object.

use std::collections::HashSet;

use serde_json::Value;

use crate::platform::error::{Code, Error, Result};

/// Deepest nesting of arrays and objects.
pub const DEPTH_MAX: usize = 32;

/// Most memory of one document: more than a body for partners can take, of 256 KiB.
const DOCUMENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes that an array or an object takes, which has room for some values at once.
const COLLECTION_BYTES: usize = 384;
/// Bytes that a further value in it takes, with its name.
const VALUE_BYTES: usize = 224;

/// Beginning of the names by which serde_json marks numbers and raw JSON within its own data model. It
/// takes an object with one of them for such a value: raw JSON in a string is parsed anew, with a depth
/// of its own, and may hold the next one. Enough of them exhaust the stack, which ends the process.
const RESERVED: &str = "$serde_json::private::";

/// Parses one JSON document.
///
/// # Errors
/// ER048 for anything but one valid document in UTF-8, without duplicate members and reserved names,
/// at most [`DEPTH_MAX`] deep, and for one that [`exceeds_memory`].
pub fn parse(body: &[u8]) -> Result<Value> {
    if exceeds_memory(body) {
        return Err(Error::with_detail(Code::RequestMalformed, "too many values"));
    }
    if depth(body) > DEPTH_MAX {
        return Err(Error::with_detail(Code::RequestMalformed, "nested deeper than 32"));
    }
    let names = names(body);
    // Before it is parsed: the parser obeys such a name.
    if names == Names::Reserved {
        return Err(Error::with_detail(Code::RequestMalformed, "the name of a member is reserved"));
    }
    let value = serde_json::from_slice(body).map_err(|error| {
        Error::with_detail(
            Code::RequestMalformed,
            format!("line {}, column {}", error.line(), error.column()),
        )
    })?;
    if names == Names::Duplicate {
        return Err(Error::with_detail(Code::RequestMalformed, "a member occurs twice"));
    }
    Ok(value)
}

/// Deepest nesting, for any bytes.
fn depth(body: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in structure(body) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Bytes of memory that the document of a body takes beside its texts: small arrays take more than a
/// hundred times as much as their text. An estimate, nothing for bytes that begin like no document.
pub fn document_bytes(body: &[u8]) -> usize {
    if !matches!(body.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return 0;
    }
    let bytes = structure(body).map(|byte| match byte {
        b'{' | b'[' => COLLECTION_BYTES,
        b',' => VALUE_BYTES,
        _ => 0,
    });
    bytes.sum()
}

/// True for a body whose document takes more memory than one may.
pub fn exceeds_memory(body: &[u8]) -> bool {
    // No byte stands for more than a collection: a shorter body need not be looked at.
    body.len() > DOCUMENT_BYTES_MAX / COLLECTION_BYTES && document_bytes(body) > DOCUMENT_BYTES_MAX
}

/// The bytes outside of strings.
fn structure(body: &[u8]) -> impl Iterator<Item = u8> {
    let (mut in_string, mut escaped) = (false, false);
    body.iter().copied().filter(move |byte| {
        let is_outside = !in_string;
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
        is_outside
    })
}

/// The names of all members, as far as they matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Good,
    /// An object has two members of one name.
    Duplicate,
    /// A name begins with [`RESERVED`].
    Reserved,
}

/// Looks at the names of members, decoded (`"a"` equals `"\u0061"`): up to the first byte that is no
/// JSON, a string in the position of a name is a name.
fn names(body: &[u8]) -> Names {
    let mut found = Names::Good;
    let mut open: Vec<Option<HashSet<String>>> = Vec::new();
    let mut expects_name = false;
    let mut at = 0;
    while let Some(byte) = body.get(at) {
        match byte {
            b'{' => {
                open.push(Some(HashSet::new()));
                expects_name = true;
            }
            b'[' => {
                open.push(None);
                expects_name = false;
            }
            b'}' | b']' => {
                open.pop();
                expects_name = false;
            }
            b',' => expects_name = matches!(open.last(), Some(Some(_))),
            b'"' => {
                let end = string_end(body, at);
                if expects_name && let Some(Some(names)) = open.last_mut() {
                    let name = serde_json::from_slice(body.get(at..end).unwrap_or_default());
                    // The parser refuses a name that cannot be decoded.
                    let name: String = name.unwrap_or_default();
                    if name.starts_with(RESERVED) {
                        return Names::Reserved;
                    }
                    if !names.insert(name) {
                        found = Names::Duplicate;
                    }
                }
                expects_name = false;
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Index after the string that starts at `start`.
fn string_end(body: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = body.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    body.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http::request::BODY_BYTES_MAX;

    #[test]
    fn json_that_the_contract_forbids_is_refused() {
        for bad in [
            &br#"{"a":1,"a":2}"#[..],
            br#"{"a":1,"\u0061":2}"#,
            br#"{"a":{"b":1,"b":1}}"#,
            br#"[{"a":1},{"a":1,"a":1}]"#,
            br#"{"a":1} x"#,
            br#"{"a":01}"#,
            b"",
            b"{\"a\":\"\xff\"}",
            br#"{"$serde_json::private::RawValue":"{\"a\":1,\"a\":2}"}"#,
            br#"[{"a":1,"a":{"\u0024serde_json::private::Number":"1"}}]"#,
        ] {
            assert!(parse(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
        assert!(parse("[".repeat(33).as_bytes()).is_err());
        let deep = format!("{}{}", "[".repeat(32), "]".repeat(32));
        assert!(parse(deep.as_bytes()).is_ok());
        assert!(parse(br#"{"a":"a","b":["a","a"],"c":{"a":"{\"a\""}}"#).is_ok());
    }

    #[test]
    fn a_document_takes_memory_for_what_its_text_holds() {
        let value = size_of::<Value>();
        // A list begins with room for four values.
        let lists = format!("[{}0]", "[0],".repeat(1_000));
        assert!(document_bytes(lists.as_bytes()) >= 1_000 * 5 * value);
        let numbers = format!(" [{}0]", "0,".repeat(1_000));
        assert!(document_bytes(numbers.as_bytes()) >= 1_000 * value);
        let text = format!("{{\"a\":\"{}\"}}", "[{\\\",".repeat(1_000));
        assert_eq!(document_bytes(text.as_bytes()), COLLECTION_BYTES);
        for other in ["", " ", "a=[[[[", "--b1\r\n{,,,"] {
            assert_eq!(document_bytes(other.as_bytes()), 0, "{other}");
        }
    }

    #[test]
    fn a_document_that_takes_too_much_memory_is_not_parsed() {
        let arrays = |count: usize| format!("[{}0]", "[],".repeat(count));
        let most = DOCUMENT_BYTES_MAX / (COLLECTION_BYTES + VALUE_BYTES);
        assert!(parse(arrays(most + 1).as_bytes()).is_err());
        let long = format!("[\"{}\"]", "[],".repeat(most + 1));
        assert!(parse(long.as_bytes()).is_ok());
        // What partners send has its bound of bytes alone.
        let densest = arrays((BODY_BYTES_MAX - 3) / 3);
        assert!(densest.len() > BODY_BYTES_MAX - 3 && !exceeds_memory(densest.as_bytes()));
    }

    #[test]
    fn fuzz_json() {
        rampart_fuzz::fuzz("json", |input| {
            let Ok(value) = parse(input) else { return };
            // Whoever reads the same bytes by the grammar alone must see the same document.
            assert_eq!(serde_json::from_slice::<Value>(input).ok(), Some(value.clone()));
            assert!(height(&value) <= DEPTH_MAX);
            assert_eq!(parse(value.to_string().as_bytes()).ok(), Some(value));
        });
    }

    /// Levels of arrays and objects.
    fn height(value: &Value) -> usize {
        let below = match value {
            Value::Array(items) => items.iter().map(height).max(),
            Value::Object(members) => members.values().map(height).max(),
            _ => return 0,
        };
        1 + below.unwrap_or(0)
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
