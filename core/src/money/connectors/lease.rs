//! `POST /connectors/v1/commands/lease`

mod leased;

use std::time::Duration;

use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::timeout;
use uuid::Uuid;

pub use self::leased::Leased;
use self::leased::LeasedRow;
use super::caller::Connector;
use super::commands::CommandKind;
use super::sandbox::timing as sandbox;
use crate::Core;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};

/// Most commands of one lease.
const COMMANDS_MAX: u16 = 100;
/// Longest wait for a command, in seconds.
const WAIT_SECONDS_MAX: u16 = 30;
/// Shortest and longest lease, in seconds.
pub(super) const LEASE_SECONDS: std::ops::RangeInclusive<u16> = 10..=600;
/// Pause between two looks at the queue of a lease that waits.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The queue in metrics and logs.
const SWEEP: &str = "commands";

/// `POST /connectors/v1/commands/lease`
pub struct LeaseCommands;

impl Endpoint for LeaseCommands {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/connectors/v1/commands/lease";
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Lease commands",
        details: "Partners take turns; of each the oldest first, and those of one order in their \
                  order. Waits for one if there is none. A command that is leased again after a \
                  lost lease has the same `id`, by which a provider must know it again, and the \
                  checkpoint of its earlier attempts. It never goes to another connector once it \
                  was leased. One that stands in a trace has its `traceparent`, and `tracestate` \
                  if there is one: send them as headers with the calls about it.",
        body: Shape::of::<LeaseRequest>(),
        request: r#"{"max": 10, "waitSeconds": 30, "leaseSeconds": 60, "kinds": ["payout.send"]}"#,
        answer: r#"[{"id": "0199a000-0000-7000-8000-000000000010", "kind": "payout.send", "attempt": 1,
            "createdAt": "2026-03-01T12:00:00Z", "leaseToken": "0199a000-0000-7000-8000-000000000011",
            "leasedUntil": "2026-03-01T12:01:00Z", "checkpoint": null,
            "body": {"orderId": 1742980455013377, "asset": "ETH", "amount": 0.5,
                "address": "0x52908400098527886E0F7030069857D2E4169EE7", "tag": null}}]"#,
        ..Doc::NONE
    };
    type Caller = Connector;
    type Request = LeaseRequest;
    type Response = Json<Vec<Leased>>;

    fn read(input: &Input, _: &Connector) -> Result<LeaseRequest> {
        let lease: LeaseRequest = strict::body(input)?;
        if !(1..=COMMANDS_MAX).contains(&lease.max) {
            return Err(Denial::unprocessable("max: 1 to 100").into());
        }
        if lease.wait_seconds > WAIT_SECONDS_MAX {
            return Err(Denial::unprocessable("waitSeconds: 0 to 30").into());
        }
        check_lease_seconds(lease.lease_seconds)?;
        Ok(lease)
    }

    async fn call(
        core: &Core,
        connector: Connector,
        lease: LeaseRequest,
    ) -> Result<Json<Vec<Leased>>> {
        let kinds = lease.kinds(&connector);
        let began = core.clock.monotonic_ns();
        let wait = Duration::from_secs(lease.wait_seconds.into());
        loop {
            let new = NewLease {
                connector: &connector.name,
                kinds: &kinds,
                max: lease.max,
                seconds: lease.lease_seconds,
                only: None,
            };
            let leased = self::lease(core, &new).await?;
            let waited = Duration::from_nanos(core.clock.monotonic_ns().saturating_sub(began));
            let left = wait.saturating_sub(waited);
            if !leased.is_empty() || left.is_zero() || core.lease_waits.have_ended() {
                let traced = leased.into_iter().map(|one| one.traced(core, &connector.name));
                return Ok(Json(traced.collect()));
            }
            // Past the time it looks again, and once the waits have ended for the last time.
            let _ = timeout(left.min(LOOK_INTERVAL), core.lease_waits.ended()).await;
        }
    }
}

/// Checks the length of a lease.
///
/// # Errors
/// 422 when it is out of bounds.
pub(super) fn check_lease_seconds(seconds: u16) -> Result<()> {
    if LEASE_SECONDS.contains(&seconds) {
        return Ok(());
    }
    Err(Denial::unprocessable("leaseSeconds: 10 to 600").into())
}

/// A lease that is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "LeaseRequest")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LeaseRequest {
    /// Most commands, 1 to 100; 1 if left out.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default = "one")]
    max: u16,
    /// Longest wait for the first one, 0 to 30; none if left out.
    #[schemars(range(min = 0, max = 30))]
    #[serde(default)]
    wait_seconds: u16,
    /// Time for which nobody else gets them, 10 to 600; a minute if left out.
    #[schemars(range(min = 10, max = 600))]
    #[serde(default = "minute")]
    lease_seconds: u16,
    /// Kinds that are wanted; all that the connector is capable of if left out.
    kinds: Option<Vec<CommandKind>>,
}

const fn one() -> u16 {
    1
}

const fn minute() -> u16 {
    60
}

impl LeaseRequest {
    /// The kinds that are wanted and within the connector's capabilities.
    fn kinds(&self, connector: &Connector) -> Vec<String> {
        let mut kinds = connector.capabilities.clone();
        if let Some(wanted) = &self.kinds {
            kinds.retain(|kind| wanted.iter().any(|wanted| wanted.as_str() == kind));
        }
        kinds
    }
}

/// A lease of commands to be taken.
pub(super) struct NewLease<'a> {
    /// Name of the connector that takes it.
    pub(super) connector: &'a str,
    /// Kinds of the commands.
    pub(super) kinds: &'a [String],
    /// Most commands.
    pub(super) max: u16,
    /// Time for which nobody else gets them, in seconds.
    pub(super) seconds: u16,
    /// The only command, which need not be due.
    pub(super) only: Option<Uuid>,
}

/// Leases what is due for a connector. One that cannot be opened, which is our fault, is counted and
/// left out, and stays leased though nobody has begun it.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn lease(core: &Core, new: &NewLease<'_>) -> Result<Vec<Leased>> {
    let token = core.clock.uuid()?;
    let mut conn = core.db.acquire().await?;
    let rows = take(&mut conn, core, new, token).await?;
    // Keys are read by another connection, so none is held meanwhile.
    drop(conn);
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    // They are leased whatever fails from here on.
    if let Err(error) = core.refresh_for(rows.iter().map(|row| row.client_id.into())).await {
        tracing::warn!(%error, "keys of new tenants cannot be read");
    }
    let mut conn = core.db.acquire().await?;
    let mut leased = Vec::with_capacity(rows.len());
    for row in rows {
        let (client, id) = (row.client_id, row.command_id);
        match row.open(&mut conn, core, token).await {
            Ok(command) => leased.push(command),
            Err(error) => {
                core.metrics.row_failed(SWEEP, client, &id, error)?;
                give_back_attempt(&mut conn, client, id, token).await?;
            }
        }
    }
    leased.sort_by_key(|command| (command.created_at, command.id));
    Ok(leased)
}

/// Leases the command that `new` names in the caller's transaction, whose edge has the keys of its
/// tenant; `None` when another has it.
///
/// # Errors
/// When the database cannot be used, or it cannot be opened.
pub(super) async fn lease_one(
    conn: &mut Connection,
    core: &Core,
    new: &NewLease<'_>,
) -> Result<Option<Leased>> {
    let token = core.clock.uuid()?;
    match take(conn, core, new, token).await?.pop() {
        Some(row) => Ok(Some(row.open(conn, core, token).await?)),
        None => Ok(None),
    }
}

/// Takes what is due for a connector, or one command before it is due; partner by partner in turns, so
/// that ten thousand commands of one delay nobody else's, and of each the oldest first. Who comes first
/// is drawn by lot: by age, a lease of one command would always be that partner's. Two leases at once
/// get different commands: each passes over rows that the other has locked. An order whose earlier command
/// is still open waits, and so does a payout of coins or money that a check holds back, which no refund
/// waits for; nothing waits for a command that nobody gets, as its connector is not capable of it, it has
/// no route or nobody outside takes its kind. A payout and the cancellation of a payment do not wait for
/// each other, nor does another connector for a cancellation.
/// What no connector is named for goes to those outside alone.
/// Both queues are locked up to `max` of a partner and four times as many in all, so that another
/// lease may pass over commands that neither takes.
#[expect(clippy::too_many_lines, reason = "one statement: each queue is read in its own order")]
async fn take(
    conn: &mut Connection,
    core: &Core,
    new: &NewLease<'_>,
    token: Uuid,
) -> Result<Vec<LeasedRow>> {
    let NewLease { connector, kinds, max, seconds, only } = *new;
    // Nobody outside can have its name.
    let is_outside = connector != sandbox::NAME;
    let rows = sqlx::query_as!(
        LeasedRow,
        r#"
        with recursive lane as (
            (
                select client_id from command where state = 'open' and connector = $1
                order by client_id limit 1
            )
            union all
            select next.client_id
            from lane l cross join lateral (
                select client_id from command
                where state = 'open' and connector = $1 and client_id > l.client_id
                order by client_id limit 1
            ) next
        ), unrouted_lane as (
            (
                select client_id from command where $6 and state = 'open' and connector is null
                order by client_id limit 1
            )
            union all
            select next.client_id
            from unrouted_lane l cross join lateral (
                select client_id from command
                where state = 'open' and connector is null and client_id > l.client_id
                order by client_id limit 1
            ) next
        ), routed as materialized (
            select d.* from (select client_id from lane order by random()) l
            cross join lateral (
                select c.client_id, c.command_id, c.created_at from command c
                where c.client_id = l.client_id
                    and c.state = 'open' and c.kind = any ($2) and c.connector = $1
                    and c.command_id = coalesce($7, c.command_id)
                    and (c.due_at <= rampart_now() or $7 is not null)
                    and (c.leased_until is null or c.leased_until <= now())
                    and (c.order_id is null or not exists (
                        select from command e
                        where e.client_id = c.client_id and e.order_id = c.order_id
                            and e.state = 'open'
                            and (e.created_at, e.command_id) < (c.created_at, c.command_id)
                            -- one that nobody gets has no turn
                            and not (e.attempt = e.retries and exists (
                                select from kind_without_taker(e.kind, e.connector, e.direction)))
                            -- a payment that is cancelled concerns its provider alone, and no payout
                            and not (e.kind = 'payment.cancel'
                                and (c.kind = 'payout.send' or e.connector <> $1))
                            and not (c.kind = 'payment.cancel' and e.kind = 'payout.send')
                            -- what has arrived goes back although a payout is held
                            and not (c.kind = 'payment.refund'
                                and e.kind in ('payout.send', 'transfer.send')
                                and e.attempt = e.retries and exists (
                                    select from outgoing_gate(e.client_id, e.order_id, e.kind, $8) g
                                    where g.is_held))))
                    -- what has come up since it was commanded holds it back too, unless it may have
                    -- left
                    and not ($6 and c.kind in ('payout.send', 'transfer.send')
                        and c.attempt = c.retries and exists (
                            select from outgoing_gate(c.client_id, c.order_id, c.kind, $8) g
                            where g.is_held))
                order by c.created_at, c.command_id limit $3
                for update of c skip locked
            ) d
            limit $3 * 4
        ), unrouted as materialized (
            select d.* from (select client_id from unrouted_lane order by random()) l
            cross join lateral (
                select c.client_id, c.command_id, c.created_at from command c
                where c.client_id = l.client_id
                    and c.state = 'open' and c.kind = any ($2)
                    and c.connector is null and c.direction is null
                    and c.command_id = coalesce($7, c.command_id)
                    and (c.due_at <= rampart_now() or $7 is not null)
                    and (c.leased_until is null or c.leased_until <= now())
                    and (c.order_id is null or not exists (
                        select from command e
                        where e.client_id = c.client_id and e.order_id = c.order_id
                            and e.state = 'open'
                            and (e.created_at, e.command_id) < (c.created_at, c.command_id)
                            and not (e.attempt = e.retries and exists (
                                select from kind_without_taker(e.kind, e.connector, e.direction)))))
                order by c.created_at, c.command_id limit $3
                for update of c skip locked
            ) d
            limit $3 * 4
        ), due as (
            select client_id, command_id from (
                select client_id, command_id, row_number() over (
                    partition by client_id order by created_at, command_id) as turn
                from (
                    select client_id, command_id, created_at from routed
                    union all
                    select client_id, command_id, created_at from unrouted) found) placed
            order by turn, random() limit $3
        )
        update command c set connector = $1, lease_token = $4,
            -- one of the sandbox that was lost has done nothing: its transaction has all that it does
            attempt = case when $6 then c.attempt else c.retries end + 1,
            lease_seconds = $5, result_digest = null,
            leased_until = now() + make_interval(secs => $5::int)
        from due where c.client_id = due.client_id and c.command_id = due.command_id
        returning c.client_id, c.order_id, c.user_id, c.command_id, c.kind, c.attempt, c.created_at,
            c.leased_until as "leased_until!", c.checkpoint, c.sealed_body as "sealed_body!",
            c.traceparent, c.tracestate
        "#,
        connector,
        kinds,
        i64::from(max),
        token,
        i32::from(seconds),
        is_outside,
        only,
        core.settings.compliance.gate_of_live().as_str(),
    )
    .fetch_all(conn)
    .await?;
    Ok(rows)
}

/// Takes back the attempt of a command that no connector got: it may be withdrawn like one that was
/// never leased.
async fn give_back_attempt(
    conn: &mut Connection,
    client: Uuid,
    command: Uuid,
    token: Uuid,
) -> Result<()> {
    sqlx::query!(
        "update command set attempt = attempt - 1 \
         where client_id = $1 and command_id = $2 and lease_token = $3",
        client,
        command,
        token,
    )
    .execute(conn)
    .await?;
    Ok(())
}
