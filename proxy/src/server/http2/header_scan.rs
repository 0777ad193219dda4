//! Finds the header blocks that have a `:path` with a fragment or a `:scheme` other than https and
//! http, in their compressed bytes (RFC 7541).
//!
//! Decoding is left to the h2 crate. All that a later field can take from the table of an earlier
//! one is a name or a whole field, so few bits of each entry are enough; every value but that of a
//! `:path` or a `:scheme` is skipped.

use std::mem;

use memchr::memchr;

use super::huffman::{self, CODED_HTTP, CODED_HTTPS, CODED_SCHEME, NumberSigns};

/// Most bytes of a number after its first one, as the h2 crate has it.
const NUMBER_BYTES_MAX: u32 = 4;
/// The entries of the static table whose name is `:path`.
const STATIC_PATHS: [usize; 2] = [4, 5];
/// The entries of the static table whose name is `:scheme`; their values are sound.
const STATIC_SCHEMES: [usize; 2] = [6, 7];
/// More bytes than the longest string that is compared has.
const BEGIN_BYTES: usize = 8;
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
    begin: Begin,
    signs: NumberSigns,
    /// The block has a field that is refused.
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
    /// Entries whose name is `:scheme`.
    schemes: u128,
    /// Those of both whose value is refused.
    refused: u128,
}

/// A field that is not in a table as a whole.
#[derive(Debug, Default)]
struct Field {
    /// It becomes an entry of the table.
    is_kept: bool,
    name: Name,
    has_fragment: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Name {
    /// `:path`, or spelled out and of a request line: the others have no `#` either.
    Path,
    /// `:scheme`
    Scheme,
    #[default]
    Other,
}

/// The first bytes of a string, and how many have come: enough to compare it with a short one.
#[derive(Debug, Default)]
struct Begin {
    bytes: [u8; BEGIN_BYTES],
    length: usize,
    is_coded: bool,
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
    Text { part: Part, left: usize },
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
        while let Some((&byte, mut rest)) = bytes.split_first() {
            match self.expects {
                Expects::Field => self.begin_field(byte),
                Expects::Number { of, value, bytes } => {
                    self.go_on_with_number(of, value, bytes, byte)?;
                }
                Expects::Length(part) => {
                    let is_coded = byte & 0x80 != 0;
                    self.begin_number(Number::Length { part, is_coded }, byte, 0x7f);
                }
                Expects::Text { part, left } => {
                    let (text, behind) = bytes.split_at(left.min(bytes.len()));
                    self.take_text(part, text);
                    match left - text.len() {
                        0 => self.end_text(part),
                        left => self.expects = Expects::Text { part, left },
                    }
                    rest = behind;
                }
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Ends the block: true when it has a `:path` or a `:scheme` that is refused.
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
                self.found |= Table::bit(self.table.refused, value);
                Expects::Field
            }
            Number::Size => Expects::Field,
            Number::Name { is_kept } => {
                self.field = Field { is_kept, name: self.table.name(value), has_fragment: false };
                Expects::Length(if value == 0 { Part::Name } else { Part::Value })
            }
            Number::Length { part, is_coded } => {
                self.begin = Begin { is_coded, ..Begin::default() };
                self.signs = NumberSigns::default();
                if value == 0 {
                    return self.end_text(part);
                }
                Expects::Text { part, left: value }
            }
        };
    }

    /// Looks at the next bytes of a string.
    fn take_text(&mut self, part: Part, text: &[u8]) {
        self.begin.take(text);
        if part == Part::Value && self.field.name == Name::Path {
            self.field.has_fragment |= match self.begin.is_coded {
                true => self.signs.advance(text),
                false => memchr(b'#', text).is_some(),
            };
        }
    }

    fn end_text(&mut self, part: Part) {
        self.expects = match part {
            Part::Name => {
                self.field.name = self.begin.name();
                Expects::Length(Part::Value)
            }
            Part::Value => {
                let Field { is_kept, name, has_fragment } = self.field;
                let is_refused = has_fragment || name == Name::Scheme && !self.begin.is_web();
                if is_kept {
                    self.table.insert(name, is_refused);
                }
                self.found |= is_refused;
                Expects::Field
            }
        };
    }
}

impl Begin {
    fn take(&mut self, text: &[u8]) {
        let places = self.bytes.iter_mut().skip(self.length);
        places.zip(text).for_each(|(place, byte)| *place = *byte);
        self.length += text.len();
    }

    /// True for one of these two, which are the same text as it is and coded.
    fn is(&self, plain: &[u8], coded: &[u8]) -> bool {
        self.bytes.get(..self.length) == Some(if self.is_coded { coded } else { plain })
    }

    /// The meaning of a name that is spelled out. The first byte tells one of the request line, which
    /// hardly any client spells out.
    fn name(&self) -> Name {
        let [first, ..] = self.bytes;
        let has_colon =
            if self.is_coded { huffman::begins_with_colon(first) } else { first == b':' };
        match has_colon {
            true if self.is(b":scheme", CODED_SCHEME) => Name::Scheme,
            true => Name::Path,
            false => Name::Other,
        }
    }

    /// True for a scheme of the Web.
    fn is_web(&self) -> bool {
        self.is(b"https", CODED_HTTPS) || self.is(b"http", CODED_HTTP)
    }
}

impl Table {
    fn insert(&mut self, name: Name, is_refused: bool) {
        self.paths = self.paths << 1 | u128::from(name == Name::Path);
        self.schemes = self.schemes << 1 | u128::from(name == Name::Scheme);
        self.refused = self.refused << 1 | u128::from(is_refused);
    }

    /// The name of the entry with this index.
    fn name(&self, index: usize) -> Name {
        if STATIC_PATHS.contains(&index) || Self::bit(self.paths, index) {
            Name::Path
        } else if STATIC_SCHEMES.contains(&index) || Self::bit(self.schemes, index) {
            Name::Scheme
        } else {
            Name::Other
        }
    }

    /// The bit of the entry with this index.
    fn bit(bits: u128, index: usize) -> bool {
        let age = index.checked_sub(NEWEST).and_then(|age| u32::try_from(age).ok());
        age.and_then(|age| bits.checked_shr(age)).is_some_and(|bits| bits & 1 == 1)
    }
}
