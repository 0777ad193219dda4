//! The forms of an authenticator app: the code after the password, and those of the account's page
//! that put an app in use and remove it.

use http::StatusCode;
use maud::{Markup, html};

use super::sign_in_page::SignInPage;
use super::view::View;
use crate::Core;
use crate::auth::caller::Client;
use crate::auth::totp::TotpSecret;
use crate::http::form::Form;
use crate::http::html::components::{Field, Tone, field, time_in, toast};
use crate::http::html::form_errors::FormErrors;
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::account::RowLock;
use crate::users::authenticator_app;
use crate::users::passkeys::{lock_visit, sign_in};
use crate::users::second_factor_change;
use crate::users::security_notice::Changed;
use rampart_types::UserId;

/// Name of the field that a code is typed into.
const CODE: &str = "code";

/// The form in which the user of the challenge, who has given the password, enters a code.
pub(super) fn sign_in_form(page: SignInPage<'_>, challenge: &str) -> Markup {
    let texts = page.texts();
    html! {
        h2 { (texts.get("app-step-title")) }
        form method="post" {
            (page.kept_by_step())
            input type="hidden" name="challenge" value=(challenge);
            (code_field(texts, &FormErrors::default()))
            button.main type="submit" name="action" value="app-code" { (texts.get("sign-in")) }
        }
    }
}

/// Verifies the code of that form; `None` without telling what is wrong.
///
/// # Errors
/// Code 920 after too many attempts; when the database cannot be used.
pub(super) async fn verify(core: &Core, client: &Client, form: &Form) -> Result<Option<UserId>> {
    let asked = sign_in::redeem(core, client.id(), form.get("challenge")).await?.flatten();
    let Some(user) = asked else { return Ok(None) };
    let is_right = authenticator_app::verify(core, client, user, form.get(CODE)).await?;
    Ok(is_right.then_some(user))
}

/// The page with a new secret; the account's page while an app is in use.
///
/// # Errors
/// Without entropy; when the database cannot be written.
pub(super) async fn begin(view: &View<'_>) -> Result<Option<Reply>> {
    let (key, visit) = (view.account.key(), view.challenge);
    let secret = authenticator_app::begin(view.invited.core, key, visit).await?;
    Ok(secret.map(|secret| page(view, StatusCode::OK, &secret, &FormErrors::default())))
}

/// The outcome of a first code.
pub(super) enum Confirmed {
    /// The app is in use.
    InUse,
    /// The code is wrong: the page with the secret once more.
    Again(Box<Reply>),
    /// There is no secret that waits for its first code.
    Nothing,
}

/// Puts the app in use if the code is one of its own.
///
/// # Errors
/// Code 920 after too many attempts; when the database cannot be used.
pub(super) async fn confirm(view: &View<'_>, form: &Form) -> Result<Confirmed> {
    let (core, user) = (view.invited.core, view.account.user);
    let code = form.get(CODE);
    if authenticator_app::confirm(core, view.invited.client, user, view.challenge, code).await? {
        return Ok(Confirmed::InUse);
    }
    let Some(secret) = authenticator_app::begun(core, view.account.key()).await? else {
        return Ok(Confirmed::Nothing);
    };
    let errors = FormErrors::one(CODE, view.texts().get("app-code-wrong"));
    let again = page(view, StatusCode::BAD_REQUEST, &secret, &errors);
    Ok(Confirmed::Again(Box::new(again)))
}

/// Removes the app if the code is one of its own and the visit of this challenge lasts, and says what
/// came of it, also at the form's field.
///
/// # Errors
/// Code 920 after too many attempts; when the database cannot be used.
pub(super) async fn remove(
    core: &Core,
    client: &Client,
    user: UserId,
    visit: &str,
    texts: Texts,
    form: &Form,
) -> Result<(Markup, FormErrors)> {
    let key = client.key_of(user);
    let is_right = authenticator_app::verify(core, client, user, form.get(CODE)).await?;
    let mut tx = core.db.begin().await?;
    if !is_right || !lock_visit(&mut tx, key, visit, RowLock::NoKeyUpdate).await? {
        let errors = FormErrors::one(CODE, texts.get("app-code-wrong"));
        return Ok((errors.summary(texts), errors));
    }
    if authenticator_app::remove(&mut tx, key).await? {
        let changed = Changed::AuthenticatorAppRemoved;
        second_factor_change::follow(&mut tx, core, key, visit, changed).await?;
    }
    tx.commit().await?;
    Ok((toast(Tone::Good, &texts.get("app-removed")), FormErrors::default()))
}

/// The state of the user's app, with the form that changes it and what is wrong with it.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn section(
    conn: &mut Connection,
    view: &View<'_>,
    errors: &FormErrors,
) -> Result<Markup> {
    let texts = view.texts();
    let since = authenticator_app::in_use_since(conn, view.account.key()).await?;
    Ok(html! {
        h2 { (texts.get("app-title")) }
        p { (texts.get("app-about")) }
        @if let Some(since) = since {
            p.hint { (texts.get("app-since")) " " (time_in(texts, since)) }
            form method="post" {
                (view.challenge_input())
                (code_field(texts, errors))
                button.danger type="submit" name="action" value="app-remove" {
                    (texts.get("app-remove"))
                }
            }
        } @else {
            (view.button("app-begin", "", &[], &texts.get("app-begin")))
        }
    })
}

/// The secret as a key and as a link, and the form that confirms it.
fn page(view: &View<'_>, status: StatusCode, secret: &TotpSecret, errors: &FormErrors) -> Reply {
    let texts = view.texts();
    let email = view.account.personal.email.as_ref().map_or("", |email| email.as_str());
    let body = html! {
        (errors.summary(texts))
        h2 { (texts.get("app-title")) }
        p { (texts.get("app-key")) }
        p { code { (secret.key()) } }
        p { a href=(secret.uri(&view.invited.client.tenant.name, email)) { (texts.get("app-open")) } }
        form method="post" {
            (view.challenge_input())
            (code_field(texts, errors))
            button.main type="submit" name="action" value="app-confirm" {
                (texts.get("app-confirm"))
            }
        }
        (view.button("show", "", &[], &texts.get("app-not")))
    };
    view.page(status, &body)
}

fn code_field(texts: Texts, errors: &FormErrors) -> Markup {
    field(&Field { error: errors.of(CODE), ..Field::one_time_code(CODE, &texts.get("app-code")) })
}
