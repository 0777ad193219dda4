//! Keys of other names: those of the contract, which are taken as they are, and those of earlier
//! versions, which are an error that tells the name of now. They may stand in the file or in the
//! environment.

use std::collections::HashMap;

use ::config::{Map, Value};

use super::source::{is_set, table};
use crate::startup_error::StartupError;

/// Section, key of the contract, and key with its unit.
pub(super) const CONTRACT_KEYS: [(&str, &str, &str); 6] = [
    ("lifetimes", "access_token", "access_token_seconds"),
    ("lifetimes", "bank_transfer", "bank_transfer_seconds"),
    ("lifetimes", "login_token", "login_token_seconds"),
    ("lifetimes", "offer", "offer_seconds"),
    ("lifetimes", "quote", "quote_seconds"),
    ("lifetimes", "refresh_token", "refresh_token_seconds"),
];

/// Section, key that was, key that is.
pub(super) const RENAMED: [(&str, &str, &str); 4] = [
    ("edge", "answer_seconds", "request_timeout_seconds"),
    ("edge", "head_seconds", "request_header_timeout_seconds"),
    ("edge", "idle_seconds", "keepalive_timeout_seconds"),
    ("edge", "unready_seconds", "shutdown_delay_seconds"),
];

/// Puts the values of the contract's keys (section 12) in one source under the keys that are read:
/// the environment wins over the file under either name.
///
/// # Errors
/// One sentence with both names where both are set.
pub(super) fn resolve(tree: &mut Map<String, Value>) -> Result<(), StartupError> {
    for (section, key, own) in CONTRACT_KEYS {
        let Some(table) = tree.get_mut(section).and_then(table) else { continue };
        let Some(value) = table.remove(key) else { continue };
        if table.insert(own.to_owned(), value).is_some() {
            return Err(format!("'{section}.{key}' and '{section}.{own}' are both set").into());
        }
    }
    Ok(())
}

/// Refuses a tree with a key that has another name now.
///
/// # Errors
/// One sentence with both names.
pub(super) fn check(tree: &HashMap<String, Value>) -> Result<(), StartupError> {
    match RENAMED.iter().find(|(section, old, _)| is_set(tree, section, old)) {
        Some((section, old, new)) => {
            Err(format!("'{section}.{old}' is called '{section}.{new}' now").into())
        }
        None => Ok(()),
    }
}
