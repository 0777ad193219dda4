//! Finds the header blocks that have a `:path` with a fragment or a `:scheme` other than https and
//! http, in their compressed bytes (RFC 7541).
//!
//! Decoding is left to the h2 crate. All that a later field can take from the table of an earlier
//! one is a name or a whole field, so little of each entry is enough; every value but that of a
//! `:path` or a `:scheme` is skipped.

use std::collections::VecDeque;

use memchr::memchr;

use super::huffman::{self, CODED_HTTP, CODED_HTTPS, CODED_SCHEME};

/// Most bytes of a number after its first one, as the h2 crate has it.
const NUMBER_BYTES_MAX: u32 = 4;
/// Index of the newest entry of the dynamic table.
const NEWEST: usize = 62;
/// Most entries of the dynamic table. It has 4,096 bytes, as the edge asks for no other size, and an
/// entry counts 32 and its strings (RFC 7541, section 4.1).
const ENTRIES_MAX: usize = 128;

/// A header block that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// Reads the header blocks of one connection, one after the other, and keeps their dynamic table.
///
/// Sizes are not followed: the h2 crate ends a connection that refers to an entry which is gone, and
/// indices count from the newest. That holds for an entry larger than the table too, which is not
/// kept but empties it.
#[derive(Debug, Default)]
pub(super) struct HeaderScan {
    /// The entries, the newest first.
    table: VecDeque<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// `:path`, or spelled out and of a request line: the others have no `#` either.
    Path,
    /// `:scheme`
    Scheme,
    Other,
}

/// A field, as far as it matters.
#[derive(Clone, Copy, Debug)]
struct Field {
    name: Name,
    is_refused: bool,
}

impl HeaderScan {
    /// Reads a whole block: true when it has a `:path` or a `:scheme` that is refused.
    pub(super) fn scan(&mut self, mut block: &[u8]) -> Result<bool, Unreadable> {
        let mut found = false;
        while let Some(&byte) = block.first() {
            // The first bits tell the kinds of fields apart (RFC 7541, section 6).
            found |= match byte {
                0x80.. => {
                    let index = number(&mut block, 0x7f)?;
                    self.entry(index).is_some_and(|field| field.is_refused)
                }
                0x40.. => {
                    let field = self.field(&mut block, 0x3f)?;
                    self.table.truncate(ENTRIES_MAX - 1);
                    self.table.push_front(field);
                    field.is_refused
                }
                // Another size of the table.
                0x20.. => {
                    number(&mut block, 0x1f)?;
                    false
                }
                _ => self.field(&mut block, 0x0f)?.is_refused,
            };
        }
        Ok(found)
    }

    /// Takes a field off `block`, whose name's index, or 0, begins in the bits of `mask`.
    fn field(&self, block: &mut &[u8], mask: u8) -> Result<Field, Unreadable> {
        let name = match number(block, mask)? {
            0 => Text::read(block)?.name()?,
            index => self.name(index),
        };
        let value = Text::read(block)?;
        let is_refused = match name {
            Name::Path => value.has_number_sign(),
            Name::Scheme => !value.is_web(),
            Name::Other => false,
        };
        Ok(Field { name, is_refused })
    }

    /// The name of the entry with this index; of the static table two names matter, whose values are
    /// sound.
    fn name(&self, index: usize) -> Name {
        match index {
            4 | 5 => Name::Path,
            6 | 7 => Name::Scheme,
            _ => self.entry(index).map_or(Name::Other, |field| field.name),
        }
    }

    /// The entry of the dynamic table with this index.
    fn entry(&self, index: usize) -> Option<&Field> {
        self.table.get(index.checked_sub(NEWEST)?)
    }
}

/// Takes a number off `block`: it begins in the bits of `mask`, and ends there unless all of them are
/// set (RFC 7541, section 5.1).
fn number(block: &mut &[u8], mask: u8) -> Result<usize, Unreadable> {
    let first = block.split_off_first().ok_or(Unreadable)?;
    let mut value = usize::from(first & mask);
    if first & mask < mask {
        return Ok(value);
    }
    for place in 0..NUMBER_BYTES_MAX {
        let byte = block.split_off_first().ok_or(Unreadable)?;
        value += usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Unreadable)
}

/// A string as it is, or in the Huffman code.
struct Text<'a> {
    bytes: &'a [u8],
    is_coded: bool,
}

impl<'a> Text<'a> {
    /// Takes a string off `block` (RFC 7541, section 5.2).
    fn read(block: &mut &'a [u8]) -> Result<Self, Unreadable> {
        let is_coded = block.first().is_some_and(|byte| byte & 0x80 != 0);
        let length = number(block, 0x7f)?;
        let bytes = block.split_off(..length).ok_or(Unreadable)?;
        Ok(Self { bytes, is_coded })
    }

    /// True for one of these two, which are the same text as it is and coded.
    fn is(&self, plain: &[u8], coded: &[u8]) -> bool {
        self.bytes == if self.is_coded { coded } else { plain }
    }

    /// The meaning of a name that is spelled out. The first byte tells one of the request line, which
    /// hardly any client spells out. Where the name is empty the h2 crate waits for the next part of the
    /// block, without the field in its table, and may go on in the middle of its value.
    fn name(&self) -> Result<Name, Unreadable> {
        let first = *self.bytes.first().ok_or(Unreadable)?;
        let has_colon = match self.is_coded {
            true => huffman::begins_with_colon(first),
            false => first == b':',
        };
        Ok(match has_colon {
            true if self.is(b":scheme", CODED_SCHEME) => Name::Scheme,
            true => Name::Path,
            false => Name::Other,
        })
    }

    fn has_number_sign(&self) -> bool {
        match self.is_coded {
            true => huffman::has_number_sign(self.bytes),
            false => memchr(b'#', self.bytes).is_some(),
        }
    }

    /// True for a scheme of the Web.
    fn is_web(&self) -> bool {
        self.is(b"https", CODED_HTTPS) || self.is(b"http", CODED_HTTP)
    }
}
