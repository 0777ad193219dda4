//! The code of a savings plan, short enough to type into a bank transfer.

use crate::platform::clock::{Clock, NoEntropy};

/// Crockford's base 32: no I, L, O or U, which are easily misread.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Characters of a code: 60 bits.
const CODE_CHARS: usize = 12;

/// Generates a code.
///
/// # Errors
/// Without entropy.
pub fn new(clock: &Clock) -> Result<String, NoEntropy> {
    let bytes: [u8; CODE_CHARS] = clock.random_bytes()?;
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}

/// True if the text has the form of a code.
pub fn is_code(text: &str) -> bool {
    text.len() == CODE_CHARS && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_code_is_one_and_differs_from_the_last() {
        let clock = Clock::system();
        let (a, b) = (new(&clock).unwrap(), new(&clock).unwrap());
        assert!(is_code(&a) && is_code(&b) && a != b, "{a} {b}");
        for text in ["", "0123456789A", "0123456789ABC", "0123456789AI", "0123456789a\0"] {
            assert!(!is_code(text), "{text:?}");
        }
    }
}
