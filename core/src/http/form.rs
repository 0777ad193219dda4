//! Submitted forms of our own pages: `application/x-www-form-urlencoded`, and `multipart/form-data` for
//! those with a file (RFC 7578).

use std::collections::HashMap;
use std::fmt;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use memchr::memmem;
use url::form_urlencoded;

/// Most parts of a form with a file.
const PARTS_MAX: usize = 32;
/// Longest boundary, in bytes (RFC 2046, section 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;
/// Longest head of a part, in bytes.
const PART_HEAD_BYTES_MAX: usize = 1_024;

/// A submitted form; the first of several members with the same name counts.
#[derive(Default)]
pub struct Form {
    members: HashMap<String, String>,
    files: HashMap<String, Vec<u8>>,
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Form(…)")
    }
}

impl Form {
    /// Parses `application/x-www-form-urlencoded`, which accepts any bytes.
    pub(crate) fn read(body: &[u8]) -> Self {
        let mut form = Self::default();
        for (name, value) in form_urlencoded::parse(body) {
            form.members.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        form
    }

    /// Parses the encoding that the headers name; an empty form for a broken one with files.
    pub(crate) fn read_with_files(headers: &HeaderMap, body: &[u8]) -> Self {
        let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match media_type.and_then(boundary) {
            Some(boundary) => parts(boundary, body).unwrap_or_default(),
            None => Self::read(body),
        }
    }

    /// A member; empty if not sent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.members.get(name).map_or("", String::as_str)
    }

    /// The content of a file; empty if none was chosen.
    pub(crate) fn file(&self, name: &str) -> &[u8] {
        self.files.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The boundary of a form with files; `None` for another media type.
fn boundary(media_type: &str) -> Option<&str> {
    let mut parameters = media_type.split(';').map(str::trim);
    let kind = parameters.next()?;
    if !kind.eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let named = parameters.find_map(|parameter| parameter.strip_prefix("boundary="))?;
    let named = named.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(named);
    (1..=BOUNDARY_BYTES_MAX).contains(&named.len()).then_some(named)
}

/// The parts of a body: those with a file name are files. `None` when it is broken.
fn parts(boundary: &str, body: &[u8]) -> Option<Form> {
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    let mut rest = body.strip_prefix(&delimiter[2..])?;
    let mut form = Form::default();
    for _ in 0..PARTS_MAX {
        if rest.starts_with(b"--") {
            return Some(form);
        }
        rest = rest.strip_prefix(b"\r\n")?;
        let head_end = find(&rest[..rest.len().min(PART_HEAD_BYTES_MAX)], b"\r\n\r\n")?;
        let head = std::str::from_utf8(&rest[..head_end]).ok()?;
        let content = &rest[head_end + 4..];
        let end = find(content, &delimiter)?;
        let (name, is_file) = disposition(head)?;
        match is_file {
            true => {
                form.files.entry(name).or_insert_with(|| content[..end].to_vec());
            }
            false => {
                let text = String::from_utf8(content[..end].to_vec()).ok()?;
                form.members.entry(name).or_insert(text);
            }
        }
        rest = &content[end + delimiter.len()..];
    }
    None
}

/// The name of a part, and true if it is a file.
fn disposition(head: &str) -> Option<(String, bool)> {
    let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-disposition"))?;
    let parameter = |name: &str| {
        let start = format!("{name}=\"");
        let mut parameters = value.split(';').map(str::trim);
        parameters.find_map(|parameter| parameter.strip_prefix(&start)?.split('"').next())
    };
    Some((parameter("name")?.to_owned(), parameter("filename").is_some()))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    memmem::find(bytes, wanted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &[u8] =
        b"--b1\r\nContent-Disposition: form-data; name=\"colour\"\r\n\r\n#0b57d0\r\n\
        --b1\r\nContent-Disposition: form-data; name=\"logo\"; filename=\"a.png\"\r\n\
        Content-Type: image/png\r\n\r\n\x89PNG\r\n\x1a\n\xff\r\n--b1--\r\n";

    fn headers(media_type: &str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, media_type.parse().unwrap())])
    }

    #[test]
    fn the_first_of_a_name_counts() {
        let form = Form::read(b"a=1+2&b=%26&a=3");
        assert_eq!((form.get("a"), form.get("b"), form.get("c")), ("1 2", "&", ""));
        assert_eq!(format!("{form:?}"), "Form(…)");
    }

    #[test]
    fn a_form_with_a_file_is_taken_apart() {
        for media_type in
            ["multipart/form-data; boundary=b1", "Multipart/Form-Data; boundary=\"b1\""]
        {
            let form = Form::read_with_files(&headers(media_type), BODY);
            assert_eq!(form.get("colour"), "#0b57d0");
            assert_eq!(form.file("logo"), b"\x89PNG\r\n\x1a\n\xff");
            assert_eq!((form.get("logo"), form.file("colour")), ("", &b""[..]));
        }
        let plain = Form::read_with_files(&headers("application/x-www-form-urlencoded"), b"a=1");
        assert_eq!(plain.get("a"), "1");
    }

    #[test]
    fn a_broken_form_is_empty() {
        let many = b"--b1\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n".repeat(99);
        for body in [&b""[..], b"--b1", &BODY[..BODY.len() - 6], &BODY[1..], &many[..]] {
            let form = Form::read_with_files(&headers("multipart/form-data; boundary=b1"), body);
            assert!(form.members.is_empty() && form.files.is_empty());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(at in 0_usize..200, byte: u8, media_type in "[ -~]{0,60}") {
            let mut body = BODY.to_vec();
            let index = at % body.len();
            body[index] = byte;
            let _ = parts("b1", &body);
            let _ = boundary(&media_type);
        }
    }
}
