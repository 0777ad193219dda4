//! The delivery queue in Postgres: claims.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::lane::Lane;
use super::outbound::ATTEMPT_TIMEOUT;
use crate::Core;
use crate::platform::error::Result;
use crate::platform::telemetry::StoredTrace;
use rampart_types::{ClientId, DeliveryId, EventId, WebhookEndpointId};

/// Duration of a claim: twice the timeout of an attempt. A dying edge delays a delivery by this.
pub(super) const LEASE: TimeDelta = TimeDelta::seconds(30);
/// Lease time that must remain when an attempt begins.
const ATTEMPT_TIME: TimeDelta = TimeDelta::seconds(ATTEMPT_TIMEOUT.as_secs().cast_signed());

/// Most deliveries that become ready with one claim.
const READY_MAX: i64 = 1_000;

/// A delivery that this edge has leased.
#[derive(Debug)]
pub(super) struct ClaimedDelivery {
    pub(super) lane: Lane,
    pub(super) delivery: DeliveryId,
    pub(super) event: EventId,
    /// The order that the event is about.
    pub(super) order: Option<i64>,
    pub(super) kind: String,
    pub(super) data: Value,
    pub(super) happened_at: DateTime<Utc>,
    /// Time at which it was written, or sent again last.
    pub(super) begun_at: DateTime<Utc>,
    pub(super) url: String,
    /// The trace that the event happened in.
    pub(super) trace: StoredTrace,
    /// False if its endpoint has been removed or disabled, or its event archived.
    pub(super) wanted: bool,
    /// Ids and sealed values of its endpoint's own secrets, the current one first.
    pub(super) own_secrets: Vec<(Uuid, Vec<u8>)>,
    /// True if the client's secrets sign it.
    pub(super) by_client_secrets: bool,
    /// Attempts before this one.
    pub(super) attempts: u16,
    /// Time at which this attempt was due.
    pub(super) due_at: DateTime<Utc>,
    /// Revision of the client's settings and secrets when it was claimed.
    pub(super) client_revision: i64,
    /// End of the lease, which also identifies the claim.
    pub(super) leased_until: DateTime<Utc>,
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
    /// For all lanes together.
    pub(super) total: usize,
    /// For a lane that is not in `lanes`.
    pub(super) per_lane: usize,
    /// For lanes that the edge has a queue of.
    pub(super) lanes: Vec<(Lane, usize)>,
    /// For all lanes of a client that is not in `clients`.
    pub(super) per_client: usize,
    /// For clients that the edge has a queue of.
    pub(super) clients: HashMap<ClientId, ClientPlaces>,
}

/// A client's part of what an edge may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientPlaces {
    /// Deliveries that the edge holds.
    pub(super) held: usize,
    /// Most deliveries that it may hold.
    pub(super) most: usize,
}

impl ClientPlaces {
    fn room(self) -> usize {
        self.most.saturating_sub(self.held)
    }
}

impl ClaimLimits {
    /// The clients for which this claim may have left some because of their limit.
    pub(super) fn exhausted(&self, claimed: &[ClaimedDelivery]) -> HashSet<ClientId> {
        let mut rooms: HashMap<ClientId, usize> =
            self.clients.iter().map(|(client, places)| (*client, places.room())).collect();
        for claimed in claimed {
            let room = rooms.entry(claimed.lane.client).or_insert(self.per_client);
            *room = room.saturating_sub(1);
        }
        rooms.into_iter().filter(|(_, room)| *room == 0).map(|(client, _)| client).collect()
    }
}

fn rows(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Makes deliveries ready whose next attempt is due, or whose lease has ended: the only ones that a
/// claim looks at, so that it costs nothing to wait for a retry.
async fn make_ready(core: &Core) -> Result<()> {
    sqlx::query!(
        r#"
        update delivery set ready = true
        where (client_id, delivery_id) in (
            select client_id, delivery_id from delivery
            where state = 'pending' and not ready
                and greatest(next_attempt_at, leased_until) <= rampart_now()
            order by greatest(next_attempt_at, leased_until) limit $1
            for update skip locked
        )
        "#,
        READY_MAX,
    )
    .execute(&core.db)
    .await?;
    Ok(())
}

/// Claims due deliveries, oldest first, within the limit of each lane and client: ten thousand due ones
/// of one endpoint do not delay those of others. Where there is no room for all, the client that holds
/// least comes first, and of its lanes the one with the most room. Other edges skip claimed rows. The
/// first attempt of an order's event waits in its lane until those of the events before it are settled
/// or claimed along with it.
///
/// # Errors
/// When the database cannot be used.
#[expect(clippy::too_many_lines, reason = "one statement, and a line for each of its columns")]
pub(super) async fn claim(core: &Core, limits: &ClaimLimits) -> Result<Vec<ClaimedDelivery>> {
    make_ready(core).await?;
    let known = LaneColumns::new(&limits.lanes);
    let clients = ClientColumns::new(&limits.clients);
    let claimed = sqlx::query!(
        r#"
        with recursive lane as (
            (
                select client_id,
                    coalesce(endpoint_id, '00000000-0000-0000-0000-000000000000'::uuid) as endpoint
                from delivery where state = 'pending' and ready
                order by client_id,
                    coalesce(endpoint_id, '00000000-0000-0000-0000-000000000000'::uuid)
                limit 1
            )
            union all
            select next.client_id, next.endpoint
            from lane l cross join lateral (
                select client_id,
                    coalesce(endpoint_id, '00000000-0000-0000-0000-000000000000'::uuid) as endpoint
                from delivery
                where state = 'pending' and ready
                    and (client_id,
                        coalesce(endpoint_id, '00000000-0000-0000-0000-000000000000'::uuid))
                        > (l.client_id, l.endpoint)
                order by client_id,
                    coalesce(endpoint_id, '00000000-0000-0000-0000-000000000000'::uuid)
                limit 1
            ) next
        ), waiting as (
            select d.*, row_number() over (
                    partition by d.client_id, d.endpoint order by d.next_attempt_at, d.event_id
                ) - coalesce(known.room, $5) as turn
            from lane l
            left join unnest($2::uuid[], $3::uuid[], $4::bigint[])
                as known (client_id, endpoint, room)
                on known.client_id = l.client_id and known.endpoint = l.endpoint
            cross join lateral (
                select client_id, delivery_id, event_id, order_id, attempts, next_attempt_at,
                    coalesce(endpoint_id, '00000000-0000-0000-0000-000000000000'::uuid) as endpoint
                from delivery
                where client_id = l.client_id
                    and coalesce(endpoint_id, '00000000-0000-0000-0000-000000000000'::uuid)
                        = l.endpoint
                    and state = 'pending' and ready and next_attempt_at <= rampart_now()
                    and (leased_until is null or leased_until <= rampart_now())
                order by next_attempt_at, event_id limit coalesce(known.room, $5)
                for update skip locked
            ) d
        ), placed as (
            select w.*, row_number() over (
                partition by w.client_id order by w.turn, w.next_attempt_at, w.event_id
            ) as place
            from waiting w
        ), due as materialized (
            select p.*
            from placed p
            left join unnest($7::uuid[], $8::bigint[], $9::bigint[])
                as known (client_id, held, room) on known.client_id = p.client_id
            where p.place <= coalesce(known.room, $10)
            order by p.place + coalesce(known.held, 0), p.next_attempt_at, p.event_id limit $6
        ), startable as materialized (
            select client_id, delivery_id from due
            where order_id is null or attempts > 0 or not exists (
                select from delivery e
                where e.order_id = due.order_id and e.client_id = due.client_id
                    and coalesce(e.endpoint_id, '00000000-0000-0000-0000-000000000000'::uuid)
                        = due.endpoint
                    and e.state = 'pending' and e.attempts = 0
                    and (e.next_attempt_at, e.event_id) < (due.next_attempt_at, due.event_id)
                    and e.delivery_id <> all (array(select delivery_id from due))
            )
        ), claimed as (
            update delivery d set ready = false,
                leased_until = rampart_now() + $1::bigint * interval '1 second'
            -- of arrays the planner expects few rows, and looks each up: what it expects of
            -- "startable" makes it read the whole table
            from unnest(array(select client_id from startable),
                array(select delivery_id from startable)) as picked (client_id, delivery_id)
            where d.client_id = picked.client_id and d.delivery_id = picked.delivery_id
            returning d.client_id, d.delivery_id, d.event_id, d.order_id, d.url, d.endpoint_id,
                d.attempts, d.next_attempt_at, d.leased_until,
                greatest(d.created_at, d.sent_again_at) as begun_at
        )
        select c.client_id, c.delivery_id, c.event_id, c.order_id, c.url, c.endpoint_id, c.attempts,
            c.next_attempt_at, c.leased_until as "leased_until!", c.begun_at as "begun_at!",
            coalesce(e.type, '') as "kind!", coalesce(e.payload, 'null') as "payload!",
            coalesce(e.created_at, c.next_attempt_at) as "created_at!",
            e.traceparent as "traceparent?", e.tracestate as "tracestate?",
            (select revision from client where client_id = c.client_id) as "client_revision!",
            -- one whose event is archived is claimed too, to be ended: it would come up for ever
            e.type is not null and (c.endpoint_id is null or exists (
                select from webhook_endpoint w
                where w.client_id = c.client_id and w.endpoint_id = c.endpoint_id
                    and w.disabled_at is null
            )) as "wanted!",
            array(
                select secret_id from webhook_endpoint_secret s
                where s.client_id = c.client_id and s.endpoint_id = c.endpoint_id
                    and (valid_until is null or valid_until > rampart_now())
                order by secret_id desc
            ) as "secret_ids!",
            array(
                select sealed from webhook_endpoint_secret s
                where s.client_id = c.client_id and s.endpoint_id = c.endpoint_id
                    and (valid_until is null or valid_until > rampart_now())
                order by secret_id desc
            ) as "secrets!",
            not exists (
                select from webhook_endpoint w
                where w.client_id = c.client_id and w.endpoint_id = c.endpoint_id
                    and w.client_secrets_until <= rampart_now()
            ) as "by_client_secrets!"
        from claimed c left join lateral (
            -- the limit keeps the planner from joining by client alone, through its whole log
            select type, payload, created_at, traceparent, tracestate from event
            where client_id = c.client_id and event_id = c.event_id limit 1
        ) e on true
        order by c.next_attempt_at, c.event_id, c.delivery_id
        "#,
        LEASE.num_seconds(),
        &known.clients,
        &known.endpoints,
        &known.rooms,
        rows(limits.per_lane),
        rows(limits.total),
        &clients.clients,
        &clients.held,
        &clients.rooms,
        rows(limits.per_client),
    )
    .fetch_all(&core.db)
    .await?;
    let claimed = claimed.into_iter().map(|row| ClaimedDelivery {
        lane: Lane {
            client: ClientId::from(row.client_id),
            endpoint: row.endpoint_id.map(WebhookEndpointId::from),
        },
        delivery: DeliveryId::from(row.delivery_id),
        event: EventId::from(row.event_id),
        order: row.order_id,
        kind: row.kind,
        data: row.payload,
        happened_at: row.created_at,
        begun_at: row.begun_at,
        url: row.url,
        trace: StoredTrace { traceparent: row.traceparent, tracestate: row.tracestate },
        wanted: row.wanted,
        own_secrets: row.secret_ids.into_iter().zip(row.secrets).collect(),
        by_client_secrets: row.by_client_secrets,
        attempts: u16::try_from(row.attempts).unwrap_or_default(),
        due_at: row.next_attempt_at,
        client_revision: row.client_revision,
        leased_until: row.leased_until,
    });
    Ok(claimed.collect())
}

/// Lanes and their rooms, each as an array parameter.
#[derive(Default)]
struct LaneColumns {
    clients: Vec<Uuid>,
    endpoints: Vec<Uuid>,
    rooms: Vec<i64>,
}

impl LaneColumns {
    fn new(lanes: &[(Lane, usize)]) -> Self {
        let mut columns = Self::default();
        for (lane, room) in lanes {
            columns.clients.push(lane.client.uuid());
            // As in the statement and its index.
            columns.endpoints.push(lane.endpoint.map_or(Uuid::nil(), WebhookEndpointId::uuid));
            columns.rooms.push(rows(*room));
        }
        columns
    }
}

/// Clients and their places, each as an array parameter.
#[derive(Default)]
struct ClientColumns {
    clients: Vec<Uuid>,
    held: Vec<i64>,
    rooms: Vec<i64>,
}

impl ClientColumns {
    fn new(clients: &HashMap<ClientId, ClientPlaces>) -> Self {
        let mut columns = Self::default();
        for (client, places) in clients {
            columns.clients.push(client.uuid());
            columns.held.push(rows(places.held));
            columns.rooms.push(rows(places.room()));
        }
        columns
    }
}

#[cfg(test)]
impl ClaimedDelivery {
    /// A delivery leased until then.
    pub(super) fn until(leased_until: DateTime<Utc>) -> Self {
        Self {
            lane: Lane { client: ClientId::from(Uuid::nil()), endpoint: None },
            delivery: DeliveryId::from(Uuid::nil()),
            event: EventId::from(Uuid::nil()),
            order: None,
            kind: String::new(),
            data: Value::Null,
            happened_at: DateTime::UNIX_EPOCH,
            begun_at: DateTime::UNIX_EPOCH,
            url: String::new(),
            trace: StoredTrace::default(),
            wanted: true,
            own_secrets: Vec::new(),
            by_client_secrets: true,
            attempts: 0,
            due_at: DateTime::UNIX_EPOCH,
            client_revision: 0,
            leased_until,
        }
    }
}
