//! The variants: lengths, codings, chunks, fields and request lines that are not in the one form
//! that every server reads alike. Derived from RFC 9112, sections 2 to 7.

/// The request that is hidden behind each.
const HIDDEN: &str = "GET /api/v1/prices HTTP/1.1\r\nHost: a\r\n\r\n";

/// Bytes that some servers take for white space or drop, and others do not.
const ODD: [&[u8]; 13] = [
    b"\0",
    b"\x01",
    b"\x04",
    b"\x08",
    b"\x0b",
    b"\x0c",
    b"\r",
    b"\n",
    b"\x1f",
    b"\x7f",
    b"\xa0",
    b"\xff",
    b"\xef\xbb\xbf",
];

/// Other spellings of `chunked`.
const CODINGS: [&str; 22] = [
    "xchunked",
    "chunkedx",
    "chunk",
    "identity",
    "gzip",
    "\"chunked\"",
    "'chunked'",
    "chunked;q=1",
    "chunked;",
    "chunked,",
    ",chunked",
    "chunked, identity",
    "identity, chunked",
    "gzip, chunked",
    "chunked, chunked",
    "chunked chunked",
    "c\\hunked",
    "chunked=1",
    "(c) chunked",
    "{chunked}",
    "",
    "0",
];

/// Other spellings of a length of two.
const LENGTHS: [&str; 32] = [
    "+2",
    "-2",
    "0x2",
    "2h",
    "2.0",
    "2e0",
    "2 2",
    "2,2",
    "2, 2",
    "2;2",
    "\"2\"",
    "'2'",
    "(2)",
    "two",
    "",
    ",2",
    "2,",
    "1,2",
    "2\t2",
    "0b10",
    "2_",
    "_2",
    "\u{ff12}",
    "\u{662}",
    "18446744073709551618",
    "99999999999999999999999999",
    "-0",
    "+0",
    "0,2",
    "2,0",
    "NaN",
    "2\u{a0}",
];

/// Sizes of chunks that are none.
const SIZES: [&str; 32] = [
    "x",
    "",
    "+2",
    "-2",
    "0x2",
    " 2",
    "2 ",
    "\t2",
    "2\t",
    "2h",
    "2,",
    "2.",
    "_2",
    "2_0",
    "2 2",
    "\"2\"",
    "g",
    "2\0",
    "\u{b}2",
    "2\u{c}",
    "2\n",
    "2\r",
    "10000000000000002",
    "fffffffffffffffff",
    "-0",
    "+0",
    "0x0",
    "2;\0",
    "2;a\u{b}",
    "2;a=\"",
    "2;a=\n",
    "\u{ff12}",
];

/// Other ends of a line.
const ENDS: [&str; 5] = ["\n", "\r", "\r\r\n", "\n\r", "\r \n"];

/// A message with a hidden one behind it.
fn post(own: &str, framing: &[u8], body: &str) -> Vec<u8> {
    let line = format!("POST /api/v1/buy/quote HTTP/1.1\r\n{own}");
    [line.as_bytes(), framing, b"\r\n", body.as_bytes(), HIDDEN.as_bytes()].concat()
}

/// Every variant.
pub(super) fn all(own: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    all.extend(codings(own));
    all.extend(lengths(own));
    all.extend(chunks(own));
    all.extend(fields(own));
    all.extend(request_lines(own));
    all
}

/// `Transfer-Encoding` in other forms, alone and beside a length.
fn codings(own: &str) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> =
        CODINGS.iter().map(|coding| format!("Transfer-Encoding: {coding}\r\n").into()).collect();
    for odd in ODD {
        for (before, after) in [
            ("", "Transfer-Encoding: chunked\r\n"),
            ("Transfer-Encoding", ": chunked\r\n"),
            ("Transfer-Encoding:", "chunked\r\n"),
            ("Transfer-Encoding: chun", "ked\r\n"),
            ("Transfer-Encoding: chunked", "\r\n"),
        ] {
            lines.push([before.as_bytes(), odd, after.as_bytes()].concat());
        }
    }
    lines.push(b"Transfer-Encoding : chunked\r\n".to_vec());
    lines.push(b" Transfer-Encoding: chunked\r\n".to_vec());
    lines.push(b"X: y\r\n Transfer-Encoding: chunked\r\n".to_vec());
    lines.push(b"Transfer-Encoding:\r\n chunked\r\n".to_vec());
    lines.push(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n".to_vec());
    lines.push(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_vec());
    let mut all = Vec::new();
    for line in &lines {
        all.push(post(own, line, "0\r\n\r\n"));
        all.push(post(own, &[b"Content-Length: 5\r\n", &line[..]].concat(), "0\r\n\r\n"));
    }
    for both in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "content-length: 5\r\nTRANSFER-ENCODING: CHUNKED\r\n",
    ] {
        all.push(post(own, both.as_bytes(), "0\r\n\r\n"));
    }
    all
}

/// `Content-Length` in other forms, once and beside a sound one.
fn lengths(own: &str) -> Vec<Vec<u8>> {
    let line = |length: &str| format!("Content-Length: {length}\r\n");
    let mut all = Vec::new();
    for length in LENGTHS {
        all.push(post(own, line(length).as_bytes(), "{}"));
        all.push(post(own, format!("{}{}", line("2"), line(length)).as_bytes(), "{}"));
    }
    for (first, second) in [("2", "2"), ("2", "0"), ("0", "2"), ("2", "02")] {
        all.push(post(own, format!("{}{}", line(first), line(second)).as_bytes(), "{}"));
    }
    for framing in ["Content-Length : 2\r\n", " Content-Length: 2\r\n", "Content-Length\r\n"] {
        all.push(post(own, framing.as_bytes(), "{}"));
    }
    all
}

/// Bodies in chunks that end elsewhere for others.
fn chunks(own: &str) -> Vec<Vec<u8>> {
    let chunked = |body: String| post(own, b"Transfer-Encoding: chunked\r\n", &body);
    let mut all: Vec<_> =
        SIZES.iter().map(|size| chunked(format!("{size}\r\n{{}}\r\n0\r\n\r\n"))).collect();
    for end in ENDS {
        all.push(chunked(format!("2{end}{{}}\r\n0\r\n\r\n")));
        all.push(chunked(format!("2\r\n{{}}{end}0\r\n\r\n")));
    }
    for body in ["2\r\n{}X\r\n0\r\n\r\n", "1\r\n{}\r\n0\r\n\r\n", "3\r\n{}\r\n0\r\n\r\n"] {
        all.push(chunked(body.to_owned()));
    }
    for trailer in [" X: y", "Content-Length\0: 5", "X\u{b}: y"] {
        all.push(chunked(format!("2\r\n{{}}\r\n0\r\n{trailer}\r\n\r\n")));
    }
    all
}

/// Header fields that others fold, drop or read as two.
fn fields(own: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for odd in ODD {
        all.push(post(own, &[b"X-A", odd, b": b\r\nContent-Length: 2\r\n"].concat(), "{}"));
        // Bytes beyond ASCII are text where they are UTF-8.
        if odd != b"\xef\xbb\xbf" {
            all.push(post(own, &[b"X-A: b", odd, b"c: d\r\nContent-Length: 2\r\n"].concat(), "{}"));
        }
    }
    for line in [
        "X-A\r\n",
        ": b\r\n",
        "X A: b\r\n",
        "X-A : b\r\n",
        " X-A: b\r\n",
        "X-A: b\r\n c\r\n",
        "X-A: b\r\n\tc\r\n",
        "X(A: b\r\n",
        "X\"A: b\r\n",
        "Host: b\r\n",
        "Upgrade: h2c\r\n",
        "Upgrade: websocket\r\n",
    ] {
        all.push(post(own, format!("{line}Content-Length: 2\r\n").as_bytes(), "{}"));
    }
    let sound = format!("GET /api/v1/prices HTTP/1.1\r\n{own}\r\n");
    for end in ["\n", "\r", "\r\r\n"] {
        let head = sound.replace("\r\n", end);
        all.push([head.as_bytes(), HIDDEN.as_bytes()].concat());
    }
    all
}

/// Request lines with more or less than three words.
fn request_lines(own: &str) -> Vec<Vec<u8>> {
    let lines = [
        "GET /api/v1/prices x HTTP/1.1",
        "GET  /api/v1/prices HTTP/1.1",
        " GET /api/v1/prices HTTP/1.1",
        "GET /api/v1/prices HTTP/1.1 ",
        "GET\t/api/v1/prices\tHTTP/1.1",
        "GET /api/v1/prices",
        "GET /api/v1/prices HTTP/2.0",
        "GET /api/v1/prices HTTP/1.2",
        "GET /api/v1/prices HTTP/11",
        "GET /api/v1/prices http/1.1",
        "GET /api/v1/prices HTTP/1.1\rX: y",
        "G(T /api/v1/prices HTTP/1.1",
        "GET /api/v1/prices#x HTTP/1.1",
        "GET /api/v1/\0 HTTP/1.1",
        "GET api/v1/prices HTTP/1.1",
        "GET ftp://a/api/v1/prices HTTP/1.1",
        "PRI * HTTP/2.0",
        "GET /api/v1/prices HTTP/1.1\n",
        "GET /api/v1/prices\u{b}HTTP/1.1",
        "GET /api/v1/\u{e4} HTTP/1.1",
        "GET /\x7f HTTP/1.1",
        "\nGET /api/v1/prices HTTP/1.1",
        "GET /api/v1/prices HTTP/+1.1",
        "GET /api/v1/prices HTTP/1",
    ];
    let old = "POST /api/v1/buy/quote HTTP/1.0";
    let mut all: Vec<Vec<u8>> =
        lines.iter().map(|line| format!("{line}\r\n{own}\r\n{HIDDEN}").into()).collect();
    all.push(format!("{old}\r\n{own}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}").into());
    all
}
