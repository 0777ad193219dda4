//! Payouts: the coins of a paid order are commanded once nothing holds them back.
//!
//! Whoever clears a check calls [`command_payout`] or [`command_payouts_and_transfers`] in the
//! transaction that clears it. Of two that clear the last two checks at once, the one that gets the
//! order's row second sees what the other has cleared, and commands; the sweep (`sweep`) is for what
//! else may free an order, such as a changed gate.

use rampart_types::{OrderKey, UserKey};
use rust_decimal::Decimal;
use serde_json::json;

use super::commands::{Command, CommandKind, Target, enqueue};
use super::sandbox::timing as sandbox;
use super::transfers::command_transfers_of;
use crate::Core;
use crate::money::ledger::AccountKind::PayoutPayable;
use crate::money::ledger::Position;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::catalogue::Direction;
use crate::trading::orders::column::id;
use rampart_types::JsonDecimal;

/// Commands the payouts of a user's paid orders, and the transfers of the user's sales, that nothing
/// holds back any more, in the transaction that has cleared a check of the user. Their rows stay
/// locked until it ends.
///
/// # Errors
/// When the database cannot be used.
pub async fn command_payouts_and_transfers(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
) -> Result<()> {
    let UserKey { client, user } = key;
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
        command_payout(conn, core, OrderKey { client, order: id(number)? }).await?;
    }
    // On the heap: most users have sold nothing.
    Box::pin(command_transfers_of(conn, core, key)).await
}

/// Commands the payout of an order in the caller's transaction, if it is paid, connectors serve it
/// and nothing holds it back. The order's row stays locked until the transaction ends.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn command_payout(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
) -> Result<()> {
    match connectors_of(conn, key).await? {
        Some(by) => send(conn, core, key, by, false).await,
        None => Ok(()),
    }
}

/// As [`command_payout`], whatever holds the coins back: for those that the sandbox sends alone.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn command_despite_holds(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
) -> Result<()> {
    match connectors_of(conn, key).await? {
        Some(Senders::Sandbox) => send(conn, core, key, Senders::Sandbox, true).await,
        _ => Ok(()),
    }
}

/// The connectors that send the coins of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Senders {
    /// Those of its routes.
    Routed,
    /// The sandbox.
    Sandbox,
}

/// The connectors of an order whose coins are to be sent; `None` if there is nothing to be sent, or
/// nobody was asked for its payment, unless it is a savings plan's: that money has come already. Its
/// row stays locked until the transaction ends.
async fn connectors_of(
    conn: &mut Connection,
    OrderKey { client, order }: OrderKey,
) -> Result<Option<Senders>> {
    // A statement of its own: the next one sees what was committed while this one waited.
    let found = sqlx::query!(
        r#"
        select r.is_of_test as "is_of_test!", r.is_routed as "is_routed!",
            p.command_id is not null as "is_commanded!",
            coalesce(p.connector = 'sandbox', false) as "is_simulated!",
            o.is_dca_order as "is_deposit!"
        from buy_order o
        cross join payout_route(o.client_id, o.created_at, null, o.crypto_currency) r
        left join command p on p.client_id = o.client_id and p.order_id = o.order_id
            and p.kind = 'payment.create'
        where o.client_id = $1 and o.order_id = $2 and o.status = 'in progress'
            and o.transaction_id is null
        for update of o
        "#,
        client.uuid(),
        order.number(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    Ok(match found {
        // Nothing real follows what is simulated, and the sandbox is the last route of a test client.
        Some(row) if row.is_simulated || row.is_of_test && !(row.is_commanded && row.is_routed) => {
            Some(Senders::Sandbox)
        }
        Some(row) if row.is_commanded || row.is_deposit => Some(Senders::Routed),
        _ => None,
    })
}

/// Enqueues the payout of a paid order, whose row is locked, unless something holds it back that counts.
async fn send(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    by: Senders,
    despite_holds: bool,
) -> Result<()> {
    let OrderKey { client, order } = key;
    let row = sqlx::query!(
        r#"
        select o.crypto_amount, o.crypto_currency, o.wallet_address, o.destination_tag,
            o.wallet_type, o.network_fee, o.price,
            (select count(*) from command c where c.client_id = o.client_id
                and c.order_id = o.order_id and c.kind = 'payout.send') as "earlier!"
        from buy_order o cross join payout_gate(o.client_id, o.order_id, $3) g
        where o.client_id = $1 and o.order_id = $2
            and not exists (select from command c where c.client_id = o.client_id
                and c.order_id = o.order_id and c.kind = 'payout.send' and c.state <> 'rejected')
            and ($4 or not g.is_held)
        "#,
        client.uuid(),
        order.number(),
        core.settings.compliance.gate_of_live().as_str(),
        despite_holds,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row else { return Ok(()) };
    let due = amount_due(conn, key, row.crypto_amount, &row.crypto_currency).await?;
    let Some(amount) = due else { return Ok(()) };
    let asset = row.crypto_currency.clone();
    let target = match by {
        Senders::Routed => Target::Asset { direction: Direction::Out, asset },
        Senders::Sandbox => Target::sandbox(),
    };
    let fee_max = row.network_fee.checked_div(row.price).map(|fee| fee.trunc_with_scale(8));
    let command = Command {
        client,
        order: Some(order),
        user: None,
        kind: CommandKind::PayoutSend,
        // One that was rejected has sent nothing: a release may command another one.
        idempotency_key: format!("payout/{order}/{}", row.earlier),
        target,
        body: json!({
            "orderId": order,
            "asset": row.crypto_currency,
            "amount": JsonDecimal(amount),
            "address": row.wallet_address,
            "tag": row.destination_tag,
            "walletType": row.wallet_type,
            "networkFeeMax": JsonDecimal(fee_max.unwrap_or(Decimal::ZERO)),
        }),
    };
    enqueue(conn, core, command).await?;
    Ok(())
}

/// The amount that is to be sent of an order's payout: the whole of it, or what came back of it last,
/// where a provider has kept a part and no more is owed. `None`: what was sent before it was owed, or
/// by hand, is not sent again. The order's row is locked.
///
/// # Errors
/// The database's.
pub(super) async fn amount_due(
    conn: &mut Connection,
    key: OrderKey,
    payout: Decimal,
    currency: &str,
) -> Result<Option<Decimal>, sqlx::Error> {
    let owed = Position::of_order(&mut *conn, key).await?.owed(PayoutPayable, currency);
    if owed.is_zero() {
        return Ok(None);
    }
    if owed >= payout {
        return Ok(Some(payout));
    }
    let returned = sqlx::query_scalar!(
        "select amount from payment \
         where client_id = $1 and order_id = $2 and currency = $3 \
             and kind in ('payout-failed', 'transfer-returned') \
         order by recorded_at desc, payment_id desc limit 1",
        key.client.uuid(),
        key.order.number(),
        currency,
    )
    .fetch_optional(conn)
    .await?;
    Ok(returned.filter(|returned| *returned == owed))
}

/// Takes back the payout of an order whose coins or money cannot have left: no connector holds it,
/// and every attempt so far has said that nothing was sent. The recipient of a transfer is deleted with
/// it. `true` if another one is under way.
///
/// # Errors
/// The database's.
pub(crate) async fn withdraw_payout(
    conn: &mut Connection,
    OrderKey { client, order }: OrderKey,
) -> Result<bool, sqlx::Error> {
    sqlx::query!(
        "update command set state = 'rejected', finished_at = now(), checkpoint = null, \
             sealed_body = case when kind <> 'transfer.send' then sealed_body end \
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

/// Marks the payout of an order, of coins or of money, as one that has sent nothing after all: a
/// release may command another one.
///
/// # Errors
/// The database's.
pub(crate) async fn end_payout(
    conn: &mut Connection,
    OrderKey { client, order }: OrderKey,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update command set state = 'rejected' \
         where client_id = $1 and order_id = $2 and kind in ('payout.send', 'transfer.send') \
             and state = 'done'",
        client.uuid(),
        order.number(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The coins or the money that an order pays out.
struct Payable {
    amount: Decimal,
    currency: String,
    /// False if it waits, is over, or its coins were sent.
    is_due: bool,
}

/// True if an order still owes what a command of this kind sends, which is the whole payout if no
/// amount is given, and may send it now; also of an order that is not there. Its row stays locked
/// until the transaction ends.
///
/// # Errors
/// The database's.
pub(super) async fn is_owed(
    conn: &mut Connection,
    key: OrderKey,
    kind: CommandKind,
    amount: Option<Decimal>,
) -> Result<bool, sqlx::Error> {
    let (of, number) = (key.client.uuid(), key.order.number());
    // A statement of its own: the position is read once nobody else changes it.
    let payable = if kind == CommandKind::TransferSend {
        sqlx::query_as!(
            Payable,
            r#"
            select fiat_amount as amount, fiat_currency as currency,
                status = 'in progress' as "is_due!"
            from sell_order where client_id = $1 and order_id = $2 for update
            "#,
            of,
            number,
        )
        .fetch_optional(&mut *conn)
        .await?
    } else {
        sqlx::query_as!(
            Payable,
            r#"
            select crypto_amount as amount, crypto_currency as currency,
                status = 'in progress' and transaction_id is null as "is_due!"
            from buy_order where client_id = $1 and order_id = $2 for update
            "#,
            of,
            number,
        )
        .fetch_optional(&mut *conn)
        .await?
    };
    let Some(payable) = payable else { return Ok(true) };
    if kind == CommandKind::TransferSend && is_recipient_erased(conn, key).await? {
        return Ok(false);
    }
    let due = amount_due(conn, key, payable.amount, &payable.currency).await?;
    let sends = amount.unwrap_or(payable.amount);
    Ok(payable.is_due && due.is_some_and(|due| due >= sends))
}

/// True if the user of a sale is erased. An erasure locks the sales of its user: called once the sale's
/// row is locked, it sees one that was committed while that lock was awaited.
///
/// # Errors
/// The database's.
async fn is_recipient_erased(conn: &mut Connection, sale: OrderKey) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"
        select exists (
            select from sell_order o
            join end_user u on u.client_id = o.client_id and u.user_id = o.user_id
            where o.client_id = $1 and o.order_id = $2 and u.deleted_at is not null) as "is_erased!"
        "#,
        sale.client.uuid(),
        sale.order.number(),
    )
    .fetch_one(conn)
    .await
}

/// Has the sandbox report coins that it has sent once more, in the transaction that lets their order
/// go on.
///
/// # Errors
/// The database's.
pub(crate) async fn report_payout_again(
    conn: &mut Connection,
    core: &Core,
    OrderKey { client, order }: OrderKey,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update command \
         set report_due_at = rampart_now() + $3::bigint * interval '1 millisecond' \
         where client_id = $1 and order_id = $2 and kind = 'payout.send' and state = 'done' \
             and connector = $4 and report_due_at is null",
        client.uuid(),
        order.number(),
        sandbox::step_ms(core),
        sandbox::NAME,
    )
    .execute(conn)
    .await?;
    Ok(())
}
