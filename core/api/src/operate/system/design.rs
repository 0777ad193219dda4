//! `GET /_design`: the gallery of every component in every state, where `pages.gallery` is set.

use chrono::{DateTime, TimeDelta, Utc};
use http::{Method, StatusCode};
use maud::{Markup, html};

use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::Endpoint;
use crate::http::html::choice::select;
use crate::http::html::components::{
    Column, Fact, Field, Tone, address, badge, brand_line, countdown, dialog, empty_state,
    error_summary, field, image_field, money, note, stat, table, tick, time, timeline, toast,
};
use crate::http::html::dead_link;
use crate::http::html::form_errors::FormErrors;
use crate::http::html::shell::Shell;
use crate::http::html::steps::{Step, checklist, stepper};
use crate::http::language::Language;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::Result;

const TONES: [(Tone, &str); 5] = [
    (Tone::Neutral, "Draft"),
    (Tone::Good, "Completed"),
    (Tone::Warning, "Waiting"),
    (Tone::Bad, "Refused"),
    (Tone::Info, "In progress"),
];
const ADDRESS: &str = "bc1qxy2kgdygjrsqtzq2n0yrf2493p83kkfjhx0wlh";

/// The page.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/_design";
    type Caller = Anyone;
    type Request = Language;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Language> {
        Ok(Language::of(input))
    }

    async fn call(core: &Core, _: Anyone, language: Language) -> Result<Reply> {
        let settings = &core.settings.pages;
        if !settings.gallery {
            return Ok(dead_link(language.texts(), settings));
        }
        // A fixed time, so that two pictures of the gallery are equal.
        let at = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let shell = Shell {
            name: "Components",
            navigation: &[("/_design", "Gallery"), ("/docs", "Documentation")],
            current: "/_design",
            account: html! { form method="get" action="/_design" { button { "Sign out" } } },
        };
        let body = html! { (states(at)) (inputs()) (processes(at)) };
        Ok(shell.render(StatusCode::OK, "Gallery", &body))
    }
}

fn states(at: DateTime<Utc>) -> Markup {
    html! {
        h2 { "Badges and notes" }
        p.row { @for (tone, text) in TONES { (badge(tone, text)) } }
        @for (tone, text) in TONES {
            (note(tone, &html! { p { (text) ": a sentence that stands out." } }))
        }
        (toast(Tone::Good, "The key was revoked."))
        (toast(Tone::Bad, "The key could not be revoked."))
        h2 { "Figures" }
        div.stats {
            (stat("Volume today", "12,480.00 EUR", Some("31 orders")))
            (stat("Oldest order that waits", "4 min", None))
        }
        h2 { "Values" }
        dl {
            dt { "Amount" } dd { (money("0.01250000 BTC")) }
            dt { "Address" } dd { (address(ADDRESS)) }
            dt { "Short address" } dd { (address("rDsb")) }
            dt { "Time" } dd { (time(at)) }
            dt { "Partner" } dd { (brand_line("Acme", None)) }
            dt { "Time left" } dd { (time(at)) " " (countdown(at)) }
        }
        h2 { "Lists" }
        (table(
            "Orders",
            &[Column::Text("Order"), Column::Text("State"), Column::Amount("Amount")],
            &[
                vec![html! { "1001" }, badge(Tone::Good, "Completed"), money("100.00 EUR")],
                vec![html! { "1002" }, badge(Tone::Warning, "Waiting"), money("1,250.00 EUR")],
            ],
        ))
        (empty_state("No orders yet", "They stand here as soon as somebody buys."))
    }
}

fn inputs() -> Markup {
    let refused = Field {
        value: "name@",
        error: Some("This is not an e-mail address."),
        kind: "email",
        autocomplete: "email",
        ..Field::text("email", "E-mail address")
    };
    html! {
        h2 { "Forms" }
        div.panel {
            (error_summary("Please correct this", &[("email", "This is not an e-mail address.")]))
            form method="get" action="/_design" {
                (field(&refused))
                (field(&Field { hint: Some("As on your card."), ..Field::text("name", "Name") }))
                (field(&Field { kind: "password", ..Field::text("password", "Password") }))
                (field(&Field {
                    kind: "textarea", required: false, ..Field::text("reason", "Reason")
                }))
                (select("country", "Country", "NL", &[("DE", "Germany"), ("NL", "Netherlands")]))
                (image_field(
                    &Field { required: false, ..Field::text("photo", "Photo of the front") },
                    "image/*",
                    None,
                ))
                fieldset {
                    legend { "Events" }
                    (tick("events", true, &html! { "order.completed" }))
                    (tick("others", false, &html! { "order.refunded" }))
                }
                (tick("terms", false, &html! { "I agree to the " a href="#terms" { "terms" } "." }))
                (FormErrors::one("consent", "Please agree first.".to_owned())
                    .consent("consent", &html! { "I have checked the wallet." }))
                div.row {
                    button.main type="submit" { "Continue" }
                    button type="submit" { "Save" }
                    button.danger type="submit" { "Delete" }
                    button type="submit" disabled { "Wait" }
                }
            }
        }
        (dialog("Refund 100.00 EUR", &html! {
            form method="get" action="/_design" {
                p { "100.00 EUR go back to the payer. A second person decides." }
                button.danger type="submit" { "Refund" }
            }
        }))
    }
}

fn processes(at: DateTime<Utc>) -> Markup {
    let fact = |minutes, title: &str, detail: Option<&str>| Fact {
        at: at + TimeDelta::minutes(minutes),
        title: title.to_owned(),
        detail: detail.map(str::to_owned),
    };
    let english = Language::English.texts();
    html! {
        h2 { "Processes" }
        (stepper(english, &[
            ("Payment", Step::Done),
            ("Checks", Step::Done),
            ("Coins are sent", Step::Current),
            ("Done", Step::Ahead),
        ]))
        (stepper(english, &[("Payment", Step::Failed), ("Checks", Step::Ahead)]))
        (checklist(&[("Legal entity", Step::Done), ("Payment routes", Step::Ahead)]))
        (timeline(&[
            fact(0, "Ordered", None),
            fact(3, "Payment received", Some("100.00 EUR by card")),
        ]))
    }
}
