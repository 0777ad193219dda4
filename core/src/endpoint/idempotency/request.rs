//! The key that a request names.

use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};

/// Longest key, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// The request's `Idempotency-Key`, if it has one.
///
/// # Errors
/// ER048 for a malformed key.
pub(super) fn key(input: &Input) -> Result<Option<&str>> {
    if !input.head.headers.contains_key("idempotency-key") {
        return Ok(None);
    }
    let key = input.head.header("idempotency-key").filter(|key| {
        (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|b| (0x20..0x7f).contains(&b))
    });
    key.map(Some).ok_or_else(|| {
        Error::with_detail(
            Code::RequestMalformed,
            "Idempotency-Key takes 1 to 255 printable ASCII characters",
        )
    })
}
