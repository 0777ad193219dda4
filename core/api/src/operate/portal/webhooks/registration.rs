//! The form that registers a webhook endpoint.

use maud::{Markup, html};

use super::PATH;
use crate::http::form::Form;
use crate::http::html::components::{Field, field, tick};
use crate::notify::events::EventType;
use crate::notify::webhooks::register::NewEndpoint;
use crate::operate::portal::forms::has_known_boxes;
use crate::operate::portal::page::Visit;
use rampart_types::{CallbackUrl, LoopbackHttp};

/// Beginning of the names of the events' boxes.
const EVENT_PREFIX: &str = "event-";

/// The endpoint that a form asks for.
///
/// # Errors
/// Each field with what is wrong with it.
pub(super) fn read(
    form: &Form,
    loopback: LoopbackHttp,
) -> Result<NewEndpoint, Vec<(&'static str, &'static str)>> {
    let url = CallbackUrl::parse(form.get("url").trim(), loopback);
    let is_known = |name: &str| offered_events().any(|offered| offered == name);
    let has_known_events = has_known_boxes(form, EVENT_PREFIX, is_known);
    let mut errors = Vec::new();
    if url.is_err() {
        errors.push(("url", "An https URL of a public host."));
    }
    if !has_known_events {
        errors.push(("events", "Tick the boxes of this page."));
    }
    let (Ok(url), true) = (url, has_known_events) else { return Err(errors) };
    let ticked = offered_events().filter(|name| form.get(&event_field(name)) == "yes");
    let events: Vec<_> = ticked.map(str::to_owned).collect();
    Ok(NewEndpoint { url, events: (!events.is_empty()).then_some(events) })
}

/// The form, with the errors of one that was refused.
pub(super) fn form(visit: &Visit<'_>, errors: &[(&str, &str)]) -> Markup {
    let sent = visit.form();
    let error = |name: &str| errors.iter().find(|(at, _)| *at == name).map(|(_, text)| *text);
    let value = |name: &str| if errors.is_empty() { "" } else { sent.get(name) };
    let url = Field {
        kind: "url",
        value: value("url"),
        error: error("url"),
        hint: Some("It is told of events by signed POST requests."),
        ..Field::text("url", "URL")
    };
    visit.form_to(PATH, &html! {
        (field(&url))
        fieldset #field-events {
            legend { "Events: all of them, future ones too, if none is ticked" }
            @if let Some(error) = error("events") { span.field-error { (error) } }
            @for name in offered_events() {
                (tick(&event_field(name), value(&event_field(name)) == "yes", &html! { (name) }))
            }
        }
        button.main type="submit" { "Register the endpoint" }
    })
}

/// The names of the events that have a box.
fn offered_events() -> impl Iterator<Item = &'static str> {
    EventType::NAMES.into_iter().filter(|name| *name != EventType::WebhookTest.as_str())
}

fn event_field(name: &str) -> String {
    format!("{EVENT_PREFIX}{name}")
}
