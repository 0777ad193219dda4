//! Identity checks at a provider: started when the user first opens the page of the reason, ended by
//! the provider's report.

use rampart_types::{UserId, UserKey};
use serde_json::{Value, json};
use uuid::Uuid;

use super::commands::{self, Command, CommandKind, Target, result_context};
use super::log_label::log_label;
use super::payouts::command_payouts_and_transfers;
use super::provider_page;
use super::screening::screen_anew;
use crate::Core;
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::tenancy::tenants::Tenant;
use crate::trading::checkout;
use crate::users::account::{self, Account, RowLock};
use crate::users::share_token;

/// Member of the sandbox's result that says if a share token was given to it.
const HAS_SHARE_TOKEN: &str = "hasShareToken";

/// A user's check at the provider.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum IdentityCheck {
    /// No connector starts checks.
    NoProvider,
    /// The sandbox has started it: it is ended on our own page.
    Simulated {
        /// The command that has.
        command: Uuid,
        /// True if it was given the share token of a check elsewhere.
        has_share_token: bool,
    },
    /// The connector has not answered yet.
    Waits,
    /// It is done at the provider's page.
    At(String),
}

/// The check of a user, commanded now unless one is under way. One that has ended is followed by
/// another one. It has the share token of a checkout that the user has bought, or else the
/// user's own, once.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn start(
    conn: &mut Connection,
    core: &Core,
    tenant: &Tenant,
    user: UserId,
    return_url: &str,
) -> Result<IdentityCheck> {
    let client = tenant.id;
    let key = UserKey { client, user };
    // Of two visits at once, one waits here for the other.
    if !account::lock(conn, key, RowLock::Update).await? {
        return Ok(IdentityCheck::NoProvider);
    }
    let latest = sqlx::query!(
        r#"
        select (select count(*) from command where client_id = $1 and user_id = $2
                and kind = 'identity.start' and state = 'rejected') as "ended!",
            c.command_id as "command_id?", c.state as "state?", c.sealed_result,
            connector_takes('identity.start') or $3 as "is_taken!"
        from (select 1) one left join command c on c.client_id = $1 and c.user_id = $2
            and c.kind = 'identity.start' and c.state <> 'rejected'
        limit 1
        "#,
        client.uuid(),
        user.uuid(),
        tenant.is_test(),
    )
    .fetch_one(&mut *conn)
    .await?;
    if let Some(command) = latest.command_id {
        let context = result_context(client.uuid(), command);
        let result = latest
            .sealed_result
            .map(|sealed| commands::open(&core.cipher(client), &context, &sealed))
            .transpose()?;
        if tenant.is_test() {
            let result = result.as_ref().map(|result| &result["result"][HAS_SHARE_TOKEN]);
            let has_share_token = result.and_then(Value::as_bool).unwrap_or(false);
            return Ok(IdentityCheck::Simulated { command, has_share_token });
        }
        let is_done = latest.state.as_deref() == Some("done");
        return Ok(if is_done { page(result) } else { IdentityCheck::Waits });
    }
    if !latest.is_taken {
        return Ok(IdentityCheck::NoProvider);
    }
    let Some(account) = Account::load(conn, core, key).await? else {
        return Ok(IdentityCheck::NoProvider);
    };
    Box::pin(command(conn, core, tenant, &account, latest.ended, return_url)).await
}

/// Commands a check, after so many that have ended.
async fn command(
    conn: &mut Connection,
    core: &Core,
    tenant: &Tenant,
    account: &Account,
    ended: i64,
    return_url: &str,
) -> Result<IdentityCheck> {
    let (client, user) = (tenant.id, account.user);
    let of_checkout = checkout::share_token::take(conn, core, UserKey { client, user }).await?;
    let share_token = match of_checkout {
        Some(token) => Some(token),
        None => share_token::take(conn, core, account).await?,
    };
    let mut body = json!({
        "partner": &*tenant.slug,
        "userId": user,
        "checks": ["identity"],
        "locale": account.region,
        "returnUrl": return_url,
    });
    if let Some(token) = &share_token {
        body["shareToken"] = json!(token.expose());
    }
    let command = Command {
        client,
        order: None,
        user: Some(user),
        kind: CommandKind::IdentityStart,
        idempotency_key: format!("identity/{user}/{ended}"),
        target: Target::for_checks(tenant),
        body,
    };
    let command = command.seal(core)?;
    if !tenant.is_test() {
        command.insert(conn).await?;
        return Ok(IdentityCheck::Waits);
    }
    let has_share_token = share_token.is_some();
    let command = command.with_result(core, &json!({ HAS_SHARE_TOKEN: has_share_token }))?;
    command.insert(conn).await?;
    Ok(IdentityCheck::Simulated { command: command.id(), has_share_token })
}

/// The provider's page in a result; without one the provider does the check by itself.
fn page(result: Option<Value>) -> IdentityCheck {
    let url = result.as_ref().and_then(|result| result["result"]["url"].as_str());
    let url = url.filter(|url| provider_page::is_allowed(url));
    url.map_or(IdentityCheck::Waits, |url| IdentityCheck::At(url.to_owned()))
}

/// Writes the provider's word about a check, in the transaction that stores its report: `verified`,
/// or anything else for a check that has failed. It ends the check; a report of one that has ended
/// counts for nobody. A user whom an operator has blocked stays so.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn completed(
    conn: &mut Connection,
    core: &Core,
    connector: &str,
    command: Uuid,
    outcome: &str,
) -> Result<()> {
    let found = sqlx::query!(
        "select client_id, user_id from command \
         where command_id = $1 and connector = $2 and kind = 'identity.start'",
        command,
        connector,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some((client, user)) = found.and_then(|row| Some((row.client_id, row.user_id?))) else {
        tracing::warn!(connector, %command, "an identity check is of no command");
        return Ok(());
    };
    let key = UserKey { client: client.into(), user: user.into() };
    // Before the command, as whoever changes the name does, which ends the check too.
    let is_there = account::lock(conn, key, RowLock::Update).await?;
    let ended = sqlx::query!(
        "update command set state = 'rejected', sealed_body = null, checkpoint = null, \
             finished_at = coalesce(finished_at, now()) \
         where client_id = $1 and command_id = $2 and state <> 'rejected'",
        key.client.uuid(),
        command,
    )
    .execute(&mut *conn)
    .await?;
    if ended.rows_affected() == 0 {
        let outcome = log_label(outcome);
        tracing::info!(connector, %command, outcome, "an identity check had ended before");
        return Ok(());
    }
    match is_there {
        true => set_identity(conn, core, key, outcome == "verified").await,
        false => Ok(()),
    }
}

/// Sets the result of the identity check of a user, whose row is locked, records `user.verified` if it
/// was the last one, and commands what waited for it.
///
/// # Errors
/// When the database cannot be written.
async fn set_identity(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    is_verified: bool,
) -> Result<()> {
    let UserKey { client, user } = key;
    let Some(before) = Account::load(conn, core, key).await? else { return Ok(()) };
    let status = if is_verified { "verified" } else { "failed" };
    let written = sqlx::query!(
        "update end_user set identity_status = $3 \
         where client_id = $1 and user_id = $2 and identity_status not in ('blocked', $3) \
             and ($3 = 'verified' or identity_status <> 'verified')",
        client.uuid(),
        user.uuid(),
        status,
    )
    .execute(&mut *conn)
    .await?;
    if written.rows_affected() == 0 || !is_verified {
        return Ok(());
    }
    screen_anew(conn, core, &before).await?;
    let mut statuses = before.statuses;
    statuses.identity = status.to_owned();
    if statuses.is_verified() {
        let payload = json!({ "uuid": user });
        let event = NewEvent { kind: EventType::UserVerified, order_id: None, payload };
        events::record(conn, core, client, event, None).await?;
    }
    command_payouts_and_transfers(conn, core, key).await
}
