//! The delivery queue in Postgres: claims and results of attempts.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::outbound::{ATTEMPT_TIMEOUT, Failure, Outcome};
use super::schedule::retry_delay;
use crate::Core;
use crate::platform::db::retrying;
use crate::platform::error::Result;
use rampart_types::{ClientId, DeliveryId, EventId, WebhookEndpointId};

/// Duration of a claim: twice the timeout of an attempt. A dying edge delays a delivery by this.
const LEASE: TimeDelta = TimeDelta::seconds(30);
/// Lease time that must remain when an attempt begins.
const ATTEMPT_TIME: TimeDelta = TimeDelta::seconds(ATTEMPT_TIMEOUT.as_secs().cast_signed());

/// A delivery that this edge has leased.
#[derive(Debug)]
pub(super) struct ClaimedDelivery {
    pub(super) client: ClientId,
    pub(super) delivery: DeliveryId,
    pub(super) event: EventId,
    pub(super) kind: String,
    pub(super) data: Value,
    pub(super) happened_at: DateTime<Utc>,
    pub(super) url: String,
    /// The webhook endpoint; `None` for an order's callback.
    endpoint: Option<WebhookEndpointId>,
    /// False if its endpoint has been removed or disabled.
    pub(super) wanted: bool,
    /// Attempts before this one.
    pub(super) attempts: u16,
    /// Time at which this attempt was due.
    pub(super) due_at: DateTime<Utc>,
    /// End of the lease, which also identifies the claim.
    leased_until: DateTime<Utc>,
}

impl ClaimedDelivery {
    /// True if the lease covers a whole attempt.
    pub(super) fn covers_attempt(&self, now: DateTime<Utc>) -> bool {
        self.leased_until - now >= ATTEMPT_TIME
    }
}

/// Limits of a claim.
#[derive(Debug)]
pub(super) struct ClaimLimits {
    /// For all clients together.
    pub(super) total: usize,
    /// For a client that is not in `clients`.
    pub(super) per_client: usize,
    /// For clients with deliveries in flight or an unresponsive host.
    pub(super) clients: Vec<(ClientId, usize)>,
}

fn rows(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Claims due deliveries, oldest first, within the limit of each client: a client with ten thousand
/// due ones does not delay the others. Other edges skip claimed rows.
///
/// # Errors
/// When the database cannot be used.
#[expect(clippy::too_many_lines, reason = "one statement, and a line for each of its columns")]
pub(super) async fn claim(core: &Core, limits: &ClaimLimits) -> Result<Vec<ClaimedDelivery>> {
    let now = core.clock.now();
    let leased_until = now + LEASE;
    let (clients, capacities): (Vec<Uuid>, Vec<i64>) =
        limits.clients.iter().map(|(client, capacity)| (client.uuid(), rows(*capacity))).unzip();
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
        &capacities,
        rows(limits.per_client),
        rows(limits.total),
    )
    .fetch_all(&core.db)
    .await?;
    let claimed = claimed.into_iter().map(|row| ClaimedDelivery {
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

/// The stored result of an attempt.
#[derive(Debug)]
pub(super) struct AttemptResult {
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

impl AttemptResult {
    /// The delivery's next state after this outcome.
    ///
    /// # Errors
    /// When there is no entropy for the jitter.
    pub(super) fn new(core: &Core, claimed: &ClaimedDelivery, outcome: Outcome) -> Result<Self> {
        let now = core.clock.now();
        let failed = claimed.attempts.saturating_add(1);
        let (state, delay) = match outcome {
            Outcome::Delivered(_) => ("delivered", None),
            Outcome::Gone | Outcome::Cancelled => ("disabled", None),
            Outcome::Failed(failure) => {
                let retry_after = match failure {
                    Failure::Status(_, retry_after) => retry_after,
                    _ => None,
                };
                let delay = retry_delay(failed, retry_after, core.clock.random_u64()?);
                (if delay.is_some() { "pending" } else { "failed" }, delay)
            }
        };
        let delivered = matches!(outcome, Outcome::Delivered(_));
        Ok(Self {
            client: claimed.client,
            delivery: claimed.delivery,
            endpoint: claimed.endpoint,
            leased_until: claimed.leased_until,
            state,
            next_attempt_at: now + delay.unwrap_or_default(),
            status: outcome.status().and_then(|status| i16::try_from(status.as_u16()).ok()),
            error: (!delivered).then(|| outcome.name()),
            delivered_at: delivered.then_some(now),
        })
    }
}

/// Writes the results of attempts in one commit and releases their claims. The result of an attempt
/// that outlived its lease counts only if it succeeded, because another edge may hold the delivery
/// by now. An endpoint that answered 410 is disabled.
///
/// # Errors
/// When the database cannot be used; the leases then end by themselves and the attempts are
/// repeated.
pub(super) async fn record(core: &Core, mut results: Vec<AttemptResult>) -> Result<()> {
    // Edges that update the same rows lock them in the same order, which prevents deadlocks.
    results.sort_by_key(|one| (one.client.uuid(), one.delivery.uuid()));
    let column = Columns::new(&results);
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

/// The fields of several results, each as an array parameter.
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
    fn new(results: &[AttemptResult]) -> Self {
        let mut columns = Self::default();
        for result in results {
            columns.clients.push(result.client.uuid());
            columns.deliveries.push(result.delivery.uuid());
            columns.endpoints.push(result.endpoint.map(WebhookEndpointId::uuid));
            columns.leases.push(result.leased_until);
            columns.states.push(result.state);
            columns.next_attempts.push(result.next_attempt_at);
            columns.statuses.push(result.status);
            columns.errors.push(result.error);
            columns.delivered.push(result.delivered_at);
        }
        columns
    }
}

#[cfg(test)]
impl ClaimedDelivery {
    /// A delivery leased until then.
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
