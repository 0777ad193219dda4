//! The key that a request names, and what a repetition of it must match.

use ring::digest;

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

/// SHA-256 of path, owner of the key and body, which a repeated request must match to get the saved
/// answer. Without it, a key could show one user's answer to another.
pub(super) fn request_digest(input: &Input, owner: &str) -> digest::Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(input.head.path.as_bytes());
    // No path and no owner has a line end in it.
    context.update(b"\n");
    context.update(owner.as_bytes());
    context.update(b"\n");
    match &input.upload {
        Some(upload) => context.update(&upload.digest),
        None => context.update(digest::digest(&digest::SHA256, &input.body).as_ref()),
    }
    context.finish()
}
