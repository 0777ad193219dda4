//! Cancels orders whose time to pay has passed.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::column::id;
use super::status::{Event, OrderEvent, apply, unless_forbidden};
use crate::Core;
use crate::platform::error::Result;
use crate::platform::sweeps::Sweep;
use rampart_types::{ClientId, OrderKey};

/// Orders of one batch, the longest overdue first.
pub(crate) const BATCH_ORDERS: i64 = 100;
/// Most batches of one sweep; the rest waits for the next one.
const BATCHES_MAX: u32 = 20;
/// The sweep in metrics and logs.
const SWEEP: &str = "order expiry";

/// An overdue order, bought or sold: its end, client and number, by which orders are swept.
pub(crate) type Due = (DateTime<Utc>, Uuid, i64);

/// Cancels pending orders that can no longer be paid; returns their number. Several edges may sweep
/// at once: an order's guarded update lets one of them succeed. One that cannot be cancelled, or that
/// somebody holds, is passed over.
///
/// # Errors
/// When the database cannot be used.
pub async fn expire_due(core: &Core) -> Result<u32> {
    expire_batches(core, SWEEP, OrderEvent::Expire, |last| due(core, last)).await
}

/// Cancels overdue orders, bought or sold, each by the event of its end; returns their number.
/// `due_after` reads a batch of those behind one, and `name` is that of the sweep.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn expire_batches<E, F, Fut>(
    core: &Core,
    name: &'static str,
    end: E,
    due_after: F,
) -> Result<u32>
where
    E: Event + Clone,
    F: Fn(Due) -> Fut,
    Fut: Future<Output = Result<Vec<Due>>>,
{
    let mut sweep = Sweep::new(&core.metrics, name);
    let (mut expired, mut last) = (0, (DateTime::UNIX_EPOCH, Uuid::nil(), i64::MIN));
    for _ in 0..BATCHES_MAX {
        let due = due_after(last).await?;
        let full = due.len() >= usize::try_from(BATCH_ORDERS).unwrap_or(usize::MAX);
        let rows = due.iter().map(|&(_, client, number)| (client, number)).collect();
        let expire = |client, number| expire(core, client, number, end.clone());
        expired += sweep.settle(rows, expire).await?;
        match due.last() {
            Some(&end) if full => last = end,
            _ => break,
        }
    }
    Ok(expired)
}

/// Cancels one order, bought or sold, by the event of its end. False if it was paid, or expired by
/// another edge, since it was read.
async fn expire<E: Event>(core: &Core, client: ClientId, number: i64, end: E) -> Result<bool> {
    let key = OrderKey { client, order: id(number)? };
    Ok(unless_forbidden(apply(core, key, &end, "edge").await)?.is_some())
}

/// Overdue orders behind `last` that nobody holds. A bank transfer has an end that is not told.
async fn due(core: &Core, last: Due) -> Result<Vec<Due>> {
    let rows = sqlx::query!(
        r#"
        select ends_at as "ends_at!", client_id as "client_id!", order_id as "order_id!"
        from (
            -- each locks what it finds, so that a batch is full although some of it are held
            select ends_at, client_id, order_id from (
                select expires_at as ends_at, client_id, order_id from buy_order
                where status = 'pending' and expires_at < rampart_now() and expires_at >= $1
                    and (expires_at, client_id, order_id) > ($1, $2, $3)
                order by expires_at, client_id, order_id limit $4 for update skip locked
            ) told
            union all
            select ends_at, client_id, order_id from (
                select created_at + $5::bigint * interval '1 second' as ends_at, client_id, order_id
                from buy_order
                where status = 'pending' and expires_at is null
                    and created_at < rampart_now() - $5::bigint * interval '1 second'
                    and (created_at + $5::bigint * interval '1 second', client_id, order_id)
                        > ($1, $2, $3)
                order by created_at, client_id, order_id limit $4 for update skip locked
            ) untold
        ) due
        order by ends_at, client_id, order_id limit $4
        "#,
        last.0,
        last.1,
        last.2,
        BATCH_ORDERS,
        i64::from(core.settings.lifetimes.bank_transfer_seconds),
    )
    .fetch_all(&core.db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.ends_at, row.client_id, row.order_id)).collect())
}
