//! HTML pages under a content security policy that lets nothing else run or load. They work without
//! scripts, but for a form for cards, which is a provider's script.

pub(crate) mod brand;
pub mod choice;
pub mod components;
mod document;
pub mod form_errors;
pub(crate) mod privacy;
pub mod shell;
pub mod steps;

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use maud::{Markup, PreEscaped, html};
use url::Url;

use self::brand::Brand;
use self::components::brand_line;
use self::document::Document;
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::platform::crypto::sha256;
use crate::platform::settings::Pages;
use rampart_types::ReturnUrl;

/// The style sheet of every page, tokens first; its digest is in the content security policy.
const STYLE: &str = concat!(include_str!("html/tokens.css"), include_str!("html/components.css"));
/// Our script of pages that are better with one: times in the reader's zone, names of regions in the
/// reader's language, copying, countdowns, forms that a double click sends once.
pub(crate) const PAGE_SCRIPT: &str = include_str!("html/page.js");

static STYLE_SOURCE: LazyLock<String> = LazyLock::new(|| source_digest(STYLE));

/// The source of a content security policy that lets in exactly this text.
pub fn source_digest(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(sha256(text)))
}

/// Scripts of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PageScripts<'a> {
    /// Our own alone.
    Own(&'static str),
    /// Our own alone, which ask this service.
    Calling(&'static str),
    /// A payment provider's, and our own that uses it.
    Provider {
        /// URL of the provider's script.
        url: &'a str,
        /// Origins that the page lets in, the first of them the provider's script's. Each is a valid
        /// source of a content security policy.
        sources: &'a [String],
        /// Text of our own script, which runs once the provider's has.
        own: &'static str,
    },
}

impl PageScripts<'_> {
    /// The directives that let in these scripts, and what the provider's calls and frames.
    fn policy(&self) -> String {
        match self {
            Self::Own(own) => format!("script-src {}; ", source_digest(own)),
            Self::Calling(own) => {
                format!("script-src {}; connect-src 'self'; ", source_digest(own))
            }
            Self::Provider { sources, own, .. } => {
                let all = sources.join(" ");
                let script = sources.first().map_or("'none'", String::as_str);
                let own = source_digest(own);
                format!("script-src {own} {script}; connect-src {all}; frame-src {all}; ")
            }
        }
    }

    fn markup(&self) -> Markup {
        html! {
            @match self {
                Self::Own(own) | Self::Calling(own) => script { (PreEscaped(own)) },
                Self::Provider { url, own, .. } => {
                    script src=(url) {}
                    script { (PreEscaped(own)) }
                }
            }
        }
    }
}

/// A page for shoppers: narrow, in the reader's language. A form may submit to this service and
/// redirect to the partner, nowhere else.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub(crate) texts: Texts,
    pub(crate) settings: &'a Pages,
    /// Title and heading.
    pub(crate) title: &'a str,
    /// The beginning of the title alone, where several pages have the same heading.
    pub(crate) topic: Option<&'a str>,
    /// The name and the branding of the partner whose shopper the reader is.
    pub(crate) partner: Option<(&'a str, &'a Brand)>,
    /// True if money is only simulated, which the page says first.
    pub(crate) is_test: bool,
    /// Target that forms may redirect to.
    pub(crate) return_url: Option<&'a ReturnUrl>,
    pub(crate) scripts: Option<PageScripts<'a>>,
    /// Time after which the page is loaded again where no script runs.
    pub(crate) refresh_seconds: Option<u32>,
    /// True if a script shows the images that the reader chooses.
    pub(crate) previews_images: bool,
}

impl<'a> Page<'a> {
    /// A page without a way back and without scripts.
    pub const fn new(texts: Texts, settings: &'a Pages, title: &'a str) -> Self {
        Self {
            texts,
            settings,
            title,
            topic: None,
            partner: None,
            is_test: false,
            return_url: None,
            scripts: None,
            refresh_seconds: None,
            previews_images: false,
        }
    }

    /// The same with a partner's name and branding.
    pub const fn branded(self, name: &'a str, brand: &'a Brand) -> Self {
        Self { partner: Some((name, brand)), ..self }
    }

    /// Renders the page with its heading above the body.
    pub fn render(&self, status: StatusCode, body: &Markup) -> Reply {
        let texts = self.texts;
        let layout = html! {
            main.card {
                @if let Some((name, brand)) = self.partner {
                    (brand_line(name, brand.logo.as_deref()))
                }
                @if self.is_test { p.note { (texts.get("test-note")) } }
                h1 { (self.title) }
                (body)
            }
            footer { (self.partner_links()) (self.operator_links()) }
        };
        let form_action =
            self.return_url.and_then(form_source).map_or_else(String::new, |s| format!(" {s}"));
        let (language, brand) = (texts.language(), self.partner.map(|(_, brand)| brand));
        let Self { refresh_seconds, scripts, .. } = *self;
        let named = self.topic.map(|topic| format!("{topic} · {}", self.title));
        let document = Document {
            language,
            title: named.as_deref().unwrap_or(self.title),
            refresh_seconds,
            form_action: &form_action,
            scripts,
            brand,
        };
        let mut reply = document.render(status, &layout);
        match (brand.is_some_and(|brand| brand.logo.is_some()), self.previews_images) {
            (true, true) => allow_images(&mut reply, "'self' blob:"),
            (true, false) => allow_images(&mut reply, "'self'"),
            (false, true) => allow_images(&mut reply, "blob:"),
            (false, false) => {}
        }
        reply
    }

    /// The partner's help, privacy statement and terms, as far as its branding names them.
    fn partner_links(&self) -> Markup {
        let Some((name, brand)) = self.partner else { return html! {} };
        let links = [
            (&brand.support_url, "footer-shop-help"),
            (&brand.privacy_url, "footer-shop-privacy"),
            (&brand.terms_url, "footer-shop-terms"),
        ];
        html! {
            @if links.iter().any(|(url, _)| url.is_some()) {
                p {
                    @for (url, label) in links {
                        @if let Some(url) = url {
                            a href=(url) rel="noreferrer" {
                                (self.texts.with(label, &[("shop", name)]))
                            } " "
                        }
                    }
                }
            }
        }
    }

    /// The operator of the service, and its legal pages. Nothing if the settings name none.
    fn operator_links(&self) -> Markup {
        let texts = self.texts;
        let links = [
            (&self.settings.imprint_url, texts.get("footer-imprint")),
            (&self.settings.privacy_url, texts.get("footer-privacy")),
            (&self.settings.terms_url, texts.get("footer-terms")),
        ];
        let entity = self.settings.legal_entity.as_deref();
        html! {
            @if let Some(entity) = entity {
                p { (texts.with("footer-operated-by", &[("entity", entity)])) }
            }
            @if links.iter().any(|(url, _)| url.is_some()) {
                p {
                    @for (url, label) in links {
                        @if let Some(url) = url { a href=(url) rel="noreferrer" { (label) } " " }
                    }
                }
            }
        }
    }
}

/// Lets pictures of one source in on a page, such as `'self'`.
pub fn allow_images(reply: &mut Reply, source: &str) {
    let policy = reply.headers.get("content-security-policy").and_then(|value| value.to_str().ok());
    let policy = format!("img-src {source}; {}", policy.unwrap_or_default());
    reply.set("content-security-policy", &policy);
}

/// The page of a link that is used, expired or invalid, without telling which.
pub fn dead_link(texts: Texts, settings: &Pages) -> Reply {
    let title = texts.get("dead-link-title");
    let body = html! { p { (texts.get("dead-link-shop")) } };
    Page::new(texts, settings, &title).render(StatusCode::NOT_FOUND, &body)
}

pub(crate) fn back_link(texts: Texts, return_url: &ReturnUrl, partner: &str) -> Markup {
    html! {
        p {
            a.button href=(return_url) rel="noreferrer" {
                (texts.with("back-to", &[("shop", partner)]))
            }
        }
    }
}

/// Redirects the browser to the partner. 303 makes it a GET, so that a reload repeats nothing.
pub(crate) fn redirect(return_url: &ReturnUrl) -> Reply {
    let mut reply = Reply::empty(StatusCode::SEE_OTHER);
    reply.set("location", &*return_url.to_ascii());
    reply.set("referrer-policy", "no-referrer");
    reply
}

/// The CSP source expression that allows a form's redirect to the URL: its origin if that can be
/// expressed, else its scheme (CSP level 3, section 2.3.1).
fn form_source(url: &ReturnUrl) -> Option<String> {
    let url = Url::parse(url.as_str()).ok()?;
    let origin = url.origin();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    match url.host_str() {
        Some(host) if origin.is_tuple() && host.bytes().all(plain) => {
            Some(origin.ascii_serialization())
        }
        _ => Some(format!("{}:", url.scheme())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::language::Language;

    fn text(reply: &Reply) -> &str {
        std::str::from_utf8(&reply.body).unwrap()
    }

    #[test]
    fn a_form_may_redirect_to_the_partner_only() {
        for (url, source) in [
            ("https://shop.example/done?x=1", "https://shop.example"),
            ("https://shop.example:8443/", "https://shop.example:8443"),
            ("http://[::1]:3000/", "http:"),
            ("yourapp://done", "yourapp:"),
            ("https://a;sandbox/", "https:"),
        ] {
            assert_eq!(form_source(&url.parse().unwrap()).as_deref(), Some(source), "{url}");
        }
    }

    #[test]
    fn a_page_lets_in_its_own_scripts_and_no_other() {
        let sources = ["https://js.example".to_owned(), "https://api.example".to_owned()];
        let (url, own) = ("https://js.example/v3/", "start();");
        let scripts = PageScripts::Provider { url, sources: &sources, own };
        let settings = Pages::default();
        let plain = Page::new(Language::English.texts(), &settings, "Title");
        let reply = Page { scripts: Some(scripts), ..plain }.render(StatusCode::OK, &html! {});
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        let own = source_digest(own);
        for part in [
            format!("script-src {own} https://js.example;"),
            "connect-src https://js.example https://api.example;".to_owned(),
            "frame-src https://js.example https://api.example;".to_owned(),
        ] {
            assert!(policy.contains(&part), "{part} in {policy}");
        }
        assert!(text(&reply).contains("<script>start();</script>"));
        assert!(text(&reply).contains("data-copied-label=\"Copied\""), "{}", text(&reply));
        let plain = plain.render(StatusCode::OK, &html! {});
        assert!(!plain.headers["content-security-policy"].to_str().unwrap().contains("script"));
    }

    #[test]
    fn the_policy_allows_the_style_of_the_page() {
        let settings = Pages {
            legal_entity: Some("<Acme>".to_owned()),
            privacy_url: "https://legal.example/".to_owned().try_into().ok(),
            ..Pages::default()
        };
        let page = Page::new(Language::Dutch.texts(), &settings, "Title");
        let reply = page.render(StatusCode::OK, &html! {});
        assert!(text(&reply).contains("<html lang=\"nl\">"));
        assert!(text(&reply).contains("&lt;Acme&gt;"));
        assert!(text(&reply).contains("href=\"https://legal.example/\""));
        let style = text(&reply).split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains(&format!("style-src {}", source_digest(style))), "{policy}");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
    }

    #[test]
    fn a_branded_page_has_the_partners_name_logo_colour_and_links() {
        let brand = Brand {
            accent: "#8a1538".parse().ok(),
            logo: Some("/brand/acme/0123.svg".to_owned()),
            support_url: Some("mailto:help@acme.example".to_owned()),
            privacy_url: None,
            terms_url: Some("https://acme.example/terms?a=1&b=\"2".to_owned()),
        };
        let settings = Pages::default();
        let page = Page::new(Language::German.texts(), &settings, "Title").branded("A & B", &brand);
        let reply = page.render(StatusCode::OK, &html! {});
        for part in [
            "<p class=\"brand\"><img src=\"/brand/acme/0123.svg\" alt=\"\"><span>A &amp; B</span></p>",
            "<link rel=\"icon\" href=\"/brand/acme/0123.svg\">",
            "href=\"mailto:help@acme.example\"",
            "href=\"https://acme.example/terms?a=1&amp;b=&quot;2\"",
            "AGB von A &amp; B",
        ] {
            assert!(text(&reply).contains(part), "{part} in {}", text(&reply));
        }
        // Logos are made for light ground.
        let dark = STYLE.split_once("(prefers-color-scheme:dark){.brand img{").unwrap().1;
        assert!(dark.split('}').next().unwrap().contains("background:var(--plate)"), "{dark}");
        let style = text(&reply).split("<style>").nth(2).unwrap().split("</style>").next().unwrap();
        assert!(style.contains("--accent:#8a1538"), "{style}");
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains(&source_digest(style)), "{policy}");
        assert!(policy.contains("img-src 'self'") && policy.contains("default-src 'none'"));
        let bare = Brand::default();
        let reply = page.branded("Acme", &bare).render(StatusCode::OK, &html! {});
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(text(&reply).contains("Acme") && !policy.contains("img-src"), "{policy}");
    }
}
