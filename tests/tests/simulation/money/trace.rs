//! The trace of an order: everything that the tables know of it, in the order of its writing.

use sqlx::PgPool;

const TRACE: &str = "
    select line from (
        select p.recorded_at as at, 1 as place, format('payment %s by %s: %s %s %s%s%s', p.kind, p.connector,
            p.provider_reference, trim_scale(p.amount), p.currency, case when p.suspense then ', suspense' end,
            case when m.payment_id is not null then ', matched' end) as line
        from payment p left join payment_match m using (client_id, payment_id)
        where p.order_id = $1 or m.order_id = $1 or $1 is null and p.order_id is null
        union all
        select e.recorded_at, 2, format('entry %s: %s', e.kind, (
            select string_agg(concat_ws(' ', a.kind, nullif(a.holder, ''), trim_scale(l.amount), a.currency), ', '
                order by l.line)
            from ledger_posting l join ledger_account a using (client_id, account_id)
            where l.client_id = e.client_id and l.entry_id = e.entry_id))
        from ledger_entry e where e.order_id is not distinct from $1
        union all
        select at, 3, format('%s to %s: %s by %s', from_status, to_status, cause, actor) from (
            select at, from_status, to_status, cause, actor from order_transition where order_id = $1
            union all
            select at, from_status, to_status, cause, actor from sell_order_transition where order_id = $1) t
        union all
        select created_at, 4, format('command %s, now %s after %s attempts', kind, state, attempt)
        from command where order_id = $1
    ) lines order by at, place";

/// The trace of an order, or of what has none.
pub(crate) async fn of(db: &PgPool, order: Option<i64>) -> Vec<String> {
    sqlx::query_scalar(TRACE).bind(order).fetch_all(db).await.unwrap()
}
