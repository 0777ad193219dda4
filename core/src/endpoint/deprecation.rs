//! Operations that a later version replaces, and the headers that say so: `Deprecation` (RFC 9745),
//! `Sunset` (RFC 8594) and `Link` with `successor-version` (RFC 5829).

use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use http::header::{HeaderName, HeaderValue, LINK};

use crate::http::reply::Reply;
use crate::http::uri;

/// Time since when the replaced calls of version 1 are deprecated, in seconds since 1970: 2026-11-01.
const SINCE_SECONDS: i64 = 1_793_491_200;
/// Time until when they are served, in seconds since 1970: 2027-11-01.
const SUNSET_SECONDS: i64 = 1_825_027_200;

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// Values of `Deprecation` and `Sunset`, which all deprecated operations have in common.
static DATES: LazyLock<[(HeaderName, HeaderValue); 2]> = LazyLock::new(|| {
    let sunset = time(SUNSET_SECONDS).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let values = [(DEPRECATION, format!("@{SINCE_SECONDS}")), (SUNSET, sunset)];
    // A date is visible ASCII.
    values.map(|(name, value)| (name, value.try_into().unwrap_or(HeaderValue::from_static(""))))
});

fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}

/// The deprecation of an operation that another one replaces.
#[derive(Clone, Copy, Debug)]
pub struct Deprecation {
    /// Path of the one that replaces it, with the same `{name}`s.
    pub successor: &'static str,
}

impl Deprecation {
    /// The `Link` to the successor of a request with these segments.
    pub(super) fn link(self, params: &[(&'static str, String)]) -> String {
        let mut path = self.successor.to_owned();
        for (name, value) in params {
            path = path.replace(&format!("{{{name}}}"), &uri::escape(value));
        }
        format!("<{path}>; rel=\"successor-version\"")
    }

    /// Sets the headers of an answer; `link` is [`Self::link`].
    pub(super) fn write(reply: &mut Reply, link: &str) {
        reply.headers.extend(DATES.iter().cloned());
        if let Ok(link) = link.try_into() {
            reply.headers.append(LINK, link);
        }
    }

    /// The deprecation in words, for the OpenAPI document.
    pub(super) fn describe(self) -> String {
        let [since, sunset] = [SINCE_SECONDS, SUNSET_SECONDS].map(|at| time(at).date_naive());
        let successor = self.successor;
        format!("Deprecated since {since}, and served until {sunset}: use `{successor}` instead.")
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn an_answer_names_both_dates_and_its_successor() {
        let deprecation = Deprecation { successor: "/api/v2/buy/orders/{id}" };
        let link = deprecation.link(&[("id", "a>; rel=\"é".to_owned())]);
        let mut reply = Reply::empty(StatusCode::OK);
        Deprecation::write(&mut reply, &link);
        let header = |name: &str| reply.headers[name].to_str().unwrap().to_owned();
        assert_eq!(header("deprecation"), "@1793491200");
        assert_eq!(header("sunset"), "Mon, 01 Nov 2027 00:00:00 GMT");
        let escaped = "</api/v2/buy/orders/a%3E%3B%20rel%3D%22%C3%A9>; rel=\"successor-version\"";
        assert_eq!(header("link"), escaped);
        assert!(
            deprecation.describe().starts_with("Deprecated since 2026-11-01, and served until")
        );
    }
}
