//! `POST /connectors/v1/commands/{id}/result`

mod verdict;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use rampart_types::{ClientId, UserKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use self::verdict::{Attempts, Verdict};
use super::caller::Connector;
use super::checkpoint::{self, ID, lease_token, lost_lease};
use super::commands::{CommandKind, result_context};
use super::effects;
use super::events::storable;
use super::finished::Finished;
use crate::Core;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::payments::report::REFERENCE_CHARS_MAX;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use crate::trading::orders::column;
use crate::trading::orders::state::Cause;
use crate::users::account::{self, RowLock};

/// Largest result in bytes of JSON.
const RESULT_BYTES_MAX: usize = 64 * 1024;
/// Longest reason, in characters.
const REASON_CHARS_MAX: usize = 1_000;
/// Longest time before another attempt, in seconds: a day.
const RETRY_SECONDS_MAX: u32 = 86_400;
/// Longest time before another attempt where the connector names none, in seconds.
const BACKOFF_SECONDS_MAX: u32 = 600;

/// `POST /connectors/v1/commands/{id}/result`
pub struct ReportResult;

impl Endpoint for ReportResult {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/connectors/v1/commands/{id}/result";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Report the result of a leased command",
        details: "`done` and `rejected` end it; `retry` has it leased again later, after \
                  `retryAfterSeconds` or twice as long each time, until \
                  `connectors.attempts_max` attempts have been made: then it is rejected, as is a \
                  payout whose order waits or is over by then, and a refund of which the provider \
                  has told that somebody else has made it. A payout, a transfer or a refund of \
                  which an attempt has reported nothing may have been made: `retry` never ends \
                  it. The same result again is answered as the first time. A lost lease is 409, \
                  and changes nothing: lease the command again.",
        path: &[ID],
        body: Shape::of::<NewResult>(),
        request: r#"{"leaseToken": "0199a000-0000-7000-8000-000000000011", "outcome": "done",
            "result": {"transactionId": "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060"}}"#,
        answer: r#"{"state": "done", "retryAt": null}"#,
        ..Doc::NONE
    };
    type Caller = Connector;
    type Request = (Uuid, NewResult);
    type Response = Json<Reported>;

    fn read(input: &Input, _: &Connector) -> Result<(Uuid, NewResult)> {
        let mut new: NewResult = strict::body(input)?;
        if new.result.to_string().len() > RESULT_BYTES_MAX {
            return Err(Denial::unprocessable("result: at most 64 KiB of JSON").into());
        }
        if new.reason.as_ref().is_some_and(|reason| reason.chars().count() > REASON_CHARS_MAX) {
            return Err(Denial::unprocessable("reason: at most 1000 characters").into());
        }
        if new.retry_after_seconds.is_some_and(|seconds| seconds > RETRY_SECONDS_MAX) {
            return Err(Denial::unprocessable("retryAfterSeconds: 0 to 86400").into());
        }
        new.reason = new.reason.as_deref().map(storable);
        new.result.sort_all_objects();
        Ok((checkpoint::id(input)?, new))
    }

    async fn call(
        core: &Core,
        connector: Connector,
        (id, new): (Uuid, NewResult),
    ) -> Result<Json<Reported>> {
        Ok(Json(report(core, &connector, id, &new).await?))
    }
}

/// Writes a result with what follows, in one transaction.
async fn report(core: &Core, connector: &Connector, id: Uuid, new: &NewResult) -> Result<Reported> {
    let mut tx = core.db.begin().await?;
    match settle(&mut tx, core, &connector.name, id, new).await? {
        Settled::Now(reported, causes) => {
            tx.commit().await?;
            Cause::count(core, causes);
            Ok(reported)
        }
        Settled::Before(reported) => {
            // Dropped, it would be rolled back behind the answer.
            tx.rollback().await?;
            Ok(reported)
        }
        Settled::NoTransaction => {
            tx.rollback().await?;
            let name = &connector.name;
            tracing::warn!(connector = %name, command = %id, "a payout is done without a transaction");
            let reason = "result: transactionId of 1 to 255 characters, none of control";
            Err(Denial::unprocessable(reason).into())
        }
        Settled::LeaseLost => {
            tx.rollback().await?;
            Err(lost_lease(core, connector, id).await?)
        }
    }
}

/// The effect of a result.
pub(super) enum Settled {
    /// It is written, with what follows; the causes of changes of an order are to be counted after the
    /// commit.
    Now(Reported, Vec<Cause>),
    /// It was written before, and nothing has changed.
    Before(Reported),
    /// It does not name the transaction that has sent the coins: nothing has changed, and the lease
    /// goes on.
    NoTransaction,
    /// Its lease is lost, or the command is not the connector's: nothing has changed.
    LeaseLost,
}

/// Writes the result of a command in the caller's transaction, which gives up what was not settled now.
///
/// # Errors
/// The database's.
pub(super) async fn settle(
    conn: &mut Connection,
    core: &Core,
    connector: &str,
    id: Uuid,
    new: &NewResult,
) -> Result<Settled> {
    lock_user(conn, connector, id).await?;
    let row = sqlx::query!(
        r#"
        select client_id, order_id, user_id, kind, asset, sealed_body, lease_token, result_digest,
            attempt, retries, state, due_at,
            state = 'open' and coalesce(leased_until > now(), false) as "is_leased!",
            exists (select from connector where name = $2 and card_element is not null)
                as "has_card_form!"
        from command where command_id = $1 and connector = $2 for update
        "#,
        id,
        connector,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row else { return Ok(Settled::LeaseLost) };
    let digest = new.digest();
    let is_holder = row.lease_token == Some(lease_token(&new.lease_token));
    if is_holder && row.result_digest.as_deref() == Some(&digest) {
        let retry_at = (row.state == "open").then_some(row.due_at);
        return Ok(Settled::Before(Reported { state: row.state, retry_at }));
    }
    if !is_holder || !row.is_leased {
        return Ok(Settled::LeaseLost);
    }
    if new.lacks_transaction(&row.kind) {
        return Ok(Settled::NoTransaction);
    }
    let (client, order) =
        (ClientId::from(row.client_id), row.order_id.map(column::id).transpose()?);
    let finished = Finished {
        client,
        order,
        user: row.user_id.map(Into::into),
        kind: row.kind,
        asset: row.asset,
        connector: connector.to_owned(),
        has_card_form: row.has_card_form,
        command: id,
        sealed_body: row.sealed_body.unwrap_or_default(),
        is_done: new.outcome == Outcome::Done,
        // An attempt that was to be repeated reports nothing that has ended.
        result: if new.outcome == Outcome::Retry { Value::Null } else { new.result.clone() },
        reason: new.reason.clone(),
    };
    let attempts = Attempts { begun: row.attempt, retries: row.retries.saturating_add(1) };
    let verdict = Verdict::new(conn, core, new.outcome, attempts, &finished).await?;
    let sealed = new.seal(core, row.client_id, id)?;
    let due_at = write(conn, id, verdict, row.retries, new, &digest, sealed).await?;
    let mut causes = Vec::new();
    if verdict.has_effects {
        causes = Box::pin(effects::apply(conn, core, &finished)).await?;
    }
    // Last: other calls of the connector wait for its row until the commit.
    if new.outcome != Outcome::Done {
        sqlx::query!("update connector set failures = failures + 1 where name = $1", connector)
            .execute(&mut *conn)
            .await?;
    }
    let retry_at = (verdict.state == "open").then_some(due_at);
    Ok(Settled::Now(Reported { state: verdict.state.to_owned(), retry_at }, causes))
}

/// Locks the user whom a command is about, if it is about one. Users are locked before their commands,
/// and those before orders, so that a result and an erasure never wait for each other.
///
/// # Errors
/// The database's.
async fn lock_user(conn: &mut Connection, connector: &str, id: Uuid) -> Result<()> {
    let about = sqlx::query!(
        r#"
        select client_id, user_id as "user_id!" from command
        where command_id = $1 and connector = $2 and user_id is not null
        "#,
        id,
        connector,
    )
    .fetch_optional(&mut *conn)
    .await?;
    if let Some(about) = about {
        let key = UserKey { client: about.client_id.into(), user: about.user_id.into() };
        // One who is erased has no command any more, as its lock finds.
        account::lock(conn, key, RowLock::NoKeyUpdate).await?;
    }
    Ok(())
}

/// Writes a result to its command, which the caller's transaction has locked. The time of the next
/// attempt. Of a command that has ended, the checkpoint is deleted, and the words that name a person or
/// a secret of another service's: the recipient of a transfer, who or what was checked, and by which
/// token.
///
/// # Errors
/// The database's.
async fn write(
    conn: &mut Connection,
    id: Uuid,
    verdict: Verdict,
    retries: i32,
    new: &NewResult,
    digest: &[u8],
    sealed: Vec<u8>,
) -> Result<DateTime<Utc>> {
    let is_retry = new.outcome == Outcome::Retry;
    let backoff = 2_u32.saturating_pow(u32::try_from(retries).unwrap_or(0));
    let pause = new.retry_after_seconds.unwrap_or(backoff.min(BACKOFF_SECONDS_MAX));
    let due_at = sqlx::query_scalar!(
        "update command set state = $2, result_digest = $3, sealed_result = $4, \
             retries = retries + $5::int, due_at = now() + make_interval(secs => $6::int), \
             leased_until = null, finished_at = case when $2 <> 'open' then now() end, \
             review = $7, \
             checkpoint = case when $2 = 'open' then checkpoint end, \
             sealed_body = case when $2 = 'open' or kind not in ('transfer.send', 'identity.start', \
                 'screening.check', 'card.verify', 'wallet-provider.verify') then sealed_body end \
         where command_id = $1 and state = 'open' returning due_at",
        id,
        verdict.state,
        digest,
        sealed,
        i32::from(is_retry),
        i32::try_from(pause).unwrap_or(i32::MAX),
        verdict.review,
    )
    .fetch_one(conn)
    .await?;
    Ok(due_at)
}

/// The result of one attempt.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewResult")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewResult {
    /// The `leaseToken` of the command's lease.
    lease_token: String,
    outcome: Outcome,
    /// The result as the command's kind has it, at most 64 KiB; of a `payout.send` that is done the
    /// `transactionId`, 1 to 255 characters, and of a rejected one what a failed transaction has
    /// cost, as `networkFee` and `networkFeeAsset`. A `payment.create` by bank transfer tells the
    /// payer where to pay in `bankTransfer`: `name`, `iban`, `reference`, and `bic` if payers are
    /// asked for it.
    #[serde(default)]
    #[schemars(schema_with = "super::checkpoint::any_json")]
    result: Value,
    /// The reason for which it is not done, at most 1000 characters.
    reason: Option<String>,
    /// Time before the next attempt, 0 to 86400.
    #[schemars(range(min = 0, max = 86_400))]
    retry_after_seconds: Option<u32>,
}

impl NewResult {
    /// The result of a command that the sandbox has leased.
    pub(super) fn of_sandbox(lease_token: Uuid, outcome: Outcome, result: Value) -> Self {
        let lease_token = lease_token.to_string();
        Self { lease_token, outcome, result, reason: None, retry_after_seconds: None }
    }

    /// The same, with a reason.
    pub(super) fn with_reason(self, reason: Option<&str>) -> Self {
        Self { reason: reason.map(str::to_owned), ..self }
    }

    /// True if it says that a command of this kind has sent coins, and not by which transaction.
    fn lacks_transaction(&self, kind: &str) -> bool {
        let is_id = |id: &str| {
            (1..=REFERENCE_CHARS_MAX).contains(&id.chars().count())
                && !id.contains(char::is_control)
        };
        self.outcome == Outcome::Done
            && kind == CommandKind::PayoutSend.as_str()
            && !self.result["transactionId"].as_str().is_some_and(is_id)
    }

    fn digest(&self) -> [u8; 32] {
        let Self { outcome, result, reason, retry_after_seconds, .. } = self;
        sha256(&json!([outcome, result, reason, retry_after_seconds]).to_string())
    }

    fn seal(&self, core: &Core, client: Uuid, command: Uuid) -> Result<Vec<u8>> {
        let text = json!({ "result": self.result, "reason": self.reason }).to_string();
        core.cipher(client.into()).seal(&result_context(client, command), text.as_bytes())
    }
}

/// The outcome of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "CommandOutcome")]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// The effect is there.
    Done,
    /// The effect is not there, and never will be.
    Rejected,
    /// The effect is not there; another attempt may succeed.
    Retry,
}

/// The state of a command after a result.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ReportedResult")]
#[serde(rename_all = "camelCase")]
pub struct Reported {
    /// `open`, `done` or `rejected`.
    state: String,
    /// Time of the next attempt of an open one.
    retry_at: Option<DateTime<Utc>>,
}
