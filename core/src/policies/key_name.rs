//! Names of keys, of partners and of operators.

use super::lifecycle::error::LifecycleError;

/// Longest name of a key, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Checks the name of a key.
///
/// # Errors
/// [`LifecycleError::Invalid`] with the allowed form.
pub(super) fn check(name: &str) -> Result<(), LifecycleError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    match (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(allowed) {
        true => Ok(()),
        false => Err(LifecycleError::Invalid("name: 1 to 64 of a-z, A-Z, 0-9, -, _ and .".into())),
    }
}
