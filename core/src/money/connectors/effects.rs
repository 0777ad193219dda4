//! The effects of a command's end, in the transaction that ends it.

use rampart_types::{OrderId, OrderKey};

use super::cancellations::cancel_late_payment;
use super::commands::CommandKind;
use super::finished::Finished;
use super::network_fee::NetworkFee;
use super::settlement::{self, Fact};
use super::{accounts, deposits, screening};
use crate::Core;
use crate::money::ledger::Subject;
use crate::money::payments::PaymentKind;
use crate::money::payments::refund_withdrawals::withdraw_rejected;
use crate::money::payments::terms::OrderTerms;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::orders::state::Cause;
use crate::trading::orders::status::OrderEvent;
use crate::trading::quotes::Side;
use crate::trading::sell::status::SaleEvent;

/// Reason of an order that waits because its coins were not sent.
const PAYOUT_REJECTED: &str = "the payout was rejected";
/// Reason of a sale that waits because its money was not sent.
const TRANSFER_REJECTED: &str = "the transfer was rejected";

/// Applies what follows from the end of a command. Gives the causes of changes of an order, to be
/// counted after the commit.
///
/// # Errors
/// When the database cannot be written; the command is then not ended either.
pub(super) async fn apply(
    conn: &mut Connection,
    core: &Core,
    finished: &Finished,
) -> Result<Vec<Cause>> {
    let Finished { client, is_done, connector, .. } = finished;
    let kind = CommandKind::from_name(&finished.kind);
    if (kind, is_done) == (Some(CommandKind::PaymentRefund), &false) {
        withdraw_rejected(conn, core, *client, finished.command).await?;
        return Ok(Vec::new());
    }
    let Some(order) = &finished.order else {
        apply_without_order(conn, core, finished, kind).await?;
        return Ok(Vec::new());
    };
    let key = OrderKey { client: *client, order: *order };
    match (kind, is_done) {
        (Some(CommandKind::PaymentCreate), false) => {
            let event = OrderEvent::PaymentDenied { reason: finished.reason.clone() };
            settlement::apply(conn, core, key, &event, connector).await
        }
        (Some(CommandKind::PaymentCreate), true) => {
            if finished.is_unpayable() {
                tracing::warn!(connector, %order, "no payer can be told where to pay");
            }
            cancel_late_payment(conn, core, key).await?;
            Ok(Vec::new())
        }
        (Some(kind @ (CommandKind::PayoutSend | CommandKind::TransferSend)), true) => {
            sent(conn, core, finished, *order, kind).await
        }
        (Some(CommandKind::TransferSend), false) => {
            let event = SaleEvent::Hold { reason: Some(TRANSFER_REJECTED.to_owned()) };
            settlement::apply(conn, core, key, &event, connector).await
        }
        (Some(CommandKind::PayoutSend), false) => {
            if let Some(fee) = NetworkFee::read(&finished.result) {
                // No payment is recorded: no coins have left.
                let (client, order, occurred_at) =
                    (*client, Some(order.number()), core.clock.now());
                fee.book(conn, core, &Subject { client, order, payment: None, occurred_at })
                    .await?;
            }
            let event = OrderEvent::Hold { reason: Some(PAYOUT_REJECTED.to_owned()) };
            settlement::apply(conn, core, key, &event, connector).await
        }
        _ => Ok(Vec::new()),
    }
}

/// Records that the coins or the money of an order have left.
async fn sent(
    conn: &mut Connection,
    core: &Core,
    finished: &Finished,
    order: OrderId,
    kind: CommandKind,
) -> Result<Vec<Cause>> {
    let Finished { client, connector, result, .. } = finished;
    // A purchase and a sale of one partner may have one number.
    let side = if kind == CommandKind::PayoutSend { Side::Buy } else { Side::Sell };
    let key = OrderKey { client: *client, order };
    let Some(terms) = OrderTerms::lock(conn, key, side).await? else {
        return Ok(Vec::new());
    };
    let text = |name: &str| {
        let text = result[name].as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    let (kind, transaction_id, reference) = match kind {
        CommandKind::PayoutSend => {
            let transaction_id = text("transactionId");
            (PaymentKind::PayoutSent, transaction_id.clone(), transaction_id)
        }
        // An instant payment has arrived when it is sent.
        _ if result["completed"] == true => {
            (PaymentKind::TransferCompleted, None, text("providerReference"))
        }
        _ => (PaymentKind::TransferSent, None, text("providerReference")),
    };
    let (payout, currency) = terms.amounts.payout();
    // It may be a part, which had come back.
    let amount = finished.amount(core)?.unwrap_or(payout);
    let fact = Fact {
        kind,
        connector,
        actor: connector,
        reference: reference.unwrap_or_else(|| finished.command.to_string()),
        original: None,
        amount,
        currency: currency.to_owned(),
        client: Some(*client),
        order: Some(order),
        transaction_id,
        occurred_at: core.clock.now(),
        raw: None,
    };
    Ok(settlement::record(conn, core, fact).await?.causes)
}

/// Applies the end of a command that no order waits for: addresses of a pool, checks of users.
async fn apply_without_order(
    conn: &mut Connection,
    core: &Core,
    finished: &Finished,
    kind: Option<CommandKind>,
) -> Result<()> {
    let Finished { is_done, connector, asset, .. } = finished;
    match (kind, asset) {
        (Some(CommandKind::DepositAddress), Some(asset)) if *is_done => {
            deposits::store(conn, core, connector, asset, &finished.result).await?;
        }
        (Some(CommandKind::ScreeningCheck), _) => {
            screening::decided(conn, core, finished).await?;
        }
        (Some(kind @ (CommandKind::CardVerify | CommandKind::WalletProviderVerify)), _) => {
            if let (true, Some(user)) = (*is_done, finished.user) {
                accounts::verified(conn, core, finished, user, kind).await?;
            }
        }
        _ => {}
    }
    Ok(())
}
