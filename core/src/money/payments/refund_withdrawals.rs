//! Refunds that are taken back: their connector has sent nothing and never will, so what was set aside
//! is owed again.

mod told;

use rust_decimal::Decimal;
use uuid::Uuid;

pub(super) use self::told::withdraw_told;
pub(crate) use self::told::{is_told, withdraw_rejected};
use super::report::Report;
use super::store::hold_book;
use super::terms::OrderTerms;
use crate::Core;
use crate::money::ledger::AccountKind::{Customer, RefundPayable, Suspense};
use crate::money::ledger::{Position, Posting, Subject, post};
use crate::platform::db::Connection;
use crate::trading::orders::state::OrderStatus;
use rampart_types::{ClientId, OrderId};

/// The refunds of an order that connectors have been commanded to make; without one, those of what
/// has none.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandedRefunds<'a> {
    pub(super) client: ClientId,
    pub(super) order: Option<OrderId>,
    pub(super) currency: &'a str,
}

/// Amounts that connectors give back, or may have given back.
#[derive(Debug)]
struct UnderWay {
    /// By commands that have not ended, whether or not their connector can carry them out.
    open: Decimal,
    /// By commands that are done, as far as no connector has reported it yet.
    untold: Decimal,
}

impl CommandedRefunds<'_> {
    /// Withdraws those that no connector has begun: of the payment that a report by hand names as
    /// far as it has given that back, of others as far as what is under way exceeds `covered`,
    /// those that their connector cannot make first, then those of its amount, then the newest.
    /// Without a report an operator's event gives the whole order back: what it withdraws of the
    /// order's own payment is owed to its customer. The order's row is locked, or the book of what
    /// has none.
    pub(super) async fn withdraw_beyond(
        &self,
        conn: &mut Connection,
        core: &Core,
        covered: Decimal,
        by_hand: Option<&Report>,
    ) -> Result<(), sqlx::Error> {
        let covered = covered - self.under_way(conn).await?.untold;
        let withdrawn = sqlx::query!(
            r#"
            with asked as (
                select c.client_id, c.command_id, r.refund_id, r.amount, c.created_at,
                    c.attempt = c.retries as is_new, p.provider_reference, c.connector
                from command c
                join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
                join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
                where c.client_id = $1 and c.order_id = $2 and c.kind = 'payment.refund'
                    and c.state = 'open' and p.currency = $3
                union all
                select c.client_id, c.command_id, r.refund_id, r.amount, c.created_at,
                    c.attempt = c.retries, p.provider_reference, c.connector
                from command c
                join payment_refund r on 'refund/' || r.refund_id::text = c.idempotency_key
                join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
                where $2::bigint is null and c.client_id = $1 and c.order_id is null
                    and c.kind = 'payment.refund' and c.state = 'open'
                    and p.client_id = c.client_id and p.suspense and p.currency = $3
            ), ranked as (
                select client_id, command_id, refund_id, amount, provider_reference = $5 as is_named,
                    sum(amount) over (order by is_new, provider_reference = $5,
                        exists (select from connector_without('payment.refund', asked.connector)),
                        amount = $6, created_at, command_id) as up_to,
                    coalesce(sum(amount) over (partition by provider_reference = $5
                        order by is_new desc, amount = $6 desc, created_at desc, command_id desc
                        rows between unbounded preceding and 1 preceding), 0) as newer
                from asked
            ), commanded as (
                select client_id, command_id, refund_id, up_to,
                    case when is_named then greatest(least(amount, $6 - newer), 0)
                        else 0 end as given
                from ranked
            )
            update command c set state = 'rejected', finished_at = now(), checkpoint = null
            from commanded
            where c.client_id = commanded.client_id and c.command_id = commanded.command_id
                and (commanded.up_to > $4 or commanded.given > 0)
                and c.state = 'open' and c.attempt = c.retries
            returning commanded.refund_id as "refund_id!", commanded.given as "given!"
            "#,
            self.client.uuid(),
            self.order.map(OrderId::number),
            self.currency,
            covered,
            by_hand.map(Report::payment_reference),
            by_hand.map(|report| report.amount),
        )
        .fetch_all(&mut *conn)
        .await?;
        for row in withdrawn {
            let refund = Withdrawn::of(row.refund_id);
            let is_of_whole = by_hand.is_none();
            let refund = Withdrawn { by_hand: row.given, is_of_whole, ..refund };
            withdraw(conn, core, refund).await?;
        }
        Ok(())
    }

    /// True if a connector may be giving money back, or has done so and has not reported it yet.
    pub(super) async fn are_under_way(&self, conn: &mut Connection) -> Result<bool, sqlx::Error> {
        Ok(self.under_way(conn).await?.sum() > Decimal::ZERO)
    }

    async fn under_way(&self, conn: &mut Connection) -> Result<UnderWay, sqlx::Error> {
        sqlx::query_as!(
            UnderWay,
            "select open + unserved as \"open!\", untold as \"untold!\" \
             from refunds_by_command($1, $2, $3)",
            self.client.uuid(),
            self.order.map(OrderId::number),
            self.currency,
        )
        .fetch_one(conn)
        .await
    }
}

impl UnderWay {
    fn sum(&self) -> Decimal {
        self.open + self.untold
    }
}

/// Withdraws refunds of the payment that a report names and that no connector has begun, the newest
/// first, as far as its provider has taken back what they are to give back. The payment's order is
/// locked, or its book where it has none.
pub(super) async fn withdraw_disputed(
    conn: &mut Connection,
    core: &Core,
    report: &Report,
) -> Result<(), sqlx::Error> {
    let withdrawn = sqlx::query_scalar!(
        r#"
        with disputed as (
            select p.client_id, p.payment_id, requested.amount + unasked.amount - p.amount
                + coalesce((
                    select sum(d.taken) from disputes_of($1, $2, null, null) d
                    where d.is_of_payment and d.currency = p.currency), 0) as excess
            from payment p
            cross join lateral refund_requested(p.client_id, p.payment_id) requested
            cross join lateral given_back_unasked(p.client_id, p.payment_id) unasked
            where p.connector = $1 and p.provider_reference = $2 and p.kind = 'received'
        ), commanded as (
            select c.client_id, c.command_id, r.refund_id, d.excess,
                coalesce(sum(r.amount) over (order by c.created_at desc, c.command_id desc
                    rows between unbounded preceding and 1 preceding), 0) as newer
            from disputed d
            join payment_refund r on r.client_id = d.client_id and r.payment_id = d.payment_id
            left join payment_match m
                on m.client_id = d.client_id and m.payment_id = d.payment_id
            join command c on c.client_id = coalesce(m.to_client_id, d.client_id)
                and c.idempotency_key = 'refund/' || r.refund_id::text
            where c.kind = 'payment.refund' and c.state = 'open' and c.attempt = c.retries
        )
        update command c set state = 'rejected', finished_at = now(), checkpoint = null
        from commanded
        where c.client_id = commanded.client_id and c.command_id = commanded.command_id
            and commanded.newer < commanded.excess and c.state = 'open' and c.attempt = c.retries
        returning commanded.refund_id
        "#,
        report.connector,
        report.payment_reference(),
    )
    .fetch_all(&mut *conn)
    .await?;
    for refund in withdrawn {
        withdraw(conn, core, Withdrawn::of(refund)).await?;
    }
    Ok(())
}

/// A refund that is withdrawn.
#[derive(Clone, Copy, Debug)]
struct Withdrawn {
    refund: Uuid,
    /// The part of it that was given back by hand.
    by_hand: Decimal,
    /// The part of it that was given back at the provider by somebody else than us.
    told: Decimal,
    /// Its order is given back as a whole.
    is_of_whole: bool,
}

impl Withdrawn {
    const fn of(refund: Uuid) -> Self {
        let nothing = Decimal::ZERO;
        Self { refund, by_hand: nothing, told: nothing, is_of_whole: false }
    }
}

/// Books what is still set aside for a refund to where it is owed again: to the order's customer if
/// the order is not executed, and is open or being given back as a whole, else to suspense, where
/// an operator finds it. What was given back of it otherwise is owed no more.
async fn withdraw(
    conn: &mut Connection,
    core: &Core,
    withdrawn: Withdrawn,
) -> Result<(), sqlx::Error> {
    let row = sqlx::query!(
        r#"
        select r.client_id, r.payment_id, r.amount, p.currency,
            p.suspense and m.payment_id is null as "is_unexpected!",
            coalesce(m.to_client_id, p.client_id) as "book!",
            coalesce(m.order_id, p.order_id) as order_id
        from payment_refund r
        join payment p on p.client_id = r.client_id and p.payment_id = r.payment_id
        left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
        where r.refund_id = $1
        "#,
        withdrawn.refund,
    )
    .fetch_one(&mut *conn)
    .await?;
    let book = ClientId::from(row.book);
    let order = match row.order_id.and_then(OrderId::new) {
        Some(order) => OrderTerms::find(conn, Some(book), order).await?,
        None => None,
    };
    let number = order.as_ref().map(|order| order.key.order.number());
    if number.is_none() {
        hold_book(conn, book).await?;
    }
    let position = Position::of(conn, book, number).await?;
    let others = CommandedRefunds {
        client: book,
        order: order.as_ref().map(|order| order.key.order),
        currency: &row.currency,
    };
    let others = others.under_way(conn).await?.sum();
    let is_open = order.is_some_and(|order| {
        // The event that gives an order back has ended it already.
        let waits = matches!(order.status, OrderStatus::InProgress | OrderStatus::Blocked);
        (waits || withdrawn.is_of_whole) && !position.is_executed(&order.amounts.crypto_currency)
    });
    let owed_in = if is_open && !row.is_unexpected { Customer } else { Suspense };
    // What was given back otherwise meanwhile has taken from it, and the rest is for other refunds.
    let set_aside = position.owed(RefundPayable, &row.currency) - others;
    let Withdrawn { refund, by_hand, told, .. } = withdrawn;
    let amount = set_aside.min(row.amount - by_hand - told).max(Decimal::ZERO);
    sqlx::query!(
        "insert into payment_refund_withdrawal (client_id, refund_id, amount, owed_in, told) \
         values ($1, $2, $3, $4, $5)",
        row.client_id,
        refund,
        amount,
        owed_in.as_str(),
        told,
    )
    .execute(&mut *conn)
    .await?;
    let subject = Subject {
        client: book,
        order: number,
        payment: Some(row.payment_id),
        occurred_at: core.clock.now(),
    };
    let postings = [
        Posting::new(RefundPayable, &row.currency, amount),
        Posting::new(owed_in, &row.currency, -amount),
    ];
    post(conn, core, "refund-withdrawn", &subject, &postings).await
}

/// The part of a payment that is in suspense because its refund was withdrawn after its order had been
/// executed, without what was asked for since.
pub(super) async fn in_suspense(
    conn: &mut Connection,
    client: ClientId,
    payment: Uuid,
) -> Result<Decimal, sqlx::Error> {
    sqlx::query_scalar!(
        r#"select amount as "amount!" from withdrawn_into_suspense($1, $2)"#,
        client.uuid(),
        payment,
    )
    .fetch_one(conn)
    .await
}
