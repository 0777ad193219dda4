//! Finds the header blocks that have a `:path` with a fragment, in their compressed bytes (RFC 7541).
//!
//! Decoding is left to the h2 crate. All that a later field can take from the table of an earlier
//! one is a name or a whole field, so one bit of each entry is enough, for either; every value but
//! that of a `:path` is skipped.

use std::mem;

use memchr::memchr;

use super::huffman::{self, NumberSigns};

/// Most bytes of a number after its first one, as the h2 crate has it.
const NUMBER_BYTES_MAX: u32 = 4;
/// The entries of the static table whose name is `:path`.
const STATIC_PATHS: [usize; 2] = [4, 5];
/// Index of the newest entry of the dynamic table.
const NEWEST: usize = 62;

/// A header block that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// Reads the header blocks of one connection, one after the other.
#[derive(Debug, Default)]
pub(super) struct HeaderScan {
    table: Table,
    expects: Expects,
    field: Field,
    /// The string has just begun.
    is_begin: bool,
    signs: NumberSigns,
    /// The block has a `:path` with a fragment.
    found: bool,
}

/// The dynamic table, the newest entry in the lowest bit. It has 4,096 bytes, as the edge asks for no
/// other size, and an entry counts 32 and its strings (RFC 7541, section 4.1): at most 128 entries.
///
/// Sizes are not followed: the h2 crate ends a connection that refers to an entry which is gone, and
/// indices count from the newest. That holds for an entry larger than the table too, which is not
/// kept but empties it.
#[derive(Debug, Default)]
struct Table {
    /// Entries whose name is `:path`.
    paths: u128,
    /// Those of them whose value has a fragment.
    fragments: u128,
}

/// A field that is not in a table as a whole.
#[derive(Debug, Default)]
struct Field {
    /// It becomes an entry of the table.
    is_kept: bool,
    /// Its name is `:path`, or spelled out and of a request line: the others have no `#` either.
    is_path: bool,
    has_fragment: bool,
}

/// The part of a header block that comes next.
#[derive(Clone, Copy, Debug, Default)]
enum Expects {
    /// A field, or the end of the block.
    #[default]
    Field,
    /// More of a number, whose value so far is this.
    Number { of: Number, value: usize, bytes: u32 },
    /// The length of a string.
    Length(Part),
    /// The bytes of a string, of which so many are left.
    Text { part: Part, is_coded: bool, left: usize },
}

/// The meaning of a number.
#[derive(Clone, Copy, Debug)]
enum Number {
    /// Index of a field.
    Field,
    /// Size of the table.
    Size,
    /// Index of the name of a field, or 0.
    Name { is_kept: bool },
    /// Length of a string.
    Length { part: Part, is_coded: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Name,
    Value,
}

impl HeaderScan {
    /// Goes on with `bytes` of a block.
    pub(super) fn advance(&mut self, mut bytes: &[u8]) -> Result<(), Unreadable> {
        while let Some((&byte, rest)) = bytes.split_first() {
            bytes = match self.expects {
                Expects::Field => {
                    self.begin_field(byte);
                    rest
                }
                Expects::Number { of, value, bytes } => {
                    self.go_on_with_number(of, value, bytes, byte)?;
                    rest
                }
                Expects::Length(part) => {
                    let is_coded = byte & 0x80 != 0;
                    self.begin_number(Number::Length { part, is_coded }, byte, 0x7f);
                    rest
                }
                Expects::Text { part, is_coded, left } => {
                    let (text, rest) = bytes.split_at(left.min(bytes.len()));
                    self.take_text(part, is_coded, text);
                    match left - text.len() {
                        0 => self.end_text(part),
                        left => self.expects = Expects::Text { part, is_coded, left },
                    }
                    rest
                }
            };
        }
        Ok(())
    }

    /// Ends the block: true when it has a `:path` with a fragment.
    pub(super) fn end(&mut self) -> Result<bool, Unreadable> {
        match self.expects {
            Expects::Field => Ok(mem::take(&mut self.found)),
            _ => Err(Unreadable),
        }
    }

    /// Tells the kinds of fields apart (RFC 7541, section 6).
    fn begin_field(&mut self, byte: u8) {
        match byte {
            0x80.. => self.begin_number(Number::Field, byte, 0x7f),
            0x40.. => self.begin_number(Number::Name { is_kept: true }, byte, 0x3f),
            0x20.. => self.begin_number(Number::Size, byte, 0x1f),
            _ => self.begin_number(Number::Name { is_kept: false }, byte, 0x0f),
        }
    }

    /// A number begins in the bits of `mask`, and ends there unless all of them are set (RFC 7541,
    /// section 5.1).
    fn begin_number(&mut self, of: Number, byte: u8, mask: u8) {
        let value = usize::from(byte & mask);
        if byte & mask == mask {
            self.expects = Expects::Number { of, value, bytes: 0 };
        } else {
            self.take_number(of, value);
        }
    }

    fn go_on_with_number(
        &mut self,
        of: Number,
        value: usize,
        bytes: u32,
        byte: u8,
    ) -> Result<(), Unreadable> {
        let value = value + (usize::from(byte & 0x7f) << (7 * bytes));
        if byte & 0x80 == 0 {
            self.take_number(of, value);
            return Ok(());
        }
        let bytes = bytes + 1;
        self.expects = Expects::Number { of, value, bytes };
        if bytes < NUMBER_BYTES_MAX { Ok(()) } else { Err(Unreadable) }
    }

    fn take_number(&mut self, of: Number, value: usize) {
        self.expects = match of {
            Number::Field => {
                self.found |= Table::bit(self.table.fragments, value);
                Expects::Field
            }
            Number::Size => Expects::Field,
            Number::Name { is_kept } => {
                let is_path = STATIC_PATHS.contains(&value) || Table::bit(self.table.paths, value);
                self.field = Field { is_kept, is_path, has_fragment: false };
                Expects::Length(if value == 0 { Part::Name } else { Part::Value })
            }
            Number::Length { part, .. } if value == 0 => return self.end_text(part),
            Number::Length { part, is_coded } => {
                self.is_begin = true;
                Expects::Text { part, is_coded, left: value }
            }
        };
    }

    /// Looks at the next bytes of a string.
    fn take_text(&mut self, part: Part, is_coded: bool, text: &[u8]) {
        let is_begin = mem::take(&mut self.is_begin);
        let field = &mut self.field;
        match (part, is_coded) {
            // The first byte tells a name of the request line, which hardly any client spells out, and
            // none of whose values has a `#`.
            (Part::Name, true) if is_begin => field.is_path = huffman::begins_with_colon(text[0]),
            (Part::Name, false) if is_begin => field.is_path = text[0] == b':',
            (Part::Value, true) if field.is_path => {
                if is_begin {
                    self.signs = NumberSigns::default();
                }
                field.has_fragment |= self.signs.advance(text);
            }
            (Part::Value, false) if field.is_path => {
                field.has_fragment |= memchr(b'#', text).is_some();
            }
            _ => {}
        }
    }

    fn end_text(&mut self, part: Part) {
        self.expects = match part {
            Part::Name => Expects::Length(Part::Value),
            Part::Value => {
                let Field { is_kept, is_path, has_fragment } = self.field;
                if is_kept {
                    self.table.insert(is_path, has_fragment);
                }
                self.found |= has_fragment;
                Expects::Field
            }
        };
    }
}

impl Table {
    fn insert(&mut self, is_path: bool, has_fragment: bool) {
        self.paths = self.paths << 1 | u128::from(is_path);
        self.fragments = self.fragments << 1 | u128::from(has_fragment);
    }

    /// The bit of the entry with this index.
    fn bit(bits: u128, index: usize) -> bool {
        let age = index.checked_sub(NEWEST).and_then(|age| u32::try_from(age).ok());
        age.and_then(|age| bits.checked_shr(age)).is_some_and(|bits| bits & 1 == 1)
    }
}
