//! `GET /{region}/support` and `GET /{region}/faq`: help for the users of partners.

use http::{Method, StatusCode};
use maud::{Markup, html};

use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::Endpoint;
use crate::http::html::{Page, dead_link};
use crate::http::language::{Language, Texts};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};

/// Says how to get help with an order.
pub struct Support;

impl Endpoint for Support {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/{region}/support";
    const ERRORS: &'static [Code] = &[];
    type Caller = Anyone;
    type Request = String;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<String> {
        Ok(input.param("region").to_owned())
    }

    async fn call(core: &Core, _: Anyone, region: String) -> Result<Reply> {
        Ok(page(core, &region, "support-title", support))
    }
}

/// Answers frequent questions.
pub struct Faq;

impl Endpoint for Faq {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/{region}/faq";
    const ERRORS: &'static [Code] = &[];
    type Caller = Anyone;
    type Request = String;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<String> {
        Ok(input.param("region").to_owned())
    }

    async fn call(core: &Core, _: Anyone, region: String) -> Result<Reply> {
        Ok(page(core, &region, "faq-title", |texts| faq(texts, &region)))
    }
}

fn page(
    core: &Core,
    region: &String,
    title: &'static str,
    body: impl Fn(Texts) -> Markup,
) -> Reply {
    let texts = Language::from_tag(region).unwrap_or(Language::English).texts();
    let settings = &core.settings.pages;
    if !core.snapshots.current().catalogue.regions.contains(region) {
        return dead_link(texts, settings, "dead-link-shop");
    }
    Page::new(texts, settings, &texts.get(title)).render(StatusCode::OK, &body(texts))
}

fn support(texts: Texts) -> Markup {
    html! {
        p { (texts.get("support-shop")) }
        p { (texts.get("support-number")) }
        p.note { (texts.get("support-warning")) }
    }
}

fn faq(texts: Texts, region: &str) -> Markup {
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
        p { a href={ "/" (region) "/support" } { (texts.get("support-title")) } }
    }
}
