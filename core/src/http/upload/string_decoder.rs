//! Incremental decoding of a JSON string (RFC 8259, section 7). Only base64 is needed: other
//! characters are validated and, if escaped, decoded to [`NON_ASCII`].

/// Replaces escaped characters outside ASCII; it is not in the base64 alphabet.
const NON_ASCII: u8 = 0xff;
/// Digits of `\u`.
const HEX_DIGITS: u8 = 4;

/// The bytes are not a JSON string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The state of decoding one string.
#[derive(Debug)]
pub(super) struct StringDecoder {
    escape: Escape,
    /// True after a high surrogate, which a low one must follow.
    high_surrogate: bool,
    /// The first bytes of an incomplete UTF-8 character.
    partial_character: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Escape {
    None,
    Started,
    Hex { digits: u8, value: u16 },
}

impl StringDecoder {
    pub(super) const fn new() -> Self {
        Self { escape: Escape::None, high_surrogate: false, partial_character: Vec::new() }
    }

    /// Decodes the next bytes of the string, without its closing quote.
    pub(super) fn push(&mut self, raw: &[u8], text: &mut Vec<u8>) -> Result<(), Malformed> {
        if raw.iter().any(|byte| *byte < 0x20) {
            return Err(Malformed);
        }
        self.check_utf8(raw)?;
        if matches!(self.escape, Escape::None) && !self.high_surrogate && !raw.contains(&b'\\') {
            text.extend_from_slice(raw);
            return Ok(());
        }
        raw.iter().try_for_each(|byte| self.next(*byte, text))
    }

    /// Checks that the string is complete.
    pub(super) fn finish(self) -> Result<(), Malformed> {
        let complete = matches!(self.escape, Escape::None)
            && !self.high_surrogate
            && self.partial_character.is_empty();
        if complete { Ok(()) } else { Err(Malformed) }
    }

    fn next(&mut self, byte: u8, text: &mut Vec<u8>) -> Result<(), Malformed> {
        match self.escape {
            Escape::None if byte == b'\\' => self.escape = Escape::Started,
            Escape::Started if byte == b'u' => self.escape = Escape::Hex { digits: 0, value: 0 },
            Escape::None | Escape::Started if self.high_surrogate => return Err(Malformed),
            Escape::None => text.push(byte),
            Escape::Started => {
                self.escape = Escape::None;
                text.push(match byte {
                    b'"' | b'\\' | b'/' => byte,
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    _ => return Err(Malformed),
                });
            }
            Escape::Hex { digits, value } => {
                let digit = char::from(byte).to_digit(16).and_then(|d| u16::try_from(d).ok());
                let value = (value << 4) | digit.ok_or(Malformed)?;
                if digits + 1 < HEX_DIGITS {
                    self.escape = Escape::Hex { digits: digits + 1, value };
                } else {
                    self.escape = Escape::None;
                    self.push_code_unit(value, text)?;
                }
            }
        }
        Ok(())
    }

    /// Decodes a UTF-16 code unit. Surrogates must be paired.
    fn push_code_unit(&mut self, unit: u16, text: &mut Vec<u8>) -> Result<(), Malformed> {
        match unit {
            0xd800..=0xdbff if !self.high_surrogate => self.high_surrogate = true,
            0xdc00..=0xdfff if self.high_surrogate => {
                self.high_surrogate = false;
                text.push(NON_ASCII);
            }
            0xd800..=0xdfff => return Err(Malformed),
            _ if self.high_surrogate => return Err(Malformed),
            _ => text.push(u8::try_from(unit).ok().filter(u8::is_ascii).unwrap_or(NON_ASCII)),
        }
        Ok(())
    }

    /// Checks that the bytes continue valid UTF-8.
    fn check_utf8(&mut self, raw: &[u8]) -> Result<(), Malformed> {
        let mut rest = raw;
        while !self.partial_character.is_empty()
            && let Some((byte, later)) = rest.split_first()
        {
            self.partial_character.push(*byte);
            rest = later;
            match std::str::from_utf8(&self.partial_character) {
                Ok(_) => self.partial_character.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(Malformed),
            }
        }
        match std::str::from_utf8(rest) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_none() => {
                self.partial_character.extend(rest.iter().skip(error.valid_up_to()));
                Ok(())
            }
            Err(_) => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decodes a string in chunks, with characters outside ASCII as [`NON_ASCII`].
    fn decode(raw: &[u8], size: usize) -> Option<Vec<u8>> {
        let (mut decoder, mut text) = (StringDecoder::new(), Vec::new());
        for chunk in raw.chunks(size) {
            decoder.push(chunk, &mut text).ok()?;
        }
        decoder.finish().ok()?;
        // Counts characters alike if escaped or not.
        let mut bytes = text.into_iter().peekable();
        let mut out = Vec::new();
        while let Some(byte) = bytes.next() {
            match byte {
                0x80..=0xfe => {
                    while bytes.next_if(|next| (0x80..0xc0).contains(next)).is_some() {}
                    out.push(NON_ASCII);
                }
                _ => out.push(byte),
            }
        }
        Some(out)
    }

    fn decode_with_serde(raw: &[u8]) -> Option<Vec<u8>> {
        let quoted = [b"\"", raw, b"\""].concat();
        let text: String = serde_json::from_slice(&quoted).ok()?;
        Some(
            text.chars()
                .map(|c| u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(NON_ASCII))
                .collect(),
        )
    }

    #[test]
    fn escapes_decode_as_with_serde() {
        for raw in [
            r"abc",
            r"a\/b\u002Bc\u002f",
            r"\n\t\b\f\r\\\u0022",
            "é€😀",
            r"\u00e9\ud83d\ude00",
            r"\ud83d",
            r"\ud83dx",
            r"\ud83d\n",
            r"\ud83d\u0041",
            r"\ude00",
            r"\ud83d\ud83d",
            r"\x",
            r"\u12",
            r"\u12g4",
            "a\nb",
            r"abc\\",
        ] {
            for size in 1..=raw.len() {
                assert_eq!(
                    decode(raw.as_bytes(), size),
                    decode_with_serde(raw.as_bytes()),
                    "{raw} by {size}"
                );
            }
        }
        for raw in [&b"\xff"[..], b"a\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xc3\\n"] {
            assert_eq!(decode(raw, 1), None);
            assert_eq!(decode(raw, 8), None);
        }
    }

    proptest! {
        #[test]
        fn any_string_decodes_as_with_serde(
            raw in r#"([a-z/+é😀]|\\["\\/bfnrtux]|\\u[0d][08-9c-f][0-9a-f]{2}){0,12}"#,
            size in 1usize..9,
        ) {
            prop_assert_eq!(decode(raw.as_bytes(), size), decode_with_serde(raw.as_bytes()));
        }
    }
}
