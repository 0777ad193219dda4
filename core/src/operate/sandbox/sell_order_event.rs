//! `POST /api/v2/sandbox/sell/orders/{id}/{event}`: simulates an event of a test tenant's sale that
//! a chain, a bank or an operator would report of a live one.

use http::{Method, StatusCode};

use super::ACTOR;
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, required};
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::money::connectors::sandbox::sales::simulate;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::orders::lookup::OrderName;
use crate::trading::orders::status::NotApplied;
use crate::trading::sandbox::SimulatedSaleEvent;
use crate::trading::sell::orders::{EXAMPLE, SaleV1, find, view};

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/sandbox/sell/orders/{id}/{event}";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const TEST_ONLY: bool = true;
    const ERRORS: &'static [Code] =
        &[Code::OrderIdMissing, Code::OrderIdMalformed, Code::OrderNotFound];
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Simulate an event of a test sell order",
        details: "After a deposit the payout follows by itself within seconds; a sale with the \
                  `partnerOrderIdentifier` `sandbox-held` is held instead, one with \
                  `sandbox-returned` gets its coins back. 409 when the order's state forbids the \
                  event, or a connector of yours takes its coins; for live clients there is no \
                  such route.",
        path: &[
            required("id", Kind::Text, "The order's number, or your own identifier."),
            required("event", Kind::OneOf(&SimulatedSaleEvent::NAMES), "The simulated event."),
        ],
        answer: EXAMPLE,
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

    /// Returns the sale after the event.
    async fn call(
        core: &Core,
        client: Client,
        (name, simulated): (OrderName, SimulatedSaleEvent),
    ) -> Result<Json<SaleV1>> {
        let sale = find(core, &client, None, &name).await?;
        match simulate(core, (client.id(), sale.id), (simulated, ACTOR)).await {
            Ok(()) => {
                let sale = find(core, &client, None, &name).await?;
                Ok(Json(view(core, &client, sale).await?))
            }
            Err(NotApplied::NoSuchOrder) => Err(Code::OrderNotFound.into()),
            Err(NotApplied::Forbidden { status }) => {
                let detail = format!("an order that is {} forbids it", status.as_str());
                Err(Error::with_status(Code::GeneralError, StatusCode::CONFLICT, detail))
            }
            Err(NotApplied::Refused(reason)) => {
                Err(Error::with_status(Code::GeneralError, StatusCode::CONFLICT, reason))
            }
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }
}
