//! Values within URIs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but the unreserved characters (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The text with everything percent-encoded but the unreserved characters, for a segment of a path
/// or a value of a query.
pub fn escape(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}
