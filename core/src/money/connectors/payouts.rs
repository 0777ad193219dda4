//! Payouts: the coins of a paid order are commanded once nothing holds them back.
//!
//! Whoever clears a check calls [`command_payout`] or [`command_payouts_of`] in the transaction that
//! clears it. Of two that clear the last two checks at once, the one that gets the order's row
//! second sees what the other has cleared, and commands; the sweep is for what else may free an
//! order, such as a changed gate.

use rampart_types::{ClientId, OrderId, UserId};
use rust_decimal::Decimal;
use serde_json::json;

use super::commands::{Command, CommandKind, Target, enqueue};
use crate::Core;
use crate::money::ledger::AccountKind::PayoutPayable;
use crate::money::ledger::Position;
use crate::platform::db::{Connection, retrying_statement};
use crate::platform::error::{Error, Result};
use crate::trading::catalogue::Direction;
use rampart_types::JsonDecimal;

/// Orders of one run.
const BATCH_ORDERS: i64 = 100;

impl Core {
    /// Commands the payouts of paid orders that nothing holds back any more. Several edges may run it
    /// at once: a payout is commanded once.
    ///
    /// # Errors
    /// When the database cannot be used; the next run continues.
    pub async fn command_payouts(&self) -> Result<()> {
        let due = sqlx::query!(
            r#"
            select o.client_id, o.order_id from buy_order o
            where o.status = 'in progress' and o.transaction_id is null
                and exists (select from command c where c.client_id = o.client_id
                    and c.order_id = o.order_id and c.kind = 'payment.create')
                and not exists (select from command c where c.client_id = o.client_id
                    and c.order_id = o.order_id and c.kind = 'payout.send' and c.state <> 'rejected')
                and not payout_is_held(o.client_id, o.order_id, $1)
            order by o.updated_at limit $2
            "#,
            self.settings.compliance.gate.as_str(),
            BATCH_ORDERS,
        )
        .fetch_all(&self.db)
        .await?;
        for row in due {
            let order = order_id(row.order_id)?;
            let command = async || {
                let mut tx = self.db.begin().await?;
                command_payout(&mut tx, self, row.client_id.into(), order).await?;
                Ok::<_, Error>(tx.commit().await?)
            };
            retrying_statement(command).await?;
        }
        Ok(())
    }
}

/// Commands the payouts of a user's paid orders that nothing holds back any more, in the
/// transaction that has cleared a check of the user. Their rows stay locked until it ends.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn command_payouts_of(
    conn: &mut Connection,
    core: &Core,
    (client, user): (ClientId, UserId),
) -> Result<()> {
    // In one order, so that two transactions never wait for each other.
    let waiting = sqlx::query_scalar!(
        "select order_id from buy_order \
         where client_id = $1 and user_id = $2 and status = 'in progress' \
             and transaction_id is null \
         order by order_id for update",
        client.uuid(),
        user.uuid(),
    )
    .fetch_all(&mut *conn)
    .await?;
    for number in waiting {
        command_payout(conn, core, client, order_id(number)?).await?;
    }
    Ok(())
}

/// Commands the payout of an order in the caller's transaction, if it is paid, connectors serve it
/// and nothing holds it back. The order's row stays locked until the transaction ends. A simulated
/// payout that waits is looked at again at once.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn command_payout(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    order: OrderId,
) -> Result<()> {
    // A statement of its own: the next one sees what was committed while this one waited.
    let is_served = sqlx::query_scalar!(
        r#"
        select exists (select from command c where c.client_id = o.client_id
            and c.order_id = o.order_id and c.kind = 'payment.create') as "is_served!"
        from buy_order o
        where o.client_id = $1 and o.order_id = $2 and o.status = 'in progress'
            and o.transaction_id is null
        for update of o
        "#,
        client.uuid(),
        order.number(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    match is_served {
        None => Ok(()),
        Some(true) => send(conn, core, client, order).await,
        Some(false) => wake_simulation(conn, client, order).await,
    }
}

/// Enqueues the payout of a paid order, whose row is locked, unless something holds it back.
async fn send(conn: &mut Connection, core: &Core, client: ClientId, order: OrderId) -> Result<()> {
    let row = sqlx::query!(
        r#"
        select o.crypto_amount, o.crypto_currency, o.wallet_address, o.destination_tag,
            o.wallet_type, o.network_fee, o.price,
            (select count(*) from command c where c.client_id = o.client_id
                and c.order_id = o.order_id and c.kind = 'payout.send') as "earlier!"
        from buy_order o
        where o.client_id = $1 and o.order_id = $2
            and not exists (select from command c where c.client_id = o.client_id
                and c.order_id = o.order_id and c.kind = 'payout.send' and c.state <> 'rejected')
            and not payout_is_held(o.client_id, o.order_id, $3)
        "#,
        client.uuid(),
        order.number(),
        core.settings.compliance.gate.as_str(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row else { return Ok(()) };
    // What was sent before it was paid is not sent again.
    let position = Position::of(conn, client, Some(order.number())).await?;
    if position.owed(PayoutPayable, &row.crypto_currency) < row.crypto_amount {
        return Ok(());
    }
    let fee_max = row.network_fee.checked_div(row.price).map(|fee| fee.trunc_with_scale(8));
    let command = Command {
        client,
        order: Some(order),
        user: None,
        kind: CommandKind::PayoutSend,
        // One that was rejected has sent nothing: a release may command another one.
        idempotency_key: format!("payout/{order}/{}", row.earlier),
        target: Target::Asset { direction: Direction::Out, asset: row.crypto_currency.clone() },
        body: json!({
            "orderId": order,
            "asset": row.crypto_currency,
            "amount": JsonDecimal(row.crypto_amount),
            "address": row.wallet_address,
            "tag": row.destination_tag,
            "walletType": row.wallet_type,
            "networkFeeMax": JsonDecimal(fee_max.unwrap_or(Decimal::ZERO)),
        }),
    };
    enqueue(conn, core, command).await?;
    Ok(())
}

/// Takes back the payout of an order whose coins or money cannot have left: no connector holds it,
/// and every attempt so far has said that nothing was sent. `true` if another one is under way.
///
/// # Errors
/// The database's.
pub(crate) async fn withdraw_payout(
    conn: &mut Connection,
    client: ClientId,
    order: OrderId,
) -> Result<bool, sqlx::Error> {
    sqlx::query!(
        "update command set state = 'rejected', finished_at = now() \
         where client_id = $1 and order_id = $2 and kind in ('payout.send', 'transfer.send') \
             and state = 'open' and attempt = retries",
        client.uuid(),
        order.number(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query_scalar!(
        r#"
        select exists (select from command where client_id = $1 and order_id = $2
            and kind in ('payout.send', 'transfer.send') and state = 'open') as "under_way!"
        "#,
        client.uuid(),
        order.number(),
    )
    .fetch_one(conn)
    .await
}

/// Lets the sandbox try again to send the coins of an order that waited for a check.
async fn wake_simulation(conn: &mut Connection, client: ClientId, order: OrderId) -> Result<()> {
    sqlx::query!(
        "update sandbox_step set leased_until = null \
         where client_id = $1 and order_id = $2 and event = 'coins-sent'",
        client.uuid(),
        order.number(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

fn order_id(number: i64) -> Result<OrderId> {
    OrderId::try_from(number).map_err(|error| Error::internal("read an order's id", error))
}
