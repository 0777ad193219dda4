//! The queue in Postgres: who may send what now, and what became of it.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::outbound::{ATTEMPT_MAX, Failure, Outcome};
use super::schedule::pause_after;
use crate::Core;
use crate::platform::db::retrying;
use crate::platform::error::Result;
use rampart_types::{ClientId, DeliveryId, EventId, WebhookEndpointId};

/// How long a claim is an edge's own: an attempt's longest time, twice. An edge that dies delays
/// a delivery by this.
const LEASE: TimeDelta = TimeDelta::seconds(30);
/// What must be left of it when an attempt begins.
const ATTEMPT_TIME: TimeDelta = TimeDelta::seconds(ATTEMPT_MAX.as_secs().cast_signed());

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

impl Claimed {
    /// Whether it stays ours for a whole attempt.
    pub(super) fn lasts(&self, now: DateTime<Utc>) -> bool {
        self.leased_until - now >= ATTEMPT_TIME
    }
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

/// Claims deliveries that are due, in the order in which they became due, for each client no more than it has room
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
            select d.client_id, d.delivery_id
            from waiting w
            left join unnest($3::uuid[], $4::bigint[]) as known (client_id, room)
                on known.client_id = w.client_id
            cross join lateral (
                select client_id, delivery_id, next_attempt_at from delivery
                where client_id = w.client_id and state = 'pending' and next_attempt_at <= $1
                    and (leased_until is null or leased_until <= $1)
                order by next_attempt_at limit coalesce(known.room, $5)
                for update skip locked
            ) d
            where w.client_id is not null
            order by d.next_attempt_at limit $6
        ), claimed as (
            update delivery d set leased_until = $2
            -- of arrays the planner expects few rows, and looks each up: what it expects of "due"
            -- makes it read the whole table
            from unnest(array(select client_id from due), array(select delivery_id from due))
                as picked (client_id, delivery_id)
            where d.client_id = picked.client_id and d.delivery_id = picked.delivery_id
            returning d.client_id, d.delivery_id, d.event_id, d.url, d.endpoint_id, d.attempts,
                d.next_attempt_at
        )
        select c.client_id, c.delivery_id, c.event_id, c.url, c.endpoint_id, c.attempts,
            c.next_attempt_at, e.type as "kind!", e.payload as "payload!",
            e.created_at as "created_at!",
            c.endpoint_id is null or exists (
                select from webhook_endpoint w
                where w.client_id = c.client_id and w.endpoint_id = c.endpoint_id
                    and w.disabled_at is null
            ) as "wanted!"
        from claimed c cross join lateral (
            -- the limit keeps the planner from joining by client alone, through its whole log
            select type, payload, created_at from event
            where client_id = c.client_id and event_id = c.event_id limit 1
        ) e
        order by c.next_attempt_at, c.delivery_id
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

/// What became of an attempt, as it is written.
#[derive(Debug)]
pub(super) struct Settled {
    client: ClientId,
    delivery: DeliveryId,
    endpoint: Option<WebhookEndpointId>,
    leased_until: DateTime<Utc>,
    state: &'static str,
    next_attempt_at: DateTime<Utc>,
    status: Option<i16>,
    error: Option<&'static str>,
    delivered_at: Option<DateTime<Utc>>,
}

impl Settled {
    /// What this outcome makes of the delivery, now.
    ///
    /// # Errors
    /// When there is no entropy for its pause.
    pub(super) fn of(core: &Core, claimed: &Claimed, outcome: Outcome) -> Result<Self> {
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
        Ok(Self {
            client: claimed.client,
            delivery: claimed.delivery,
            endpoint: claimed.endpoint,
            leased_until: claimed.leased_until,
            state,
            next_attempt_at: now + pause.unwrap_or_default(),
            status: outcome.status().and_then(|status| i16::try_from(status.as_u16()).ok()),
            error: (!delivered).then(|| outcome.name()),
            delivered_at: delivered.then_some(now),
        })
    }
}

/// Writes what became of attempts, in one commit, and gives the claims back. An attempt that
/// outlived its lease is heard only if it succeeded: the delivery may be another edge's by now. An
/// endpoint whose host wants no more of it is disabled with it.
///
/// # Errors
/// When the database cannot be used; the leases then end by themselves and the attempts are
/// repeated.
pub(super) async fn settle(core: &Core, mut settled: Vec<Settled>) -> Result<()> {
    // Two edges that hold the same rows wait for each other in one direction only.
    settled.sort_by_key(|one| (one.client.uuid(), one.delivery.uuid()));
    let column = Columns::of(&settled);
    let now = core.clock.now();
    retrying(async || {
        sqlx::query!(
            r#"
            with settled as (
                select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[],
                    $5::text[], $6::timestamptz[], $7::smallint[], $8::text[], $9::timestamptz[])
                as settled (client_id, delivery_id, endpoint_id, leased_until, state,
                    next_attempt_at, last_status, last_error, delivered_at)
            ), refused as (
                update webhook_endpoint w set disabled_at = $10
                from settled s
                where w.client_id = s.client_id and w.endpoint_id = s.endpoint_id
                    and s.state = 'disabled' and w.disabled_at is null
            )
            update delivery d set
                state = s.state, attempts = d.attempts + 1, next_attempt_at = s.next_attempt_at,
                leased_until = null, last_status = s.last_status, last_error = s.last_error,
                delivered_at = s.delivered_at
            from settled s
            where d.client_id = s.client_id and d.delivery_id = s.delivery_id
                and d.state = 'pending'
                and (d.leased_until = s.leased_until or s.state = 'delivered')
            "#,
            &column.clients,
            &column.deliveries,
            &column.endpoints as &[Option<Uuid>],
            &column.leases,
            &column.states as &[&str],
            &column.next_attempts,
            &column.statuses as &[Option<i16>],
            &column.errors as &[Option<&str>],
            &column.delivered as &[Option<DateTime<Utc>>],
            now,
        )
        .execute(&core.db)
        .await
    })
    .await?;
    Ok(())
}

/// The members of several, each as an array of the statement.
#[derive(Default)]
struct Columns {
    clients: Vec<Uuid>,
    deliveries: Vec<Uuid>,
    endpoints: Vec<Option<Uuid>>,
    leases: Vec<DateTime<Utc>>,
    states: Vec<&'static str>,
    next_attempts: Vec<DateTime<Utc>>,
    statuses: Vec<Option<i16>>,
    errors: Vec<Option<&'static str>>,
    delivered: Vec<Option<DateTime<Utc>>>,
}

impl Columns {
    fn of(settled: &[Settled]) -> Self {
        let mut columns = Self::default();
        for one in settled {
            columns.clients.push(one.client.uuid());
            columns.deliveries.push(one.delivery.uuid());
            columns.endpoints.push(one.endpoint.map(WebhookEndpointId::uuid));
            columns.leases.push(one.leased_until);
            columns.states.push(one.state);
            columns.next_attempts.push(one.next_attempt_at);
            columns.statuses.push(one.status);
            columns.errors.push(one.error);
            columns.delivered.push(one.delivered_at);
        }
        columns
    }
}

#[cfg(test)]
impl Claimed {
    /// One that is ours until then.
    pub(super) fn until(leased_until: DateTime<Utc>) -> Self {
        Self {
            client: ClientId::from(Uuid::nil()),
            delivery: DeliveryId::from(Uuid::nil()),
            event: EventId::from(Uuid::nil()),
            kind: String::new(),
            data: Value::Null,
            happened_at: DateTime::UNIX_EPOCH,
            url: String::new(),
            endpoint: None,
            wanted: true,
            attempts: 0,
            due_at: DateTime::UNIX_EPOCH,
            leased_until,
        }
    }
}
