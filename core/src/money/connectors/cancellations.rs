//! Cancellations: a payment that was begun at a provider ends when its order waits for it no more.

use rampart_types::OrderKey;
use serde_json::{Value, json};
use uuid::Uuid;

use super::commands::{self, Command, CommandKind, Target, enqueue, result_context};
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Commands, in the transaction that ends an order's wait for its payment, that this is cancelled at the
/// provider, by the connector that makes it, once for an order; nothing for an order whose payment no
/// connector has begun to make, which is not made any more ([`withdraw_creation`]), whose connector
/// cancels no payments, or has told of money for the order: then that is the payment.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn command_cancellation(
    conn: &mut Connection,
    core: &Core,
    OrderKey { client, order }: OrderKey,
) -> Result<()> {
    let created = sqlx::query!(
        r#"
        select c.command_id, c.sealed_result, k.name as connector, o.payment_method
        from command c
        join buy_order o on o.client_id = c.client_id and o.order_id = c.order_id
        join connector k on k.name = c.connector and $3 = any (k.capabilities)
        where c.client_id = $1 and c.order_id = $2 and c.kind = 'payment.create'
            and (c.state = 'done' or c.state = 'open' and c.attempt > 0)
            and not exists (
                select from payment p
                where p.client_id = $1 and p.order_id = $2 and p.kind = 'received'
                    and p.connector = c.connector)
            and not exists (
                select from payment_match m
                join payment p on p.client_id = m.client_id and p.payment_id = m.payment_id
                where m.to_client_id = $1 and m.order_id = $2 and p.kind = 'received'
                    and p.connector = c.connector)
        "#,
        client.uuid(),
        order.number(),
        CommandKind::PaymentCancel.as_str(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(created) = created else { return Ok(()) };
    let context = result_context(client.uuid(), created.command_id);
    let result =
        created.sealed_result.map(|sealed| commands::open(&core.cipher(client), &context, &sealed));
    let result = result.transpose()?.unwrap_or_default();
    let command = Command {
        client,
        order: Some(order),
        user: None,
        kind: CommandKind::PaymentCancel,
        idempotency_key: format!("payment-cancel/{order}"),
        target: Target::Connector(created.connector),
        body: json!({
            "orderId": order,
            "method": created.payment_method,
            "commandId": created.command_id,
            "providerReference": result["result"]["providerReference"],
        }),
    };
    enqueue(conn, core, command).await?;
    Ok(())
}

/// Commands, in the transaction that ends the command of a payment, that the payment is cancelled if
/// its order does not wait for it any more. Of this transaction and one that ends the wait, the one that
/// gets the order's row second sees what the other has written. The row stays locked until it ends.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn cancel_late_payment(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
) -> Result<()> {
    // A statement of its own: the next one sees what was committed while this one waited.
    let is_over = sqlx::query_scalar!(
        r#"
        select status <> 'pending' as "is_over!" from buy_order
        where client_id = $1 and order_id = $2 for no key update
        "#,
        key.client.uuid(),
        key.order.number(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    if is_over == Some(true) { command_cancellation(conn, core, key).await } else { Ok(()) }
}

/// Takes back, in the transaction that pays or ends an order, the making of a payment that no connector
/// holds and of which every attempt was to be repeated: it was paid otherwise, and its payout would wait
/// for that, or nobody is to pay any more.
///
/// # Errors
/// The database's.
pub(crate) async fn withdraw_creation(
    conn: &mut Connection,
    OrderKey { client, order }: OrderKey,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update command set state = 'rejected', finished_at = now(), checkpoint = null \
         where client_id = $1 and order_id = $2 and kind = 'payment.create' \
             and state = 'open' and attempt = retries",
        client.uuid(),
        order.number(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Names the payment in the body of a cancellation that was commanded before the payment had a name.
/// One that is leased comes after the result of the command that made the payment; where that was
/// refused there is no name.
///
/// # Errors
/// When the database cannot be read, or the result cannot be opened, which is our fault.
pub(super) async fn name_payment(
    conn: &mut Connection,
    core: &Core,
    client: Uuid,
    body: &mut Value,
) -> Result<()> {
    let create: Option<Uuid> = body["commandId"].as_str().and_then(|id| id.parse().ok());
    let Some(create) = create.filter(|_| body["providerReference"].is_null()) else {
        return Ok(());
    };
    let sealed = sqlx::query_scalar!(
        "select sealed_result from command where client_id = $1 and command_id = $2",
        client,
        create,
    )
    .fetch_optional(conn)
    .await?
    .flatten();
    if let Some(sealed) = sealed {
        let context = result_context(client, create);
        let result = commands::open(&core.cipher(client.into()), &context, &sealed)?;
        body["providerReference"] = result["result"]["providerReference"].clone();
    }
    Ok(())
}
