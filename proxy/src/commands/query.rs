//! Queries of calls.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but the unreserved characters (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The query of what is given, with its question mark; empty when nothing is.
pub(super) fn query<'a>(criteria: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let given = criteria.into_iter().filter_map(|(name, value)| {
        Some(format!("{name}={}", utf8_percent_encode(&value?, RESERVED)))
    });
    let given: Vec<String> = given.collect();
    if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) }
}

/// A part of a path.
pub(super) fn segment(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_what_is_given_and_nothing_else() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(query([("a", None), ("b", None)]), "");
        assert_eq!(query([("a", some("x&y")), ("b", None), ("c", some("1"))]), "?a=x%26y&c=1");
    }
}
