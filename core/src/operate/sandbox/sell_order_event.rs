//! `POST /api/v2/sandbox/sell/orders/{id}/{event}`: simulates an event of a test tenant's sale that
//! a chain, a bank or an operator would report of a live one.

use chrono::TimeDelta;
use http::{Method, StatusCode};
use rust_decimal::Decimal;

use super::{ACTOR, only_for_tests, transaction_id};
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, required};
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::orders::lookup::OrderName;
use crate::trading::orders::status::{NotApplied, apply};
use crate::trading::sell::Sale;
use crate::trading::sell::orders::{EXAMPLE, SaleV1, find, view};
use crate::trading::sell::status::SaleEvent;
use rampart_types::ClientId;

/// A simulated event of a sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedSaleEvent {
    /// The exact amount of coins arrives.
    DepositReceived,
    /// Twice the amount arrives.
    DepositAmountWrong,
    /// The payout arrives.
    PaidOut,
    /// The time to deposit ends.
    Expire,
    /// The operator holds it.
    Hold,
    /// The operator releases it.
    Release,
    /// The coins are sent back.
    Refund,
    /// The operator cancels it.
    Cancel,
}

impl SimulatedSaleEvent {
    const ALL: [Self; 8] = [
        Self::DepositReceived,
        Self::DepositAmountWrong,
        Self::PaidOut,
        Self::Expire,
        Self::Hold,
        Self::Release,
        Self::Refund,
        Self::Cancel,
    ];

    /// Every name.
    const NAMES: [&'static str; 8] = {
        let (mut names, mut index) = ([""; 8], 0);
        while index < names.len() {
            names[index] = Self::ALL[index].as_str();
            index += 1;
        }
        names
    };

    /// Name in paths.
    const fn as_str(self) -> &'static str {
        match self {
            Self::DepositReceived => "deposit-received",
            Self::DepositAmountWrong => "deposit-amount-wrong",
            Self::PaidOut => "paid-out",
            Self::Expire => "expire",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Refund => "refund",
            Self::Cancel => "cancel",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }
}

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/sandbox/sell/orders/{id}/{event}";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const ERRORS: &'static [Code] =
        &[Code::OrderIdMissing, Code::OrderIdMalformed, Code::OrderNotFound];
    const DOC: Doc = Doc {
        summary: "Simulate an event of a test sell order",
        details: "After a deposit the payout follows by itself within seconds. 409 when the \
                  order's state forbids the event; for live clients there is no such route.",
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
    fn read(input: &Input, client: &Client) -> Result<(OrderName, SimulatedSaleEvent)> {
        only_for_tests(client)?;
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
        let event = sale_event(core, client.id(), &sale, simulated).await?;
        match apply(core, client.id(), sale.id, &event, ACTOR).await {
            Ok(_) => {
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

async fn sale_event(
    core: &Core,
    client: ClientId,
    sale: &Sale,
    simulated: SimulatedSaleEvent,
) -> Result<SaleEvent> {
    let deposit = |amount: Option<Decimal>| -> Result<SaleEvent> {
        let transaction_id = Some(transaction_id(&core.clock)?);
        Ok(SaleEvent::DepositReceived { amount, transaction_id })
    };
    Ok(match simulated {
        SimulatedSaleEvent::DepositReceived => deposit(None)?,
        SimulatedSaleEvent::DepositAmountWrong => {
            let twice = sale.crypto.amount.checked_add(sale.crypto.amount);
            deposit(Some(twice.ok_or_else(|| Error::broken("double a sale's amount"))?))?
        }
        SimulatedSaleEvent::PaidOut => SaleEvent::PaidOut,
        SimulatedSaleEvent::Hold => SaleEvent::Hold { reason: None },
        SimulatedSaleEvent::Release => SaleEvent::Release,
        SimulatedSaleEvent::Refund => SaleEvent::Refund { reason: None },
        SimulatedSaleEvent::Cancel => SaleEvent::Cancel { reason: None },
        SimulatedSaleEvent::Expire => {
            make_overdue(core, client, sale).await?;
            SaleEvent::Expire
        }
    })
}

/// Makes a pending sale overdue in the database, so that every edge's expiry sweep agrees.
async fn make_overdue(core: &Core, client: ClientId, sale: &Sale) -> Result<()> {
    sqlx::query!(
        "update sell_order set expires_at = $3 \
         where client_id = $1 and order_id = $2 and status = 'pending'",
        client.uuid(),
        sale.id.number(),
        core.clock.now() - TimeDelta::milliseconds(1),
    )
    .execute(&core.db)
    .await?;
    Ok(())
}
