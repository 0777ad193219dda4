//! The course of a sale of a test client: coins and transfers by the reports of the sandbox, the acts
//! of users, operators and time by the state machine, as those of live sales.

use rampart_types::{JsonDecimal, OrderKey};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::{
    NAME, NOT_SIMULATED, PAYOUT_UNDER_WAY, act, answer, lease_now, open_command, report_event,
    transaction_id,
};
use crate::Core;
use crate::money::connectors::commands::CommandKind;
use crate::money::connectors::lease::Leased;
use crate::money::connectors::result::Outcome;
use crate::money::connectors::transfers::command_transfer;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::trading::orders::state::{Cause, OrderStatus};
use crate::trading::orders::status::{NotApplied, permit, unless_forbidden};
use crate::trading::sandbox::{Scenario, SimulatedSaleEvent};
use crate::trading::sell::status::SaleEvent;

/// A sale as the sandbox knows it.
struct SimulatedSale {
    status: OrderStatus,
    cause: Cause,
    coins: Decimal,
    asset: String,
    partner_reference: Option<String>,
    address: String,
    tag: Option<String>,
    /// Its partner's slug.
    partner: String,
    /// False if its deposit address is another connector's: then money that follows coins is real.
    is_simulated: bool,
}

impl SimulatedSale {
    /// Reads a sale; its row stays locked until the transaction ends.
    async fn lock(conn: &mut Connection, sale: OrderKey) -> Result<Option<Self>, sqlx::Error> {
        sqlx::query_as!(
            Self,
            r#"
            select o.status as "status: OrderStatus", o.status_cause as "cause: Cause",
                o.crypto_amount as coins, o.crypto_currency as asset, o.partner_reference,
                o.wallet_address as address, o.destination_tag as tag, c.slug as partner,
                not exists (select from deposit_address d where d.taken_by = o.client_id
                    and d.taken_for = o.order_id and d.connector <> $3) as "is_simulated!"
            from sell_order o join client c on c.client_id = o.client_id
            where o.client_id = $1 and o.order_id = $2
            for update of o
            "#,
            sale.client.uuid(),
            sale.order.number(),
            NAME,
        )
        .fetch_optional(conn)
        .await
    }

    /// The act that its reference names instead of the transfer, once its simulated coins have
    /// arrived.
    fn act(&self) -> Option<SaleEvent> {
        let scenario = Scenario::named(self.partner_reference.as_deref());
        let has_arrived = self.is_simulated && self.cause == Cause::PaymentReceived;
        match scenario.filter(|_| has_arrived)? {
            Scenario::Held => Some(SaleEvent::Hold { reason: None }),
            Scenario::Returned => Some(SaleEvent::Refund { reason: None }),
            _ => None,
        }
    }
}

/// Simulates an event of a sale of a test client, as this actor, in the caller's transaction, which
/// gives up what was refused; refuses one whose coins another connector takes.
///
/// # Errors
/// When the sale is not there, its state forbids the event, or the database is out of reach.
pub async fn simulate_in(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    simulated: SimulatedSaleEvent,
    actor: &str,
) -> Result<Vec<Cause>, NotApplied> {
    let sale = SimulatedSale::lock(conn, key).await?.ok_or(NotApplied::NoSuchOrder)?;
    if !sale.is_simulated {
        return Err(NotApplied::Refused(NOT_SIMULATED));
    }
    let event = match simulated {
        SimulatedSaleEvent::DepositReceived | SimulatedSaleEvent::DepositLate => {
            SaleEvent::DepositReceived { amount: Some(sale.coins), transaction_id: None }
        }
        SimulatedSaleEvent::DepositAmountWrong => {
            let twice = sale.coins.checked_add(sale.coins);
            let twice = twice.ok_or_else(|| Error::invariant("double a sale's amount"))?;
            SaleEvent::DepositReceived { amount: Some(twice), transaction_id: None }
        }
        SimulatedSaleEvent::PaidOut => SaleEvent::PaidOut,
        SimulatedSaleEvent::Hold => SaleEvent::Hold { reason: None },
        SimulatedSaleEvent::Release => SaleEvent::Release,
        SimulatedSaleEvent::Refund => SaleEvent::Refund { reason: None },
        SimulatedSaleEvent::Cancel => SaleEvent::Cancel { reason: None },
        SimulatedSaleEvent::Expire => SaleEvent::Expire,
    };
    if matches!(simulated, SimulatedSaleEvent::Expire | SimulatedSaleEvent::DepositLate) {
        make_overdue(conn, key).await?;
    }
    // A fact is never refused: one that the sale does not wait for is not made up.
    permit(conn, core, key, &event).await?;
    match &event {
        SaleEvent::DepositReceived { amount, .. } => {
            let transaction = transaction_id(&core.clock)?;
            let members = json!({
                "orderId": key.order,
                "partner": sale.partner,
                "providerReference": transaction,
                "transactionId": transaction,
                "amount": JsonDecimal(amount.unwrap_or(sale.coins)),
                "asset": sale.asset,
                "address": sale.address,
                "tag": sale.tag,
                "confirmations": 1,
            });
            Ok(report_event(conn, core, "deposit.received", actor, members).await?)
        }
        SaleEvent::PaidOut => pay_out_now(conn, core, key, actor).await,
        _ => act(conn, core, key, &event, actor).await,
    }
}

/// Ends the time to deposit of a pending sale, in the transaction of what happens afterwards, so that
/// no sweep comes between.
async fn make_overdue(conn: &mut Connection, sale: OrderKey) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update sell_order set expires_at = rampart_now() - interval '1 millisecond' \
         where client_id = $1 and order_id = $2 and status = 'pending'",
        sale.client.uuid(),
        sale.order.number(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The result of a transfer that has arrived already.
fn transferred(core: &Core) -> Result<Value> {
    let reference = core.clock.uuid()?;
    Ok(json!({ "providerReference": reference, "completed": true }))
}

/// Has the money arrive at once. What another connector sends is an operator's word.
async fn pay_out_now(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    actor: &str,
) -> Result<Vec<Cause>, NotApplied> {
    let kind = CommandKind::TransferSend;
    let mut transfer = open_command(conn, key, kind).await?;
    if transfer.is_none() {
        command_transfer(conn, core, key).await?;
        transfer = open_command(conn, key, kind).await?;
    }
    let Some((command, true)) = transfer else {
        return act(conn, core, key, &SaleEvent::PaidOut, actor).await;
    };
    let leased = lease_now(conn, core, kind, command).await?;
    let leased = leased.ok_or(NotApplied::Refused(PAYOUT_UNDER_WAY))?;
    let causes = answer(conn, core, &leased, Outcome::Done, transferred(core)?).await?;
    causes.ok_or(NotApplied::Refused(PAYOUT_UNDER_WAY))
}

/// Transfers the money of a sale, unless its reference has it held or given back instead: then it has
/// not left.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn pay_out(
    conn: &mut Connection,
    core: &Core,
    command: &Leased,
    key: OrderKey,
) -> Result<Vec<Cause>> {
    let sale = SimulatedSale::lock(conn, key).await?;
    let Some(sale) = sale.filter(|sale| sale.status == OrderStatus::InProgress) else {
        let causes = answer(conn, core, command, Outcome::Rejected, json!({})).await?;
        return Ok(causes.unwrap_or_default());
    };
    let Some(event) = sale.act() else {
        let causes = answer(conn, core, command, Outcome::Done, transferred(core)?).await?;
        return Ok(causes.unwrap_or_default());
    };
    if answer(conn, core, command, Outcome::Retry, json!({})).await?.is_none() {
        return Ok(Vec::new());
    }
    Ok(unless_forbidden(act(conn, core, key, &event, NAME).await)?.unwrap_or_default())
}
