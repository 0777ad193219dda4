//! Payment and payout accounts of a user: `GET` and `POST /admin/v1/users/{uuid}/accounts`,
//! `PATCH …/{accountIdentifier}`, and the proofs that came in for them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::users::find;
use super::{Answer, Input, Refused, created, ok};
use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::platform::error::Error;
use crate::users::account;
use crate::users::accounts::{
    self, AccountDetails, HOLDER_CHARS_MAX, IDENTIFIER_BYTES_MAX, Kind, NewAccount, OpenOutcome,
    PaymentAccount,
};
use rampart_types::{ClientId, Iban, JsonDecimal, UserId, plain_text};

/// Digits that a card's identifier may have; a whole card number has more.
const CARD_DIGITS_MAX: usize = 10;
/// Most proofs of one account that are listed.
const PROOFS_MAX: i64 = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct New {
    #[serde(rename = "type")]
    kind: Kind,
    identifier: String,
    name: String,
    verified: Option<bool>,
    disabled: Option<bool>,
    limit_raised: Option<bool>,
    limit: Option<JsonDecimal>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_raised: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<JsonDecimal>,
}

/// Every account of the user.
pub(super) async fn list(core: &Arc<Core>, input: Input) -> Answer {
    let mut conn = core.db.acquire().await?;
    let (client, user) = find(&mut conn, &input).await?;
    let accounts = accounts::list(&mut conn, core, client, user).await?;
    let mut shown = Vec::new();
    for account in &accounts {
        shown.push(view(&mut conn, (client, user), account).await?);
    }
    ok(&shown)
}

/// Opens an account for the user.
pub(super) async fn open(core: &Arc<Core>, input: Input) -> Answer {
    let new: New = input.json()?;
    let (kind, details) = check(&new)?;
    let mut tx = core.db.begin().await?;
    let (client, user) = find(&mut tx, &input).await?;
    if !account::lock(&mut tx, client, user).await? {
        return Err(Refused::conflict("the user is deleted"));
    }
    let account = NewAccount { kind, details, is_stored_card: false, verified: false };
    let account = match accounts::open(&mut tx, core, (client, user), account).await? {
        OpenOutcome::Created(account) => account,
        OpenOutcome::Existing(_) => {
            return Err(Refused::conflict("the user has this account already"));
        }
        OpenOutcome::LimitReached => {
            return Err(Refused::conflict("the user has too many accounts"));
        }
    };
    let New { verified, disabled, limit_raised, limit, .. } = new;
    let change = Change { verified, disabled, limit_raised, limit };
    write(&mut tx, core, (client, user, account.id), &change).await?;
    note(&mut tx, core, &input, ("account.open", user, account.id), &change).await?;
    let account = again(&mut tx, core, (client, user), &account.details.identifier).await?;
    let shown = view(&mut tx, (client, user), &account).await?;
    tx.commit().await?;
    created(&shown)
}

/// Changes what is named: verifies, disables, raises the limit.
pub(super) async fn change(core: &Arc<Core>, input: Input) -> Answer {
    let change: Change = input.json()?;
    bounds(change.limit)?;
    let mut tx = core.db.begin().await?;
    let (client, user) = find(&mut tx, &input).await?;
    if !account::lock(&mut tx, client, user).await? {
        return Err(Refused::conflict("the user is deleted"));
    }
    let named = named(&mut tx, core, (client, user), input.param("accountIdentifier")).await?;
    write(&mut tx, core, (client, user, named.id), &change).await?;
    note(&mut tx, core, &input, ("account.change", user, named.id), &change).await?;
    let account = again(&mut tx, core, (client, user), &named.details.identifier).await?;
    let shown = view(&mut tx, (client, user), &account).await?;
    tx.commit().await?;
    ok(&shown)
}

fn check(new: &New) -> Result<(Kind, AccountDetails), Refused> {
    bounds(new.limit)?;
    let identifier = new.identifier.trim();
    if identifier.is_empty() || identifier.len() > IDENTIFIER_BYTES_MAX {
        return Err(Refused::unprocessable("identifier: 1 to 255 bytes"));
    }
    match new.kind {
        Kind::BankTransfer if identifier.parse::<Iban>().is_err() => {
            return Err(Refused::unprocessable("identifier: not an IBAN"));
        }
        Kind::CreditCard if digits(identifier) > CARD_DIGITS_MAX => {
            return Err(Refused::unprocessable("identifier: mask the card's number"));
        }
        _ => {}
    }
    let holder = match new.name.trim() {
        "" => Some(String::new()),
        name => plain_text(name, HOLDER_CHARS_MAX),
    };
    let holder = holder.ok_or_else(|| Refused::unprocessable("name: at most 100 characters"))?;
    Ok((new.kind, AccountDetails { identifier: identifier.to_owned(), holder, token: None }))
}

fn digits(text: &str) -> usize {
    text.chars().filter(char::is_ascii_digit).count()
}

fn bounds(limit: Option<JsonDecimal>) -> Result<(), Refused> {
    match limit {
        Some(limit) if limit.0.is_sign_negative() => {
            Err(Refused::unprocessable("limit: below zero"))
        }
        _ => Ok(()),
    }
}

/// The account that a path names, by its identifier or by its id.
async fn named(
    conn: &mut PgConnection,
    core: &Core,
    (client, user): (ClientId, UserId),
    name: &str,
) -> Result<PaymentAccount, Refused> {
    if let Some(account) = accounts::find(conn, core, (client, user), name).await? {
        return Ok(account);
    }
    let id: Option<Uuid> = name.parse().ok();
    let all = accounts::list(conn, core, client, user).await?;
    let found = all.into_iter().find(|account| Some(account.id) == id);
    found.ok_or_else(|| Refused::not_found("account"))
}

async fn again(
    conn: &mut PgConnection,
    core: &Core,
    owner: (ClientId, UserId),
    identifier: &str,
) -> Result<PaymentAccount, Refused> {
    let account = accounts::find(conn, core, owner, identifier).await?;
    account.ok_or_else(|| Refused::from(Error::broken("read the account just written")))
}

async fn write(
    conn: &mut PgConnection,
    core: &Core,
    (client, user, account): (ClientId, UserId, Uuid),
    change: &Change,
) -> Result<(), Refused> {
    sqlx::query!(
        "update payment_account set \
             verified_at = case when $4::boolean is null then verified_at \
                 when $4 then coalesce(verified_at, $8) end, \
             disabled_at = case when $5::boolean is null then disabled_at \
                 when $5 then coalesce(disabled_at, $8) end, \
             limit_raised = coalesce($6, limit_raised), \
             amount_limit = coalesce($7, amount_limit) \
         where client_id = $1 and user_id = $2 and account_id = $3",
        client.uuid(),
        user.uuid(),
        account,
        change.verified,
        change.disabled,
        change.limit_raised,
        change.limit.map(|limit| limit.0),
        core.clock.now(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The audit's row; the account stands in it by its id, which tells nothing of the person.
async fn note(
    conn: &mut PgConnection,
    core: &Core,
    input: &Input,
    (action, user, account): (&'static str, UserId, Uuid),
    change: &Change,
) -> Result<(), Refused> {
    let target = user.to_string();
    let detail = json!({ "accountId": account, "change": change });
    let entry = Entry { actor: input.actor(), action, target: &target, detail };
    Ok(audit::record(conn, &core.clock, entry).await?)
}

async fn view(
    conn: &mut PgConnection,
    (client, user): (ClientId, UserId),
    account: &PaymentAccount,
) -> Result<Value, Refused> {
    let proofs = sqlx::query!(
        "select proof_id, media_type, size, created_at from ownership_proof \
         where client_id = $1 and user_id = $2 and account_id = $3 \
         order by proof_id desc limit $4",
        client.uuid(),
        user.uuid(),
        account.id,
        PROOFS_MAX,
    )
    .fetch_all(conn)
    .await?;
    let proofs: Vec<_> = proofs
        .into_iter()
        .map(|proof| {
            json!({"id": proof.proof_id, "mediaType": proof.media_type, "size": proof.size,
                "createdAt": proof.created_at})
        })
        .collect();
    Ok(json!({
        "accountIdentifier": account.details.identifier,
        "accountId": account.id,
        "type": account.kind,
        "name": account.details.holder,
        "verified": account.verified,
        "disabled": account.disabled,
        "limitRaised": account.limit_raised,
        "limit": account.amount_limit.map(JsonDecimal),
        "proofs": proofs,
    }))
}
