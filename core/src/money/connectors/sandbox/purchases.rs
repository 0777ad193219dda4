//! The course of a bought order of a test client: payments and coins by the reports of the sandbox,
//! the acts of users, operators and time by the state machine, as those of live orders.

use rampart_types::{JsonDecimal, OrderId, OrderKey};
use rust_decimal::Decimal;
use serde_json::json;

use super::{
    NAME, NOT_SIMULATED, PAYOUT_UNDER_WAY, act, answer, lease_now, open_command, report_event,
    report_later, transaction_id, unless_refused,
};
use crate::Core;
use crate::money::connectors::commands::CommandKind;
use crate::money::connectors::payouts::command_despite_holds;
use crate::money::connectors::result::Outcome;
use crate::platform::db::{Connection, Transaction, retrying_statement};
use crate::platform::error::{Error, Result};
use crate::trading::orders::state::{Cause, OrderStatus};
use crate::trading::orders::status::{NotApplied, OrderEvent, permit};
use crate::trading::sandbox::{Scenario, SimulatedEvent};

/// A bought order as the sandbox knows it.
pub(super) struct Purchase {
    pub(super) status: OrderStatus,
    pub(super) cause: Cause,
    fiat: Decimal,
    currency: String,
    partner_reference: Option<String>,
    /// The transaction that has sent its coins.
    pub(super) transaction_id: Option<String>,
    /// Its partner's slug.
    partner: String,
    /// False if another connector takes its payment: then coins that follow one may be real.
    pub(super) is_simulated: bool,
}

impl Purchase {
    /// Reads an order; its row stays locked until the transaction ends.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn lock(
        conn: &mut Connection,
        OrderKey { client, order }: OrderKey,
    ) -> Result<Option<Self>, sqlx::Error> {
        sqlx::query_as!(
            Self,
            r#"
            select o.status as "status: OrderStatus", o.status_cause as "cause: Cause",
                o.fiat_amount as fiat, o.fiat_currency as currency, o.partner_reference,
                o.transaction_id, c.slug as partner,
                not exists (select from command p where p.client_id = o.client_id
                    and p.order_id = o.order_id and p.kind = 'payment.create'
                    and p.connector is distinct from $3) as "is_simulated!"
            from buy_order o join client c on c.client_id = o.client_id
            where o.client_id = $1 and o.order_id = $2
            for update of o
            "#,
            client.uuid(),
            order.number(),
            NAME,
        )
        .fetch_optional(conn)
        .await
    }

    /// The scenario of its magic values.
    pub(super) fn scenario(&self) -> Option<Scenario> {
        Scenario::detect(self.partner_reference.as_deref(), self.fiat)
    }
}

/// Simulates an event of an order of a test client, as this actor, in a transaction that `begin`
/// begins for each attempt, unless it finds that nothing is left to do; refuses one whose payment
/// another connector takes.
///
/// # Errors
/// As [`simulate_in`], and those of `begin`.
pub async fn simulate<B, Fut, E>(
    core: &Core,
    key: OrderKey,
    simulated: SimulatedEvent,
    actor: &str,
    begin: B,
) -> Result<(), NotApplied>
where
    B: Fn() -> Fut,
    Fut: Future<Output = Result<Option<Transaction<'static>>, E>>,
    NotApplied: From<E>,
{
    let attempt = async || {
        let Some(mut tx) = begin().await? else { return Ok(Vec::new()) };
        let outcome = Box::pin(simulate_in(&mut tx, core, key, simulated, actor)).await;
        let (tx, causes) = unless_refused(tx, outcome).await?;
        tx.commit().await?;
        Ok::<_, NotApplied>(causes)
    };
    Cause::count(core, retrying_statement(attempt).await?);
    Ok(())
}

/// As [`simulate`], in the caller's transaction, which gives up what was refused.
///
/// # Errors
/// When the order is not there, its state forbids the event, or the database is out of reach.
pub async fn simulate_in(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    simulated: SimulatedEvent,
    actor: &str,
) -> Result<Vec<Cause>, NotApplied> {
    let purchase = Purchase::lock(conn, key).await?.ok_or(NotApplied::NoSuchOrder)?;
    if !purchase.is_simulated {
        return Err(NotApplied::Refused(NOT_SIMULATED));
    }
    happen(conn, core, key, &purchase, simulated, actor).await
}

/// Lets an event happen to an order, whose row is locked, in the caller's transaction.
///
/// # Errors
/// When the order's state forbids the event, or the database is out of reach.
pub(super) async fn happen(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    purchase: &Purchase,
    simulated: SimulatedEvent,
    actor: &str,
) -> Result<Vec<Cause>, NotApplied> {
    let amount = match simulated {
        SimulatedEvent::PaymentAmountWrong => {
            let twice = purchase.fiat.checked_add(purchase.fiat);
            twice.ok_or_else(|| Error::invariant("double an order's amount"))?
        }
        _ => purchase.fiat,
    };
    let event = event_of(core, simulated, amount)?;
    if matches!(simulated, SimulatedEvent::Expire | SimulatedEvent::PaymentLate) {
        make_overdue(conn, key).await?;
    }
    // A fact is never refused: one that the order does not wait for is not made up.
    permit(conn, core, key, &event).await?;
    let about = |members| with_order(members, key.order, &purchase.partner);
    match simulated {
        SimulatedEvent::PaymentReceived
        | SimulatedEvent::PaymentLate
        | SimulatedEvent::PaymentAmountWrong => {
            let members = about(json!({
                "providerReference": core.clock.uuid()?,
                "amount": JsonDecimal(amount),
                "currency": purchase.currency,
            }));
            Ok(report_event(conn, core, "payment.received", actor, members).await?)
        }
        SimulatedEvent::PaymentDenied => {
            Ok(report_event(conn, core, "payment.failed", actor, about(json!({}))).await?)
        }
        SimulatedEvent::ConfirmedOnChain => {
            let transaction = purchase.transaction_id.clone();
            let reference = transaction.clone().map_or_else(|| transaction_id(&core.clock), Ok)?;
            let members = about(json!({
                "providerReference": reference,
                "transactionId": transaction,
                "confirmations": 1,
            }));
            Ok(report_event(conn, core, "payout.confirmed", actor, members).await?)
        }
        SimulatedEvent::CoinsSent => send_coins(conn, core, key, &event, actor).await,
        SimulatedEvent::Expire
        | SimulatedEvent::Cancel
        | SimulatedEvent::Hold
        | SimulatedEvent::Release
        | SimulatedEvent::Refund => act(conn, core, key, &event, actor).await,
    }
}

/// The event of the state machine that a simulated one stands for; a payment is of this amount.
fn event_of(core: &Core, simulated: SimulatedEvent, amount: Decimal) -> Result<OrderEvent> {
    Ok(match simulated {
        SimulatedEvent::PaymentReceived
        | SimulatedEvent::PaymentLate
        | SimulatedEvent::PaymentAmountWrong => {
            OrderEvent::PaymentReceived { amount: Some(amount), reference: None }
        }
        SimulatedEvent::PaymentDenied => OrderEvent::PaymentDenied { reason: None },
        SimulatedEvent::CoinsSent => {
            OrderEvent::CoinsSent { transaction_id: transaction_id(&core.clock)? }
        }
        SimulatedEvent::ConfirmedOnChain => OrderEvent::ConfirmedOnChain,
        SimulatedEvent::Expire => OrderEvent::Expire,
        SimulatedEvent::Cancel => OrderEvent::Cancel { reason: None },
        SimulatedEvent::Hold => OrderEvent::Hold { reason: None },
        SimulatedEvent::Release => OrderEvent::Release,
        SimulatedEvent::Refund => OrderEvent::Refund { reason: None },
    })
}

/// The members of an event that say which order it is of.
fn with_order(mut members: serde_json::Value, order: OrderId, partner: &str) -> serde_json::Value {
    members["orderId"] = json!(order);
    members["partner"] = partner.into();
    members
}

/// Ends the time to pay of a pending order, in the transaction of what happens afterwards, so that no
/// sweep comes between.
async fn make_overdue(
    conn: &mut Connection,
    OrderKey { client, order }: OrderKey,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update buy_order set expires_at = rampart_now() - interval '1 millisecond' \
         where client_id = $1 and order_id = $2 and status = 'pending'",
        client.uuid(),
        order.number(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Sends the coins at once, whatever holds them back. Coins that another connector sends are an
/// operator's word.
async fn send_coins(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    event: &OrderEvent,
    actor: &str,
) -> Result<Vec<Cause>, NotApplied> {
    let kind = CommandKind::PayoutSend;
    let mut payout = open_command(conn, key, kind).await?;
    if payout.is_none() {
        command_despite_holds(conn, core, key).await?;
        payout = open_command(conn, key, kind).await?;
    }
    let Some((command, true)) = payout else { return act(conn, core, key, event, actor).await };
    let leased = lease_now(conn, core, kind, command).await?;
    let leased = leased.ok_or(NotApplied::Refused(PAYOUT_UNDER_WAY))?;
    let result = json!({ "transactionId": transaction_id(&core.clock)? });
    let causes = answer(conn, core, &leased, Outcome::Done, result).await?;
    report_later(conn, core, key.client, command).await?;
    causes.ok_or(NotApplied::Refused(PAYOUT_UNDER_WAY))
}
