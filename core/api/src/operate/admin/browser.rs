//! Requests that a page in an operator's browser makes: changes come as JSON, and from nowhere but
//! this listener's own pages.

use http::StatusCode;
use http::header::{CONTENT_TYPE, HOST, ORIGIN};

use crate::endpoint::{Body, Route};
use crate::http::request::Head;
use crate::platform::error::{Denial, Result};

/// Refuses what a page of another origin has sent.
///
/// # Errors
/// 403.
pub(in crate::operate) fn check_origin(head: &Head) -> Result<()> {
    let site = head.headers.get_all("sec-fetch-site").iter();
    let mut own_site = site.map(|site| site == "same-origin" || site == "none");
    let host = head.headers.get(HOST).map(http::HeaderValue::as_bytes);
    let mut own_origin = head.headers.get_all(ORIGIN).iter().map(|origin| {
        let authority = origin.as_bytes().split(|byte| *byte == b'/').nth(2);
        authority.is_some() && authority == host
    });
    if own_site.all(|own| own) && own_origin.all(|own| own) {
        return Ok(());
    }
    Err(Denial::new(StatusCode::FORBIDDEN, "the page that asks is of another origin").into())
}

/// Refuses a body of another media type than the endpoint takes. A page can send text and forms to
/// any listener, and JSON only to its own.
///
/// # Errors
/// 415, which names the media type.
pub(super) fn check_media_type(route: &Route, head: &Head, body: &[u8]) -> Result<()> {
    let wanted: &[&str] = match route.body {
        Body::OneOf(media_types) => media_types,
        _ => &["application/json"],
    };
    let mut given = head.headers.get_all(CONTENT_TYPE).iter().map(|given| {
        let given = given.to_str().unwrap_or_default();
        let given = given.split(';').next().unwrap_or_default().trim();
        wanted.iter().any(|wanted| given.eq_ignore_ascii_case(wanted))
    });
    if body.is_empty() || given.all(|fits| fits) {
        return Ok(());
    }
    let reason = format!("the body is {}", wanted.join(" or "));
    Err(Denial::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason).into())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;

    fn head(headers: &[(&'static str, &'static str)]) -> Head {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Head {
            method: Method::POST,
            path: "/admin/v1/partners".to_owned(),
            query: None,
            headers: map,
            peer: [127, 0, 0, 1].into(),
            client_certificate: None,
            request_id: "r".to_owned(),
        }
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let host = ("host", "127.0.0.1:9443");
        for own in [
            vec![],
            vec![host],
            vec![host, ("origin", "https://127.0.0.1:9443"), ("sec-fetch-site", "same-origin")],
            vec![host, ("sec-fetch-site", "none")],
        ] {
            assert!(check_origin(&head(&own)).is_ok(), "{own:?}");
        }
        for foreign in [
            vec![host, ("origin", "https://evil.example")],
            vec![host, ("origin", "http://127.0.0.1:8000")],
            vec![host, ("origin", "null")],
            vec![("origin", "https://127.0.0.1:9443")],
            vec![host, ("sec-fetch-site", "cross-site")],
            vec![host, ("sec-fetch-site", "same-site")],
            vec![host, ("origin", "http://127.0.0.1:9443"), ("origin", "https://evil.example")],
        ] {
            assert!(check_origin(&head(&foreign)).is_err(), "{foreign:?}");
        }
    }
}
