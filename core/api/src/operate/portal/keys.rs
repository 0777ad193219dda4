//! API keys: `GET` and `POST /portal/keys`, `POST /portal/keys/{id}/revoke`. A key's text is in the
//! answer to the form that made it, as often as that form is sent within ten minutes, and nowhere
//! else.

use chrono::{DateTime, NaiveDate, Utc};
use http::{Method, StatusCode};
use ipnet::IpNet;
use maud::{Markup, html};
use serde_json::json;
use uuid::Uuid;

use super::forms::has_known_boxes;
use super::page::{DEVELOPERS, FORM_ERRORS, StaffPage, Visit, done};
use crate::http::form::Form;
use crate::http::html::components::{
    Column, Field, Tone, dialog, empty_state, error_summary, field, note, table, tick, time,
};
use crate::http::reply::Reply;
use crate::partners::staff::StaffRole;
use crate::platform::error::Result;
use crate::tenancy::tenants::api_keys::{self, LiveApiKey, NewApiKey};
use crate::tenancy::tenants::{ApiKey, NETWORKS_MAX, Scope};

const PATH: &str = "/portal/keys";
/// Beginning of the names of the scopes' boxes.
const SCOPE_PREFIX: &str = "scope-";
/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 255;

/// Lists the live keys.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        page(visit, &[]).await
    }
}

/// Issues a key and shows it, as no other page does.
pub struct Issue;

impl StaffPage for Issue {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = DEVELOPERS;
    const ACTION: Option<&'static str> = Some("Create an API key");

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let (core, client) = (visit.core, &visit.session.client);
        let form = match KeyForm::read(visit.form(), core.clock.now()) {
            Ok(form) => form,
            Err(errors) => return page(visit, &errors).await,
        };
        let key = form.key(ApiKey::generate(&core.clock, client.tenant.mode)?);
        let mut tx = visit.begin().await?;
        if let Some(text) = visit.earlier_result(&mut tx, PATH).await? {
            return Ok(key_page(visit, &text));
        }
        if !api_keys::issue(&mut tx, client.id(), &key, core.clock.now()).await? {
            // The page reads over a connection of its own.
            tx.rollback().await?;
            let reason = "There are 100 live keys already: revoke one first.";
            return page(visit, &[("name", reason)]).await;
        }
        let detail = json!({"apiKeyId": key.id, "name": key.name});
        visit.record(&mut tx, "api-key.issue", detail).await?;
        visit.keep_result(&mut tx, PATH, key.text.expose()).await?;
        tx.commit().await?;
        visit.serve_committed().await;
        Ok(key_page(visit, key.text.expose()))
    }
}

/// The page of a new key.
fn key_page(visit: &Visit<'_>, text: &str) -> Reply {
    let body = html! {
        (note(Tone::Warning, &html! { "Store the key now: no other page shows it." }))
        p { code #new-key { (text) } }
        p { "Send it with every request, in the header " code { "X-Api-Key" } "." }
        p { a.button href=(PATH) { "To the keys" } }
    };
    visit.page(PATH, "The new key", &body)
}

/// Revokes a key.
pub struct Revoke;

impl StaffPage for Revoke {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/keys/{id}/revoke";
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Ok(id) = visit.param("id").parse::<Uuid>() else { return Ok(visit.not_found()) };
        let (core, client) = (visit.core, visit.session.client.id());
        let mut tx = visit.begin().await?;
        if visit.earlier_result(&mut tx, Self::PATH).await?.is_some() {
            return Ok(done(PATH, "revoked"));
        }
        if !api_keys::revoke(&mut tx, client, id.into(), core.clock.now()).await? {
            return Ok(visit.not_found());
        }
        visit.record(&mut tx, "api-key.revoke", json!({ "apiKeyId": id })).await?;
        tx.commit().await?;
        visit.serve_committed().await;
        Ok(done(PATH, "revoked"))
    }
}

/// The form of a new key.
struct KeyForm {
    name: String,
    scopes: Vec<Scope>,
    networks: Vec<IpNet>,
    expires_at: Option<DateTime<Utc>>,
}

impl KeyForm {
    /// # Errors
    /// Each field with what is wrong with it.
    fn read(form: &Form, now: DateTime<Utc>) -> Result<Self, Vec<(&'static str, &'static str)>> {
        let mut errors = Vec::new();
        let name = form.get("name").trim().to_owned();
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
            errors.push(("name", "A name has 1 to 255 characters."));
        }
        let networks: Option<Vec<IpNet>> =
            form.get("networks").split_whitespace().map(network).collect();
        let networks = networks.filter(|networks| networks.len() <= NETWORKS_MAX);
        if networks.is_none() {
            errors.push(("networks", "At most 64 addresses or networks, such as 192.0.2.0/24."));
        }
        let expires = form.get("expires").trim();
        let expires_at = match expires.is_empty() {
            true => None,
            false => expires.parse::<NaiveDate>().ok().and_then(end_of_day),
        };
        if !expires.is_empty() && expires_at.is_none_or(|at| at <= now) {
            errors.push(("expires", "A day that is not over."));
        }
        let is_known = |name: &str| Scope::ALL.into_iter().any(|scope| scope.as_str() == name);
        if !has_known_boxes(form, SCOPE_PREFIX, is_known) {
            errors.push(("scopes", "Tick the boxes of this page."));
        }
        let ticked = |scope: &Scope| form.get(&scope_field(*scope)) == "yes";
        let scopes = Scope::ALL.into_iter().filter(ticked).collect();
        match networks.filter(|_| errors.is_empty()) {
            Some(networks) => Ok(Self { name, scopes, networks, expires_at }),
            None => Err(errors),
        }
    }

    fn key(self, mut key: NewApiKey) -> NewApiKey {
        key.name = self.name;
        key.scopes = self.scopes;
        key.allowed_addresses = self.networks.iter().map(ToString::to_string).collect();
        key.expires_at = self.expires_at;
        key
    }
}

/// A network, or one address as the network of its own.
fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse().ok().map(|address: std::net::IpAddr| address.into()))
}

fn end_of_day(day: NaiveDate) -> Option<DateTime<Utc>> {
    Some(day.succ_opt()?.and_hms_opt(0, 0, 0)?.and_utc())
}

fn scope_field(scope: Scope) -> String {
    format!("{SCOPE_PREFIX}{}", scope.as_str())
}

/// The page, with the errors of a form that was refused.
async fn page(visit: &Visit<'_>, errors: &[(&str, &str)]) -> Result<Reply> {
    let mut conn = visit.core.db.acquire().await?;
    let keys = api_keys::live(&mut conn, visit.session.client.id()).await?;
    drop(conn);
    let columns = [
        Column::Text("Name"),
        Column::Text("Scopes"),
        Column::Text("Addresses"),
        Column::Text("Last use"),
        Column::Text("Expires"),
        Column::Text("Action"),
    ];
    let rows: Vec<_> = keys.iter().map(|key| row(visit, key)).collect();
    let body = html! {
        @if rows.is_empty() {
            (empty_state("No live key.", "Create one below to send requests."))
        } @else {
            (table("Live keys", &columns, &rows))
        }
        h2 { "Create a key" }
        (error_summary(FORM_ERRORS, errors))
        (form(visit, errors))
    };
    let status = if errors.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    Ok(visit.page_with_status(status, PATH, "API keys", &body))
}

fn form(visit: &Visit<'_>, errors: &[(&str, &str)]) -> Markup {
    let sent = visit.form();
    let error = |name: &str| errors.iter().find(|(at, _)| *at == name).map(|(_, text)| *text);
    let value = |name: &str| if errors.is_empty() { "" } else { sent.get(name) };
    let name = Field {
        value: value("name"),
        error: error("name"),
        hint: Some("For people, such as the system that uses it."),
        ..Field::text("name", "Name")
    };
    let networks = Field {
        value: value("networks"),
        error: error("networks"),
        hint: Some("Networks from which it is accepted, with spaces between. Any if empty."),
        required: false,
        ..Field::text("networks", "Addresses")
    };
    let expires = Field {
        kind: "date",
        value: value("expires"),
        error: error("expires"),
        hint: Some("Its last day, in UTC."),
        required: false,
        ..Field::text("expires", "Expires")
    };
    visit.form_to(
        PATH,
        &html! {
            (field(&name)) (field(&networks)) (field(&expires))
            fieldset #field-scopes {
                legend { "Scopes: everything if none is ticked" }
                @if let Some(error) = error("scopes") { span.field-error { (error) } }
                @for scope in Scope::ALL {
                    @if scope != Scope::All {
                        (tick(&scope_field(scope), value(&scope_field(scope)) == "yes",
                            &html! { (scope.as_str()) }))
                    }
                }
            }
            button.main type="submit" { "Create the key" }
        },
    )
}

fn row(visit: &Visit<'_>, key: &LiveApiKey) -> Vec<Markup> {
    let listed = |texts: &[String], none: &str| match texts.is_empty() {
        true => none.to_owned(),
        false => texts.join(", "),
    };
    let moment = |at: Option<DateTime<Utc>>| match at {
        Some(at) => time(at),
        None => html! { "never" },
    };
    let revoke = html! {
        p { "Every request with it is refused within a second." }
        (visit.form_to(
            &format!("{PATH}/{}/revoke", key.id),
            &html! { button.danger type="submit" { "Revoke" } },
        ))
    };
    vec![
        html! { (key.name) br; span.hint { code { (key.id) } } },
        html! { (listed(&key.scopes, "everything")) },
        html! { (listed(&key.allowed_addresses, "any")) },
        moment(key.last_used_at),
        moment(key.expires_at),
        dialog("Revoke", &revoke),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: &str) -> Result<KeyForm, Vec<&'static str>> {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let read = KeyForm::read(&Form::read(form.as_bytes()), now);
        read.map_err(|errors| errors.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn a_form_becomes_a_key() {
        let form = read(
            "name=+shop+&scope-orders%3Aread=yes&networks=192.0.2.0/24+2001:db8::1&expires=2023-11-15",
        );
        let form = form.unwrap_or_else(|errors| panic!("{errors:?}"));
        assert_eq!((&*form.name, form.scopes), ("shop", vec![Scope::OrdersRead]));
        let networks: Vec<_> = form.networks.iter().map(ToString::to_string).collect();
        assert_eq!(networks, ["192.0.2.0/24", "2001:db8::1/128"]);
        assert_eq!(form.expires_at.unwrap().to_rfc3339(), "2023-11-16T00:00:00+00:00");
    }

    #[test]
    fn every_field_that_is_wrong_is_named() {
        let errors = |form: &str| read(form).err().unwrap_or_default();
        assert_eq!(errors("networks=here&expires=2023-11-13"), ["name", "networks", "expires"]);
        assert_eq!(errors("name=a&expires=tomorrow"), ["expires"]);
        assert!(errors("name=a").is_empty());
    }
}
