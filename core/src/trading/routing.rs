//! The movers of an order's money and coins: connectors by the routes, or the sandbox; and what
//! a client is offered for that.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use crate::auth::caller::Client;
use crate::tenancy::tenants::Tenant;
use crate::trading::catalogue::{Catalogue, Direction, Leg, Pair, PairStatus, PaymentMethod};
use crate::trading::quotes::{Quote, Side};

/// The mover of an order's money and coins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// The connectors of its routes; what a test client's order pays out without a route, the sandbox.
    Connectors,
    /// The sandbox: a test client's order that no connector takes money or coins for. Nothing real
    /// follows what is simulated.
    Sandbox,
    /// Nobody: a live client's order without a route for both.
    Nobody,
}

/// The directions of an order's money and of its coins.
const fn directions(side: Side) -> (Direction, Direction) {
    match side {
        Side::Buy => (Direction::In, Direction::Out),
        Side::Sell => (Direction::Out, Direction::In),
    }
}

/// Finds the settlement of the order that a quote of this client becomes.
pub(crate) fn settlement_of(client: &Client, quote: &Quote) -> Settlement {
    let (tenant, routes) = (&client.tenant, &client.catalogue.routes);
    let asset = quote.crypto_currency().to_string();
    let (money, coins) = directions(quote.side);
    let is_test = tenant.is_test();
    let has = |direction, leg| routes.connector(&tenant.slug, is_test, direction, leg).is_some();
    let has_money = has(money, Leg::Method(&quote.payment_method));
    let has_coins = has(coins, Leg::Asset(&asset));
    let takes_in = if money == Direction::In { has_money } else { has_coins };
    if takes_in && (is_test || has_money && has_coins) {
        Settlement::Connectors
    } else if is_test {
        Settlement::Sandbox
    } else {
        Settlement::Nobody
    }
}

/// True if the tenant is offered this payment method.
pub(crate) fn offers_method(
    catalogue: &Catalogue,
    tenant: &Tenant,
    side: Side,
    method: &str,
) -> bool {
    let ((money, _), routes) = (directions(side), &catalogue.routes);
    tenant.is_test() || routes.connector(&tenant.slug, false, money, Leg::Method(method)).is_some()
}

/// True if the client is offered the method now.
pub(crate) fn is_payable(client: &Client, side: Side, method: &PaymentMethod) -> bool {
    method.enabled && offers_method(&client.catalogue, &client.tenant, side, &method.code)
}

/// True if the tenant is offered this asset.
pub(crate) fn offers_asset(
    catalogue: &Catalogue,
    tenant: &Tenant,
    side: Side,
    asset: &str,
) -> bool {
    tenant.is_test() || is_routed(catalogue, &tenant.slug, side, asset)
}

/// True if the client is offered this side of the pair, be it in maintenance.
pub(crate) fn is_offered(client: &Client, side: Side, pair: &Pair) -> bool {
    let asset = pair.base.code().to_string();
    side.terms(pair).status != PairStatus::Disabled
        && offers_asset(&client.catalogue, &client.tenant, side, &asset)
}

/// True if a live partner of this slug has routes for the coins of an order and for money, by any
/// payment method.
pub fn is_routed(catalogue: &Catalogue, slug: &str, side: Side, asset: &str) -> bool {
    let ((money, coins), routes) = (directions(side), &catalogue.routes);
    routes.has_method(slug, false, money)
        && routes.connector(slug, false, coins, Leg::Asset(asset)).is_some()
}

/// The mid price that the tenant may be quoted at `now`: for a live one it must have been observed.
pub(crate) fn price(tenant: &Tenant, pair: &Pair, now: DateTime<Utc>) -> Option<Decimal> {
    if tenant.is_test() { pair.live_price(now) } else { pair.observed_price(now) }
}

/// The status of one direction of a pair as the client is offered it at `now`; in maintenance while
/// it has no price.
pub(crate) fn pair_status(
    client: &Client,
    pair: &Pair,
    side: Side,
    now: DateTime<Utc>,
) -> PairStatus {
    if !offers_asset(&client.catalogue, &client.tenant, side, &pair.base.code().to_string()) {
        return PairStatus::Disabled;
    }
    match side.terms(pair).status {
        PairStatus::Enabled if price(&client.tenant, pair, now).is_none() => {
            PairStatus::Maintenance
        }
        status => status,
    }
}
