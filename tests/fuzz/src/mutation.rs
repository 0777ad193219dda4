//! Mutations: the small changes that parsers are known to stumble over.

use proptest::arbitrary::Arbitrary;
use proptest::prelude::*;

/// Longest input.
const INPUT_BYTES_MAX: usize = 64 * 1024;
/// Most copies that one mutation makes.
const COPIES_MAX: usize = 4_096;

/// Bytes that mean something to some parser.
const TOKENS: [&[u8]; 34] = [
    b"\0",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b" ",
    b"\x0b",
    b"\x7f",
    b"\xff",
    b"\xc3\xa9",
    b"\xe2\x80\xae",
    b"\xf0\x9f\x98\x80",
    b"-",
    b"+",
    b"0",
    b"0x",
    b"1e9",
    b"18446744073709551616",
    b"-1",
    b".",
    b",",
    b":",
    b";",
    b"/",
    b"//",
    b"%00",
    b"\"",
    b"\\",
    b"\\u0000",
    b"{",
    b"[",
    b"}",
    b"null",
    b"=",
];

/// A change of an input. Places are taken modulo its length.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    /// Inverts a bit.
    Flip(usize, u8),
    /// Puts a byte in the place of another.
    Set(usize, u8),
    /// Puts a token in between.
    Insert(usize, usize),
    /// Puts a token in the place of so many bytes.
    Replace(usize, usize, usize),
    /// Takes so many bytes away.
    Remove(usize, usize),
    /// Cuts the rest off.
    Truncate(usize),
    /// Repeats so many bytes.
    Repeat(usize, usize, usize),
    /// Goes on with the rest of another input of the corpus.
    Splice(usize, usize, usize),
}

impl Arbitrary for Mutation {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> BoxedStrategy<Self> {
        let at = || any::<usize>();
        let few = || 1..16_usize;
        let token = || 0..TOKENS.len();
        prop_oneof![
            (at(), 0..8_u8).prop_map(|(at, bit)| Self::Flip(at, bit)),
            (at(), any::<u8>()).prop_map(|(at, byte)| Self::Set(at, byte)),
            (at(), token()).prop_map(|(at, token)| Self::Insert(at, token)),
            (at(), few(), token()).prop_map(|(at, count, token)| Self::Replace(at, count, token)),
            (at(), few()).prop_map(|(at, count)| Self::Remove(at, count)),
            at().prop_map(Self::Truncate),
            (at(), few(), prop_oneof![9 => 1..4_usize, 1 => 1..COPIES_MAX])
                .prop_map(|(at, count, copies)| Self::Repeat(at, count, copies)),
            (at(), at(), at()).prop_map(|(at, other, from)| Self::Splice(at, other, from)),
        ]
        .boxed()
    }
}

impl Mutation {
    /// The input, changed.
    pub(crate) fn of(&self, mut input: Vec<u8>, corpus: &[Vec<u8>]) -> Vec<u8> {
        let length = input.len();
        let place = |at: usize| at % (length + 1);
        let end = |at: usize, count: usize| (at + count).min(length);
        match *self {
            Self::Flip(at, bit) => {
                if let Some(byte) = input.get_mut(place(at)) {
                    *byte ^= 1 << bit;
                }
            }
            Self::Set(at, new) => {
                if let Some(byte) = input.get_mut(place(at)) {
                    *byte = new;
                }
            }
            Self::Insert(at, token) => {
                let at = place(at);
                input.splice(at..at, TOKENS[token].iter().copied());
            }
            Self::Replace(at, count, token) => {
                let at = place(at);
                let end = end(at, count);
                input.splice(at..end, TOKENS[token].iter().copied());
            }
            Self::Remove(at, count) => {
                let at = place(at);
                let end = end(at, count);
                input.drain(at..end);
            }
            Self::Truncate(at) => {
                let at = place(at);
                input.truncate(at);
            }
            Self::Repeat(at, count, copies) => {
                let at = place(at);
                let end = end(at, count);
                let copies = input[at..end].repeat(copies);
                input.splice(end..end, copies);
            }
            Self::Splice(at, other, from) => {
                let at = place(at);
                let other = &corpus[other % corpus.len()];
                input.truncate(at);
                input.extend_from_slice(&other[from % (other.len() + 1)..]);
            }
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }
}
