//! Refunds that nobody makes, and that do not wait for an operator any more.

use std::collections::HashSet;

use uuid::Uuid;

use crate::Core;

/// Those of these orders, each of a client, whose books have set aside more than is given back by
/// command or waits to be given back by hand. What test clients owe is nobody's money.
pub(super) async fn unmade(
    core: &Core,
    clients: &[Uuid],
    orders: &[i64],
) -> Result<HashSet<(Uuid, i64)>, sqlx::Error> {
    if orders.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = sqlx::query!(
        r#"
        with asked as (
            select a.client_id, a.order_id
            from unnest($1::uuid[], $2::bigint[]) as a (client_id, order_id)
            join client c on c.client_id = a.client_id
            where c.mode = 'live'
        ), by_hand as materialized (
            -- as `money_waiting()` has those of payments in suspense, at any age
            select p.client_id, p.order_id, p.currency, sum(h.amount) as amount
            from refunds_by_hand() h
            join payment p on p.client_id = h.client_id and p.payment_id = h.payment_id
            where p.suspense
                and not exists (select from payment_match m
                    where m.client_id = p.client_id and m.payment_id = p.payment_id)
            group by p.client_id, p.order_id, p.currency
        ), book as materialized (
            select a.client_id, a.order_id, t.currency, -sum(l.amount) as set_aside
            from asked a
            join ledger_entry e on e.client_id = a.client_id and e.order_id = a.order_id
            join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
            join ledger_account t on t.client_id = l.client_id and t.account_id = l.account_id
            where t.kind = 'refund_payable'
            group by a.client_id, a.order_id, t.currency
        )
        select b.client_id as "client_id!", b.order_id as "order_id!"
        from book b
        cross join lateral refunds_under_way(b.client_id, b.order_id, b.currency) u
        left join by_hand h on h.client_id = b.client_id and h.order_id = b.order_id
            and h.currency = b.currency
        where b.set_aside > u.open + u.recent + coalesce(h.amount, 0)
        "#,
        clients,
        orders,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.client_id, row.order_id)).collect())
}
