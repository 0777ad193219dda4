//! Webhook endpoints: `GET` and `POST /portal/webhooks`, `GET /portal/webhooks/{id}`, and its actions
//! `POST …/test`, `…/secret`, `…/resend` and `…/remove`.

mod registration;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use http::{Method, StatusCode};
use maud::{Markup, html};
use serde_json::json;
use uuid::Uuid;

use super::deliveries::{Delivered, PAGE_DELIVERIES, deliveries_table};
use super::page::{DEVELOPERS, FORM_ERRORS, StaffPage, Visit, done};
use crate::http::html::choice::select;
use crate::http::html::components::{
    Column, Field, Tone, badge, dialog, empty_state, error_summary, field, form_dialog, note,
    table, time,
};
use crate::http::reply::Reply;
use crate::notify::callbacks::resend::{RESENT_MAX, resend_since};
use crate::notify::webhooks::register::insert;
use crate::notify::webhooks::{ENDPOINTS_MAX, Endpoint, list, remove, secrets, test_event};
use crate::partners::staff::StaffRole;
use crate::platform::crypto::Secret;
use crate::platform::error::Result;
use rampart_types::WebhookEndpointId;

pub(super) const PATH: &str = "/portal/webhooks";
/// Overlaps of a rotation: hours, and in words.
const OVERLAPS: [(&str, &str); 4] =
    [("24", "A day"), ("168", "A week"), ("1", "An hour"), ("0", "None: at once")];
/// Longest time back that deliveries are sent again from.
const RESEND_MAX: TimeDelta = TimeDelta::days(30);

/// Lists the endpoints.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        page(visit, &[]).await
    }
}

/// Registers an endpoint with a secret of its own, and shows it, as no other page does.
pub struct Register;

impl StaffPage for Register {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = DEVELOPERS;
    const ACTION: Option<&'static str> = Some("Register an endpoint");

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let (core, client) = (visit.core, &visit.session.client);
        let new = match registration::read(visit.form(), client.tenant.loopback_http) {
            Ok(new) => new,
            Err(errors) => return page(visit, &errors).await,
        };
        let mut tx = visit.begin().await?;
        if let Some(result) = visit.earlier_result(&mut tx, PATH).await? {
            return Ok(secret_page_again(visit, &result));
        }
        let Some(endpoint) = insert(&mut tx, core, client.id(), &new).await? else {
            // The page reads over a connection of its own.
            tx.rollback().await?;
            let reason = format!("There are {ENDPOINTS_MAX} endpoints already: remove one first.");
            return page(visit, &[("url", &reason)]).await;
        };
        let no_overlap = TimeDelta::zero();
        let rotated = secrets::rotate(&mut tx, core, client.id(), endpoint.id, no_overlap).await?;
        let Some(secret) = rotated else { return Ok(visit.not_found()) };
        visit.record(&mut tx, "webhook.register", json!({"endpointId": endpoint.id})).await?;
        visit.keep_result(&mut tx, PATH, &result_of(endpoint.id, &secret)).await?;
        tx.commit().await?;
        Ok(secret_page(visit, endpoint.id, secret.expose()))
    }
}

/// Shows one endpoint with its deliveries.
pub struct ShowOne;

impl StaffPage for ShowOne {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/portal/webhooks/{id}";
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        endpoint_page(visit, None).await
    }
}

/// Sends a test event to the endpoint.
pub struct Test;

impl StaffPage for Test {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/webhooks/{id}/test";
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Some(id) = endpoint_id(visit) else { return Ok(visit.not_found()) };
        let mut tx = visit.begin().await?;
        if visit.earlier_result(&mut tx, Self::PATH).await?.is_some() {
            return Ok(done(&path_of(id), "tested"));
        }
        let sent = test_event::send(&mut tx, visit.core, visit.session.client.id(), id).await?;
        if sent.is_none() {
            // The page reads over a connection of its own. It says that the endpoint is switched off.
            tx.rollback().await?;
            let mut page = endpoint_page(visit, None).await?;
            if page.status == StatusCode::OK {
                page.status = StatusCode::CONFLICT;
            }
            return Ok(page);
        }
        visit.record(&mut tx, "webhook.test", json!({ "endpointId": id })).await?;
        tx.commit().await?;
        Ok(done(&path_of(id), "tested"))
    }
}

/// Gives the endpoint a new secret and shows it, as no other page does.
pub struct RotateSecret;

impl StaffPage for RotateSecret {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/webhooks/{id}/secret";
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Some(id) = endpoint_id(visit) else { return Ok(visit.not_found()) };
        let hours = visit.form().get("overlap");
        let hours = OVERLAPS.iter().find(|(known, _)| *known == hours);
        let Some(hours) = hours.and_then(|(hours, _)| hours.parse().ok()) else {
            return Ok(visit.not_found());
        };
        let client = visit.session.client.id();
        let mut tx = visit.begin().await?;
        if let Some(result) = visit.earlier_result(&mut tx, Self::PATH).await? {
            return Ok(secret_page_again(visit, &result));
        }
        let overlap = TimeDelta::hours(hours);
        let rotated = secrets::rotate(&mut tx, visit.core, client, id, overlap).await?;
        let Some(secret) = rotated else { return Ok(visit.not_found()) };
        let detail = json!({"endpointId": id, "overlapHours": hours});
        visit.record(&mut tx, "webhook.rotate-secret", detail).await?;
        visit.keep_result(&mut tx, Self::PATH, &result_of(id, &secret)).await?;
        tx.commit().await?;
        Ok(secret_page(visit, id, secret.expose()))
    }
}

/// Sends every delivery since a time again.
pub struct ResendSince;

impl StaffPage for ResendSince {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/webhooks/{id}/resend";
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Some(id) = endpoint_id(visit) else { return Ok(visit.not_found()) };
        let now = visit.core.clock.now();
        let since = since(visit.form().get("since")).filter(|since| *since > now - RESEND_MAX);
        let Some(since) = since else {
            return endpoint_page(visit, Some("A time within the last 30 days.")).await;
        };
        let client = visit.session.client.id();
        let mut tx = visit.begin().await?;
        if let Some(word) = visit.earlier_result(&mut tx, Self::PATH).await? {
            return Ok(done(&path_of(id), &word));
        }
        let count = resend_since(&mut tx, client, id, since).await?;
        let word = if count == 0 { "not-resent" } else { "resent" };
        let detail = json!({"endpointId": id, "since": since, "deliveries": count});
        visit.record(&mut tx, "webhook.resend", detail).await?;
        visit.keep_result(&mut tx, Self::PATH, word).await?;
        tx.commit().await?;
        Ok(done(&path_of(id), word))
    }
}

/// Removes the endpoint.
pub struct Remove;

impl StaffPage for Remove {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/webhooks/{id}/remove";
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Some(id) = endpoint_id(visit) else { return Ok(visit.not_found()) };
        let mut tx = visit.begin().await?;
        if visit.earlier_result(&mut tx, Self::PATH).await?.is_some() {
            return Ok(done(PATH, "removed"));
        }
        if remove::remove(&mut tx, visit.session.client.id(), id).await?.is_none() {
            return Ok(visit.not_found());
        }
        visit.record(&mut tx, "webhook.remove", json!({ "endpointId": id })).await?;
        tx.commit().await?;
        Ok(done(PATH, "removed"))
    }
}

fn endpoint_id(visit: &Visit<'_>) -> Option<WebhookEndpointId> {
    visit.param("id").parse::<Uuid>().ok().map(Into::into)
}

fn path_of(id: WebhookEndpointId) -> String {
    format!("{PATH}/{id}")
}

/// A time as the browser's control sends it, in UTC.
fn since(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    let at = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M");
    let at = at.or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S"));
    at.ok().map(|at| at.and_utc())
}

/// The result that is kept of a form that made a secret.
fn result_of(id: WebhookEndpointId, secret: &Secret) -> String {
    format!("{id} {}", secret.expose())
}

/// The page of the secret that the form made when it was sent first.
fn secret_page_again(visit: &Visit<'_>, result: &str) -> Reply {
    let result = result.split_once(' ');
    match result.and_then(|(id, secret)| Some((id.parse::<Uuid>().ok()?, secret))) {
        Some((id, secret)) => secret_page(visit, id.into(), secret),
        None => visit.not_found(),
    }
}

/// The page of a new secret.
fn secret_page(visit: &Visit<'_>, id: WebhookEndpointId, secret: &str) -> Reply {
    let body = html! {
        (note(Tone::Warning, &html! { "Store the secret now: no other page shows it." }))
        p { code #new-secret { (secret) } }
        p {
            "It signs what is sent to this endpoint. " a href="/docs/webhooks" {
                "How to check a signature"
            }
        }
        p { a.button href=(path_of(id)) { "To the endpoint" } }
    };
    visit.page(PATH, "The endpoint's secret", &body)
}

async fn page(visit: &Visit<'_>, errors: &[(&str, &str)]) -> Result<Reply> {
    let mut conn = visit.core.db.acquire().await?;
    let endpoints = list::endpoints(&mut conn, visit.session.client.id()).await?;
    drop(conn);
    let columns =
        [Column::Text("URL"), Column::Text("State"), Column::Text("Events"), Column::Text("Since")];
    let rows: Vec<_> = endpoints.iter().map(row).collect();
    let body = html! {
        @if rows.is_empty() {
            (empty_state("No endpoint.", "Register one below to be told of events."))
        } @else {
            (table("Webhook endpoints", &columns, &rows))
        }
        h2 { "Register an endpoint" }
        (error_summary(FORM_ERRORS, errors))
        (registration::form(visit, errors))
    };
    let status = if errors.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    Ok(visit.page_with_status(status, PATH, "Webhooks", &body))
}

fn state(endpoint: &Endpoint) -> Markup {
    match endpoint.disabled {
        true => badge(Tone::Bad, "switched off"),
        false => badge(Tone::Good, "active"),
    }
}

fn listened_to(endpoint: &Endpoint) -> String {
    endpoint.events.as_ref().map_or_else(|| "all".to_owned(), |events| events.join(", "))
}

fn row(endpoint: &Endpoint) -> Vec<Markup> {
    vec![
        html! { a href=(path_of(endpoint.id)) { (endpoint.url) } },
        state(endpoint),
        html! { (listened_to(endpoint)) },
        time(endpoint.created_at),
    ]
}

/// The page of one endpoint; `error` is about the time that deliveries were to be sent again from.
async fn endpoint_page(visit: &Visit<'_>, error: Option<&str>) -> Result<Reply> {
    let client = visit.session.client.id();
    let mut conn = visit.core.db.acquire().await?;
    let endpoints = list::endpoints(&mut conn, client).await?;
    let id = endpoint_id(visit);
    let Some(endpoint) = endpoints.into_iter().find(|endpoint| Some(endpoint.id) == id) else {
        return Ok(visit.not_found());
    };
    let before = visit.query("before").parse().ok();
    let mut sent = Delivered::of_endpoint(&mut conn, client, endpoint.id, before).await?;
    drop(conn);
    let more = sent.len() > PAGE_DELIVERIES;
    sent.truncate(PAGE_DELIVERIES);
    let path = path_of(endpoint.id);
    let errors: Vec<_> = error.iter().map(|error| ("since", *error)).collect();
    let body = html! {
        (error_summary(FORM_ERRORS, &errors))
        dl {
            dt { "URL" } dd { (endpoint.url) }
            dt { "State" } dd { (state(&endpoint)) }
            dt { "Events" } dd { (listened_to(&endpoint)) }
            dt { "Registered" } dd { (time(endpoint.created_at)) }
        }
        @if endpoint.disabled {
            (note(Tone::Bad, &html! {
                "Its host answered 410, or has not answered 2xx for three days. Remove it and "
                "register it anew when it works again."
            }))
        } @else {
            div.row { (visit.button_to(&format!("{path}/test"), "Send a test event")) }
        }
        (actions(visit, &endpoint, error))
        h2 { "Deliveries" }
        (deliveries_table(&sent))
        @if let Some(last) = sent.last().filter(|_| more) {
            p { a href={ (path) "?before=" (last.id) } { "Earlier deliveries" } }
        }
    };
    let status = if error.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    Ok(visit.page_with_status(status, PATH, "Webhook endpoint", &body))
}

/// Actions of an endpoint besides its test; of one that is switched off, its removal alone.
fn actions(visit: &Visit<'_>, endpoint: &Endpoint, error: Option<&str>) -> Markup {
    let path = path_of(endpoint.id);
    let since = Field {
        kind: "datetime-local",
        value: visit.form().get("since"),
        error,
        hint: Some("In UTC, at most 30 days ago."),
        ..Field::text("since", "Since")
    };
    html! {
        @if !endpoint.disabled {
            (dialog("New secret", &visit.form_to(&format!("{path}/secret"), &html! {
                p { "The old one signs beside it until the overlap ends." }
                (select("overlap", "Overlap", "24", &OVERLAPS))
                button.main type="submit" { "Make a new secret" }
            })))
            (form_dialog("Send again", error.is_some(), &visit.form_to(&format!("{path}/resend"), &html! {
                p { "Every delivery since this time, at most " (RESENT_MAX) ", with its " code { "webhook-id" } "." }
                (field(&since))
                button.main type="submit" { "Send again" }
            })))
        }
        (dialog("Remove", &visit.form_to(&format!("{path}/remove"), &html! {
            p { "Deliveries that wait for it are not sent any more." }
            button.danger type="submit" { "Remove the endpoint" }
        })))
    }
}
