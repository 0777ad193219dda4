//! Cancellations: a payment that was begun at a provider ends with its order.

use rampart_types::OrderKey;
use serde_json::{Value, json};
use uuid::Uuid;

use super::commands::{self, Command, CommandKind, Target, enqueue, result_context};
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Commands, in the transaction that ends an order unpaid, that its payment is cancelled at the
/// provider; nothing for an order that no connector was asked about, whose payment was refused, or
/// whose connector cancels no payments. It goes to the same connector, which gets it after the order's
/// earlier commands, with the name that the payment has got by then.
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
        select c.command_id, c.connector, c.sealed_result, o.payment_method
        from command c join buy_order o on o.client_id = c.client_id and o.order_id = c.order_id
        where c.client_id = $1 and c.order_id = $2 and c.kind = 'payment.create'
            and c.state <> 'rejected'
            and (c.connector is null or exists (select from connector k
                where k.name = c.connector and $3 = any (k.capabilities)))
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
    let method = created.payment_method;
    let target = match created.connector {
        Some(connector) => Target::Connector(connector),
        None => Target::Method { direction: commands::Direction::In, method: method.clone() },
    };
    let command = Command {
        client,
        order: Some(order),
        user: None,
        kind: CommandKind::PaymentCancel,
        idempotency_key: format!("payment-cancel/{order}"),
        target,
        body: json!({
            "orderId": order,
            "method": method,
            "commandId": created.command_id,
            "providerReference": result["result"]["providerReference"],
        }),
    };
    enqueue(conn, core, command).await?;
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
