//! Users, for whoever helps them: `GET /portal/users` finds one by address, identifier or id, and
//! `GET /portal/users/{id}` shows the state of an account. Personal data are masked, and each look is
//! in the operators' audit. For test clients `POST /portal/users/{id}/identity` ends an identity check.

use http::Method;
use maud::{Markup, html};
use serde_json::json;
use uuid::Uuid;

use super::identity_checks::{find, outcome_buttons, simulate_identity_check};
use super::orders::{Listed, orders_table};
use super::page::{HELPERS, StaffPage, Visit, done};
use crate::http::html::components::{
    Column, Field, Tone, badge, empty_state, field, table, time, toast,
};
use crate::http::reply::Reply;
use crate::partners::staff::StaffRole;
use crate::platform::error::Result;
use crate::users::account::Account;
use crate::users::accounts;

const PATH: &str = "/portal/users";
/// Finds a user.
pub struct Find;

impl StaffPage for Find {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = HELPERS;

    /// By POST, so that no address stands in a URL.
    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let name = visit.form().get("name").trim();
        match find(visit, name).await? {
            Some(user) => Ok(Reply::see_other(&format!("{PATH}/{user}"))),
            None => Ok(visit.page(PATH, "Users", &search(visit, Some(name)))),
        }
    }
}

/// Shows the form that finds a user.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = HELPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        Ok(visit.page(PATH, "Users", &search(visit, None)))
    }
}

fn search(visit: &Visit<'_>, missed: Option<&str>) -> Markup {
    let name = Field {
        value: missed.unwrap_or_default(),
        hint: Some("E-mail address, your identifier of the user, or the user's id."),
        ..Field::text("name", "User")
    };
    html! {
        @if missed.is_some() { (toast(Tone::Warning, "No user of yours has this name.")) }
        (visit.form_to(PATH, &html! {
            (field(&name))
            button.main type="submit" { "Find" }
        }))
    }
}

/// Shows the state of a user's account.
pub struct ShowOne;

impl StaffPage for ShowOne {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/portal/users/{id}";
    const ROLES: &'static [StaffRole] = HELPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Ok(id) = visit.param("id").parse::<Uuid>() else { return Ok(visit.not_found()) };
        let core = visit.core;
        let key = visit.session.client.key_of(id.into());
        let mut tx = core.db.begin().await?;
        let Some(account) = Account::load(&mut tx, core, key).await? else {
            return Ok(visit.not_found());
        };
        let payments = accounts::list(&mut tx, core, key).await?;
        // Nothing is shown that does not stand in the audit.
        visit.record(&mut tx, "user.read-masked", json!({ "user": id })).await?;
        tx.commit().await?;
        let orders = Listed::of_user(visit, id).await?;
        let columns = [Column::Text("Account"), Column::Text("State")];
        let rows: Vec<_> = payments
            .iter()
            .map(|account| {
                let state = if account.verified { "verified" } else { "not verified yet" };
                let state = if account.disabled { "disabled" } else { state };
                vec![html! { (account.label()) }, html! { (state) }]
            })
            .collect();
        let has_checks = visit.session.client.tenant.is_test() && account.deleted_at.is_none();
        let body = html! {
            (state(&account))
            @if has_checks { (identity_form(visit, id)) }
            h2 { "Payment accounts" }
            @if rows.is_empty() {
                (empty_state("No account.", "The user has registered none."))
            } @else {
                (table("Payment accounts", &columns, &rows))
            }
            h2 { "Latest orders" }
            (orders_table(visit, &orders, "The user has made none."))
        };
        Ok(visit.page(PATH, "User", &body))
    }
}

fn state(account: &Account) -> Markup {
    let personal = &account.personal;
    let email = personal.email.as_ref().map(|email| mask_email(email.as_str()));
    let name = [&personal.first_name, &personal.last_name];
    let initials: String = name
        .into_iter()
        .flatten()
        .filter_map(|name| name.chars().next())
        .map(|c| format!("{c}. "))
        .collect();
    let statuses = &account.statuses;
    let unknown = || html! { span.hint { "unknown" } };
    html! {
        dl {
            dt { "Id" } dd { code { (account.user) } }
            dt { "Name" }
            dd { @if initials.is_empty() { (unknown()) } @else { (initials) } }
            dt { "E-mail address" }
            dd { @if let Some(email) = &email { (email) } @else { (unknown()) } }
            dt { "Country" }
            dd { @if let Some(country) = &account.country { (country) } @else { (unknown()) } }
            dt { "State" }
            dd {
                @if account.deleted_at.is_some() { (badge(Tone::Bad, "deleted")) }
                @else if account.disabled_at.is_some() { (badge(Tone::Bad, "disabled")) }
                @else if statuses.is_verified() { (badge(Tone::Good, "verified")) }
                @else { (badge(Tone::Warning, "not verified yet")) }
            }
            dt { "Level" } dd { (account.level) }
            dt { "E-mail" } dd { (statuses.email) }
            dt { "Identity" } dd { (statuses.identity) }
            dt { "Questions" } dd { (statuses.amld5) }
            dt { "Residence" } dd { (statuses.residential_address) }
            dt { "Tax residence" } dd { (statuses.dac8) }
            dt { "Registered" } dd { (time(account.created_at)) }
        }
    }
}

/// An address of which the first character and the ending are shown.
fn mask_email(email: &str) -> String {
    let Some((local, host)) = email.split_once('@') else { return "•••".to_owned() };
    let first = local.chars().next().map_or_else(String::new, String::from);
    let ending = host.rsplit('.').next().unwrap_or_default();
    format!("{first}•••@•••.{ending}")
}

fn identity_form(visit: &Visit<'_>, user: Uuid) -> Markup {
    html! {
        h2 { "Simulated identity check" }
        (visit.form_to(&format!("{PATH}/{user}/identity"), &outcome_buttons()))
    }
}

/// Ends the identity check of a test client's user.
pub struct EndIdentityCheck;

impl StaffPage for EndIdentityCheck {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/users/{id}/identity";
    const ROLES: &'static [StaffRole] = HELPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let client = &visit.session.client;
        let id = visit.param("id").parse::<Uuid>().ok().filter(|_| client.tenant.is_test());
        let Some(id) = id else { return Ok(visit.not_found()) };
        simulate_identity_check(visit, Self::PATH, id).await?;
        Ok(done(&format!("{PATH}/{id}"), "simulated"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_address_names_nobody() {
        assert_eq!(mask_email("ada@mail.example.com"), "a•••@•••.com");
        assert_eq!(mask_email("nothing"), "•••");
    }
}
