//! The deposit address of a sale.

use crate::Core;
use crate::auth::caller::Client;
use crate::money::connectors::deposits::PooledAddress;
use crate::platform::error::{Code, Error, Result};
use crate::trading::catalogue::{Direction, Leg};
use crate::trading::quotes::Quote;
use crate::trading::routing::{self, Settlement};
use rampart_types::{Chain, OrderId};

/// A free address of the connector that takes the quote's coins, for a sale of this number.
///
/// # Errors
/// ER016 when the pool is empty.
pub(super) async fn find(
    core: &Core,
    client: &Client,
    quote: &Quote,
    (sale, chain): (OrderId, Chain),
) -> Result<PooledAddress> {
    let Client { tenant, catalogue, .. } = client;
    let asset = quote.crypto_currency().to_string();
    if routing::settlement_of(client, quote) != Settlement::Connectors {
        return PooledAddress::of_sandbox(core, (client.id(), sale), (&asset, chain));
    }
    let partner = (&*tenant.slug, tenant.is_test());
    let connector = catalogue.routes.connector(partner, Direction::In, Leg::Asset(&asset));
    let connector = connector.ok_or(Code::SellingInMaintenance)?;
    let free = PooledAddress::find(core, connector, &asset).await?;
    free.ok_or_else(|| Error::with_detail(Code::SellingInMaintenance, "no deposit address is free"))
}
