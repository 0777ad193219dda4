//! Pingora's parser forgives what other servers read differently: a bare line feed, `Content-Length`
//! beside `Transfer-Encoding`, spaces in the target. An edge must not: here anything ambiguous about
//! the end of a head or the length of its body is refused (RFC 9112, section 11.2).

mod chunks;

use http::{HeaderMap, Method, StatusCode, Uri, Version, header};
use memchr::{memchr, memchr_iter};
use rampart_core::http::request::TARGET_BYTES_MAX;

use self::HeadError::Malformed;
use self::chunks::Chunks;

/// Largest header block, in bytes, line ends included (section 1 of the contract).
pub(crate) const HEADERS_BYTES_MAX: usize = 16 * 1024;
/// Most header fields of a request; Pingora's parser takes 256.
pub(crate) const HEADERS_MAX: usize = 100;
/// Longest method, in bytes.
pub(crate) const METHOD_BYTES_MAX: usize = 32;
/// Bytes of a request line besides the target: method, two spaces, version, line end.
const REQUEST_LINE_EXTRA: usize = METHOD_BYTES_MAX + 12;
/// Digits of the largest `Content-Length` that is read at all, far above any body limit.
const LENGTH_DIGITS_MAX: usize = 15;

/// The reason for which a head is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// Not HTTP/1, or ambiguous; says what.
    Malformed(&'static str),
    /// The target is longer than [`TARGET_BYTES_MAX`].
    TargetTooLong,
    /// The header block is larger than [`HEADERS_BYTES_MAX`] or has too many fields.
    HeadTooLarge,
}

impl HeadError {
    /// The answer: its status, and the sentence for the caller.
    pub(crate) fn answer(self) -> (StatusCode, &'static str) {
        match self {
            Malformed(what) => (StatusCode::BAD_REQUEST, what),
            Self::TargetTooLong => (StatusCode::URI_TOO_LONG, "the URL may have 8 KiB"),
            Self::HeadTooLarge => {
                let sentence = "the header block may have 16 KiB and 100 fields";
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, sentence)
            }
        }
    }
}

/// A `:path` with a fragment, or a `:scheme` that is not of the Web, both of which libraries hide.
pub(super) const BAD_URL: HeadError =
    Malformed("a character that no URL has, or a scheme that is neither https nor http");

/// The delimitation of a request's body, or of what has not arrived of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Neither `Content-Length` nor `Transfer-Encoding`, or nothing is left.
    None,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunks(Chunks),
}

/// Looks for the end of a head while it arrives; every byte is looked at once.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    seen: usize,
    line: usize,
    fields_at: Option<usize>,
    started: bool,
}

impl Scan {
    /// Length of the head that `bytes` begins with, or `None` as long as it is incomplete.
    /// `bytes` holds all that arrived so far, of which only the end is new.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Result<Option<usize>, HeadError> {
        while let Some(offset) = bytes.get(self.seen..).and_then(|new| memchr(b'\n', new)) {
            let end = self.seen + offset;
            if end == self.line || bytes[end - 1] != b'\r' {
                return Err(Malformed("a line ends with CR LF"));
            }
            let empty = end - 1 == self.line;
            self.seen = end + 1;
            self.line = end + 1;
            match self.fields_at {
                // One empty line before a request is forgiven (RFC 9112, section 2.2).
                None if empty && !self.started => self.started = true,
                None if empty => return Err(Malformed("an empty request line")),
                None => self.fields_at = Some(end + 1),
                Some(at) if empty => {
                    return if end + 1 - at > HEADERS_BYTES_MAX {
                        Err(HeadError::HeadTooLarge)
                    } else {
                        Ok(Some(end + 1))
                    };
                }
                Some(_) => {}
            }
        }
        self.seen = bytes.len();
        match self.fields_at {
            None if bytes.len() - self.line > TARGET_BYTES_MAX + REQUEST_LINE_EXTRA => {
                Err(HeadError::TargetTooLong)
            }
            Some(at) if bytes.len() - at > HEADERS_BYTES_MAX => Err(HeadError::HeadTooLarge),
            _ => Ok(None),
        }
    }
}

/// Checks a complete head, as [`Scan`] delimited it, and says how its body is delimited.
pub(crate) fn check(head: &[u8]) -> Result<Body, HeadError> {
    let head = head.strip_prefix(b"\r\n").unwrap_or(head);
    let mut begin = 0;
    let mut lines = memchr_iter(b'\n', head).map(|end| {
        let line = &head[begin..end];
        begin = end + 1;
        line.strip_suffix(b"\r").unwrap_or(line)
    });
    let (target, version) = request_line(lines.next().unwrap_or_default())?;
    let mut fields = Fields::default();
    for line in lines.filter(|line| !line.is_empty()) {
        fields.read(line)?;
    }
    fields.validate(target, version)
}

fn request_line(line: &[u8]) -> Result<(&[u8], Version), HeadError> {
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Malformed("a request line is method, target and version"));
    };
    check_line(method, target)?;
    match version {
        b"HTTP/1.1" => Ok((target, Version::HTTP_11)),
        b"HTTP/1.0" => Ok((target, Version::HTTP_10)),
        _ => Err(Malformed("only HTTP/1.0 and HTTP/1.1 are spoken on this connection")),
    }
}

/// The method of a head that is refused; empty if nothing there is one.
pub(super) fn method(head: &[u8]) -> &str {
    let first = head.trim_ascii_start().split(|&byte| byte == b' ').next().unwrap_or_default();
    if is_method(first) { std::str::from_utf8(first).unwrap_or_default() } else { "" }
}

fn is_method(method: &[u8]) -> bool {
    !method.is_empty() && method.len() <= METHOD_BYTES_MAX && method.iter().all(is_token)
}

/// A method and a target that every server reads alike.
fn check_line(method: &[u8], target: &[u8]) -> Result<(), HeadError> {
    if !is_method(method) {
        return Err(Malformed("not a method"));
    }
    if target.len() > TARGET_BYTES_MAX {
        return Err(HeadError::TargetTooLong);
    }
    if target.is_empty() || !target.iter().all(is_target) {
        return Err(Malformed("the target holds a character that no URL has"));
    }
    Ok(())
}

/// The fields that decide about framing; of each only whether and how it occurs.
#[derive(Default)]
struct Fields<'a> {
    count: usize,
    host: Option<&'a [u8]>,
    length: Option<u64>,
    chunked: bool,
    upgrade: bool,
}

impl<'a> Fields<'a> {
    fn read(&mut self, line: &'a [u8]) -> Result<(), HeadError> {
        self.count += 1;
        if self.count > HEADERS_MAX {
            return Err(HeadError::HeadTooLarge);
        }
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Err(Malformed("a header may not go on in a second line"));
        }
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            return Err(Malformed("a header without a colon"));
        };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || !name.iter().all(is_token) {
            return Err(Malformed("not a header name"));
        }
        check_value(value)?;
        // Blanks are all that is left of white space (RFC 9110, section 5.5).
        let value = value.trim_ascii();
        if name.eq_ignore_ascii_case(b"host") {
            once(&mut self.host, host(value)?, "a second Host")
        } else if name.eq_ignore_ascii_case(b"content-length") {
            once(&mut self.length, length(value)?, "a second Content-Length")
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Malformed("the only transfer encoding is chunked, once"));
            }
            self.chunked = true;
            Ok(())
        } else {
            self.upgrade |= name.eq_ignore_ascii_case(b"upgrade");
            Ok(())
        }
    }

    fn validate(&self, target: &[u8], version: Version) -> Result<Body, HeadError> {
        if version == Version::HTTP_11 && self.host.is_none() {
            return Err(Malformed("HTTP/1.1 needs a Host"));
        }
        if self.chunked && version == Version::HTTP_10 {
            return Err(Malformed("HTTP/1.0 has no Transfer-Encoding"));
        }
        if self.chunked && self.length.is_some() {
            return Err(Malformed("Content-Length and Transfer-Encoding exclude each other"));
        }
        if !target_fits(target, self.host) {
            return Err(Malformed("the target and Host name different hosts"));
        }
        let body = match self.length {
            Some(length) => Body::Length(length),
            None if self.chunked => Body::Chunks(Chunks::default()),
            None => Body::None,
        };
        if self.upgrade && !matches!(body, Body::None | Body::Length(0)) {
            return Err(Malformed("a request to upgrade has no body"));
        }
        Ok(body)
    }
}

fn once<T>(slot: &mut Option<T>, value: T, twice: &'static str) -> Result<(), HeadError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Malformed(twice)),
    }
}

/// A header value is UTF-8 without control characters other than the tabulator.
fn check_value(value: &[u8]) -> Result<(), HeadError> {
    let control = |&byte: &u8| (byte < b' ' && byte != b'\t') || byte == 0x7f;
    // To the end in any case, so that the compiler takes many bytes at a time.
    if value.iter().fold(false, |found, byte| found | control(byte)) {
        return Err(Malformed("a control character in a header"));
    }
    std::str::from_utf8(value).map(|_| ()).map_err(|_| Malformed("a header is not UTF-8"))
}

/// A name or an address, IPv6 in brackets, and perhaps a port (RFC 9110, section 7.2).
fn host(value: &[u8]) -> Result<&[u8], HeadError> {
    let bracket = value.iter().position(|&byte| byte == b']');
    let end = match (value.first(), bracket) {
        (Some(b'['), Some(end)) => end + 1,
        _ => value.iter().position(|&byte| byte == b':').unwrap_or(value.len()),
    };
    let (name, port) = value.split_at(end);
    let inner = name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
    let sound = match inner {
        Some(address) => address.iter().all(|b| b.is_ascii_hexdigit() || b":.".contains(b)),
        None => name.iter().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(b)),
    };
    let port = port.strip_prefix(b":").unwrap_or(port);
    if name.is_empty() || !sound || !port.iter().all(u8::is_ascii_digit) {
        return Err(Malformed("not a Host"));
    }
    Ok(value)
}

/// Digits only: no sign, no list, no blank (RFC 9110, section 8.6).
fn length(value: &[u8]) -> Result<u64, HeadError> {
    let plain = !value.is_empty()
        && value.len() <= LENGTH_DIGITS_MAX
        && value.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(value).ok().filter(|_| plain).and_then(|n| n.parse().ok());
    number.ok_or(Malformed("Content-Length is a number in digits"))
}

/// Origin form, `*`, or an absolute form that names the host that `Host` names. The authority
/// form belongs to CONNECT, which is answered with 405 later.
fn target_fits(target: &[u8], host: Option<&[u8]>) -> bool {
    if target.starts_with(b"/") || target == b"*" {
        return true;
    }
    let Some(at) = target.windows(3).position(|window| window == b"://") else {
        return Some(target) == host;
    };
    let (scheme, rest) = (&target[..at], &target[at + 3..]);
    let authority = rest.split(|byte| b"/?".contains(byte)).next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case(b"https") || scheme.eq_ignore_ascii_case(b"http"))
        && host.is_none_or(|host| host.eq_ignore_ascii_case(authority))
}

/// Checks the head of a request in HTTP/2, whose frames are sound already: the same bounds and the
/// same characters as in HTTP/1, and one host (RFC 9113, section 8.3.1).
pub(crate) fn check_parsed(
    method: &Method,
    target: &Uri,
    headers: &HeaderMap,
) -> Result<(), HeadError> {
    let authority = target.authority().map(|authority| authority.as_str().as_bytes());
    check_pseudo(method, target, authority)?;
    let mut bytes = authority.map_or(0, |authority| "host: \r\n".len() + authority.len());
    let (mut named, mut announced) = (None, None);
    for (count, (name, value)) in headers.iter().enumerate() {
        // Name, colon, blank, value, line end.
        bytes += name.as_str().len() + value.len() + 4;
        if count >= HEADERS_MAX || bytes > HEADERS_BYTES_MAX {
            return Err(HeadError::HeadTooLarge);
        }
        if value.as_bytes().trim_ascii().len() < value.len() {
            return Err(Malformed("a blank around the value of a header"));
        }
        check_value(value.as_bytes())?;
        if name == header::HOST {
            once(&mut named, host(value.as_bytes())?, "a second Host")?;
        } else if name == header::CONTENT_LENGTH {
            once(&mut announced, length(value.as_bytes())?, "a second Content-Length")?;
        }
    }
    match (authority.map(host).transpose()?, named) {
        (None, None) => Err(Malformed("HTTP/2 needs an authority or a Host")),
        (Some(one), Some(other)) if !one.eq_ignore_ascii_case(other) => {
            Err(Malformed("the authority and Host name different hosts"))
        }
        _ => Ok(()),
    }
}

/// Checks what stands in the request line in HTTP/1. The target of CONNECT is an authority alone.
fn check_pseudo(method: &Method, target: &Uri, host: Option<&[u8]>) -> Result<(), HeadError> {
    let path = target.path_and_query().map_or("", |path| path.as_str()).as_bytes();
    if method == Method::CONNECT {
        return check_line(method.as_str().as_bytes(), host.unwrap_or_default());
    }
    check_line(method.as_str().as_bytes(), path)?;
    if !path.starts_with(b"/") && path != b"*" {
        return Err(Malformed("a path begins with a slash"));
    }
    match target.scheme_str() {
        None => Ok(()),
        Some(scheme) if ["https", "http"].iter().any(|s| scheme.eq_ignore_ascii_case(s)) => Ok(()),
        Some(_) => Err(Malformed("the scheme is neither https nor http")),
    }
}

/// RFC 9110, section 5.6.2.
fn is_token(byte: &u8) -> bool {
    const TOKEN: [bool; 256] = alphanumeric_or(b"!#$%&'*+-.^_`|~");
    TOKEN[usize::from(*byte)]
}

/// A byte that a target may hold: visible ASCII without what a URL must escape, and without a fragment.
/// The backslash goes on, to be refused as a path that is not in normal form.
fn is_target(byte: &u8) -> bool {
    const TARGET: [bool; 256] = alphanumeric_or(b"!$%&'()*+,-./:;=?@[\\]_~");
    TARGET[usize::from(*byte)]
}

/// Which bytes are letters, digits or one of `others`: every byte of every head is asked for.
const fn alphanumeric_or(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
}

#[cfg(test)]
#[path = "framing/tests.rs"]
mod tests;
