//! Ethereum addresses: 20 bytes in hexadecimal, checked by letter case (EIP-55).

use sha3::{Digest, Keccak256};

use super::{InvalidAddress, Spelling};

const HEX_DIGITS: usize = 40;

/// Letters all lower or all upper case carry no checksum and pass; mixed case must be the one that
/// EIP-55 gives.
pub(super) fn check(text: &str) -> Result<Spelling, InvalidAddress> {
    let digits = text.strip_prefix("0x").ok_or(InvalidAddress)?.as_bytes();
    if digits.len() != HEX_DIGITS || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(InvalidAddress);
    }
    let mixed =
        digits.iter().any(u8::is_ascii_lowercase) && digits.iter().any(u8::is_ascii_uppercase);
    if mixed && !has_checksum_case(digits) {
        return Err(InvalidAddress);
    }
    Ok(Spelling::AnyCase)
}

fn has_checksum_case(digits: &[u8]) -> bool {
    let is_upper = upper_case(digits);
    digits.iter().enumerate().all(|(index, digit)| {
        !digit.is_ascii_alphabetic() || digit.is_ascii_uppercase() == is_upper(index)
    })
}

/// A valid address in the case of its checksum.
pub(super) fn checksummed(text: &str) -> String {
    let digits = text.trim_start_matches("0x").to_ascii_lowercase();
    let is_upper = upper_case(digits.as_bytes());
    let cased = digits.chars().enumerate().map(|(index, digit)| match is_upper(index) {
        true => digit.to_ascii_uppercase(),
        false => digit,
    });
    format!("0x{}", cased.collect::<String>())
}

/// EIP-55: a letter is upper case where the same hexadecimal digit of the hash of the lower-case
/// address is 8 or more.
fn upper_case(digits: &[u8]) -> impl Fn(usize) -> bool {
    let hash = Keccak256::digest(digits.to_ascii_lowercase());
    move |index| {
        let byte = hash[index / 2];
        (if index % 2 == 0 { byte >> 4 } else { byte & 0x0f }) >= 8
    }
}
