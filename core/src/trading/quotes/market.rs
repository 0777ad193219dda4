//! The market as a client is offered it now.

use rust_decimal::Decimal;

use super::Side;
use super::request::Request;
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::error::{Code, Refusal, Result};
use crate::trading::catalogue::{Pair, PairStatus};
use crate::trading::routing::{self, is_payable};

/// The mid price, if pair and method are open now.
///
/// # Errors
/// ER008 or ER016, and ER055.
pub(super) fn open_market(core: &Core, client: &Client, request: &Request) -> Result<Decimal> {
    let side = request.side;
    let mut refusal = Refusal::new();
    let price = routing::price(&client.tenant, &request.pair, core.clock.now());
    let in_maintenance = !is_open(client, side, &request.pair);
    if in_maintenance && side == Side::Sell {
        refusal.add(Code::SellingInMaintenance, None);
    } else if in_maintenance || price.is_none() {
        refusal.add(Code::CurrencyInMaintenance, None);
    }
    if !is_payable(client, side, &request.method) {
        refusal.add(Code::PaymentMethodUnavailable, None);
    }
    price.filter(|_| refusal.is_empty()).ok_or_else(|| refusal.into())
}

/// True if the client is offered this side of the pair now, at whatever price.
pub(super) fn is_open(client: &Client, side: Side, pair: &Pair) -> bool {
    let asset = pair.base.code().to_string();
    side.terms(pair).status == PairStatus::Enabled
        && routing::offers_asset(&client.catalogue, &client.tenant, side, &asset)
}
