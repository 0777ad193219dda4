//! Keys that have another name now. An old one is an error that tells the new one, whether it
//! stands in the file or in the environment.

use std::collections::HashMap;

use ::config::Value;

use super::source;
use crate::startup_error::StartupError;

/// Section, key that was, key that is.
pub(super) const RENAMED: [(&str, &str, &str); 10] = [
    ("edge", "answer_seconds", "request_timeout_seconds"),
    ("edge", "head_seconds", "request_header_timeout_seconds"),
    ("edge", "idle_seconds", "keepalive_timeout_seconds"),
    ("edge", "unready_seconds", "shutdown_delay_seconds"),
    ("lifetimes", "access_token", "access_token_seconds"),
    ("lifetimes", "bank_transfer", "bank_transfer_seconds"),
    ("lifetimes", "login_token", "login_token_seconds"),
    ("lifetimes", "offer", "offer_seconds"),
    ("lifetimes", "quote", "quote_seconds"),
    ("lifetimes", "refresh_token", "refresh_token_seconds"),
];

/// Refuses a tree with a key that has another name now.
///
/// # Errors
/// One sentence with both names.
pub(super) fn check(tree: &HashMap<String, Value>) -> Result<(), StartupError> {
    match RENAMED.iter().find(|(section, old, _)| source::is_set(tree, section, old)) {
        Some((section, old, new)) => {
            Err(format!("'{section}.{old}' is called '{section}.{new}' now").into())
        }
        None => Ok(()),
    }
}
