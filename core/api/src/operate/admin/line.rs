//! Texts of one line: the reason of an operator's act, for the audit, and names that people see.

use crate::platform::error::{Denial, Result};

/// Longest line, in characters.
pub(super) const CHARS_MAX: usize = 255;

/// Checks the line that a member of a request has.
///
/// # Errors
/// 422 when it is blank, longer than 255 characters or holds a control character, such as a line break.
pub(super) fn check(member: &str, text: &str) -> Result<()> {
    let fits = text.chars().count() <= CHARS_MAX;
    if fits && !text.trim().is_empty() && !text.contains(char::is_control) {
        return Ok(());
    }
    let reason = format!("{member}: 1 to {CHARS_MAX} characters, none of control");
    Err(Denial::unprocessable(reason).into())
}
