//! A client of HTTP/2 that writes the same heads in every way there is, as bytes choose.

use std::collections::VecDeque;
use std::iter;
use std::sync::LazyLock;

/// Bits of the Huffman code of every byte (RFC 7541, appendix B), from which the codes follow.
const CODE_LENGTHS: [u32; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
/// Entries of the static table that are used.
const STATIC: [(usize, &str, &str); 8] = [
    (1, ":authority", ""),
    (2, ":method", "GET"),
    (4, ":path", "/"),
    (5, ":path", "/index.html"),
    (6, ":scheme", "http"),
    (7, ":scheme", "https"),
    (32, "cookie", ""),
    (58, "user-agent", ""),
];
/// `M` stands for the character that is looked for.
const PATHS: [&str; 12] = [
    "/",
    "/index.html",
    "/a",
    "/aM",
    "/Mb",
    "M",
    "/a?bMc",
    "/a?b",
    "/MM",
    "/a\\b",
    "/\u{e9}M",
    "/a/path/that/is/so/long/that/few/of/its/kind/stay/in/a/table?M",
];
/// As often as clients send them, nearly.
const SCHEMES: [&str; 8] = ["https", "https", "https", "http", "ftp", "https2", "h", "https"];
const FIELDS: [(&str, &str); 4] =
    [("user-agent", "M"), ("x-name", "/aM"), ("cookie", "a=b"), ("x-empty", "")];
/// Sizes that a client may give its table.
const TABLE_SIZES: [usize; 4] = [0, 80, 200, 4_096];
/// Most requests; the h2 crate has no more streams at once than it says.
const REQUESTS_MAX: u32 = 60;

/// A client, and what it has written.
pub(super) struct Client<'a> {
    choices: iter::Copied<std::slice::Iter<'a, u8>>,
    mark: char,
    /// It may use the Huffman code.
    codes: bool,
    table: VecDeque<(String, String)>,
    table_max: usize,
    pub(super) wire: Vec<u8>,
    pub(super) paths: Vec<(u32, String)>,
    /// The scheme of each.
    pub(super) schemes: Vec<&'static str>,
}

impl<'a> Client<'a> {
    /// A client that `choices` lead, with `mark` in some paths, once it has sent everything.
    pub(super) fn run(choices: &'a [u8], mark: char, codes: bool) -> Self {
        let mut client = Self {
            choices: choices.iter().copied(),
            mark,
            codes,
            table: VecDeque::new(),
            table_max: 4_096,
            wire: Vec::new(),
            paths: Vec::new(),
            schemes: Vec::new(),
        };
        client.wire.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.frame(4, 0, 0, &[]);
        for number in 0..REQUESTS_MAX {
            if client.choices.len() == 0 {
                break;
            }
            client.request(2 * number + 1);
        }
        client
    }

    fn choose(&mut self, of: usize) -> usize {
        usize::from(self.choices.next().unwrap_or_default()) % of
    }

    fn marked(&self, text: &str) -> String {
        text.replace('M', &self.mark.to_string())
    }

    fn request(&mut self, stream: u32) {
        let path = PATHS[self.choose(PATHS.len())];
        let path = self.marked(path);
        let scheme = SCHEMES[self.choose(SCHEMES.len())];
        let mut fields = vec![
            (":method".to_owned(), "GET".to_owned()),
            (":scheme".to_owned(), scheme.to_owned()),
            (":authority".to_owned(), "a".to_owned()),
            (":path".to_owned(), path.clone()),
        ];
        fields.rotate_left(self.choose(4));
        for _ in 0..self.choose(4) {
            let (name, value) = FIELDS[self.choose(FIELDS.len())];
            fields.push((name.to_owned(), self.marked(value)));
        }
        let mut block = Vec::new();
        if self.choose(8) == 1 {
            self.table_max = TABLE_SIZES[self.choose(TABLE_SIZES.len())];
            self.number(&mut block, 0x20, 0x1f, self.table_max);
            self.shrink(0);
        }
        for (name, value) in fields {
            self.field(&mut block, name, value);
        }
        self.paths.push((stream, path));
        self.schemes.push(scheme);
        self.frames(stream, &block);
    }

    fn field(&mut self, block: &mut Vec<u8>, name: String, value: String) {
        let kind = self.choose(4);
        let whole = |(_, n, v): &(usize, &str, &str)| *n == name && *v == value;
        let named = |(_, n, _): &(usize, &str, &str)| *n == name;
        let dynamic = self.table.iter().enumerate();
        let dynamic = dynamic.map(|(age, (n, v))| (62 + age, n.as_str(), v.as_str()));
        let known: Vec<_> = STATIC.into_iter().chain(dynamic).collect();
        let field = known.iter().find(|entry| whole(entry)).map(|(index, ..)| *index);
        let names: Vec<usize> =
            known.iter().filter(|entry| named(entry)).map(|(index, ..)| *index).collect();
        if let (0, Some(index)) = (kind, field) {
            return self.number(block, 0x80, 0x7f, index);
        }
        // 0 is a name that is spelled out.
        let index = match self.choose(names.len() + 1) {
            0 => names.last().copied().unwrap_or(0),
            1 => 0,
            other => names[other - 1],
        };
        match kind {
            2 => self.number(block, 0x00, 0x0f, index),
            3 => self.number(block, 0x10, 0x0f, index),
            _ => self.number(block, 0x40, 0x3f, index),
        }
        if index == 0 {
            self.text(block, &name);
        }
        self.text(block, &value);
        if kind < 2 {
            let size = 32 + name.len() + value.len();
            self.shrink(size);
            if size <= self.table_max {
                self.table.push_front((name, value));
            }
        }
    }

    /// Makes room in the table.
    fn shrink(&mut self, room: usize) {
        let size = |(name, value): &(String, String)| 32 + name.len() + value.len();
        while self.table.iter().map(size).sum::<usize>() + room > self.table_max {
            if self.table.pop_back().is_none() {
                break;
            }
        }
    }

    fn number(&mut self, block: &mut Vec<u8>, kind: u8, mask: u8, value: usize) {
        let Some(mut left) = value.checked_sub(usize::from(mask)) else {
            return block.push(kind | u8::try_from(value).unwrap());
        };
        block.push(kind | mask);
        while left >= 0x80 {
            block.push(0x80 | u8::try_from(left & 0x7f).unwrap());
            left >>= 7;
        }
        let last = u8::try_from(left).unwrap();
        // A number may be longer than it needs.
        match self.choose(8) {
            1 => block.extend([0x80 | last, 0]),
            _ => block.push(last),
        }
    }

    fn text(&mut self, block: &mut Vec<u8>, text: &str) {
        if self.codes && self.choose(2) == 1 {
            let coded = coded(text.as_bytes());
            self.number(block, 0x80, 0x7f, coded.len());
            block.extend(coded);
        } else {
            self.number(block, 0, 0x7f, text.len());
            block.extend(text.as_bytes());
        }
    }

    /// Sends a header block, in pieces, between frames that do not matter.
    fn frames(&mut self, stream: u32, block: &[u8]) {
        match self.choose(4) {
            1 => self.frame(0x77, 0xff, stream, &[0; 20]),
            2 => self.frame(0x8, 0, 0, &[0, 0, 0, 1]),
            3 => self.frame(0x2, 0, stream, &[0; 5]),
            _ => {}
        }
        let (padding, priority) = (self.choose(4), self.choose(3) == 1);
        let at = self.choose(block.len() + 1);
        let (first, more) = if self.choose(2) == 1 { block.split_at(at) } else { (block, &[][..]) };
        let ends = if more.is_empty() { 0x4 } else { 0 };
        let mut payload = Vec::new();
        let mut flags = 0x1 | ends;
        if padding > 0 {
            flags |= 0x8;
            payload.push(u8::try_from(padding - 1).unwrap());
        }
        if priority {
            flags |= 0x20;
            payload.extend([0, 0, 0, 0, 7]);
        }
        payload.extend(first);
        payload.extend(iter::repeat_n(0, padding.saturating_sub(1)));
        self.frame(0x1, flags, stream, &payload);
        if !more.is_empty() {
            let (second, third) = more.split_at(self.choose(more.len() + 1));
            self.frame(0x9, 0, stream, second);
            self.frame(0x9, 0x4, stream, third);
        }
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.wire.extend(&u32::try_from(payload.len()).unwrap().to_be_bytes()[1..]);
        self.wire.extend([kind, flags]);
        self.wire.extend(stream.to_be_bytes());
        self.wire.extend(payload);
    }
}

/// Every byte's code and its length: codes ascend by length, and by byte within a length.
static CODES: LazyLock<Vec<(u64, u32)>> = LazyLock::new(|| {
    let order = |byte: u8| (CODE_LENGTHS[usize::from(byte)], byte);
    let code = |byte: u8| {
        let before = (0..=u8::MAX).filter(|other| order(*other) < order(byte));
        let sum: u64 = before.map(|other| 1 << (u32::BITS - order(other).0)).sum();
        (sum >> (u32::BITS - order(byte).0), order(byte).0)
    };
    (0..=u8::MAX).map(code).collect()
});

/// `text` in the Huffman code.
pub(in crate::server::http2) fn coded(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0, 0);
    for byte in text {
        let (code, length) = CODES[usize::from(*byte)];
        bits = bits << length | code;
        held += length;
        while held >= u8::BITS {
            held -= u8::BITS;
            bytes.push(u8::try_from(bits >> held & 0xff).unwrap());
        }
        bits &= (1 << held) - 1;
    }
    if held > 0 {
        let padding = u8::BITS - held;
        bytes.push(u8::try_from(((bits + 1) << padding) - 1).unwrap());
    }
    bytes
}
