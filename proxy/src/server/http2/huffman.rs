//! The Huffman code of header fields (RFC 7541, appendix B), as far as it takes to find one character
//! in a string, and to know a few short ones.

/// The shortest length of a code in bits, and how many codes have it and each longer one. The code is
/// canonical: it follows from these.
const LENGTH_MIN: u32 = 5;
const COUNTS: [u64; 24] =
    [10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29];
/// Length of all other codes.
const LENGTH_MAX: u32 = 30;
/// A code of each of the lengths, and whatever follows it in 64 bits, is less than this.
const ENDS: [u64; COUNTS.len()] = ends();
/// `#`: the code, and its length.
const NUMBER_SIGN: (u64, u32) = (0xffa, 12);
/// `:`
const COLON: (u8, u32) = (0x5c, 7);
/// `:scheme`, `http` and `https`; each has this form alone.
pub(super) const CODED_SCHEME: &[u8] = b"\xb8\x82\x4e\x5a\x4b";
pub(super) const CODED_HTTP: &[u8] = b"\x9d\x29\xaf";
pub(super) const CODED_HTTPS: &[u8] = b"\x9d\x29\xad\x1f";

const fn ends() -> [u64; COUNTS.len()] {
    let (mut ends, mut end, mut index) = (COUNTS, 0, 0);
    let mut shift = u64::BITS - LENGTH_MIN;
    while index < ends.len() {
        end += COUNTS[index] << shift;
        ends[index] = end;
        shift -= 1;
        index += 1;
    }
    ends
}

/// True when the string that begins with this byte begins with a colon.
pub(super) fn begins_with_colon(byte: u8) -> bool {
    byte >> (u8::BITS - COLON.1) == COLON.0
}

/// True for a string with `#` in it.
pub(super) fn has_number_sign(bytes: &[u8]) -> bool {
    // The begin of a code, from the highest bit on, and how many bits of it are there.
    let (mut bits, mut held) = (0_u64, 0);
    for byte in bytes {
        bits |= u64::from(*byte) << (u64::BITS - u8::BITS - held);
        held += u8::BITS;
        loop {
            let length = length(bits);
            if length > held {
                break;
            }
            let (code, own) = NUMBER_SIGN;
            if length == own && bits >> (u64::BITS - own) == code {
                return true;
            }
            bits <<= length;
            held -= length;
        }
    }
    false
}

/// Length of the code that `bits` begin with. No code begins with another one, so that bits which are
/// not there yet do not make a longer one look complete.
fn length(bits: u64) -> u32 {
    let mut lengths = (LENGTH_MIN..).zip(&ENDS);
    lengths.find(|(_, end)| bits < **end).map_or(LENGTH_MAX, |(length, _)| length)
}

#[cfg(test)]
mod tests {
    use super::super::frame_scan::coded;
    use super::*;

    #[test]
    fn a_number_sign_is_found_between_any_two_characters_and_nothing_is_taken_for_one() {
        let all = || 0..=u8::MAX;
        for (first, second) in all().flat_map(|first| all().map(move |second| (first, second))) {
            let expected = [first, second].contains(&b'#');
            assert_eq!(has_number_sign(&coded(&[first, second])), expected);
            assert!(has_number_sign(&coded(&[first, b'#', second])), "{first} {second}");
        }
    }

    #[test]
    fn known_strings_are_those_of_the_code() {
        let known = [CODED_SCHEME, CODED_HTTP, CODED_HTTPS];
        assert_eq!(known, [":scheme", "http", "https"].map(|text| coded(text.as_bytes())));
    }

    #[test]
    fn a_string_that_begins_with_a_colon_is_known_by_its_first_byte() {
        for (first, second) in [(b':', b'\0'), (b':', b'p'), (b'p', b':'), (b'9', b'p')] {
            let byte = coded(&[first, second])[0];
            assert_eq!(begins_with_colon(byte), first == b':');
        }
        assert!(begins_with_colon(coded(b":")[0]));
    }
}
