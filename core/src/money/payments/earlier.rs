//! Refunds and disputes that their provider reports before the payment, and without an order: they
//! are in the book of what has no order until the payment has one.

use rust_decimal::Decimal;
use uuid::Uuid;

use super::report::{PaymentKind, Report};
use super::store::{currency_of, forget_erased_payer};
use crate::Core;
use crate::money::ledger::AccountKind::{Customer, Dispute, RefundPayable, Suspense};
use crate::money::ledger::entries::holding;
use crate::money::ledger::{Posting, Subject, post};
use crate::platform::db::Connection;
use crate::tenancy::house::house;
use rampart_types::{ClientId, OrderKey};

/// Reasons that partners are told of an order whose payment is gone.
pub(super) const DISPUTED: &str = "the payment is disputed";
const GIVEN_BACK: &str = "the payment was given back";

/// The part of an order's payment that its connector has reported as refunded, by the payment's
/// reference, though it was not owed: before the payment itself, or after its coins had left.
///
/// # Errors
/// The database's.
async fn given_back(
    conn: &mut Connection,
    connector: &str,
    reference: &str,
    currency: &str,
    order: OrderKey,
) -> Result<Decimal, sqlx::Error> {
    sqlx::query_scalar!(
        r#"
        select coalesce(sum(l.amount), 0) as "given_back!"
        from payment b
        -- not by value: of a partner newer than its statistics the planner expects no row
        join ledger_entry e on e.client_id = (select $4::uuid) and e.payment_id = b.payment_id
        join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
        join ledger_account a on a.client_id = l.client_id and a.account_id = l.account_id
        where b.connector = $1 and b.kind = 'refunded'
            and coalesce(b.original_reference, b.provider_reference) = $2
            and e.order_id = $5 and a.kind = 'dispute' and a.currency = $3
        "#,
        connector,
        reference,
        currency,
        order.client.uuid(),
        order.order.number(),
    )
    .fetch_one(conn)
    .await
}

/// A payment that has come in for an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived<'a> {
    pub(super) connector: &'a str,
    pub(super) reference: &'a str,
    pub(super) payment: Uuid,
    pub(super) to: OrderKey,
    pub(super) actor: &'a str,
}

impl<'a> Arrived<'a> {
    /// The payment of a report.
    pub(super) fn by(report: &'a Report, payment: Uuid, to: OrderKey) -> Self {
        let (connector, actor) = (&report.connector, &report.actor);
        Self { connector, reference: &report.provider_reference, payment, to, actor }
    }
}

/// A report that came before its payment's.
struct Earlier {
    client: ClientId,
    payment: Uuid,
    kind: PaymentKind,
    amount: Decimal,
    currency: String,
    /// The part of a refund that it has taken of what was set aside for others, without what these
    /// have taken of suspense instead.
    set_aside: Decimal,
}

impl Earlier {
    /// The postings that take it out of the book of what has no order, and those that bring it into
    /// that of its order. What was given or taken back of a payment that had not come in is lost so
    /// far.
    fn postings(&self, core: &Core, connector: &str) -> ([Posting; 3], [Posting; 2]) {
        let (currency, is_coins) = currency_of(core, &self.currency);
        let taken = match self.kind {
            PaymentKind::Refunded | PaymentKind::Disputed => self.amount,
            PaymentKind::DisputeWon => -self.amount,
            // A loss stands in the account of disputes by its dispute.
            _ => Decimal::ZERO,
        };
        let from = if self.kind == PaymentKind::Refunded { Suspense } else { Dispute };
        let held = |amount| holding(is_coins, connector, &currency, amount);
        let out = [
            held(taken),
            Posting::new(RefundPayable, &currency, -self.set_aside),
            Posting::new(from, &currency, self.set_aside - taken),
        ];
        (out, [Posting::new(Dispute, &currency, taken), held(-taken)])
    }
}

/// Moves what was reported of a payment before it, without an order, into the book of the payment's
/// order, and notes that it is the order's. What names another partner is of another payment. The
/// books and the order's row are locked.
///
/// # Errors
/// The database's.
pub(super) async fn take_over(
    conn: &mut Connection,
    core: &Core,
    arrived: &Arrived<'_>,
) -> Result<(), sqlx::Error> {
    let to = arrived.to;
    for earlier in find(conn, arrived).await? {
        forget_erased_payer(conn, earlier.client, earlier.payment, to).await?;
        let subject = Subject {
            client: earlier.client,
            order: None,
            payment: Some(earlier.payment),
            occurred_at: core.clock.now(),
        };
        let (out, into) = earlier.postings(core, arrived.connector);
        post(conn, core, "matched", &subject, &out).await?;
        let subject = Subject { client: to.client, order: Some(to.order.number()), ..subject };
        post(conn, core, "matched", &subject, &into).await?;
    }
    Ok(())
}

/// Takes off a purchase's payment of this amount what was reported as refunded of it before:
/// that is no loss of ours, as the purchase is for the rest, which is the answer. Of a payment that
/// was given back as a whole nothing is taken off.
///
/// # Errors
/// The database's.
pub(super) async fn take_off(
    conn: &mut Connection,
    core: &Core,
    arrived: &Arrived<'_>,
    subject: &Subject,
    amount: Decimal,
    currency: &str,
) -> Result<Decimal, sqlx::Error> {
    let Arrived { connector, reference, to, .. } = *arrived;
    let gone = given_back(conn, connector, reference, currency, to).await?;
    if gone <= Decimal::ZERO || gone >= amount {
        return Ok(amount);
    }
    let postings = [Posting::new(Customer, currency, gone), Posting::new(Dispute, currency, -gone)];
    post(conn, core, "settled", subject, &postings).await?;
    Ok(amount - gone)
}

/// The earlier reports of a payment, oldest first. They are this order's from now on.
async fn find(conn: &mut Connection, arrived: &Arrived<'_>) -> Result<Vec<Earlier>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"
        with told as materialized (
            select t.client_id, t.payment_id, t.kind, t.amount, t.currency, t.recorded_at
            from told_without_order($1, $2) t
            where t.client_id in ($3, $4, (
                select p.client_id from payment p where p.payment_id = $7))
        ), matched as (
            insert into payment_match (client_id, payment_id, to_client_id, order_id, actor)
            select t.client_id, t.payment_id, $3, $5, $6 from told t
        )
        select t.client_id as "client_id!", t.payment_id as "payment_id!", t.kind as "kind!",
            t.amount as "amount!", t.currency as "currency!",
            greatest(line.set_aside - line.later, 0) as "set_aside!"
        from told t
        cross join lateral (
            select coalesce(sum(l.amount) filter (where a.kind = 'refund_payable'
                    and e.payment_id = t.payment_id), 0) as set_aside,
                coalesce(sum(l.amount) filter (where a.kind = 'suspense'
                    and e.payment_id <> t.payment_id), 0) as later
            from ledger_entry e
            join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
            join ledger_account a on a.client_id = l.client_id and a.account_id = l.account_id
            where t.kind = 'refunded' and e.kind = 'refunded' and e.client_id = t.client_id
                and e.order_id is null and e.recorded_at >= t.recorded_at
                and a.currency = t.currency
                and (e.payment_id = t.payment_id
                    or not exists (select from told o where o.payment_id = e.payment_id)
                        and not exists (select from payment_match m
                            where m.client_id = e.client_id and m.payment_id = e.payment_id))
        ) line
        order by t.recorded_at, t.payment_id
        "#,
        arrived.connector,
        arrived.reference,
        arrived.to.client.uuid(),
        house().uuid(),
        arrived.to.order.number(),
        arrived.actor,
        arrived.payment,
    )
    .fetch_all(conn)
    .await?;
    let earlier = rows.into_iter().map(|row| -> Result<Earlier, sqlx::Error> {
        let kind = PaymentKind::from_name(&row.kind);
        Ok(Earlier {
            client: row.client_id.into(),
            payment: row.payment_id,
            kind: kind.ok_or_else(|| sqlx::Error::Decode("the kind of a payment".into()))?,
            amount: row.amount,
            currency: row.currency,
            set_aside: row.set_aside,
        })
    });
    earlier.collect()
}

/// The reason for which the purchase that a payment has paid waits: a refund of either, or a dispute
/// that is not won, was reported before it.
///
/// # Errors
/// The database's.
pub(super) async fn taken_back(
    conn: &mut Connection,
    connector: &str,
    reference: &str,
    order: OrderKey,
    currency: &str,
) -> Result<Option<&'static str>, sqlx::Error> {
    // Of an order that waits for its payment, nothing else can have been given back.
    let taken_back = sqlx::query!(
        r#"
        select exists (select 1 from disputes_of($1, $2, $3, $4) d
                where d.is_of_payment or d.is_of_order
                group by d.currency having sum(d.taken) > 0) as "disputed!",
            exists (select from payment
                where connector = $1 and kind = 'refunded'
                    and coalesce(original_reference, provider_reference) = $2)
            or exists (select from payment
                where client_id = $3 and order_id = $4 and kind = 'refunded'
                    and currency = $5) as "given_back!"
        "#,
        connector,
        reference,
        order.client.uuid(),
        order.order.number(),
        currency,
    )
    .fetch_one(conn)
    .await?;
    Ok(match (taken_back.disputed, taken_back.given_back) {
        (true, _) => Some(DISPUTED),
        (false, true) => Some(GIVEN_BACK),
        (false, false) => None,
    })
}
