//! The client and the order that an event is about.

use rampart_types::{ClientId, OrderId};

use super::report::Report;
use crate::Core;
use crate::money::connectors::deposits;
use crate::money::payments::store::currency_of;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::tenancy::tenants::id_of;
use crate::trading::orders::column::id;

/// The client and the order that an event is about: those that it names, else those of its command,
/// else those of its address.
///
/// # Errors
/// The database's.
pub(super) async fn subject(
    conn: &mut Connection,
    core: &Core,
    connector: &str,
    report: &Report,
) -> Result<(Option<ClientId>, Option<OrderId>)> {
    let mut client = partner(conn, report).await?;
    let mut order = report.order;
    // Another partner may have an order of the number that is named.
    if let Some((of, of_command)) = subject_of_command(conn, connector, report).await?
        && (order.is_none() || order == of_command)
    {
        (client, order) = (client.or(Some(of)), of_command);
    }
    if let (None, Some(address)) = (order, &report.address) {
        let tag = report.tag.as_deref().unwrap_or_default();
        let asset = report.currency.as_deref().map(|text| currency_of(core, text).0);
        let sale = deposits::sale_of(conn, core, connector, address, tag, asset.as_deref()).await?;
        if let Some(sale) = sale {
            (client, order) = (Some(sale.client), Some(sale.order));
        }
    }
    Ok((client, order))
}

/// The partner that an event names, if there is one of this slug.
async fn partner(conn: &mut Connection, report: &Report) -> Result<Option<ClientId>> {
    let Some(slug) = &report.partner else { return Ok(None) };
    Ok(id_of(conn, slug).await?)
}

/// The client and the order of the command that an event follows from, which must be the connector's.
async fn subject_of_command(
    conn: &mut Connection,
    connector: &str,
    report: &Report,
) -> Result<Option<(ClientId, Option<OrderId>)>> {
    let Some(command) = report.command else { return Ok(None) };
    let found = sqlx::query!(
        "select client_id, order_id from command where command_id = $1 and connector = $2",
        command,
        connector,
    )
    .fetch_optional(conn)
    .await?;
    found.map(|found| Ok((found.client_id.into(), found.order_id.map(id).transpose()?))).transpose()
}
