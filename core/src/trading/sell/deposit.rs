//! The deposit address of a sale.

use crate::Core;
use crate::auth::caller::Client;
use crate::money::connectors::deposits::{AddressPool, DepositSource};
use crate::platform::error::{Code, Result};
use crate::trading::catalogue::{Direction, Leg};
use crate::trading::quotes::Quote;
use crate::trading::routing::{self, Settlement};
use rampart_types::{Chain, OrderId, OrderKey};

/// The pool of the connector that takes the quote's coins, or the sandbox's address for a sale of
/// this number.
///
/// # Errors
/// ER016 when nobody takes the coins.
pub(super) fn source(
    core: &Core,
    client: &Client,
    quote: &Quote,
    sale: OrderId,
    chain: Chain,
) -> Result<DepositSource> {
    let Client { tenant, catalogue, .. } = client;
    let asset = quote.crypto_currency().to_string();
    if routing::settlement_of(client, quote) != Settlement::Connectors {
        let sale = OrderKey { client: client.id(), order: sale };
        return DepositSource::of_sandbox(core, sale, &asset, chain);
    }
    let (is_test, coins) = (tenant.is_test(), Leg::Asset(&asset));
    let connector = catalogue.routes.connector(&tenant.slug, is_test, Direction::In, coins);
    let connector = connector.ok_or(Code::SellingInMaintenance)?;
    Ok(DepositSource::Pool(AddressPool::new(core, connector, asset)))
}
