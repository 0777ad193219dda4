//! The queue in Postgres: who may send what now, and what became of it.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::outbound::{Failure, Outcome};
use super::schedule::pause_after;
use crate::Core;
use crate::error::Result;
use crate::types::{ClientId, DeliveryId, EventId, WebhookEndpointId};

/// How long a claim is an edge's own: an attempt's longest time, twice. An edge that dies delays
/// a delivery by this.
const LEASE: TimeDelta = TimeDelta::seconds(30);

/// A delivery that this edge may attempt now.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) client: ClientId,
    pub(super) delivery: DeliveryId,
    pub(super) event: EventId,
    pub(super) kind: String,
    pub(super) data: Value,
    pub(super) happened_at: DateTime<Utc>,
    pub(super) url: String,
    /// The webhook endpoint it goes to; `None` is an order's callback.
    endpoint: Option<WebhookEndpointId>,
    /// Whether somebody still wants it: its endpoint is neither removed nor disabled.
    pub(super) wanted: bool,
    /// Attempts before this one.
    pub(super) attempts: u16,
    /// When this attempt was due.
    pub(super) due_at: DateTime<Utc>,
    /// Until when it is ours; also what tells our claim from a later one.
    leased_until: DateTime<Utc>,
}

/// How much may be claimed.
#[derive(Debug)]
pub(super) struct Room {
    /// In all.
    pub(super) total: usize,
    /// For a client that is not named in `clients`.
    pub(super) each: usize,
    /// For clients that have something in flight or are failing.
    pub(super) clients: Vec<(ClientId, usize)>,
}

fn rows(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Claims deliveries that are due, the longest due first, for each client no more than it has room
/// for: a client with ten thousand due costs the others nothing. Other edges skip what is claimed.
///
/// # Errors
/// When the database cannot be used.
#[expect(clippy::too_many_lines, reason = "one statement, and a line for each of its columns")]
pub(super) async fn claim(core: &Core, room: &Room) -> Result<Vec<Claimed>> {
    let now = core.clock.now();
    let leased_until = now + LEASE;
    let (clients, rooms): (Vec<Uuid>, Vec<i64>) =
        room.clients.iter().map(|(client, room)| (client.uuid(), rows(*room))).unzip();
    let claimed = sqlx::query!(
        r#"
        with recursive waiting as (
            (select client_id from delivery where state = 'pending' order by client_id limit 1)
            union all
            select (
                select d.client_id from delivery d
                where d.state = 'pending' and d.client_id > w.client_id
                order by d.client_id limit 1
            )
            from waiting w where w.client_id is not null
        ), due as (
            select d.client_id, d.delivery_id, d.event_id, d.endpoint_id
            from waiting w
            left join unnest($3::uuid[], $4::bigint[]) as known (client_id, room)
                on known.client_id = w.client_id
            cross join lateral (
                select client_id, delivery_id, event_id, endpoint_id, next_attempt_at
                from delivery
                where client_id = w.client_id and state = 'pending' and next_attempt_at <= $1
                    and (leased_until is null or leased_until <= $1)
                order by next_attempt_at limit coalesce(known.room, $5)
                for update skip locked
            ) d
            where w.client_id is not null
            order by d.next_attempt_at limit $6
        ), told as (
            select due.client_id, due.delivery_id, e.type, e.payload, e.created_at,
                due.endpoint_id is null or exists (
                    select from webhook_endpoint w
                    where w.client_id = due.client_id and w.endpoint_id = due.endpoint_id
                        and w.disabled_at is null
                ) as wanted
            from due cross join lateral (
                -- the limit keeps the planner from joining by client alone, through its whole log
                select type, payload, created_at from event
                where client_id = due.client_id and event_id = due.event_id limit 1
            ) e
        )
        update delivery d set leased_until = $2
        from told where d.client_id = told.client_id and d.delivery_id = told.delivery_id
        returning d.client_id, d.delivery_id, d.event_id, d.url, d.endpoint_id, d.attempts,
            d.next_attempt_at, told.wanted as "wanted!", told.type as "kind!",
            told.payload as "payload!", told.created_at as "created_at!"
        "#,
        now,
        leased_until,
        &clients,
        &rooms,
        rows(room.each),
        rows(room.total),
    )
    .fetch_all(&core.db)
    .await?;
    let claimed = claimed.into_iter().map(|row| Claimed {
        client: ClientId::from(row.client_id),
        delivery: DeliveryId::from(row.delivery_id),
        event: EventId::from(row.event_id),
        kind: row.kind,
        data: row.payload,
        happened_at: row.created_at,
        url: row.url,
        endpoint: row.endpoint_id.map(WebhookEndpointId::from),
        wanted: row.wanted,
        attempts: u16::try_from(row.attempts).unwrap_or_default(),
        due_at: row.next_attempt_at,
        leased_until,
    });
    Ok(claimed.collect())
}

/// Writes what became of an attempt, and gives the claim back. An attempt that outlived its lease
/// is heard only if it succeeded: the delivery may be another edge's by now. An endpoint whose host
/// wants no more of it is disabled with it.
///
/// # Errors
/// When the database cannot be used; the lease then ends by itself and the attempt is repeated.
pub(super) async fn settle(core: &Core, claimed: &Claimed, outcome: Outcome) -> Result<()> {
    let now = core.clock.now();
    let failed = claimed.attempts.saturating_add(1);
    let (state, pause) = match outcome {
        Outcome::Delivered(_) => ("delivered", None),
        Outcome::Gone | Outcome::Unwanted => ("disabled", None),
        Outcome::Failed(failure) => {
            let asked = match failure {
                Failure::Answered(_, asked) => asked,
                _ => None,
            };
            let pause = pause_after(failed, asked, core.clock.random_u64()?);
            (if pause.is_some() { "pending" } else { "failed" }, pause)
        }
    };
    let delivered = matches!(outcome, Outcome::Delivered(_));
    sqlx::query!(
        r#"
        with refused as (
            update webhook_endpoint set disabled_at = $9
            where client_id = $1 and endpoint_id = $10 and $3 = 'disabled' and disabled_at is null
        )
        update delivery set
            state = $3, attempts = attempts + 1, next_attempt_at = $4, leased_until = null,
            last_status = $5, last_error = $6, delivered_at = $7
        where client_id = $1 and delivery_id = $2 and state = 'pending'
            and (leased_until = $8 or $3 = 'delivered')
        "#,
        claimed.client.uuid(),
        claimed.delivery.uuid(),
        state,
        now + pause.unwrap_or_default(),
        outcome.status().and_then(|status| i16::try_from(status.as_u16()).ok()),
        (!delivered).then(|| outcome.name()),
        delivered.then_some(now),
        claimed.leased_until,
        now,
        claimed.endpoint.map(WebhookEndpointId::uuid),
    )
    .execute(&core.db)
    .await?;
    Ok(())
}
