//! Transfers: the fiat of a sale is commanded once its coins have arrived and nothing holds it back.

use rampart_types::{ClientId, JsonDecimal, OrderKey, UserKey};
use serde_json::json;
use uuid::Uuid;

use super::commands::{Command, CommandKind, Target, enqueue};
use super::payouts::amount_due;
use super::sandbox::timing as sandbox;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::catalogue::Direction;
use crate::trading::orders::column::id;
use crate::users::accounts::{self, PaymentAccount};

/// Commands the transfers of a user's sales that nothing holds back any more, in the transaction that
/// has cleared a check of the user or of an account. Their rows stay locked until it ends.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn command_transfers_of(
    conn: &mut Connection,
    core: &Core,
    UserKey { client, user }: UserKey,
) -> Result<()> {
    // In one order, so that two transactions never wait for each other.
    let waiting = sqlx::query_scalar!(
        "select order_id from sell_order \
         where client_id = $1 and user_id = $2 and status = 'in progress' \
         order by order_id for update",
        client.uuid(),
        user.uuid(),
    )
    .fetch_all(&mut *conn)
    .await?;
    for number in waiting {
        command_transfer(conn, core, OrderKey { client, order: id(number)? }).await?;
    }
    Ok(())
}

/// True if a sale's user, account or checks hold its money back, or it has a user and no account.
async fn is_held(conn: &mut Connection, core: &Core, key: OrderKey) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"select is_held as "is_held!" from transfer_gate($1, $2, $3)"#,
        key.client.uuid(),
        key.order.number(),
        core.settings.compliance.gate_of_live().as_str(),
    )
    .fetch_one(conn)
    .await
}

/// Commands the transfer of a sale in the caller's transaction, if its coins have arrived at an address
/// that a connector has made, or it is a test client's, and nothing holds it back. Its row stays locked
/// until the transaction ends.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn command_transfer(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
) -> Result<()> {
    let OrderKey { client, order: sale } = key;
    let row = sqlx::query!(
        r#"
        select o.fiat_amount, o.fiat_currency, o.payment_method, o.user_id, o.account_id,
            (select count(*) from command c where c.client_id = o.client_id
                and c.order_id = o.order_id and c.kind = 'transfer.send') as "earlier!",
            d.connector as "deposited_at?", r.is_of_test as "is_of_test!",
            r.is_routed as "is_routed!"
        from sell_order o
        cross join payout_route(o.client_id, o.created_at, o.payment_method, null) r
        left join deposit_address d on d.taken_by = o.client_id and d.taken_for = o.order_id
        where o.client_id = $1 and o.order_id = $2 and o.status = 'in progress'
            and not exists (select from command c where c.client_id = o.client_id
                and c.order_id = o.order_id and c.kind = 'transfer.send' and c.state <> 'rejected')
        for update of o
        "#,
        client.uuid(),
        sale.number(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row else { return Ok(()) };
    // A statement of its own: it sees what was committed while the one before waited.
    if is_held(conn, core, key).await? {
        return Ok(());
    }
    let method = row.payment_method.clone();
    let target = match row.deposited_at.as_deref() {
        Some(sandbox::NAME) => Target::sandbox(),
        // It is the last route of a test client.
        Some(_) if row.is_of_test && !row.is_routed => Target::sandbox(),
        Some(_) => Target::Method { direction: Direction::Out, method },
        // It is older than the sandbox's addresses.
        None if row.is_of_test => Target::sandbox(),
        None => return Ok(()),
    };
    let due = amount_due(conn, key, row.fiat_amount, &row.fiat_currency).await?;
    let Some(amount) = due else { return Ok(()) };
    let account = payee(conn, core, client, row.user_id.zip(row.account_id)).await?;
    let details = account.as_ref().map(|account| &account.details);
    let command = Command {
        client,
        order: Some(sale),
        user: None,
        kind: CommandKind::TransferSend,
        // One that was rejected has sent nothing: a release may command another one.
        idempotency_key: format!("transfer/{sale}/{}", row.earlier),
        target,
        body: json!({
            "orderId": sale,
            "amount": JsonDecimal(amount),
            "currency": row.fiat_currency,
            "method": row.payment_method,
            "iban": details.map(|details| &details.identifier),
            "name": details.map(|details| &details.holder),
            "reference": sale.to_string(),
        }),
    };
    enqueue(conn, core, command).await?;
    Ok(())
}

/// The account that the money goes to, by its user and its id; none if it is gone.
async fn payee(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    named: Option<(Uuid, Uuid)>,
) -> Result<Option<PaymentAccount>> {
    let Some((user, id)) = named else { return Ok(None) };
    let all = accounts::list(conn, core, UserKey { client, user: user.into() }).await?;
    Ok(all.into_iter().find(|account| account.id == id))
}
