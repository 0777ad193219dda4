//! The reason of an operator's act, for the audit.

use crate::platform::error::{Denial, Result};

/// Longest reason, in characters.
pub(super) const REASON_CHARS_MAX: usize = 255;

/// Checks a reason.
///
/// # Errors
/// 422 when it is blank, longer than 255 characters or holds a control character.
pub(super) fn check(reason: &str) -> Result<()> {
    let fits = reason.chars().count() <= REASON_CHARS_MAX;
    if fits && !reason.trim().is_empty() && !reason.contains(char::is_control) {
        return Ok(());
    }
    Err(Denial::unprocessable("reason: 1 to 255 characters, none of control").into())
}
