//! The page that somebody asked for before signing in: the sign-in leads back to it.

use http::Method;
use maud::{Markup, html};
use url::{Position, Url, form_urlencoded};

use crate::http::request::Head;

/// Name of the field and of the parameter with the page's address.
pub(super) const PAGE: &str = "page";
/// Longest address that is kept, in bytes.
const ADDRESS_BYTES_MAX: usize = 1_024;

/// The address of a page below this path; `None` for every other text.
pub(super) fn below<'a>(root: &str, address: &'a str) -> Option<&'a str> {
    let is_short = address.len() <= ADDRESS_BYTES_MAX;
    let rest = address.strip_prefix(root).filter(|_| is_short)?;
    if !rest.starts_with(['/', '?']) {
        return None;
    }
    // A browser reads it as it stands, and neither steps up nor to another host.
    let url = Url::parse(&format!("https://edge.invalid{address}")).ok()?;
    (&url[Position::BeforePath..Position::AfterQuery] == address).then_some(address)
}

/// The page below this path that a request asks for; `None` for an action, and for an address that
/// is not kept.
pub(super) fn of(root: &str, head: &Head) -> Option<String> {
    let address = match &head.query {
        Some(query) => format!("{}?{query}", head.path),
        None => head.path.clone(),
    };
    let address = Some(address).filter(|_| head.method == Method::GET);
    address.filter(|address| below(root, address).is_some())
}

/// The page below this path that the parameter of a sign-in's request names.
pub(super) fn carried(root: &str, head: &Head) -> Option<String> {
    let query = head.query.as_deref().unwrap_or_default();
    let named = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == PAGE);
    named.map(|(_, address)| address.into_owned()).filter(|address| below(root, address).is_some())
}

/// The path of a sign-in that leads back to the page.
pub(super) fn link(sign_in: &str, page: Option<&str>) -> String {
    match page {
        Some(page) => {
            let mut query = form_urlencoded::Serializer::new(String::new());
            format!("{sign_in}?{}", query.append_pair(PAGE, page).finish())
        }
        None => sign_in.to_owned(),
    }
}

/// The hidden field of a sign-in's form that leads back to the page.
pub(super) fn field(page: Option<&str>) -> Markup {
    html! {
        @if let Some(page) = page { input type="hidden" name=(PAGE) value=(page); }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_below_its_path_and_nowhere_else() {
        let longest = format!("/portal/{}", "a".repeat(ADDRESS_BYTES_MAX - "/portal/".len()));
        for page in ["/portal/orders", "/portal/orders?status=in%20progress&a=//b", "/portal?a=b"] {
            assert_eq!(below("/portal", page), Some(page));
        }
        assert!(below("/portal", &longest).is_some());
        assert!(below("/portal", &format!("{longest}a")).is_none());
        for other in [
            "",
            "/",
            "/portal",
            "/portals",
            "/console/orders",
            "portal/orders",
            "//portal/orders",
            "https://evil.example/portal/orders",
            "/portal.evil.example/",
            "/portal@evil.example/",
            "/portal/../api/v2/prices",
            "/portal/%2e%2E/api/v2/prices",
            "/portal/.",
            "/portal\\evil.example",
            "/portal/\\..\\x",
            "/portal/orders#top",
            "/portal/a\tb",
            "/portal/a\r\nSet-Cookie: a=b",
            "/portal/ü",
        ] {
            assert_eq!(below("/portal", other), None, "{other}");
        }
    }

    #[test]
    fn a_link_carries_the_page() {
        let page = "/portal/orders?status=pending&limit=5";
        let link = link("/portal/sign-in", Some(page));
        assert_eq!(link, "/portal/sign-in?page=%2Fportal%2Forders%3Fstatus%3Dpending%26limit%3D5");
        assert_eq!(super::link("/portal/sign-in", None), "/portal/sign-in");
    }
}
