//! `POST /api/v2/sandbox/sell/orders/{id}/{event}`: simulates an event of a test tenant's sale that
//! a chain, a bank or an operator would report of a live one.

use http::Method;

use super::{ACTOR, refusal};
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, required};
use crate::endpoint::{ClaimedKey, Endpoint, Json, save_answer};
use crate::http::request::Input;
use crate::money::connectors::sandbox::sales::simulate_in;
use crate::money::connectors::sandbox::unless_refused;
use crate::platform::db::retrying_statement;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::orders::lookup::{ID, ORDER_ERRORS, OrderName};
use crate::trading::orders::status::{Cause, NotApplied};
use crate::trading::sandbox::SimulatedSaleEvent;
use crate::trading::sell::read::{SALE_EXAMPLE, SaleV1, find, view_in};
use rampart_types::OrderKey;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/sandbox/sell/orders/{id}/{event}";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const TEST_ONLY: bool = true;
    const ERRORS: &'static [Code] = ORDER_ERRORS;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Simulate an event of a test sell order",
        details: "After a deposit the payout follows by itself within seconds; a sale with the \
                  `partnerOrderIdentifier` `sandbox-held` is held instead, one with \
                  `sandbox-returned` gets its coins back. 409 when the order's state forbids the \
                  event, or a connector of yours takes its coins; for live clients there is no \
                  such route.",
        path: &[
            ID,
            required("event", Kind::OneOf(&SimulatedSaleEvent::NAMES), "The simulated event."),
        ],
        answer: SALE_EXAMPLE,
        also: &[(409, Code::GeneralError)],
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = (OrderName, SimulatedSaleEvent);
    type Response = Json<SaleV1>;

    /// For an unknown event the route does not exist either.
    fn read(input: &Input, _: &Client) -> Result<(OrderName, SimulatedSaleEvent)> {
        let name = OrderName::read(input)?;
        let event = SimulatedSaleEvent::from_name(input.param("event"));
        Ok((name, event.ok_or(Code::RouteNotFound)?))
    }

    async fn call(
        core: &Core,
        client: Client,
        request: (OrderName, SimulatedSaleEvent),
    ) -> Result<Json<SaleV1>> {
        Self::call_with_key(core, client, request, None).await
    }

    /// Returns the sale after the event; 409 if its state forbids the event.
    async fn call_with_key(
        core: &Core,
        client: Client,
        (name, event): (OrderName, SimulatedSaleEvent),
        key: Option<&ClaimedKey>,
    ) -> Result<Json<SaleV1>> {
        let sale = find(core, &client, None, &name).await?.id;
        let attempt = async || {
            let mut tx = core.db.begin().await?;
            let sale_key = OrderKey { client: client.id(), order: sale };
            let simulated = Box::pin(simulate_in(&mut tx, core, sale_key, event, ACTOR)).await;
            let (mut tx, causes) = unless_refused(tx, simulated).await?;
            let answer = view_in(&mut tx, core, &client, sale).await?;
            save_answer(key, core, &mut tx, &answer).await?;
            tx.commit().await?;
            Ok::<_, NotApplied>((answer, causes))
        };
        let (answer, causes) = retrying_statement(attempt).await.map_err(refusal)?;
        Cause::count(core, causes);
        Ok(Json(answer))
    }
}
