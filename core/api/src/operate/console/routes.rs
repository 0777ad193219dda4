//! Routes: which connector money and coins go through.

use std::collections::BTreeSet;

use maud::html;
use serde_json::Value;

use super::action::{Action, Subject, Verb, outcome};
use super::form::{Input, Kind, Typed};
use super::layout::Page;
use super::list::{List, titled_table};
use super::view::Cell;
use super::visit::{Refused, Visit};
use crate::http::html::components::{Tone, empty_state, note};
use crate::money::connectors::commands::Direction;
use crate::operate::admin::connectors::CONNECTORS_MAX;
use crate::operate::idle_routes::lack;

pub(super) const ROUTES: Subject = Subject {
    name: "routes",
    section: "/console/market",
    page: "/console/market/~/routes",
    read: "/admin/v1/routes",
    facts: &[],
    actions: &[Action::new(
        "replace",
        "Replace all routes",
        Verb::Put.call("/admin/v1/routes"),
        "The first match counts. Commands that nobody has leased yet follow the new routes. A \
         second operator must agree.",
    )
    .with(&[Input::new("routes", "Routes")
        .kind(Kind::Json)
        .of("/routes")
        .hint(
            "A list of objects with partner (null: every live one), method or asset, direction \
             (in: users send, out: they are sent), connector.",
        )
        .required()])
    .counting(
        "",
        &[
            ("Routes that are replaced", Cell::Count("/routes")),
            ("Partners with routes of their own", Cell::Count("/partners")),
            ("Commands that nobody has leased yet", Cell::Count("/openCommands")),
        ],
    )],
};

/// Routes as a list.
pub(super) const LIST: List = List {
    title: "Routes",
    section: ROUTES.section,
    page: "/console/market/~/routes/~/routes",
    call: "/admin/v1/routes#/routes",
    criteria: &[],
    columns: &[
        ("Partner", Cell::Link("/console/partners/", "/partner")),
        ("Direction", Cell::Text("/direction")),
        ("Payment method", Cell::Text("/method")),
        ("Asset", Cell::Text("/asset")),
        ("Connector", Cell::Text("/connector")),
    ],
    empty: "The sandbox serves test partners; live ones need routes.",
};

/// The page of the routes, in their order, and of those by which nothing can move.
pub(super) async fn show(visit: &Visit<'_>, query: &Typed) -> Result<Page, Refused> {
    let read = visit.get(ROUTES.read).await?;
    let routes = read["routes"].as_array().cloned().unwrap_or_default();
    let every = format!("/admin/v1/connectors?limit={CONNECTORS_MAX}");
    let (connectors, _) = visit.rows(&every).await?;
    let idle: BTreeSet<_> = routes.iter().filter_map(|route| lack_of(route, &connectors)).collect();
    let body = html! {
        (outcome(query, ROUTES.actions))
        @for sentence in &idle { (note(Tone::Warning, &html! { (sentence) })) }
        (ROUTES.actions(visit, &[], &read))
        @if routes.is_empty() {
            (empty_state("There is no route", LIST.empty))
        }
        (titled_table(visit, "In their order", &routes, LIST.columns))
        @if !routes.is_empty() { (LIST.export(&[], query)) }
    };
    Ok(Page::new("Routes", ROUTES.section, body))
}

/// The capability that a route's connector lacks for it, in a sentence.
fn lack_of(route: &Value, connectors: &[Value]) -> Option<String> {
    let connector = connectors.iter().find(|one| one["name"] == route["connector"])?;
    let capabilities = connector["capabilities"].as_array()?.iter().filter_map(Value::as_str);
    let direction = Direction::from_name(route["direction"].as_str()?)?;
    let name = connector["name"].as_str()?;
    lack(name, &capabilities.collect::<Vec<_>>(), direction, !route["method"].is_null())
}
