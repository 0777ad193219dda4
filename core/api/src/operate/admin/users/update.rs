//! `PATCH /admin/v1/users/{uuid}`

mod members;

use http::{Method, StatusCode};
use serde_json::json;

use self::members::{AddressCheck, Change, Check, Dac8, Document, Level};
use super::read::{EXAMPLE, User};
use super::{UUID, lock};
use crate::Core;
use crate::auth::caller::Client;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::connectors::payouts::command_payouts_and_transfers;
use crate::operate::admin::approvals;
use crate::operate::admin::operator::Operator;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Denial, Error, Result};
use crate::trading::limits;
use crate::trading::limits::limit_rules::Rules;
use crate::users::account::Account;
use crate::users::changed;
use crate::users::documents;
use crate::users::erase::erase;
use crate::users::user_update::UserUpdate;
use crate::users::{identity_checks, second_factors, session};
use rampart_types::{EmailAddress, UserKey};

/// `PATCH /admin/v1/users/{uuid}`
pub struct UpdateUser;

impl Endpoint for UpdateUser {
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/admin/v1/users/{uuid}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Compliance];
    const APPROVAL: bool = true;
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Update a user's checks, level and limits",
        details: "Members that are left out stay as they are. `deleted` erases the personal data, \
                  for good; a deleted user is 409. `disabled` ends the user's logins and refuses \
                  tokens that were issued before. `reason` is for the audit alone.",
        path: &[UUID],
        body: Shape::of::<Change>(),
        request: r#"{"level": "silver", "verification": {"identity": "verified"},
            "limitOverrides": {"user_day_limit": 250.5}, "reason": "passport seen"}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Update;
    type Response = Json<User>;

    fn read(input: &Input, _: &Operator) -> Result<Update> {
        let change: Change = strict::body(input)?;
        change.check()?;
        Ok(Update { uuid: input.param("uuid").to_owned(), change })
    }

    async fn needs_approval(core: &Core, _: &Operator, update: &Update) -> Result<bool> {
        Ok(update.change.has_limits() && update.raises_limits(core).await?)
    }

    async fn call(core: &Core, operator: Operator, update: Update) -> Result<Json<User>> {
        let mut tx = core.db.begin().await?;
        let key = lock(&mut tx, &update.uuid).await?;
        let change = update.change;
        let unknown = || Denial::not_found("user");
        let before = Account::load(&mut tx, core, key).await?.ok_or_else(unknown)?;
        // Before the address changes: the proven one hears of it.
        remove_second_factors(&mut tx, core, key, &change).await?;
        if change.disabled == Some(false) {
            session::end_tokens_if_disabled(&mut tx, core, key).await?;
        }
        // Before the checks: the state that comes with another address is of that one.
        if let Some(email) = &change.email_address {
            write_email(&mut tx, core, &before, email).await?;
        }
        if write(&mut tx, core, key, &change).await? {
            approvals::require(&operator)?;
        }
        if change.disabled == Some(true) {
            session::end_logins(&mut tx, core, key).await?;
        }
        for document in &change.documents {
            write_document(&mut tx, core, key, document).await?;
        }
        let after = Account::load(&mut tx, core, key).await?.ok_or_else(unknown)?;
        let (was, is) = (&before.statuses.identity, &after.statuses.identity);
        if was != is && is != "verified" {
            identity_checks::end(&mut tx, key).await?;
        }
        changed::record_events(&mut tx, core, &before, &after).await?;
        if change.deleted == Some(true) {
            erase(&mut tx, core, key).await?;
        }
        command_payouts_and_transfers(&mut tx, core, key).await?;
        // A member is a name of our own, a number or the operator's reason: nothing of the person.
        let detail = serde_json::to_value(&change)
            .map_err(|error| Error::internal("write an audit row", error))?;
        let target = key.user.to_string();
        operator.record(&mut tx, core, "user.change", &target, detail).await?;
        let shown = User::load(&mut tx, core, key).await?;
        tx.commit().await?;
        Ok(Json(shown))
    }
}

/// A change of one user.
pub struct Update {
    uuid: String,
    change: Change,
}

impl Update {
    /// True if it would let the user trade more than now.
    async fn raises_limits(&self, core: &Core) -> Result<bool> {
        // Without a commit, nothing of it stays.
        let mut tx = core.db.begin().await?;
        let key = lock(&mut tx, &self.uuid).await?;
        write(&mut tx, core, key, &self.change).await
    }
}

/// Writes the settings; true if the user may trade more than before.
async fn write(conn: &mut Connection, core: &Core, key: UserKey, change: &Change) -> Result<bool> {
    if !change.has_limits() {
        write_columns(conn, core, key, change).await?;
        return Ok(false);
    }
    let before = rules(conn, key).await?;
    write_columns(conn, core, key, change).await?;
    Ok(rules(conn, key).await?.exceed(&before))
}

async fn rules(conn: &mut Connection, key: UserKey) -> Result<Rules> {
    let trader = limits::trader(conn, key).await?;
    Ok(trader.ok_or_else(|| Error::invariant("find the limits of a user"))?.rules)
}

async fn write_columns(
    conn: &mut Connection,
    core: &Core,
    UserKey { client, user }: UserKey,
    change: &Change,
) -> Result<()> {
    let checks = &change.verification;
    let limits = change.limit_overrides.as_ref().map(|limits| json!(limits));
    sqlx::query!(
        "update end_user set \
             disabled_at = case when $3::boolean is null then disabled_at \
                 when $3 then coalesce(disabled_at, $4) end, \
             level = coalesce($5, level), \
             dac8_status = coalesce($6, dac8_status), \
             email_status = coalesce($7, email_status), \
             activated_at = case when $7 = 'verified' then coalesce(activated_at, $4) \
                 else activated_at end, \
             identity_status = coalesce($8, identity_status), \
             amld5_status = coalesce($9, amld5_status), \
             privacy_agreement_status = coalesce($10, privacy_agreement_status), \
             residential_address_status = coalesce($11, residential_address_status), \
             limit_overrides = coalesce($12, limit_overrides) \
         where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
        change.disabled,
        core.clock.now(),
        change.level.map(Level::as_str),
        change.dac8_status.map(Dac8::as_str),
        checks.email.map(Check::as_str),
        checks.identity.map(Check::as_str),
        checks.amld5.map(Check::as_str),
        checks.privacy_agreement.map(Check::as_str),
        checks.residential_address.map(AddressCheck::as_str),
        limits,
    )
    .execute(conn)
    .await?;
    Ok(())
}

async fn write_email(
    conn: &mut Connection,
    core: &Core,
    account: &Account,
    email: &str,
) -> Result<()> {
    let email: EmailAddress =
        email.parse().map_err(|_| Denial::unprocessable("emailAddress: not an e-mail address"))?;
    let client = Client::for_page(core, account.client, "")
        .ok_or_else(|| Denial::conflict("the partner is suspended"))?;
    match UserUpdate::change_email(conn, core, &client, account, &email).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Denial::conflict("another user has this address").into()),
        Err(error) if error.is(Code::EmailTaken) => {
            Err(Denial::conflict("another user has this address").into())
        }
        Err(error) => Err(error),
    }
}

async fn remove_second_factors(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    change: &Change,
) -> Result<()> {
    if change.passkeys_removed == Some(true) {
        second_factors::remove_passkeys(conn, core, key).await?;
    }
    if change.authenticator_app_removed == Some(true) {
        second_factors::remove_authenticator_app(conn, core, key).await?;
    }
    Ok(())
}

/// Writes the decision on a side. One that the user has not sent is known from then on: verified on
/// paper, say, or `missing` to ask for it.
async fn write_document(
    conn: &mut Connection,
    core: &Core,
    UserKey { client, user }: UserKey,
    document: &Document,
) -> Result<()> {
    let written = sqlx::query!(
        "insert into user_document \
             (client_id, user_id, type, side, document_id, status, created_at) \
         select $1, $2, $3, $4, $5, $6, $7 \
         where (select count(*) filter (where type <> $3 or side <> $4) from user_document \
             where client_id = $1 and user_id = $2) < $8 \
         on conflict (client_id, user_id, type, side) do update set status = excluded.status",
        client.uuid(),
        user.uuid(),
        document.kind,
        document.side,
        core.clock.uuid()?,
        document.status.as_str(),
        core.clock.now(),
        documents::SIDES_MAX,
    )
    .execute(conn)
    .await?;
    if written.rows_affected() == 0 {
        return Err(Denial::unprocessable("documents: at most 32 sides of one user").into());
    }
    Ok(())
}
