//! Pingora forgives an empty chunk size and blanks behind one, where others would see another end of
//! the body; here the end of a chunked body is read strictly.

use super::HeadError::{self, Malformed};
use super::{Body, is_token};

/// Digits of the largest chunk size that is read at all.
const SIZE_DIGITS_MAX: u8 = 8;
/// Most bytes of extensions and trailers of one body together.
const EXTRA_BYTES_MAX: u16 = 4 * 1024;
const BROKEN: HeadError = Malformed("the body is not delimited as chunks are");

/// A reader that follows a chunked body while it arrives, from its first byte on (RFC 9112, section 7.1).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunks {
    at: At,
    left: u64,
    digits: u8,
    extra: u16,
}

/// The expected part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Size,
    Extension,
    /// Within a quoted string, which others may read beyond the end of the line.
    Quoted,
    SizeLineFeed,
    Bytes,
    BytesReturn,
    BytesLineFeed,
    TrailerStart,
    TrailerName,
    Trailer,
    TrailerLineFeed,
    LastLineFeed,
}

impl Chunks {
    /// Goes through the next bytes; the number of those that still belong to the body, once its
    /// end is among them.
    ///
    /// # Errors
    /// When they are not what the body must go on with.
    fn feed(&mut self, bytes: &[u8]) -> Result<Option<usize>, HeadError> {
        let mut index = 0;
        while let Some(&byte) = bytes.get(index) {
            if self.at == At::Bytes {
                let rest = (bytes.len() - index) as u64;
                let step = self.left.min(rest);
                self.left -= step;
                index += usize::try_from(step).unwrap_or(usize::MAX);
                if self.left == 0 {
                    self.at = At::BytesReturn;
                }
                continue;
            }
            index += 1;
            if self.at == At::LastLineFeed && byte == b'\n' {
                return Ok(Some(index));
            }
            self.at = self.step(byte)?;
        }
        Ok(None)
    }

    fn step(&mut self, byte: u8) -> Result<At, HeadError> {
        match (self.at, byte) {
            (At::Size, b';') if self.digits > 0 => Ok(At::Extension),
            (At::Size, b'\r') if self.digits > 0 => Ok(At::SizeLineFeed),
            (At::Size, _) => self.digit(byte),
            (At::Extension, b'\r') => Ok(At::SizeLineFeed),
            (At::Extension, b'"') => self.count(byte, At::Quoted),
            (At::Extension, _) => self.count(byte, At::Extension),
            (At::Quoted, b'"') => self.count(byte, At::Extension),
            // An escaped quote ends the string for some.
            (At::Quoted, b'\\') => Err(BROKEN),
            (At::Quoted, _) => self.count(byte, At::Quoted),
            (At::SizeLineFeed, b'\n') if self.left == 0 => Ok(At::TrailerStart),
            (At::SizeLineFeed, b'\n') => Ok(At::Bytes),
            (At::BytesReturn, b'\r') => Ok(At::BytesLineFeed),
            (At::BytesLineFeed, b'\n') => {
                self.digits = 0;
                Ok(At::Size)
            }
            (At::TrailerStart, b'\r') => Ok(At::LastLineFeed),
            (At::TrailerName, b':') => self.count(byte, At::Trailer),
            (At::TrailerStart | At::TrailerName, _) if is_token(&byte) => {
                self.count(byte, At::TrailerName)
            }
            (At::Trailer, b'\r') => Ok(At::TrailerLineFeed),
            (At::Trailer, 0..=0x7f) => self.count(byte, At::Trailer),
            (At::TrailerLineFeed, b'\n') => Ok(At::TrailerStart),
            _ => Err(BROKEN),
        }
    }

    fn digit(&mut self, byte: u8) -> Result<At, HeadError> {
        let digit = char::from(byte).to_digit(16).ok_or(BROKEN)?;
        if self.digits == SIZE_DIGITS_MAX {
            return Err(BROKEN);
        }
        self.digits += 1;
        // At the first digit nothing is left of the chunk before.
        self.left = self.left * 16 + u64::from(digit);
        Ok(At::Size)
    }

    fn count(&mut self, byte: u8, next: At) -> Result<At, HeadError> {
        self.extra += 1;
        let plain = byte == b'\t' || (byte >= b' ' && byte != 0x7f);
        if plain && self.extra < EXTRA_BYTES_MAX { Ok(next) } else { Err(BROKEN) }
    }
}

impl Body {
    /// The number of `bytes` that belong to the body; what is left of it changes accordingly.
    ///
    /// # Errors
    /// When they are not what the body must go on with.
    pub(crate) fn follow(&mut self, bytes: &[u8]) -> Result<usize, HeadError> {
        let own = match self {
            Self::None => 0,
            Self::Length(left) => {
                let own = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= own as u64;
                if *left > 0 {
                    return Ok(own);
                }
                own
            }
            Self::Chunks(chunks) => match chunks.feed(bytes)? {
                Some(own) => own,
                None => return Ok(bytes.len()),
            },
        };
        *self = Self::None;
        Ok(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(body: &str) -> Result<Option<usize>, HeadError> {
        Chunks::default().feed(body.as_bytes())
    }

    #[test]
    fn sound_bodies_end_where_they_end() {
        for body in [
            "0\r\n\r\n",
            "5\r\nabcde\r\n0\r\n\r\n",
            "000005\r\nabcde\r\nA\r\n0123456789\r\n0\r\n\r\n",
            "5;name=value\r\nabcde\r\n0;x\r\n\r\n",
            "5;name=\"a value\"\r\nabcde\r\n0\r\n\r\n",
            "2\r\n\r\n\r\n0\r\nDigest: x\r\nOther: y\r\n\r\n",
        ] {
            assert_eq!(feed(body), Ok(Some(body.len())), "{body:?}");
            assert_eq!(feed(&format!("{body}GET /")), Ok(Some(body.len())), "{body:?}");
            assert_eq!(feed(&body[..body.len() - 1]), Ok(None), "{body:?}");
        }
    }

    #[test]
    fn what_others_could_read_differently_is_refused() {
        let extension = format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(5_000));
        for body in [
            "\r\nab\r\n0\r\n\r\n",
            "2 \r\nab\r\n0\r\n\r\n",
            " 2\r\nab\r\n0\r\n\r\n",
            "2\nab\r\n0\r\n\r\n",
            "2\rab\r\n0\r\n\r\n",
            "2\r\nab\n0\r\n\r\n",
            "2\r\nabc\r\n0\r\n\r\n",
            "2\r\nab0\r\n\r\n",
            "0x2\r\nab\r\n0\r\n\r\n",
            "+2\r\nab\r\n0\r\n\r\n",
            "-2\r\nab\r\n0\r\n\r\n",
            "g\r\nab\r\n0\r\n\r\n",
            ";x\r\nab\r\n0\r\n\r\n",
            "2;x\nab\r\n0\r\n\r\n",
            "2;x=\"\r\nab\r\n0\r\n\r\n",
            "2;x=\"\\\"\r\nab\r\n0\r\n\r\n",
            "2;\u{0}\r\nab\r\n0\r\n\r\n",
            "000000000\r\n\r\n",
            "fffffffff\r\n",
            "0\r\n\n",
            "0\r\n folded: x\r\n\r\n",
            "0\r\nX: y\n\r\n",
            "0\r\nX\r\n\r\n",
            "0\r\nX : y\r\n\r\n",
            "0\r\n: y\r\n\r\n",
            "0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "0\r\nX: y\r\nY\r\n\r\n",
            "0\r\nX: \u{e4}\r\n\r\n",
            &extension,
        ] {
            assert_eq!(feed(body), Err(BROKEN), "{body:?}");
        }
    }

    /// The end of a body of bytes that arrive in pieces of this size.
    fn feed_pieces(bytes: &[u8], size: usize) -> Result<Option<usize>, HeadError> {
        let (mut chunks, mut before) = (Chunks::default(), 0);
        for piece in bytes.chunks(size) {
            if let Some(end) = chunks.feed(piece)? {
                return Ok(Some(before + end));
            }
            before += piece.len();
        }
        Ok(None)
    }

    /// The end of a body by the grammar of RFC 9112, section 7.1, read line by line.
    fn end_elsewhere(bytes: &[u8]) -> Option<usize> {
        let line = |from: usize| {
            let end = bytes[from..].windows(2).position(|two| two == b"\r\n")?;
            Some((&bytes[from..from + end], from + end + 2))
        };
        let mut at = 0;
        loop {
            let (size, next) = line(at)?;
            let digits = size.split(|&byte| byte == b';').next()?;
            let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
            if size == 0 {
                at = next;
                break;
            }
            at = next.checked_add(size)?;
            at = bytes.get(at..at + 2).filter(|end| *end == b"\r\n").map(|_| at + 2)?;
        }
        loop {
            let (trailer, next) = line(at)?;
            at = next;
            if trailer.is_empty() {
                return Some(at);
            }
        }
    }

    #[test]
    fn fuzz_http_chunks() {
        rampart_fuzz::fuzz("http-chunks", |input| {
            let whole = feed_pieces(input, input.len().max(1));
            for size in [1, 2, 7, 64] {
                assert_eq!(feed_pieces(input, size), whole, "in pieces of {size}");
            }
            if let Ok(Some(end)) = whole {
                assert_eq!(end_elsewhere(input), Some(end), "others see another end");
            }
        });
    }
}
