//! The vectors that servers are known to read differently.

use http::{HeaderValue, Method};
use proptest::prelude::*;

use super::*;

fn judge(text: &str) -> Result<Body, HeadError> {
    judge_bytes(text.as_bytes())
}

fn judge_bytes(bytes: &[u8]) -> Result<Body, HeadError> {
    match Scan::default().advance(bytes)? {
        Some(length) => check(&bytes[..length]),
        None => panic!("incomplete: {:?}", String::from_utf8_lossy(bytes)),
    }
}

fn with(headers: &str) -> Result<Body, HeadError> {
    judge(&format!("POST /x HTTP/1.1\r\nHost: a.example\r\n{headers}\r\n"))
}

#[test]
fn sound_heads_say_how_long_their_body_is() {
    assert_eq!(judge("GET / HTTP/1.1\r\nHost: a:8443\r\n\r\n"), Ok(Body::None));
    assert_eq!(judge("\r\nGET / HTTP/1.0\r\n\r\n"), Ok(Body::None));
    assert_eq!(with("Content-Length: 17\r\n"), Ok(Body::Length(17)));
    assert_eq!(with("content-length:0\r\nUpgrade: websocket\r\n"), Ok(Body::Length(0)));
    assert_eq!(with("Transfer-Encoding: Chunked\r\n"), Ok(Body::Chunks(Chunks::default())));
    assert_eq!(with("X-Name: \u{e4}\t\u{1f600}\r\n"), Ok(Body::None));
    assert_eq!(judge("GET https://a/x?y HTTP/1.1\r\nHost: A\r\n\r\n"), Ok(Body::None));
    assert_eq!(judge("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), Ok(Body::None));
    assert_eq!(judge("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"), Ok(Body::None));
}

#[test]
fn ambiguous_lengths_are_refused() {
    for headers in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: \r\n",
        "Transfer-Encoding:\u{b}chunked\r\n",
        "Upgrade: h2c\r\nContent-Length: 5\r\n",
        "Upgrade: websocket\r\nTransfer-Encoding: chunked\r\n",
    ] {
        assert!(matches!(with(headers), Err(Malformed(_))), "{headers:?}");
    }
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(matches!(judge(old), Err(Malformed(_))));
}

#[test]
fn ambiguous_fields_are_refused() {
    for headers in [
        "Content-Length : 5\r\n",
        " Content-Length: 5\r\n",
        "X-A: b\r\n c: d\r\n",
        "X-A: b\r\n\tc\r\n",
        "X-A\r\n",
        ": b\r\n",
        "X A: b\r\n",
        "X-A: b\0c\r\n",
        "X-A: b\rContent-Length: 5\r\n",
        "X-A: b\u{7f}\r\n",
        "X-A: b\u{c}\r\n",
        "X-A:\u{b}b\r\n",
        "X-A: b\r\r\n",
        "Content-Length: 5\r\r\n",
        "Content-Length: 5\u{c}\r\n",
        "Host: b.example\r\n",
    ] {
        assert!(matches!(with(headers), Err(Malformed(_))), "{headers:?}");
    }
    let latin = b"GET / HTTP/1.1\r\nHost: a\r\nX-Name: \xe4\r\n\r\n";
    assert!(matches!(judge_bytes(latin), Err(Malformed(_))));
}

#[test]
fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
    let get = |host: &str| judge(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    for sound in ["a", "a.example:8443", "127.0.0.1", "[::1]", "[::1]:8443", "a:"] {
        assert_eq!(get(sound), Ok(Body::None), "{sound:?}");
    }
    for unsound in ["", "a b", "a:b", "a:1:2", "u@a", "a/", "[::1", "[::1]x", "[a]]:1", ":1", "a,b"]
    {
        assert!(matches!(get(unsound), Err(Malformed(_))), "{unsound:?}");
    }
}

#[test]
fn bare_line_feeds_end_nothing() {
    for text in [
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        assert!(matches!(judge(text), Err(Malformed(_))), "{text:?}");
    }
}

#[test]
fn request_lines_are_exact() {
    for line in [
        "GET /a b HTTP/1.1",
        "GET  / HTTP/1.1",
        " GET / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET\t/\tHTTP/1.1",
        "GET /",
        "GET / HTTP/2.0",
        "GET / HTTP/1.2",
        "GET / http/1.1",
        "G(T / HTTP/1.1",
        "GET /a#b HTTP/1.1",
        "GET /<script> HTTP/1.1",
        "GET /\u{e4} HTTP/1.1",
        "GET a/b HTTP/1.1",
        "GET http://b/ HTTP/1.1",
        "GET http://u@a/ HTTP/1.1",
        "GET ftp://a/ HTTP/1.1",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1",
    ] {
        let text = format!("{line}\r\nHost: a\r\n\r\n");
        assert!(matches!(judge(&text), Err(Malformed(_))), "{line:?}");
    }
    assert_eq!(judge("GET / HTTP/1.1\r\n\r\n"), Err(Malformed("HTTP/1.1 needs a Host")));
}

#[test]
fn bounds_hold_before_the_head_is_complete() {
    let target = "a".repeat(TARGET_BYTES_MAX + REQUEST_LINE_EXTRA);
    let long = format!("GET /{target}");
    assert_eq!(Scan::default().advance(long.as_bytes()), Err(HeadError::TargetTooLong));
    let large = format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(HEADERS_BYTES_MAX));
    assert_eq!(Scan::default().advance(large.as_bytes()), Err(HeadError::HeadTooLarge));
    let exact = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(TARGET_BYTES_MAX));
    assert_eq!(judge(&exact), Err(HeadError::TargetTooLong));
    assert_eq!(with(&"X: y\r\n".repeat(HEADERS_MAX)), Err(HeadError::HeadTooLarge));
}

proptest! {
    #[test]
    fn a_head_is_judged_alike_however_it_is_cut(cuts in proptest::collection::vec(1usize..40, 1..8)) {
        let text = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
        let mut scan = Scan::default();
        let mut arrived = 0;
        let mut found = None;
        for cut in cuts {
            arrived = (arrived + cut).min(text.len());
            found = scan.advance(&text[..arrived]).unwrap();
            if found.is_some() {
                break;
            }
        }
        let complete = text.len() - 3;
        prop_assert_eq!(found, (arrived >= complete).then_some(complete));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some(length)) = Scan::default().advance(&bytes) {
            let _ = check(&bytes[..length]);
        }
        let _ = check(&bytes);
    }
}

#[test]
fn a_table_says_of_every_byte_what_the_rule_says() {
    for byte in 0..=u8::MAX {
        let visible = byte.is_ascii_graphic();
        assert_eq!(is_target(&byte), visible && !b"#<>\"`{}^|".contains(&byte), "{byte:#x}");
        let delimiter = b"\"(),/:;<=>?@[\\]{}".contains(&byte);
        assert_eq!(is_token(&byte), visible && !delimiter, "{byte:#x}");
    }
}

/// The end of a head and its body, of bytes that arrive in pieces of this size.
fn judge_pieces(bytes: &[u8], size: usize) -> Option<Result<(usize, Body), HeadError>> {
    let mut scan = Scan::default();
    for end in (size..bytes.len()).step_by(size).chain([bytes.len()]) {
        match scan.advance(&bytes[..end]) {
            Ok(None) => {}
            Ok(Some(length)) => return Some(check(&bytes[..length]).map(|body| (length, body))),
            Err(error) => return Some(Err(error)),
        }
    }
    None
}

/// The same head as another parser reads it: its length, and the fields that delimit a body.
fn read_elsewhere(head: &[u8]) -> Option<(usize, Vec<(String, String)>)> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(length) = request.parse(head).ok()? else { return None };
    let text = |field: &httparse::Header<'_>| {
        let value = String::from_utf8_lossy(field.value).trim().to_ascii_lowercase();
        (field.name.to_ascii_lowercase(), value)
    };
    let framing =
        |(name, _): &(String, String)| name == "content-length" || name == "transfer-encoding";
    Some((length, request.headers.iter().map(text).filter(framing).collect()))
}

#[test]
fn fuzz_http_heads() {
    rampart_fuzz::fuzz("http-heads", |input| {
        let whole = judge_pieces(input, input.len().max(1));
        for size in [1, 2, 7, 64] {
            let pieces = judge_pieces(input, size);
            // One that is too large is refused before its end has come.
            match (&whole, &pieces) {
                (None | Some(Err(_)), Some(Err(_))) => {}
                _ => assert_eq!(whole, pieces, "in pieces of {size}"),
            }
        }
        let Some(Ok((length, body))) = whole else { return };
        let (elsewhere, framing) = read_elsewhere(&input[..length]).expect("others read it too");
        assert_eq!(elsewhere, length, "others see another end");
        let expected = match body {
            Body::None => Vec::new(),
            Body::Length(length) => vec![("content-length".to_owned(), length)],
            Body::Chunks(_) => vec![("transfer-encoding".to_owned(), 0)],
        };
        let framing = framing.into_iter().map(|(name, value)| {
            let length = if value == "chunked" { 0 } else { value.parse().unwrap() };
            (name, length)
        });
        assert_eq!(framing.collect::<Vec<(String, u64)>>(), expected, "others see another body");
    });
}

/// A head of HTTP/2, as the h2 crate hands it over.
fn parsed(target: &str, fields: &[(&'static str, &str)]) -> Result<(), HeadError> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    let target: Uri = target.parse().unwrap();
    let method = if target.path_and_query().is_none() { Method::CONNECT } else { Method::GET };
    check_parsed(&method, &target, &headers)
}

#[test]
fn a_head_of_http2_names_one_host_and_one_length() {
    let sound: [(&str, &[_]); 5] = [
        ("https://a.example/x?y", &[]),
        ("https://a.example/", &[("host", "A.example")]),
        ("/", &[("host", "a:8443")]),
        ("https://a/", &[("content-length", "17"), ("x-name", "\u{e4}\t\u{1f600}")]),
        ("a:443", &[("host", "a:443")]),
    ];
    for (target, fields) in sound {
        assert_eq!(parsed(target, fields), Ok(()), "{target} {fields:?}");
    }
    let refused: [(&str, &[_]); 15] = [
        ("https://a/", &[("x", " y")]),
        ("https://a/", &[("x", "y ")]),
        ("https://a/", &[("x", "y\t")]),
        ("https://a/\"{}", &[]),
        ("1https://a/", &[]),
        ("ftp://a/", &[]),
        ("/", &[]),
        ("https://a/", &[("host", "b")]),
        ("https://a/", &[("host", "a:8443")]),
        ("/", &[("host", "a"), ("host", "a")]),
        ("/", &[("host", "a/b")]),
        ("https://user@a/", &[]),
        ("https://a/", &[("content-length", "5"), ("content-length", "5")]),
        ("https://a/", &[("content-length", "5, 5")]),
        ("https://a/", &[("content-length", "+5")]),
    ];
    for (target, fields) in refused {
        let said = parsed(target, fields);
        assert!(matches!(said, Err(Malformed(_))), "{target} {fields:?}: {said:?}");
    }
}

#[test]
fn a_head_of_http2_has_the_bounds_of_http1() {
    let many = |count| vec![("x", "y"); count];
    assert_eq!(parsed("https://a/", &many(HEADERS_MAX)), Ok(()));
    assert_eq!(parsed("https://a/", &many(HEADERS_MAX + 1)), Err(HeadError::HeadTooLarge));
    let long = |bytes| "y".repeat(bytes);
    // Name, colon, blank and line end count.
    let room = HEADERS_BYTES_MAX - "x".len() - 4 - "host: a\r\n".len();
    assert_eq!(parsed("https://a/", &[("x", &long(room))]), Ok(()));
    assert_eq!(parsed("https://a/", &[("x", &long(room + 1))]), Err(HeadError::HeadTooLarge));
    let text = HeaderValue::from_bytes(b"\xff").unwrap();
    let headers = HeaderMap::from_iter([(header::ACCEPT, text)]);
    let target = Uri::from_static("https://a/");
    let said = |method, headers| check_parsed(&method, &target, &headers);
    assert!(matches!(said(Method::GET, headers), Err(Malformed(_))));
    let method = |bytes| Method::from_bytes("M".repeat(bytes).as_bytes()).unwrap();
    assert_eq!(said(method(METHOD_BYTES_MAX), HeaderMap::new()), Ok(()));
    let long = said(method(METHOD_BYTES_MAX + 1), HeaderMap::new());
    assert!(matches!(long, Err(Malformed(_))), "{long:?}");
}
