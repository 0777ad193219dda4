//! Deliveries that are sent again, from the first attempt on and with the same `webhook-id`.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::{ClientId, DeliveryId, WebhookEndpointId};

/// Most deliveries that one call sends again, the oldest ones.
pub const RESENT_MAX: i64 = 1_000;

/// The outcome of a call that sends one delivery again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resent {
    /// It is due now.
    Due,
    /// There is none of this id, or its event is archived: nothing is left to send.
    Unknown,
    /// An attempt is under way.
    UnderWay,
    /// Its endpoint is removed or switched off.
    EndpointOff,
}

/// A delivery whose event is kept.
#[derive(Clone, Copy, Debug)]
pub struct KeptDelivery {
    client_id: Uuid,
    /// Its id.
    pub delivery_id: Uuid,
    /// False if its endpoint is removed or switched off. A callback has none.
    pub is_open: bool,
}

/// Those of these deliveries whose events are kept.
///
/// # Errors
/// When the database cannot be read.
pub async fn kept(conn: &mut Connection, deliveries: &[Uuid]) -> Result<Vec<KeptDelivery>> {
    let kept = sqlx::query_as!(
        KeptDelivery,
        r#"
        select d.client_id as "client_id!", d.delivery_id as "delivery_id!",
            (d.endpoint_id is null or w.endpoint_id is not null and w.disabled_at is null)
                as "is_open!"
        from delivery d
        join event e on e.client_id = d.client_id and e.event_id = d.event_id
        left join webhook_endpoint w
            on w.client_id = d.client_id and w.endpoint_id = d.endpoint_id
        where d.delivery_id = any ($1)
        "#,
        deliveries,
    )
    .fetch_all(conn)
    .await?;
    Ok(kept)
}

/// Sends one delivery again, in whatever state it is.
///
/// # Errors
/// When the database cannot be used.
pub async fn resend(
    conn: &mut Connection,
    client: ClientId,
    delivery: DeliveryId,
) -> Result<Resent> {
    let kept = kept(conn, &[delivery.uuid()]).await?;
    match kept.iter().find(|kept| kept.client_id == client.uuid()) {
        None => return Ok(Resent::Unknown),
        Some(kept) if !kept.is_open => return Ok(Resent::EndpointOff),
        Some(_) => {}
    }
    let due = sqlx::query!(
        "update delivery set state = 'pending', attempts = 0, next_attempt_at = rampart_now(), \
         ready = true, leased_until = null, delivered_at = null, sent_again_at = rampart_now() \
         where client_id = $1 and delivery_id = $2 \
             and (state <> 'pending' or leased_until is null or leased_until <= rampart_now())",
        client.uuid(),
        delivery.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(if due.rows_affected() > 0 { Resent::Due } else { Resent::UnderWay })
}

/// Sends every delivery to an endpoint again that was made since this time, at most [`RESENT_MAX`];
/// the number of those sent. What is being attempted, and what waits for its first attempt, stays as
/// it is. Zero for an endpoint that is unknown or disabled.
///
/// # Errors
/// When the database cannot be written.
pub async fn resend_since(
    conn: &mut Connection,
    client: ClientId,
    endpoint: WebhookEndpointId,
    since: DateTime<Utc>,
) -> Result<u64> {
    let registered_at = sqlx::query_scalar!(
        "select created_at from webhook_endpoint where client_id = $1 and endpoint_id = $2",
        client.uuid(),
        endpoint.uuid(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(registered_at) = registered_at else { return Ok(0) };
    // An id begins with the time of its event. A delivery is made with its event, or later if the
    // event is older than the endpoint and was sent again: two ranges of one index have them all.
    let ranges = [(Uuid::nil(), first_id(registered_at)), (first_id(since), Uuid::max())];
    let mut sent: u64 = 0;
    for (from, until) in ranges {
        let due = sqlx::query!(
            "update delivery set state = 'pending', attempts = 0, \
                 next_attempt_at = rampart_now(), ready = true, leased_until = null, \
                 delivered_at = null, sent_again_at = rampart_now() \
             where client_id = $1 and delivery_id in ( \
                 select delivery_id from delivery d \
                 where client_id = $1 and endpoint_id = $2 and delivery_id >= $4 \
                     and delivery_id < $5 and created_at >= $3 \
                     and (state <> 'pending' or attempts > 0 \
                         and (leased_until is null or leased_until <= rampart_now())) \
                     and exists ( \
                         select from webhook_endpoint w where w.client_id = $1 \
                             and w.endpoint_id = $2 and w.disabled_at is null) \
                 order by delivery_id limit $6 for update of d skip locked)",
            client.uuid(),
            endpoint.uuid(),
            since,
            from,
            until,
            RESENT_MAX.saturating_sub(i64::try_from(sent).unwrap_or(RESENT_MAX)),
        )
        .execute(&mut *conn)
        .await?;
        sent += due.rows_affected();
    }
    Ok(sent)
}

/// The least id that a row of this time or later can have (UUID version 7).
fn first_id(at: DateTime<Utc>) -> Uuid {
    let ms = u128::try_from(at.timestamp_millis()).unwrap_or_default();
    Uuid::from_u128((ms & 0xffff_ffff_ffff) << 80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::clock::Clock;

    #[test]
    fn ids_of_a_time_are_not_below_its_first() {
        let clock = Clock::system();
        let before = clock.now();
        let id = clock.uuid().unwrap();
        assert!(first_id(before) <= id);
        assert!(first_id(before + chrono::TimeDelta::seconds(1)) > id);
    }
}
