//! Deliveries that no edge takes care of: the measure of our own lateness, as opposed to that of a
//! partner whose endpoint is slow.

use super::queue::LEASE;
use crate::platform::db::Pool;
use crate::platform::error::Result;

/// Most deliveries that are looked at of those that wait to become ready.
const WAITING_MAX: i64 = 1_000;

/// Time in seconds by which the longest waiting delivery is overdue of the clients that no edge holds a
/// delivery of. A client of which one is held waits for its own endpoints.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn unclaimed_seconds(db: &Pool) -> Result<i64> {
    let overdue_seconds = sqlx::query_scalar!(
        r#"
        with recursive ready as not materialized (
            select client_id, next_attempt_at,
                coalesce(endpoint_id, '00000000-0000-0000-0000-000000000000'::uuid) as endpoint
            from delivery where state = 'pending' and ready
        ), lane as (
            -- the oldest one of each, from the index alone
            (select client_id, next_attempt_at, endpoint from ready
             order by client_id, endpoint, next_attempt_at limit 1)
            union all
            select next.client_id, next.next_attempt_at, next.endpoint
            from lane l cross join lateral (
                select client_id, next_attempt_at, endpoint from ready r
                where (r.client_id, r.endpoint) > (l.client_id, l.endpoint)
                order by client_id, endpoint, next_attempt_at limit 1
            ) next
        ), due as (
            select client_id, next_attempt_at as since from lane
            union all
            (select client_id, greatest(next_attempt_at, leased_until) from delivery
             where state = 'pending' and not ready
                and greatest(next_attempt_at, leased_until) <= rampart_now()
             order by greatest(next_attempt_at, leased_until) limit $1)
        ), held as (
            select client_id from delivery
            where state = 'pending' and not ready and leased_until > rampart_now()
                -- which the index knows: those that wait for a later attempt are not read
                and greatest(next_attempt_at, leased_until) > rampart_now()
                and greatest(next_attempt_at, leased_until)
                    <= rampart_now() + $2::bigint * interval '1 second'
        )
        select greatest(extract(epoch from rampart_now() - min(since)), 0)::bigint
            as "overdue_seconds!"
        from due where client_id not in (select client_id from held)
        "#,
        WAITING_MAX,
        LEASE.num_seconds(),
    )
    .fetch_one(db)
    .await?;
    Ok(overdue_seconds)
}
