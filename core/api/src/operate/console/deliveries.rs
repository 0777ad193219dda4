//! The page of a delivery: what is sent, and what came back.

use maud::{Markup, html};
use serde_json::Value;

use super::action::outcome;
use super::form::Typed;
use super::layout::Page;
use super::lists::DELIVERY;
use super::view::{facts, moment, text};
use super::visit::{Refused, Visit, fill};
use crate::http::html::components::{Tone, badge, empty_state};

/// The page of a delivery.
pub(super) async fn show(visit: &Visit<'_>, id: &str, query: &Typed) -> Result<Page, Refused> {
    let ids = [id.to_owned()];
    let delivery = visit.get(&fill(DELIVERY.read, &ids)).await?;
    let attempts = delivery["attemptLog"].as_array().map(Vec::as_slice).unwrap_or_default();
    let body = html! {
        (outcome(query, DELIVERY.actions))
        (facts(visit, &delivery, DELIVERY.facts))
        (DELIVERY.actions(visit, &ids, &delivery))
        h2 { "Request" }
        (request(&delivery))
        h2 { "Attempts" }
        @if attempts.is_empty() {
            (empty_state("No attempt on record.", "Attempts are kept for seven days."))
        }
        @for one in attempts { (attempt(one)) }
    };
    Ok(Page::new(format!("Delivery {id}"), DELIVERY.section, body))
}

/// The request as it is sent, but for what differs from one attempt to the next.
fn request(delivery: &Value) -> Markup {
    let body = text(delivery, "/requestBody");
    let pretty: Option<Value> = serde_json::from_str(&body).ok();
    let pretty = pretty.map(|value| format!("{value:#}"));
    html! {
        pre tabindex="0" {
            "POST " (text(delivery, "/url")) "\n"
            "content-type: application/json\n"
            "webhook-id: " (text(delivery, "/eventId")) "\n\n"
            (pretty.as_deref().unwrap_or(&body))
        }
        p.hint { "The body is signed as it was sent: in one line, without blanks between members." }
    }
}

fn attempt(attempt: &Value) -> Markup {
    let error = text(attempt, "/error");
    let tone = if error.is_empty() { Tone::Good } else { Tone::Bad };
    let reason = if error == "status" { "" } else { &error };
    let result = format!("{} {reason}", text(attempt, "/status"));
    html! {
        div.panel {
            p {
                (badge(tone, result.trim())) " " (moment(&text(attempt, "/sentAt")))
                span.hint { " · " (text(attempt, "/tookMs")) " ms" }
            }
            @match attempt["answer"].as_str() {
                None => p.hint { "No answer." },
                Some("") => p.hint { "An answer without a body." },
                Some(answer) => pre tabindex="0" { (answer) },
            }
        }
    }
}
