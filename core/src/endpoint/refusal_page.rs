//! Refusals as pages, for browsers: under the paths of pages they are no JSON.

use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use maud::html;

use crate::Core;
use crate::http::html::Page;
use crate::http::language::{Texts, weight_of};
use crate::http::reply::Reply;

impl Core {
    /// Turns a refusal into a page in the reader's language, if a browser asked for one: with the
    /// same status and headers, and the code for support. Under the paths of the API it stays the
    /// error envelope, whatever `Accept` says.
    pub fn for_reader(
        &self,
        path: &str,
        headers: &HeaderMap,
        request_id: &str,
        refusal: Reply,
    ) -> Reply {
        let Some(code) = refusal.codes.first().filter(|_| wants_page(headers)) else {
            return refusal;
        };
        if self.apis.partners.has_prefix_of(path) {
            return refusal;
        }
        let region = path.split('/').nth(1).unwrap_or_default();
        let texts = Texts::asked(region, headers);
        let wait = refusal.headers.get(RETRY_AFTER).and_then(|seconds| seconds.to_str().ok());
        let support = [("code", code.as_str()), ("request", request_id)];
        let body = html! {
            p {
                @match wait {
                    Some(seconds) => (texts.with("refusal-wait", &[("seconds", seconds)])),
                    None => (texts.get(advice(refusal.status))),
                }
            }
            p.hint { (texts.with("refusal-support", &support)) }
        };
        let title = texts.get(title(refusal.status));
        let page = Page::new(texts, &self.settings.pages, &title);
        let mut page = page.render(refusal.status, &body);
        for (name, value) in refusal.headers.iter().filter(|(name, _)| **name != CONTENT_TYPE) {
            page.headers.insert(name, value.clone());
        }
        Reply { codes: refusal.codes, by_sender: refusal.by_sender, ..page }
    }
}

/// True if `text/html` stands among the media types that are accepted, as in every browser's
/// request for a page and in no program's for JSON.
pub fn wants_page(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|range| {
        let mut parts = range.split(';');
        let media_type = parts.next().unwrap_or_default();
        media_type.trim().eq_ignore_ascii_case("text/html")
            && parts.all(|parameter| weight_of(parameter) != Some(0))
    })
}

const fn title(status: StatusCode) -> &'static str {
    match status.as_u16() {
        404 => "refusal-missing",
        405 => "refusal-method",
        413 => "refusal-large",
        429 => "refusal-often",
        503 => "refusal-unavailable",
        _ => "refusal-other",
    }
}

const fn advice(status: StatusCode) -> &'static str {
    match status.as_u16() {
        413 => "refusal-smaller",
        _ => "refusal-back",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_for_those_who_accept_html() {
        for (accept, is_asked) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("Text/HTML; charset=utf-8", true),
            ("application/json, text/html;q=0.5", true),
            ("text/html;q=0, */*", false),
            ("application/json", false),
            ("*/*", false),
            ("text/htmlx", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(wants_page(&headers), is_asked, "{accept}");
        }
        assert!(!wants_page(&HeaderMap::new()));
    }
}
