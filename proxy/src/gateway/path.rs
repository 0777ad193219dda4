//! Paths in normal form. Others are not found; they are never rewritten, so that no two servers
//! can read one path differently (section 1.3 of the contract).

/// A path that means the same to everybody: it begins with a slash, has no empty segment but a
/// last one, no `.` or `..`, no backslash, no control character, and escapes neither slash,
/// backslash nor dot, and nothing by halves. An escaped control character means the same to
/// everybody: the endpoint says what it thinks of it (ER034).
pub(super) fn is_normal(path: &str) -> bool {
    path.starts_with('/')
        && !path.contains("//")
        && path.split('/').all(|segment| !matches!(segment, "." | "..") && is_plain(segment))
}

fn is_plain(segment: &str) -> bool {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' | 0x7f => return false,
            byte if byte < b' ' => return false,
            b'%' => match (bytes.next().and_then(digit), bytes.next().and_then(digit)) {
                // A slash, a dot or a backslash may not be escaped.
                (Some(high), Some(low)) if ![0x2f, 0x2e, 0x5c].contains(&(high << 4 | low)) => {}
                _ => return false,
            },
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_paths_are_normal() {
        for path in [
            "/",
            "/api/v1/prices",
            "/api/v2/buy/orders/12",
            "/api/v1/prices/",
            "/a..b/...c",
            "/a%20b/%C3%BC",
            "/a;b=c,d",
            "/a%00%0a%7f",
        ] {
            assert!(is_normal(path), "{path}");
        }
    }

    #[test]
    fn whatever_another_server_could_read_differently_is_not() {
        for path in [
            "",
            "*",
            "api",
            "//",
            "//api",
            "/api//v1",
            "/./api",
            "/api/.",
            "/api/..",
            "/api/../v1",
            "/api/%2e%2e/v1",
            "/api/%2E/v1",
            "/api%2fv1",
            "/api%2Fv1",
            "/api\\v1",
            "/api%5cv1",
            "/api%0",
            "/api%",
            "/api%2",
            "/api%zz",
            "/a\u{7}",
            "/api/%2e",
            "example.com:443",
        ] {
            assert!(!is_normal(path), "{path}");
        }
    }

    proptest! {
        #[test]
        fn a_normal_path_decodes_to_the_same_segments(path in "[/.%a-f0-9\\\\]{0,24}") {
            if is_normal(&path) {
                let decoded = path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\");
                prop_assert_eq!(&decoded, &path);
                prop_assert!(!path.contains("//"));
                prop_assert!(path.split('/').all(|segment| segment != "." && segment != ".."));
            }
        }
    }
}
