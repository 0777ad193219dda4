//! Submitted forms of our own pages: `application/x-www-form-urlencoded`, and `multipart/form-data` for
//! those with a file (RFC 7578).

use std::collections::HashMap;
use std::convert::Infallible;

use bytes::Bytes;
use futures::{FutureExt as _, stream};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use multer::{Multipart, parse_boundary};
use url::form_urlencoded;

use super::request::BODY_BYTES_MAX;

/// Most parts of a form with a file.
const PARTS_MAX: usize = 32;

/// Most members of a form without one that are looked at: short ones take many times their text.
const MEMBERS_MAX: usize = 1_024;

/// A submitted form; the first of several members with the same name counts.
#[derive(Default)]
pub struct Form {
    members: HashMap<String, String>,
    files: HashMap<String, Vec<u8>>,
}

rampart_types::opaque_debug!(Form);

impl Form {
    /// Parses `application/x-www-form-urlencoded`, which accepts any bytes.
    pub fn read(body: &[u8]) -> Self {
        let mut form = Self::default();
        for (name, value) in form_urlencoded::parse(body).take(MEMBERS_MAX) {
            form.members.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        form
    }

    /// Parses the encoding that the headers name, as [`SentForm::read`] does.
    pub fn read_with_files(headers: &HeaderMap, body: &Bytes) -> Self {
        SentForm::new(headers, body).read()
    }

    /// All members, and the contents of all files, by their names.
    pub fn into_parts(self) -> (HashMap<String, String>, HashMap<String, Vec<u8>>) {
        (self.members, self.files)
    }

    /// Names and values of the members, in the order of their names.
    pub fn members(&self) -> Vec<(&str, &str)> {
        let members = self.members.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut members: Vec<_> = members.collect();
        members.sort_unstable();
        members
    }

    /// Names and contents of the files, in the order of their names.
    pub fn files(&self) -> Vec<(&str, &[u8])> {
        let files = self.files.iter().map(|(name, content)| (name.as_str(), content.as_slice()));
        let mut files: Vec<_> = files.collect();
        files.sort_unstable();
        files
    }

    /// True if a file was chosen.
    pub fn has_file(&self) -> bool {
        self.files.values().any(|content| !content.is_empty())
    }

    /// A member; empty if not sent.
    pub fn get(&self, name: &str) -> &str {
        self.members.get(name).map_or("", String::as_str)
    }

    /// The content of a file; empty if none was chosen.
    pub fn file(&self, name: &str) -> &[u8] {
        self.files.get(name).map_or(&[], Vec::as_slice)
    }
}

/// A form with files as it came: who sent it is known before it is parsed.
#[derive(Debug)]
pub struct SentForm {
    boundary: Option<String>,
    body: Bytes,
}

impl SentForm {
    /// The form of a body, in the encoding that the headers name.
    pub(crate) fn new(headers: &HeaderMap, body: &Bytes) -> Self {
        let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let boundary = media_type.and_then(|media_type| parse_boundary(media_type).ok());
        Self { boundary, body: body.clone() }
    }

    /// Parses it; an empty form if it is broken, or too large for one without files.
    pub(crate) fn read(self) -> Form {
        match self.boundary {
            // The whole body is here, so the parser never waits.
            Some(boundary) => {
                parts(boundary, self.body).now_or_never().flatten().unwrap_or_default()
            }
            None if self.body.len() > BODY_BYTES_MAX => Form::default(),
            None => Form::read(&self.body),
        }
    }
}

/// The parts of a body: those with a file name are files. `None` when it is broken.
async fn parts(boundary: String, body: Bytes) -> Option<Form> {
    let mut multipart = Multipart::new(stream::iter([Ok::<_, Infallible>(body)]), boundary);
    let mut form = Form::default();
    for _ in 0..=PARTS_MAX {
        let Some(part) = multipart.next_field().await.ok()? else { return Some(form) };
        let (name, is_file) = (part.name()?.to_owned(), part.file_name().is_some());
        let content = Vec::from(part.bytes().await.ok()?);
        match is_file {
            true => drop(form.files.entry(name).or_insert(content)),
            false => drop(form.members.entry(name).or_insert(String::from_utf8(content).ok()?)),
        }
    }
    None
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
        assert_eq!((form.members(), form.has_file()), (vec![("a", "1 2"), ("b", "&")], false));
        assert_eq!(format!("{form:?}"), "Form(…)");
        let many: String = (0..=MEMBERS_MAX).map(|number| format!("{number}=x&")).collect();
        let form = Form::read(many.as_bytes());
        assert_eq!(
            (form.get(&(MEMBERS_MAX - 1).to_string()), form.members.len()),
            ("x", MEMBERS_MAX)
        );
    }

    #[test]
    fn a_form_with_a_file_is_taken_apart() {
        for media_type in
            ["multipart/form-data; boundary=b1", "Multipart/Form-Data; boundary=\"b1\""]
        {
            let form = Form::read_with_files(&headers(media_type), &Bytes::from_static(BODY));
            assert_eq!(form.get("colour"), "#0b57d0");
            assert_eq!(form.file("logo"), b"\x89PNG\r\n\x1a\n\xff");
            assert_eq!((form.get("logo"), form.file("colour")), ("", &b""[..]));
            assert_eq!((form.members(), form.has_file()), (vec![("colour", "#0b57d0")], true));
        }
        let more =
            b"\r\n--b1\r\nContent-Disposition: form-data; name=\"colour\"\r\n\r\nred\r\n--b1--";
        let again = [b"a preamble\r\n", &BODY[..BODY.len() - 8], more].concat().into();
        let form = Form::read_with_files(&headers("multipart/form-data; boundary=b1"), &again);
        assert_eq!(form.get("colour"), "#0b57d0", "the first counts");
        let large = [&BODY[..BODY.len() - 8], &[0xff; 3 << 20], b"\r\n--b1--\r\n"].concat().into();
        let form = Form::read_with_files(&headers("multipart/form-data; boundary=b1"), &large);
        assert_eq!(form.file("logo").len(), 11 + (3 << 20));
        let media_type = headers("application/x-www-form-urlencoded");
        let plain = Form::read_with_files(&media_type, &Bytes::from_static(b"a=1"));
        assert_eq!(plain.get("a"), "1");
    }

    #[test]
    fn a_broken_form_is_empty() {
        let part = b"--b1\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n";
        let of_parts = |count: usize| [&part.repeat(count)[..], b"--b1--\r\n"].concat();
        let (most, many) = (Bytes::from(of_parts(PARTS_MAX)), of_parts(PARTS_MAX + 1));
        let form = Form::read_with_files(&headers("multipart/form-data; boundary=b1"), &most);
        assert_eq!(form.get("a"), "x");
        for body in [&b""[..], b"--b1", &BODY[..BODY.len() - 6], &many[..]] {
            let body = Bytes::copy_from_slice(body);
            let form = Form::read_with_files(&headers("multipart/form-data; boundary=b1"), &body);
            assert!(form.members.is_empty() && form.files.is_empty());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(at in 0_usize..200, byte: u8, media_type in "[!-~][ -~]{0,60}") {
            let mut body = BODY.to_vec();
            let index = at % body.len();
            body[index] = byte;
            for media_type in [&media_type, "multipart/form-data; boundary=b1"] {
                let _ = Form::read_with_files(&headers(media_type), &body.clone().into());
            }
        }
    }
}
