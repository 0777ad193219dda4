//! `POST /api/v2/sandbox/orders/{id}/{event}`: simulates an event of a test tenant's order that a
//! payment provider, a chain or an operator would report of a live one.

use http::Method;

use super::{ACTOR, refusal};
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, required};
use crate::endpoint::{ClaimedKey, Endpoint, Json, save_answer};
use crate::http::request::Input;
use crate::money::connectors::sandbox::purchases::simulate_in;
use crate::money::connectors::sandbox::unless_refused;
use crate::platform::db::retrying_statement;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::orders::lookup::{ID, ORDER_ERRORS, OrderName, find, find_in};
use crate::trading::orders::read::{ORDER_EXAMPLE, OrderV2};
use crate::trading::orders::status::{Cause, NotApplied};
use crate::trading::sandbox::SimulatedEvent;
use rampart_types::OrderKey;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/sandbox/orders/{id}/{event}";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const TEST_ONLY: bool = true;
    const ERRORS: &'static [Code] = ORDER_ERRORS;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Simulate an event of a test order",
        details: "For test clients only. The answer is the order as it then is; 409 when its \
                  state forbids the event, or a connector of yours takes its payment.",
        path: &[ID, required("event", Kind::OneOf(&SimulatedEvent::NAMES), "The simulated event.")],
        answer: ORDER_EXAMPLE,
        also: &[(409, Code::GeneralError)],
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = (OrderName, SimulatedEvent);
    type Response = Json<OrderV2>;

    /// For a live tenant, and for an unknown event, the route does not exist.
    fn read(input: &Input, _: &Client) -> Result<(OrderName, SimulatedEvent)> {
        let event = SimulatedEvent::from_name(input.param("event")).ok_or(Code::RouteNotFound)?;
        Ok((OrderName::read(input)?, event))
    }

    async fn call(
        core: &Core,
        client: Client,
        request: (OrderName, SimulatedEvent),
    ) -> Result<Json<OrderV2>> {
        Self::call_with_key(core, client, request, None).await
    }

    /// Returns the order after the event; 409 if its state forbids the event.
    async fn call_with_key(
        core: &Core,
        client: Client,
        (name, event): (OrderName, SimulatedEvent),
        key: Option<&ClaimedKey>,
    ) -> Result<Json<OrderV2>> {
        let order = find(core, &client, None, &name).await?.id;
        let attempt = async || {
            let mut tx = core.db.begin().await?;
            let order_key = OrderKey { client: client.id(), order };
            let simulated = Box::pin(simulate_in(&mut tx, core, order_key, event, ACTOR)).await;
            let (mut tx, causes) = unless_refused(tx, simulated).await?;
            let answer = OrderV2::from(find_in(&mut tx, &client, order).await?);
            save_answer(key, core, &mut tx, &answer).await?;
            tx.commit().await?;
            Ok::<_, NotApplied>((answer, causes))
        };
        let (answer, causes) = retrying_statement(attempt).await.map_err(refusal)?;
        Cause::count(core, causes);
        Ok(Json(answer))
    }
}
