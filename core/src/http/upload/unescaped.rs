//! What a JSON string means (RFC 8259, section 7), read in pieces. It is wanted for base64 alone:
//! what is not ASCII is checked and then stands as [`OTHER`].

/// Stands for every character that is not ASCII; no base64 has it.
const OTHER: u8 = 0xff;
/// Digits of `\u`.
const HEX_DIGITS: u8 = 4;

/// It is no JSON string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A string as far as it has come.
#[derive(Debug)]
pub(super) struct Unescaped {
    escape: Escape,
    /// A high surrogate whose low one comes next.
    high: bool,
    /// The start of a character whose end has not come.
    character: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Escape {
    None,
    Begun,
    Hex { digits: u8, value: u16 },
}

impl Unescaped {
    pub(super) const fn new() -> Self {
        Self { escape: Escape::None, high: false, character: Vec::new() }
    }

    /// Appends what the next bytes of the string mean. No quote that ends it is among them.
    pub(super) fn push(&mut self, raw: &[u8], text: &mut Vec<u8>) -> Result<(), Malformed> {
        if raw.iter().any(|byte| *byte < 0x20) {
            return Err(Malformed);
        }
        self.check_utf8(raw)?;
        if matches!(self.escape, Escape::None) && !self.high && !raw.contains(&b'\\') {
            text.extend_from_slice(raw);
            return Ok(());
        }
        raw.iter().try_for_each(|byte| self.next(*byte, text))
    }

    /// The end of the string.
    pub(super) fn finish(self) -> Result<(), Malformed> {
        let whole = matches!(self.escape, Escape::None) && !self.high && self.character.is_empty();
        if whole { Ok(()) } else { Err(Malformed) }
    }

    fn next(&mut self, byte: u8, text: &mut Vec<u8>) -> Result<(), Malformed> {
        match self.escape {
            Escape::None if byte == b'\\' => self.escape = Escape::Begun,
            Escape::Begun if byte == b'u' => self.escape = Escape::Hex { digits: 0, value: 0 },
            Escape::None | Escape::Begun if self.high => return Err(Malformed),
            Escape::None => text.push(byte),
            Escape::Begun => {
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
                    self.unit(value, text)?;
                }
            }
        }
        Ok(())
    }

    /// A unit of UTF-16. Surrogates come in pairs.
    fn unit(&mut self, unit: u16, text: &mut Vec<u8>) -> Result<(), Malformed> {
        match unit {
            0xd800..=0xdbff if !self.high => self.high = true,
            0xdc00..=0xdfff if self.high => {
                self.high = false;
                text.push(OTHER);
            }
            0xd800..=0xdfff => return Err(Malformed),
            _ if self.high => return Err(Malformed),
            _ => text.push(u8::try_from(unit).ok().filter(u8::is_ascii).unwrap_or(OTHER)),
        }
        Ok(())
    }

    /// Whether the bytes are UTF-8 in the place where they stand.
    fn check_utf8(&mut self, raw: &[u8]) -> Result<(), Malformed> {
        let mut rest = raw;
        while !self.character.is_empty()
            && let Some((byte, later)) = rest.split_first()
        {
            self.character.push(*byte);
            rest = later;
            match std::str::from_utf8(&self.character) {
                Ok(_) => self.character.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(Malformed),
            }
        }
        match std::str::from_utf8(rest) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_none() => {
                self.character.extend(rest.iter().skip(error.valid_up_to()));
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

    /// What the pieces of a string mean, its other characters as [`OTHER`].
    fn read(raw: &[u8], size: usize) -> Option<Vec<u8>> {
        let (mut unescaped, mut text) = (Unescaped::new(), Vec::new());
        for piece in raw.chunks(size) {
            unescaped.push(piece, &mut text).ok()?;
        }
        unescaped.finish().ok()?;
        // One for each character, whether it was escaped or not.
        let mut bytes = text.into_iter().peekable();
        let mut out = Vec::new();
        while let Some(byte) = bytes.next() {
            match byte {
                0x80..=0xfe => {
                    while bytes.next_if(|next| (0x80..0xc0).contains(next)).is_some() {}
                    out.push(OTHER);
                }
                _ => out.push(byte),
            }
        }
        Some(out)
    }

    fn by_serde(raw: &[u8]) -> Option<Vec<u8>> {
        let quoted = [b"\"", raw, b"\""].concat();
        let text: String = serde_json::from_slice(&quoted).ok()?;
        Some(
            text.chars()
                .map(|c| u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(OTHER))
                .collect(),
        )
    }

    #[test]
    fn escapes_mean_what_they_mean_elsewhere() {
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
                assert_eq!(read(raw.as_bytes(), size), by_serde(raw.as_bytes()), "{raw} by {size}");
            }
        }
        for raw in [&b"\xff"[..], b"a\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xc3\\n"] {
            assert_eq!(read(raw, 1), None);
            assert_eq!(read(raw, 8), None);
        }
    }

    proptest! {
        #[test]
        fn any_string_is_read_as_by_serde(
            raw in r#"([a-z/+é😀]|\\["\\/bfnrtux]|\\u[0d][08-9c-f][0-9a-f]{2}){0,12}"#,
            size in 1usize..9,
        ) {
            prop_assert_eq!(read(raw.as_bytes(), size), by_serde(raw.as_bytes()));
        }
    }
}
