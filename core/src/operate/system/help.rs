//! `GET /{region}/support` and `GET /{region}/faq`: help for the users of partners.

use http::{Method, StatusCode};
use maud::{Markup, html};

use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::Endpoint;
use crate::http::html::{dead_link, render_page};
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
        Ok(page(core, &region, "Support", &support()))
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
        Ok(page(core, &region, "Frequently asked questions", &faq(&region)))
    }
}

fn page(core: &Core, region: &String, title: &str, body: &Markup) -> Reply {
    if !core.snapshots.current().catalogue.regions.contains(region) {
        return dead_link("Please open it again from the shop that you came from.");
    }
    render_page(StatusCode::OK, title, &html! { h1 { (title) } (body) }, None)
}

fn support() -> Markup {
    html! {
        p { "The shop or app in which you ordered knows your account and answers your questions." }
        p { "Tell it the number of your order. It is on the payment page and in your mails." }
        p.note { "Nobody who helps you asks for your password or for the key of your wallet." }
    }
}

fn faq(region: &str) -> Markup {
    let questions = [
        (
            "When do my coins arrive?",
            "As soon as your payment has arrived and your details are verified: within minutes \
             by card, within a day or two by bank transfer. The payment page shows each step.",
        ),
        (
            "What does it cost?",
            "The quote that you confirm names every fee. What you confirmed is what you get.",
        ),
        (
            "Why must I prove who I am?",
            "The law wants those who sell and buy crypto assets to know their customers.",
        ),
        (
            "Can an order be cancelled?",
            "Until it is paid: an order that nobody pays ends by itself. Coins that were sent \
             cannot be called back.",
        ),
    ];
    html! {
        @for (question, answer) in questions {
            h2 { (question) }
            p { (answer) }
        }
        p { a href={ "/" (region) "/support" } { "Support" } }
    }
}
