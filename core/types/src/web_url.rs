//! URLs supplied by partners: return URLs for browsers, callback URLs for the service.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

use super::checked_text::{refusal, text_form};

refusal!(
    /// The text is not an acceptable URL of its kind.
    InvalidUrl,
    "not an acceptable absolute URL"
);

/// Longest URL that is stored, in bytes.
const URL_BYTES_MAX: usize = 2048;

/// Schemes that run code or read local data where the URL is opened.
const DANGEROUS_SCHEMES: [&str; 8] =
    ["about", "blob", "data", "file", "filesystem", "javascript", "vbscript", "view-source"];

/// The URL to which a user returns: absolute, of any scheme (an app's own too) that cannot run code
/// in a browser (contract, section 6.3). The text is stored exactly as given, because it is opened
/// as given and a signature may cover it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ReturnUrl(String);

impl ReturnUrl {
    /// The URL as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL in ASCII, as a header requires: other characters are percent-encoded, a host name is in
    /// Punycode.
    #[must_use]
    pub fn to_ascii(&self) -> Cow<'_, str> {
        if self.0.is_ascii() {
            return Cow::Borrowed(&self.0);
        }
        Url::parse(&self.0).map_or(Cow::Borrowed(&self.0), |url| Cow::Owned(url.into()))
    }
}

impl FromStr for ReturnUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let url = parse_plain(text)?;
        if DANGEROUS_SCHEMES.contains(&url.scheme()) {
            return Err(InvalidUrl);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ReturnUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ReturnUrl {
    /// Path and query may carry a user's data, so only the scheme is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.split_once(':').map_or("", |(scheme, _)| scheme);
        write!(f, "ReturnUrl({scheme}:…)")
    }
}

text_form!(ReturnUrl);

/// Permission for callbacks to `http` on a loopback host; granted to test clients only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopbackHttp {
    /// `http://localhost`, `http://127.0.0.1`, `http://[::1]` are accepted too.
    Allowed,
    /// `https` only.
    Refused,
}

/// A callback URL: `https`, without user name or password (contract, section 6.3). The address is
/// checked when the connection is opened.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CallbackUrl {
    text: String,
    url: Url,
}

impl CallbackUrl {
    /// Reads a callback URL under the rule for this client.
    ///
    /// # Errors
    /// When it is not an absolute `https` URL (or `http` on loopback, where allowed), carries
    /// credentials, or is longer than 2048 bytes.
    pub fn parse(text: &str, loopback: LoopbackHttp) -> Result<Self, InvalidUrl> {
        let url = parse_plain(text)?;
        let secure = match url.scheme() {
            "https" => true,
            "http" => loopback == LoopbackHttp::Allowed && is_loopback(&url),
            _ => false,
        };
        if !secure || !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidUrl);
        }
        Ok(Self { text: text.to_owned(), url })
    }

    /// The URL as given, for storage and signatures.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The URL to call.
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.url
    }
}

impl fmt::Display for CallbackUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for CallbackUrl {
    /// Path and query may carry a partner's secret, so only the origin is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallbackUrl({}/…)", self.url.origin().ascii_serialization())
    }
}

/// Parses an absolute URL that every parser reads the same way. `Url::parse` follows browsers and
/// repairs its input (blanks, backslashes, missing slashes); a text that needs repair is refused
/// first, so that the checked URL is the opened one. Letters and digits beyond ASCII are allowed
/// (RFC 3987), invisible characters are not.
fn parse_plain(text: &str) -> Result<Url, InvalidUrl> {
    let plain = |c: char| match c {
        '"' | '<' | '>' | '\\' | '`' => false,
        c => c.is_ascii_graphic() || (!c.is_ascii() && c.is_alphanumeric()),
    };
    if text.len() > URL_BYTES_MAX || !text.chars().all(plain) {
        return Err(InvalidUrl);
    }
    let (_, rest) = text.split_once(':').ok_or(InvalidUrl)?;
    let url = Url::parse(text).map_err(|_| InvalidUrl)?;
    let well_formed = if matches!(url.scheme(), "http" | "https") {
        rest.strip_prefix("//").is_some_and(|authority| !authority.starts_with('/'))
    } else {
        // `localhost:3000` is a host and a port without a scheme, not a scheme of its own.
        rest.bytes().next().is_some_and(|first| !first.is_ascii_digit())
    };
    if well_formed { Ok(url) } else { Err(InvalidUrl) }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn callback(text: &str, loopback: LoopbackHttp) -> bool {
        CallbackUrl::parse(text, loopback).is_ok()
    }

    #[test]
    fn a_return_url_of_any_scheme_is_stored_as_given() {
        for text in [
            "https://shop.example/done?order=7#paid",
            "HTTPS://Shop.Example",
            "http://localhost:3000/back",
            "yourapp://",
            "yourapp://order/done?x=%20",
            "com.example.app:/callback",
            "yourapp:done",
            "https://shop.example/{order}?a=b|c",
            "https://shop.example/zurück?naïve=1",
        ] {
            let url: ReturnUrl = text.parse().unwrap_or_else(|_| panic!("{text}"));
            assert_eq!(url.as_str(), text);
        }
    }

    #[test]
    fn a_header_carries_a_return_url_in_ascii() {
        let ascii = |text: &str| text.parse::<ReturnUrl>().unwrap().to_ascii().into_owned();
        assert_eq!(ascii("https://shop.example/zurück"), "https://shop.example/zur%C3%BCck");
        assert_eq!(ascii("https://bücher.example/"), "https://xn--bcher-kva.example/");
        assert_eq!(ascii("yourapp:fertig-für-heute"), "yourapp:fertig-f%C3%BCr-heute");
        assert_eq!(ascii("HTTPS://Shop.Example"), "HTTPS://Shop.Example");
    }

    #[test]
    fn a_relative_malformed_or_dangerous_return_url_is_refused() {
        for text in [
            "",
            "shop.example/done",
            "/done",
            "//shop.example",
            "https:",
            "https://",
            "https:shop.example",
            "https:/shop.example",
            "https:///shop.example",
            "https:\\\\shop.example",
            "localhost:3000/back",
            "yourapp:",
            "://x",
            "1app://x",
            " https://shop.example",
            "https://shop.example ",
            "https://shop.example/a b",
            "https://shop.example/\n",
            "java\tscript:alert(1)",
            "https://shop.example/\u{7f}",
            "https://shop.example/\u{202e}",
            "https://shop.example/\"><script>",
            "https://shop.example:99999/",
            "https://[::1",
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "javascript://shop.example/%0aalert(1)",
            "data:text/html,x",
            "vbscript:x",
            "file:///etc/passwd",
            "blob:https://shop.example/1",
            "view-source:https://shop.example",
        ] {
            assert!(text.parse::<ReturnUrl>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn urls_are_bounded_at_2048_bytes() {
        let url = |bytes: usize| format!("https://a.example/{}", "x".repeat(bytes - 18));
        assert!(url(2048).parse::<ReturnUrl>().is_ok() && url(2049).parse::<ReturnUrl>().is_err());
        assert!(callback(&url(2048), LoopbackHttp::Refused));
        assert!(!callback(&url(2049), LoopbackHttp::Refused));
    }

    #[test]
    fn a_callback_is_https_without_credentials() {
        use LoopbackHttp::Refused;
        for text in
            ["https://shop.example/hook?x=1", "https://shop.example:8443", "HTTPS://a.example"]
        {
            assert!(callback(text, Refused), "{text}");
        }
        for text in [
            "",
            "http://shop.example",
            "http://localhost",
            "ftp://shop.example",
            "yourapp://hook",
            "https://user@shop.example",
            "https://user:secret@shop.example",
            "https://:secret@shop.example",
            "https:shop.example",
            "https://shop.example/\r\nX: 1",
        ] {
            assert!(!callback(text, Refused), "{text:?}");
        }
    }

    #[test]
    fn plain_http_reaches_loopback_only_and_only_where_allowed() {
        use LoopbackHttp::{Allowed, Refused};
        for text in [
            "http://localhost:8080/hook",
            "http://127.0.0.1",
            "http://127.9.9.9:1/",
            "http://[::1]:80/x",
        ] {
            assert!(callback(text, Allowed) && !callback(text, Refused), "{text}");
        }
        for text in [
            "http://shop.example",
            "http://localhost.shop.example",
            "http://127.0.0.1.shop.example",
            "http://10.0.0.1",
            "http://169.254.169.254/latest",
            "http://0.0.0.0",
            "http://user@localhost",
            "ws://localhost",
        ] {
            assert!(!callback(text, Allowed), "{text}");
        }
    }

    #[test]
    fn debug_shows_no_path_and_no_query() {
        let url = "https://shop.example/private?token=1";
        assert_eq!(format!("{:?}", url.parse::<ReturnUrl>().unwrap()), "ReturnUrl(https:…)");
        let callback = CallbackUrl::parse(url, LoopbackHttp::Refused).unwrap();
        assert_eq!(format!("{callback:?}"), "CallbackUrl(https://shop.example/…)");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".*", near in "[a-z:/\\\\@?#\\[\\]0-9. ]{0,40}") {
            for text in [text, near] {
                let _ = (text.parse::<ReturnUrl>(), callback(&text, LoopbackHttp::Allowed));
            }
        }

        #[test]
        fn an_accepted_url_has_no_blank_or_control_character(text in "(https|app):[ -~\\x00-\\x1f]{0,20}") {
            if let Ok(url) = text.parse::<ReturnUrl>() {
                prop_assert!(url.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
