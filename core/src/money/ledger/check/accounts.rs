//! The accounts at providers against the last statement of each.

use rust_decimal::Decimal;

use super::{Page, Problem};
use crate::Core;
use crate::platform::error::Result;

/// A difference of the last reconciliation of an account that still stands.
struct Open {
    connector: String,
    side: String,
    reference: String,
    amount: Decimal,
    currency: String,
}

impl Open {
    fn problem(self) -> Problem {
        let Self { connector, side, reference, amount, currency } = self;
        let amount = amount.normalize();
        let problem = match &*side {
            "statement" => format!("{reference} moved {amount} {currency}, not in the books"),
            "amount" => format!("{reference} moved {amount} {currency}, by the books another sum"),
            _ => format!("{reference} of {amount} {currency} is in the books alone"),
        };
        Problem { subject: format!("account {connector}"), problem: problem.into() }
    }
}

/// Checks every account that was ever reconciled. A difference ends when the books have the
/// statement's amount under one of its references, or as the payouts of its transaction, which they
/// have for an earlier line where they had it at the time, when a later statement does not show it, or
/// when one of any account has what the books had alone.
pub(super) async fn check(core: &Core) -> Result<Page> {
    let checked =
        sqlx::query_scalar!(r#"select count(*) as "checked!" from last_reconciliations()"#)
            .fetch_one(&core.db)
            .await?;
    let open = sqlx::query_as!(
        Open,
        r#"
        select last.connector as "connector!", d.side as "side!",
            d."providerReference" as "reference!", d.amount as "amount!", d.currency as "currency!"
        from last_reconciliations() last
        join reconciliation r on r.reconciliation_id = last.reconciliation_id
        cross join lateral jsonb_to_recordset(r.differences)
            as d (side text, account text, "providerReference" text, amount numeric, currency text,
                "bookedAmount" numeric, "otherReferences" jsonb, kind text)
        cross join lateral (
            select array_append(array(
                select jsonb_array_elements_text(coalesce(d."otherReferences", '[]'))),
                d."providerReference") as "references") named
        where (last.currency is null
                or d.currency = last.currency and coalesce(d.account, '') = last.account)
            -- when it was listed, none had it
            and not (d.side = 'books' and exists (
                select from reconciled_payment r
                where r.connector = last.connector
                    and r.provider_reference = d."providerReference"
                    and r.kind = coalesce(d.kind, r.kind)))
            and (d.side = 'books' or d.side = 'statement' and d."bookedAmount" = d.amount
            or not exists (
                select from payments_of_line(last.connector, named."references", '{}') p
                where p.currency = d.currency and p.amount = d.amount)
            -- nor are the payouts of its transaction, each told by its begin or its end, the line
            and d.amount is distinct from (
                select sum(part.amount) from (
                    select distinct on (p.of_order) p.amount
                    from payments_of_line(last.connector, named."references", '{}') p
                    where p.currency = d.currency and p.kind = 'payout-sent'
                        and p.of_order is not null
                    order by p.of_order, p.recorded_at, p.payment_id) part))
        order by last.connector, d."providerReference"
        "#,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(Page {
        checked: usize::try_from(checked).unwrap_or_default(),
        problems: open.into_iter().map(Open::problem).collect(),
        next: None,
    })
}
