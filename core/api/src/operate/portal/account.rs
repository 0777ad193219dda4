//! The member's own account: `GET /portal/account`, and the second factor's `POST
//! /portal/account/second-factor`, `…/confirm` and `…/remove`.

use http::{Method, StatusCode};
use maud::{Markup, html};
use serde_json::json;

use super::page::{FORM_ERRORS, StaffPage, Visit, done};
use crate::auth::totp::TotpSecret;
use crate::http::html::components::{Field, Tone, badge, error_summary, field, form_dialog};
use crate::http::reply::Reply;
use crate::partners::staff::second_factor;
use crate::partners::staff::sign_in::{count_code, verify_password};
use crate::platform::crypto::Secret;
use crate::platform::error::Result;
use crate::users::security_notice::Changed;

const PATH: &str = "/portal/account";
const CONFIRM: &str = "/portal/account/second-factor/confirm";
const REMOVE: &str = "/portal/account/second-factor/remove";
const WRONG: &str = "This code is wrong, or was used before. Wait for the next one.";

/// Shows the account.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        Ok(page(visit, StatusCode::OK, &state(visit, None)))
    }
}

/// Gives the member a secret for an authenticator app, which is shown to this form alone. It takes the
/// password: a second factor of somebody who has but the cookie would keep the member out.
pub struct BeginSecondFactor;

impl StaffPage for BeginSecondFactor {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/account/second-factor";

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let (client, staff) = (visit.session.client.id(), visit.session.staff);
        if visit.session.has_second_factor {
            return Ok(done(PATH, "factor"));
        }
        let password = Secret::new(visit.form().get("password"));
        let Some(hash) = verify_password(visit.core, &visit.session, password).await? else {
            let body = state(visit, Some("This is not your password."));
            return Ok(page(visit, StatusCode::BAD_REQUEST, &body));
        };
        let mut tx = visit.begin().await?;
        let secret = match visit.earlier_result(&mut tx, Self::PATH).await? {
            Some(key) => TotpSecret::from_key(&key),
            None => second_factor::begin(&mut tx, visit.core, client, staff, &hash).await?,
        };
        let Some(secret) = secret else { return Ok(Reply::see_other(PATH)) };
        visit.keep_result(&mut tx, Self::PATH, &secret.key()).await?;
        tx.commit().await?;
        let uri = secret.uri(&visit.session.client.tenant.name, visit.session.email.as_str());
        let body = html! {
            p { "Type this key into your authenticator app. It is shown once." }
            p { code { (secret.key()) } }
            p { "On this device: " a href=(uri) { "open the app with the key" } }
            (confirm_form(visit, None))
        };
        Ok(page(visit, StatusCode::OK, &body))
    }
}

/// Puts the secret in use.
pub struct ConfirmSecondFactor;

impl StaffPage for ConfirmSecondFactor {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = CONFIRM;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let (client, staff) = (visit.session.client.id(), visit.session.staff);
        let code = visit.form().get("code");
        count_code(visit.core, &visit.session.client, staff).await?;
        let mut tx = visit.begin().await?;
        if visit.earlier_result(&mut tx, CONFIRM).await?.is_some() {
            return Ok(done(PATH, "factor"));
        }
        if !second_factor::confirm(&mut tx, visit.core, client, staff, code).await? {
            let body = confirm_form(visit, Some(WRONG));
            return Ok(page(visit, StatusCode::BAD_REQUEST, &body));
        }
        let changed = Changed::AuthenticatorAppAdded;
        second_factor::follow_change(&mut tx, visit.core, &visit.session, changed).await?;
        visit.record(&mut tx, "staff.second-factor", json!({})).await?;
        tx.commit().await?;
        Ok(done(PATH, "factor"))
    }
}

/// Takes the second factor away.
pub struct RemoveSecondFactor;

impl StaffPage for RemoveSecondFactor {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = REMOVE;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let (client, staff) = (visit.session.client.id(), visit.session.staff);
        let code = visit.form().get("code");
        count_code(visit.core, &visit.session.client, staff).await?;
        let mut tx = visit.begin().await?;
        if visit.earlier_result(&mut tx, REMOVE).await?.is_some() {
            return Ok(done(PATH, "no-factor"));
        }
        if !second_factor::remove(&mut tx, visit.core, client, staff, code).await? {
            let body = state(visit, Some(WRONG));
            return Ok(page(visit, StatusCode::BAD_REQUEST, &body));
        }
        let changed = Changed::AuthenticatorAppRemoved;
        second_factor::follow_change(&mut tx, visit.core, &visit.session, changed).await?;
        visit.record(&mut tx, "staff.no-second-factor", json!({})).await?;
        tx.commit().await?;
        Ok(done(PATH, "no-factor"))
    }
}

fn code_field(error: Option<&str>) -> Markup {
    let code = Field {
        error,
        hint: Some("Six digits, as the app shows them now."),
        ..Field::one_time_code("code", "Code")
    };
    field(&code)
}

fn confirm_form(visit: &Visit<'_>, error: Option<&str>) -> Markup {
    let errors: Vec<_> = error.iter().map(|error| ("code", *error)).collect();
    html! {
        (error_summary(FORM_ERRORS, &errors))
        (visit.form_to(CONFIRM, &html! {
            (code_field(error))
            button.main type="submit" { "Use this app from now on" }
        }))
    }
}

/// The account's state, with the form that changes it. An error is about the form's field.
fn state(visit: &Visit<'_>, error: Option<&str>) -> Markup {
    let name = if visit.session.has_second_factor { "code" } else { "password" };
    let errors: Vec<_> = error.iter().map(|error| (name, *error)).collect();
    let password = Field {
        kind: "password",
        error,
        autocomplete: "current-password",
        ..Field::text("password", "Password")
    };
    html! {
        @if visit.session.has_second_factor {
            p { (badge(Tone::Good, "in use")) }
            (error_summary(FORM_ERRORS, &errors))
            @let is_refused = error.is_some();
            (form_dialog("Remove the second factor", is_refused, &visit.form_to(REMOVE, &html! {
                p { "From then on your password alone lets you in." }
                (code_field(error))
                button.danger type="submit" { "Remove it" }
            })))
        } @else {
            p { "Your password alone lets you in. With an authenticator app, a code of it is asked for, too." }
            (error_summary(FORM_ERRORS, &errors))
            (visit.form_to("/portal/account/second-factor", &html! {
                (field(&password))
                button.main type="submit" { "Set up an authenticator app" }
            }))
        }
    }
}

fn page(visit: &Visit<'_>, status: StatusCode, second_factor: &Markup) -> Reply {
    let body = html! {
        dl {
            dt { "Address" } dd { (visit.session.email.as_str()) }
            dt { "Partner" } dd { (visit.session.client.tenant.name) }
            dt { "Role" } dd { (visit.session.role.as_str()) }
        }
        p { a href="/portal/forgot-password" { "Set another password" } " by a mailed link." }
        h2 { "Second factor" }
        (second_factor)
    };
    visit.page_with_status(status, PATH, "Your account", &body)
}
