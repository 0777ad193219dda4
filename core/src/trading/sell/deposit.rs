//! The deposit address of a sale that connectors settle.

use crate::Core;
use crate::auth::caller::Client;
use crate::money::connectors::deposits::PooledAddress;
use crate::platform::error::{Code, Error, Result};
use crate::trading::catalogue::{Direction, Leg};
use crate::trading::quotes::Quote;
use crate::trading::routing::{self, Settlement};

/// A free address of the connector that takes the quote's coins; `None` in the sandbox.
///
/// # Errors
/// ER016 when the pool is empty.
pub(super) async fn find(
    core: &Core,
    client: &Client,
    quote: &Quote,
) -> Result<Option<PooledAddress>> {
    if routing::settlement_of(client, quote) != Settlement::Connectors {
        return Ok(None);
    }
    let Client { tenant, catalogue, .. } = client;
    let (asset, partner) = (quote.crypto_currency().to_string(), (&*tenant.slug, tenant.is_test()));
    let connector = catalogue.routes.connector(partner, Direction::In, Leg::Asset(&asset));
    let connector = connector.ok_or(Code::SellingInMaintenance)?;
    let free = PooledAddress::find(core, connector, &asset).await?;
    let empty = || Error::with_detail(Code::SellingInMaintenance, "no deposit address is free");
    free.map(Some).ok_or_else(empty)
}
