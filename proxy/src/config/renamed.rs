//! Keys of other names: those of the contract, which are taken as they are, and those of earlier
//! versions, which are an error that tells the name of now. They may stand in the file or in the
//! environment.

use std::collections::HashMap;

use ::config::{Map, Value};

use super::source::{is_set, table};
use crate::startup_error::StartupError;

/// Keys of the contract in the section `lifetimes`; those that are read end in `_seconds`.
pub(super) const CONTRACT_KEYS: [&str; 6] =
    ["access_token", "bank_transfer", "login_token", "offer", "quote", "refresh_token"];

/// Section, key that was, key that is.
pub(super) const RENAMED: [(&str, &str, &str); 4] = [
    ("edge", "answer_seconds", "request_timeout_seconds"),
    ("edge", "head_seconds", "request_header_timeout_seconds"),
    ("edge", "idle_seconds", "keepalive_timeout_seconds"),
    ("edge", "unready_seconds", "shutdown_delay_seconds"),
];

/// Puts the values of the contract's keys (section 12) in one source under the keys that are read:
/// the environment wins over the file under either name.
pub(super) fn resolve(tree: &mut Map<String, Value>) -> Result<(), StartupError> {
    let Some(lifetimes) = tree.get_mut("lifetimes").and_then(table) else { return Ok(()) };
    for key in CONTRACT_KEYS {
        let Some(value) = lifetimes.remove(key) else { continue };
        if lifetimes.insert(format!("{key}_seconds"), value).is_some() {
            let both = format!("'lifetimes.{key}' and 'lifetimes.{key}_seconds' are both set");
            return Err(both.into());
        }
    }
    Ok(())
}

/// Refuses a tree with a key that has another name now.
pub(super) fn check(tree: &HashMap<String, Value>) -> Result<(), StartupError> {
    match RENAMED.iter().find(|(section, old, _)| is_set(tree, section, old)) {
        Some((section, old, new)) => {
            Err(format!("'{section}.{old}' is called '{section}.{new}' now").into())
        }
        None => Ok(()),
    }
}
