//! A user's accounts on a page, the form that adds a bank account, and the one that verifies a card.
//! Cards and accounts with the wallet provider are added where the user signs in to their provider,
//! which is with the partner.
//!
//! The form has a one-time token of its own, and every response has the next one.

use http::StatusCode;
use maud::{Markup, html};

use crate::Core;
use crate::auth::caller::Client;
use crate::http::form::Form;
use crate::http::html::components::{Field, Tone, field, toast};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::http::language::Texts;
use crate::platform::db::{Connection, Transaction};
use crate::platform::error::{Error, Result};
use crate::users::account_pages::sign_in::refusal_note;
use crate::users::accounts::{
    self, AccountDetails, AccountType, HOLDER_CHARS_MAX, NewAccount, OpenOutcome, PaymentAccount,
};
use crate::users::one_time_token::{self, Purpose};
use crate::users::verification::card;
use crate::users::verification::iban_photo::is_verified_instantly;
use rampart_types::{Iban, UserId, UserKey, plain_text};

/// Redeems the form's token and returns its user.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn redeem(conn: &mut Connection, form: &Form) -> Result<Option<UserKey>> {
    one_time_token::redeem(conn, Purpose::Form, form.get("token")).await
}

/// The kind of account that a form's action is about.
pub(crate) fn kind_of(form: &Form) -> Option<AccountType> {
    match form.get("action") {
        "account" => Some(AccountType::BankTransfer),
        "card" => Some(AccountType::CreditCard),
        _ => None,
    }
}

/// Carries out the form of a user whose token the transaction has redeemed, and shows the accounts: below
/// a message, or with what is wrong with the form.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn act(
    mut tx: Transaction<'_>,
    core: &Core,
    client: &Client,
    user: UserId,
    texts: Texts,
    kinds: &[AccountType],
    form: &Form,
) -> Result<(StatusCode, Markup)> {
    let ok = |message: &'static str| (StatusCode::OK, toast(Tone::Info, &texts.get(message)));
    let key = client.key_of(user);
    // With the redeemed one: what ends the user's sessions from now on voids it.
    let token = one_time_token::issue_for_pages(&mut tx, core, Purpose::Form, key).await?;
    let mut errors = FormErrors::default();
    let (status, note) = match kind_of(form) {
        Some(AccountType::CreditCard) => {
            // The processor is waited for outside of any transaction.
            tx.commit().await?;
            let verified = verify_card(core, client, user, texts, form).await?;
            tx = core.db.begin().await?;
            verified
        }
        _ => match read(client, texts, form) {
            Ok(account) => ok(add(&mut tx, core, key, account).await?),
            Err(wrong) => {
                errors = wrong;
                (StatusCode::BAD_REQUEST, errors.summary(texts))
            }
        },
    };
    let empty = Form::default();
    let form = if errors.is_empty() { &empty } else { form };
    let typed = TypedForm { form, errors: &errors };
    let section = section(&mut tx, core, key, texts, kinds, typed, &token).await?;
    tx.commit().await?;
    Ok((status, html! { (note) (section) }))
}

/// Verifies the card of a form at its processor; what to say of it.
///
/// # Errors
/// When it cannot be asked for.
pub(super) async fn verify_card(
    core: &Core,
    client: &Client,
    user: UserId,
    texts: Texts,
    form: &Form,
) -> Result<(StatusCode, Markup)> {
    match card::verify(core, client, user, form.get("card")).await {
        Ok(_) => Ok((StatusCode::OK, toast(Tone::Info, &texts.get("card-verified")))),
        Err(Error::Refused(refusal)) => Ok(refusal_note(texts, &refusal)),
        Err(error) => Err(error),
    }
}

/// Adds an account; the message for the user.
async fn add(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    account: NewAccount,
) -> Result<&'static str> {
    Ok(match accounts::open(conn, core, key, account).await? {
        OpenOutcome::Created(_) => "bank-added",
        OpenOutcome::Existing(_) => "bank-existing",
        OpenOutcome::LimitReached => "bank-limit",
    })
}

fn read(client: &Client, texts: Texts, form: &Form) -> Result<NewAccount, FormErrors> {
    let iban: Option<Iban> = form.get("iban").parse().ok();
    let holder = plain_text(form.get("holder"), HOLDER_CHARS_MAX);
    let mut errors = FormErrors::default();
    if iban.is_none() {
        errors.add("iban", texts.get("bank-iban-wrong"));
    }
    if holder.is_none() {
        errors.add("holder", texts.get("bank-holder-wrong"));
    }
    let (Some(iban), Some(holder)) = (iban, holder) else { return Err(errors) };
    Ok(NewAccount {
        kind: AccountType::BankTransfer,
        verified: is_verified_instantly(&client.tenant, &iban),
        details: AccountDetails { identifier: iban.as_str().to_owned(), holder, token: None },
        is_stored_card: false,
    })
}

/// The user's accounts of these kinds, each kind with the form that gets one ready, which sends the token.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn section(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    texts: Texts,
    kinds: &[AccountType],
    typed: TypedForm<'_>,
    token: &str,
) -> Result<Markup> {
    let mut accounts = accounts::list(conn, core, key).await?;
    accounts.retain(|account| !account.disabled && kinds.contains(&account.kind));
    let proof = html! { input type="hidden" name="token" value=(token); };
    Ok(html! {
        h2 { (texts.get("bank-accounts")) }
        (list(texts, &accounts, &proof))
        @if kinds.iter().any(|kind| *kind != AccountType::BankTransfer) {
            p { (texts.get("accounts-of-providers")) }
        }
        @if kinds.contains(&AccountType::BankTransfer) { (form(texts, token, typed)) }
    })
}

/// Payment accounts, each card that is not verified with the form that verifies it. The user is proven
/// by hidden inputs.
pub(super) fn list(texts: Texts, accounts: &[PaymentAccount], proof: &Markup) -> Markup {
    html! {
        @if accounts.is_empty() { p { (texts.get("account-none")) } }
        ul {
            @for account in accounts {
                li {
                    (described(texts, account))
                    @if !account.verified && account.kind == AccountType::CreditCard {
                        form method="post" {
                            (proof)
                            input type="hidden" name="card" value=(account.details.identifier);
                            button type="submit" name="action" value="card" {
                                (texts.get("check-account-verify"))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A payment account and its state in words.
fn described(texts: Texts, account: &PaymentAccount) -> String {
    let kind = match account.kind {
        AccountType::BankTransfer => "account-bank",
        AccountType::CreditCard => "account-card",
        AccountType::Walletpay => "account-wallet",
    };
    let state = match (account.verified, account.kind) {
        (true, _) => "account-ready",
        (false, AccountType::CreditCard) => "account-unverified-card",
        (false, _) => "account-waits",
    };
    format!("{} … {}, {}", texts.get(kind), account.identifier_end(), texts.get(state))
}

/// The form, for the user of this token.
pub(crate) fn form(texts: Texts, token: &str, typed: TypedForm<'_>) -> Markup {
    html! {
        h2 { (texts.get("bank-add-title")) }
        form method="post" {
            input type="hidden" name="token" value=(token);
            (fields(texts, typed))
            button.main type="submit" name="action" value="account" { (texts.get("bank-add")) }
        }
    }
}

/// The inputs of the form.
pub(super) fn fields(texts: Texts, TypedForm { form, errors }: TypedForm<'_>) -> Markup {
    html! {
        (field(&Field {
            value: form.get("iban"),
            error: errors.of("iban"),
            is_verbatim: true,
            ..Field::text("iban", "IBAN")
        }))
        (field(&Field {
            value: form.get("holder"),
            error: errors.of("holder"),
            autocomplete: "name",
            ..Field::text("holder", &texts.get("bank-holder"))
        }))
    }
}
