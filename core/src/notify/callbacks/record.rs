//! Results of attempts, and what follows from them for a delivery and its endpoint.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::WORKER;
use super::outbound::{Failure, Outcome};
use super::queue::ClaimedDelivery;
use super::schedule::retry_delay;
use crate::Core;
use crate::notify::webhooks::failing::{FAILING_MAX, switch_off};
use crate::platform::db::{HeldConnection, Pool, retrying};
use crate::platform::error::Result;
use rampart_types::{ClientId, DeliveryId, WebhookEndpointId};

/// An attempt, and what came back.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) outcome: Outcome,
    /// `None` if nothing was sent.
    pub(super) sent_at: Option<DateTime<Utc>>,
    /// Beginning of the answer's body, if there was one.
    pub(super) answer: Option<String>,
}

impl Attempt {
    /// Nothing was sent.
    pub(super) const fn unsent(outcome: Outcome) -> Self {
        Self { outcome, sent_at: None, answer: None }
    }
}

/// The stored result of an attempt.
#[derive(Debug)]
pub(super) struct AttemptResult {
    id: Uuid,
    sent_at: Option<DateTime<Utc>>,
    took_ms: i32,
    answer: Option<String>,
    client: ClientId,
    /// The endpoint, if the outcome says anything about it.
    endpoint: Option<WebhookEndpointId>,
    /// True if this delivery alone has failed for [`FAILING_MAX`], since it was written or sent again.
    is_lasting: bool,
    delivery: DeliveryId,
    leased_until: DateTime<Utc>,
    state: &'static str,
    next_attempt_at: DateTime<Utc>,
    status: Option<i16>,
    error: Option<&'static str>,
    delivered_at: Option<DateTime<Utc>>,
}

impl AttemptResult {
    /// The delivery's next state after this attempt, which took that long.
    ///
    /// # Errors
    /// When there is no entropy for the jitter.
    pub(super) fn new(
        core: &Core,
        claimed: &ClaimedDelivery,
        attempt: Attempt,
        took: Duration,
    ) -> Result<Self> {
        let Attempt { outcome, sent_at, answer } = attempt;
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
            id: core.clock.uuid()?,
            sent_at,
            took_ms: i32::try_from(took.as_millis()).unwrap_or(i32::MAX),
            answer,
            client: claimed.lane.client,
            endpoint: claimed.lane.endpoint.filter(|_| outcome.concerns_receiver()),
            is_lasting: claimed.attempts > 0 && now - claimed.begun_at >= FAILING_MAX,
            delivery: claimed.delivery,
            leased_until: claimed.leased_until,
            state,
            next_attempt_at: now + delay.unwrap_or_default(),
            status: outcome.status().and_then(|status| i16::try_from(status.as_u16()).ok()),
            error: (!delivered).then(|| outcome.name()),
            delivered_at: delivered.then_some(now),
        })
    }
}

/// Writes the results of attempts and releases their claims: together, or client by client where that
/// is not possible. An endpoint that answered 410 is disabled, and so is one that has failed for days; a
/// delivery that this side could not sign says nothing about its endpoint.
///
/// # Errors
/// When the database cannot be used; the leases then end by themselves and the attempts are
/// repeated.
pub(super) async fn record(core: &Core, mut results: Vec<AttemptResult>) -> Result<()> {
    // Edges that update the same rows lock them in the same order, which prevents deadlocks.
    results.sort_by_key(|one| (one.client.uuid(), one.delivery.uuid()));
    match write(core, &results, HeldConnection::of_batches).await {
        Ok(()) => {}
        Err(error) if error.is_unavailable() && !error.is_of_one_statement() => return Err(error),
        Err(_) => write_by_client(core, &results).await?,
    }
    switch_off(core, WORKER, &failed(&results)).await
}

/// Writes results client by client: rows that somebody holds, or that cannot be written, cost their own
/// client alone, whose attempts are repeated.
async fn write_by_client(core: &Core, results: &[AttemptResult]) -> Result<()> {
    for of_client in results.chunk_by(|one, other| one.client == other.client) {
        let written = write(core, of_client, HeldConnection::of_partner).await;
        if let (Err(error), Some(first)) = (written, of_client.first()) {
            core.metrics.row_failed(WORKER, first.client.uuid(), &first.delivery, error)?;
        }
    }
    Ok(())
}

/// Writes results in one commit. The result of an attempt that outlived its lease counts only if it
/// succeeded, because another edge may hold the delivery by now.
async fn write(
    core: &Core,
    results: &[AttemptResult],
    hold: fn(Pool) -> HeldConnection,
) -> Result<()> {
    let column = Columns::new(results);
    let now = core.clock.now();
    retrying(async || {
        let mut held = hold(core.db.clone());
        let connection = held.get().await?;
        sqlx::query!(
            r#"
            with settled as (
                select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[],
                    $5::text[], $6::timestamptz[], $7::smallint[], $8::text[], $9::timestamptz[])
                as settled (client_id, delivery_id, endpoint_id, leased_until, state,
                    next_attempt_at, last_status, last_error, delivered_at)
            ), heard as (
                select client_id, endpoint_id, bool_or(state = 'delivered') as delivered
                from settled where endpoint_id is not null
                group by client_id, endpoint_id
            ), judged as (
                update webhook_endpoint w set
                    failing_since =
                        case when not h.delivered then coalesce(w.failing_since, $10::timestamptz) end
                from heard h
                where w.client_id = h.client_id and w.endpoint_id = h.endpoint_id
                    and w.disabled_at is null
                    -- most attempts change nothing
                    and h.delivered = (w.failing_since is not null)
            ), attempted as (
                insert into delivery_attempt (client_id, delivery_id, attempt_id, sent_at, took_ms,
                    status, error, answer)
                select client_id, delivery_id, attempt_id, sent_at, took_ms, status, error, answer
                from unnest($1::uuid[], $2::uuid[], $11::uuid[], $12::timestamptz[], $13::int[],
                    $7::smallint[], $8::text[], $14::text[])
                as attempted (client_id, delivery_id, attempt_id, sent_at, took_ms, status, error,
                    answer)
                where sent_at is not null
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
            &column.ids,
            &column.sent as &[Option<DateTime<Utc>>],
            &column.took,
            &column.answers as &[Option<&str>],
        )
        .execute(connection)
        .await
    })
    .await?;
    Ok(())
}

/// Endpoints that answered 410 (`true`), or to which one delivery has failed for days: after a quiet
/// week the first failure says little.
fn failed(results: &[AttemptResult]) -> BTreeMap<(ClientId, WebhookEndpointId), bool> {
    let mut failed = BTreeMap::<_, bool>::new();
    for result in results.iter().filter(|one| one.error.is_some()) {
        let Some(endpoint) = result.endpoint else { continue };
        let is_gone = result.state == "disabled";
        if is_gone || result.is_lasting {
            *failed.entry((result.client, endpoint)).or_default() |= is_gone;
        }
    }
    failed
}

/// Ends the leases of deliveries that this edge does not attempt, so that the next claim takes them. The
/// lease of one that somebody holds ends by itself.
///
/// # Errors
/// When the database cannot be used; the leases then end by themselves.
pub(super) async fn release(core: &Core, unattempted: Vec<ClaimedDelivery>) -> Result<()> {
    let clients: Vec<_> = unattempted.iter().map(|one| one.lane.client.uuid()).collect();
    let deliveries: Vec<_> = unattempted.iter().map(|one| one.delivery.uuid()).collect();
    let leases: Vec<_> = unattempted.iter().map(|one| one.leased_until).collect();
    retrying(async || {
        sqlx::query!(
            "update delivery d set leased_until = null from ( \
                 select d.client_id, d.delivery_id \
                 from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) \
                     as s (client_id, delivery_id, leased_until) \
                 join delivery d on d.client_id = s.client_id and d.delivery_id = s.delivery_id \
                 where d.state = 'pending' and d.leased_until = s.leased_until \
                 for update of d skip locked) free \
             where d.client_id = free.client_id and d.delivery_id = free.delivery_id",
            &clients,
            &deliveries,
            &leases,
        )
        .execute(&core.db)
        .await
    })
    .await?;
    Ok(())
}

/// The fields of several results, each as an array parameter.
#[derive(Default)]
struct Columns<'a> {
    ids: Vec<Uuid>,
    sent: Vec<Option<DateTime<Utc>>>,
    took: Vec<i32>,
    answers: Vec<Option<&'a str>>,
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

impl<'a> Columns<'a> {
    fn new(results: &'a [AttemptResult]) -> Self {
        let mut columns = Self::default();
        for result in results {
            columns.ids.push(result.id);
            columns.sent.push(result.sent_at);
            columns.took.push(result.took_ms);
            columns.answers.push(result.answer.as_deref());
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
