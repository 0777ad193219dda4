//! A user's accounts on a page, and the form that adds a bank account.
//!
//! Nothing is stored in the browser: the form has a one-time token, which a login or a partner has
//! given the user, and every response has the next one.

use chrono::TimeDelta;
use maud::{Markup, html};

use crate::Core;
use crate::auth::caller::Client;
use crate::http::form::Form;
use crate::http::html::components::{Tone, toast};
use crate::http::language::Texts;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::accounts::{
    self, AccountDetails, AccountType, HOLDER_CHARS_MAX, NewAccount, OpenOutcome, PaymentAccount,
};
use crate::users::one_time_token::{self, OneTimeToken, Purpose};
use crate::users::verification::iban_photo::is_verified_instantly;
use rampart_types::{ClientId, Iban, UserId, plain_text};

/// Redeems the form's token and returns its user.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn redeem(
    conn: &mut Connection,
    form: &Form,
) -> Result<Option<(ClientId, UserId)>> {
    one_time_token::redeem(conn, Purpose::Login, form.get("token")).await
}

/// Adds the account of the form and returns a message for the user.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn add(
    conn: &mut Connection,
    core: &Core,
    (client, user): (&Client, UserId),
    (texts, form): (Texts, &Form),
) -> Result<Markup> {
    let message = match read(client, form) {
        None => "bank-wrong",
        Some(account) => match accounts::open(conn, core, (client.id(), user), account).await? {
            OpenOutcome::Created(_) => "bank-added",
            OpenOutcome::Existing(_) => "bank-existing",
            OpenOutcome::LimitReached => "bank-limit",
        },
    };
    Ok(toast(Tone::Info, &texts.get(message)))
}

fn read(client: &Client, form: &Form) -> Option<NewAccount> {
    let iban: Iban = form.get("iban").parse().ok()?;
    let holder = plain_text(form.get("holder"), HOLDER_CHARS_MAX)?;
    Some(NewAccount {
        kind: AccountType::BankTransfer,
        verified: is_verified_instantly(&client.tenant, &iban),
        details: AccountDetails { identifier: iban.as_str().to_owned(), holder, token: None },
        is_stored_card: false,
    })
}

/// The user's accounts of these kinds and, if they include bank accounts, the form.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn section(
    conn: &mut Connection,
    core: &Core,
    (client, user): (ClientId, UserId),
    (texts, kinds): (Texts, &[AccountType]),
) -> Result<Markup> {
    let mut accounts = accounts::list(conn, core, client, user).await?;
    accounts.retain(|account| !account.disabled && kinds.contains(&account.kind));
    let token = OneTimeToken::generate(&core.clock, client)?;
    let lifetime = TimeDelta::seconds(core.settings.lifetimes.login_token_seconds.into());
    token.store(conn, core, (Purpose::Login, user), lifetime).await?;
    Ok(html! {
        h2 { (texts.get("bank-accounts")) }
        (list(texts, &accounts))
        @if kinds.contains(&AccountType::BankTransfer) { (form(texts, &token.text)) }
    })
}

fn list(texts: Texts, accounts: &[PaymentAccount]) -> Markup {
    html! {
        @if accounts.is_empty() { p { (texts.get("account-none")) } }
        ul {
            @for account in accounts {
                li {
                    (account.label()) ", "
                    @if account.verified { (texts.get("account-ready")) }
                    @else { (texts.get("account-waits")) }
                }
            }
        }
    }
}

/// The form, for the user of this token.
pub(crate) fn form(texts: Texts, token: &str) -> Markup {
    html! {
        h2 { (texts.get("bank-add-title")) }
        form method="post" {
            input type="hidden" name="token" value=(token);
            label { "IBAN" input name="iban" autocomplete="off" required maxlength="42"; }
            label {
                (texts.get("bank-holder"))
                input name="holder" autocomplete="name" required maxlength=(HOLDER_CHARS_MAX);
            }
            button.main type="submit" name="action" value="account" { (texts.get("bank-add")) }
        }
    }
}
