//! `GET /{region}/support` and `GET /{region}/faq`: help for the users of partners. With `client`, the
//! partner's slug, they have its name and branding.

use http::{Method, StatusCode};
use maud::{Markup, html};
use url::form_urlencoded;

use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::Endpoint;
use crate::http::fields::Fields;
use crate::http::html::{Page, dead_link};
use crate::http::language::{Language, Texts};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::Result;

/// Says how to get help with an order.
pub struct Support;

impl Endpoint for Support {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/{region}/support";
    type Caller = Anyone;
    type Request = Link;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Link> {
        Ok(Link::read(input))
    }

    async fn call(core: &Core, _: Anyone, link: Link) -> Result<Reply> {
        Ok(page(core, &link, "support-title", support))
    }
}

/// Answers frequent questions.
pub struct Faq;

impl Endpoint for Faq {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/{region}/faq";
    type Caller = Anyone;
    type Request = Link;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Link> {
        Ok(Link::read(input))
    }

    async fn call(core: &Core, _: Anyone, link: Link) -> Result<Reply> {
        Ok(page(core, &link, "faq-title", |texts| faq(texts, &link)))
    }
}

/// The region that a URL names, and the partner if it names one.
#[derive(Debug)]
pub struct Link {
    region: String,
    slug: Option<String>,
}

impl Link {
    fn read(input: &Input) -> Self {
        let query = Fields::of_query(input.head.query.as_deref());
        let slug = query.value("client").and_then(|value| value.as_str());
        Self { region: input.param("region").to_owned(), slug: slug.map(str::to_owned) }
    }
}

fn page(
    core: &Core,
    Link { region, slug }: &Link,
    title: &'static str,
    body: impl Fn(Texts) -> Markup,
) -> Reply {
    let texts = Language::from_tag(region).unwrap_or(Language::English).texts();
    let settings = &core.settings.pages;
    let snapshot = core.snapshots.current();
    if !snapshot.catalogue.page_regions.contains(region) {
        return dead_link(texts, settings);
    }
    let tenant = slug.as_ref().and_then(|slug| snapshot.tenant_by_slug(slug));
    let tenant = tenant.filter(|tenant| !tenant.suspended);
    let (title, body) = (texts.get(title), body(texts));
    let page = Page::new(texts, settings, &title);
    match tenant {
        Some(tenant) => page.branded(&tenant.name, &tenant.brand).render(StatusCode::OK, &body),
        None => page.render(StatusCode::OK, &body),
    }
}

fn support(texts: Texts) -> Markup {
    html! {
        p { (texts.get("support-shop")) }
        p { (texts.get("support-number")) }
        p.note { (texts.get("support-warning")) }
    }
}

fn faq(texts: Texts, Link { region, slug }: &Link) -> Markup {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(slug.iter().map(|slug| ("client", slug)));
    let support = format!("/{region}/support?{}", query.finish());
    let questions = [
        ("faq-when", "faq-when-answer"),
        ("faq-cost", "faq-cost-answer"),
        ("faq-identity", "faq-identity-answer"),
        ("faq-cancel", "faq-cancel-answer"),
    ];
    html! {
        @for (question, answer) in questions {
            h2 { (texts.get(question)) }
            p { (texts.get(answer)) }
        }
        p { a href=(support.trim_end_matches('?')) { (texts.get("support-title")) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_no_promise() {
        let link = Link { region: "en-gb".to_owned(), slug: None };
        let shown = faq(Language::English.texts(), &link).into_string();
        let exception = "unless the page says that the price is fixed when your payment arrives";
        assert!(shown.contains(exception), "{shown}");
    }
}
