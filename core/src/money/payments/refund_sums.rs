//! Sums of an order's refunds, whoever gives the money back.

use rust_decimal::Decimal;

use super::refunds::EDGE;
use super::store::MANUAL;
use crate::platform::db::Connection;

/// The sum of what operators give back of an order in this currency: what they have asked for, and
/// what they have given back by hand or by the order's event. What was given back so in place of a
/// command, or because no connector does it, counts once.
///
/// # Errors
/// The database's.
pub async fn refunds_of_order(
    conn: &mut Connection,
    order: i64,
    currency: &str,
) -> Result<Decimal, sqlx::Error> {
    sqlx::query_scalar!(
        r#"
        with own as (
            select p.client_id, p.payment_id, p.client_id as book from payment p
            where p.order_id = $1 and p.currency = $2 and not exists (
                select from payment_match m
                where m.client_id = p.client_id and m.payment_id = p.payment_id)
            union all
            select p.client_id, p.payment_id, m.to_client_id from payment_match m
            join payment p on p.client_id = m.client_id and p.payment_id = m.payment_id
            where m.order_id = $1 and p.currency = $2
        ), asked as (
            -- what a withdrawal neither owes again nor was told of was given back by hand
            select
                coalesce(sum(case
                    when w.refund_id is not null then w.told
                    when c.command_id is not null then r.amount end), 0) as by_command,
                coalesce(sum(case
                    when w.refund_id is not null then r.amount - w.amount - w.told
                    when c.command_id is null then r.amount end), 0) as by_hand
            from own o
            join payment_refund r on r.client_id = o.client_id and r.payment_id = o.payment_id
            left join payment_refund_withdrawal w
                on w.client_id = r.client_id and w.refund_id = r.refund_id
            left join command c on c.client_id = o.book
                and c.idempotency_key = 'refund/' || r.refund_id::text
            where r.actor <> $4
        ), made as (
            select coalesce(sum(p.amount), 0) as amount,
                coalesce(sum(taken.amount), 0) as of_set_aside
            from payment p
            cross join lateral (
                select sum(l.amount) as amount
                from ledger_entry e
                join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
                join ledger_account a on a.client_id = l.client_id and a.account_id = l.account_id
                where e.client_id = p.client_id and e.payment_id = p.payment_id
                    and e.kind = 'refunded' and a.kind = 'refund_payable'
            ) taken
            where p.order_id = $1 and p.currency = $2 and p.kind = 'refunded'
                -- an event's payment has its provider's connector, and its own id for a reference
                and (p.connector = $3 or p.provider_reference = p.payment_id::text)
        )
        select asked.by_command + asked.by_hand + made.amount
            - least(asked.by_hand, made.of_set_aside) as "sum!"
        from asked cross join made
        "#,
        order,
        currency,
        MANUAL,
        EDGE,
    )
    .fetch_one(conn)
    .await
}
