//! Maintenance windows: the list, the form that makes one, and one of them.

use http::StatusCode;
use maud::html;
use serde_json::Value;

use super::action::{Action, Subject, Verb, outcome};
use super::form::{Input, Typed};
use super::layout::Page;
use super::list::List;
use super::view::{Cell, facts};
use super::visit::{Refused, Visit};

const SECTION: &str = "/console/market";

/// Maintenance windows.
pub(super) const WINDOWS: List = List {
    title: "Maintenance windows",
    section: SECTION,
    page: "/console/market/~/maintenance",
    call: "/admin/v1/maintenance-windows",
    criteria: &[],
    columns: &[
        ("Window", Cell::Link("/console/maintenance/", "/id")),
        ("State", Cell::Badge("/status")),
        ("Pair", Cell::Link("/console/market/", "/pair")),
        ("Payment method", Cell::Link("/console/methods/", "/paymentMethod")),
        ("Start", Cell::Time("/startsAt")),
        ("End", Cell::Time("/endsAt")),
        ("Reason", Cell::Text("/reason")),
        ("Made by", Cell::Text("/createdBy")),
    ],
    empty: "No maintenance is planned, and none was.",
};

/// Actions that need no window yet.
pub(super) const NEW_WINDOW: Subject = Subject {
    name: "maintenance window",
    section: SECTION,
    page: WINDOWS.page,
    read: "",
    facts: &[],
    actions: &[Action::new(
        "plan", "Plan maintenance",
        Verb::Post.call("/admin/v1/maintenance-windows"),
        "From its start to its end the enabled sides of the pair are in maintenance, or the payment \
         method is not offered; afterwards they are what they were. Orders under way go on.",
    )
    .with(&[
        Input::new("pair", "Pair").hint("Such as BTC-EUR; or a payment method"),
        Input::new("paymentMethod", "Payment method").hint("Its code; or a pair"),
        Input::new("startsAt", "Start (UTC)").hint("Now if left out"),
        Input::new("endsAt", "End (UTC)").hint("Such as 2026-03-01T14:00:00Z").required(),
        Input::REASON,
    ])],
};

/// One of them.
pub(super) const WINDOW: Subject = Subject {
    name: "maintenance window",
    section: SECTION,
    page: "/console/maintenance/{id}",
    read: "",
    facts: &[],
    actions: &[Action::new(
        "end",
        "End or withdraw",
        Verb::Delete.call("/admin/v1/maintenance-windows/{id}"),
        "One that runs ends now, and what it closed opens within a second. One to come is \
         withdrawn.",
    )
    .when(&["upcoming", "running"])
    .destructive()],
};

/// The page of a window.
///
/// # Errors
/// 404 for one that there is not, unless it was withdrawn from here; the refusal of the call.
pub(super) async fn show(visit: &Visit<'_>, id: &str, query: &Typed) -> Result<Page, Refused> {
    let is_withdrawn = |refused: &Refused| {
        refused.status == StatusCode::NOT_FOUND && !query.get("done").is_empty()
    };
    let window = match visit.find(WINDOWS.call, |row| row["id"] == id).await {
        Err(refused) if is_withdrawn(&refused) => Value::Null,
        found => found?,
    };
    let body = html! {
        (outcome(query, WINDOW.actions))
        (facts(visit, &window, WINDOWS.columns))
        (WINDOW.actions(visit, &[id.to_owned()], &window))
        p { a href=(WINDOWS.page) { "To all maintenance windows" } }
    };
    Ok(Page::new("Maintenance window", SECTION, body))
}
