//! `POST /api/v2/sandbox/sell/orders/{id}/{event}`: simulates an event of a test tenant's sale that
//! a chain, a bank or an operator would report of a live one.

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
#[cfg(test)]
use crate::trading::orders::status::Cause;
use crate::trading::orders::status::{Applied, NotApplied, apply, apply_in};
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
    /// The exact amount of coins arrives after the time to deposit.
    DepositLate,
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
    const ALL: [Self; 9] = [
        Self::DepositReceived,
        Self::DepositAmountWrong,
        Self::DepositLate,
        Self::PaidOut,
        Self::Expire,
        Self::Hold,
        Self::Release,
        Self::Refund,
        Self::Cancel,
    ];

    /// Every name.
    const NAMES: [&'static str; 9] = {
        let (mut names, mut index) = ([""; 9], 0);
        while index < names.len() {
            names[index] = Self::ALL[index].as_str();
            index += 1;
        }
        names
    };

    /// Name in paths.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::DepositReceived => "deposit-received",
            Self::DepositAmountWrong => "deposit-amount-wrong",
            Self::DepositLate => "deposit-late",
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

    /// The cause that it is classified as.
    #[cfg(test)]
    pub(super) const fn cause(self) -> Cause {
        match self {
            Self::DepositReceived => Cause::PaymentReceived,
            Self::DepositAmountWrong => Cause::PaymentAmountWrong,
            Self::DepositLate => Cause::PaymentLate,
            Self::PaidOut => Cause::PaidOut,
            Self::Expire => Cause::Expired,
            Self::Hold => Cause::Held,
            Self::Release => Cause::Released,
            Self::Refund => Cause::Refunded,
            Self::Cancel => Cause::Cancelled,
        }
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
        details: "After a deposit the payout follows by itself within seconds; a sale with the \
                  `partnerOrderIdentifier` `sandbox-held` is held instead, one with \
                  `sandbox-returned` gets its coins back. 409 when the order's state forbids the \
                  event; for live clients there is no such route.",
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
        match apply_event(core, client.id(), &sale, simulated).await {
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

/// Applies `simulated` to a sale of `client`, as the sandbox.
async fn apply_event(
    core: &Core,
    client: ClientId,
    sale: &Sale,
    simulated: SimulatedSaleEvent,
) -> Result<Applied, NotApplied> {
    let event = sale_event(core, sale, simulated)?;
    if matches!(simulated, SimulatedSaleEvent::Expire | SimulatedSaleEvent::DepositLate) {
        return apply_overdue(core, client, sale, &event).await;
    }
    apply(core, client, sale.id, &event, ACTOR).await
}

fn sale_event(core: &Core, sale: &Sale, simulated: SimulatedSaleEvent) -> Result<SaleEvent> {
    let deposit = |amount: Option<Decimal>| -> Result<SaleEvent> {
        let transaction_id = Some(transaction_id(&core.clock)?);
        Ok(SaleEvent::DepositReceived { amount, transaction_id })
    };
    Ok(match simulated {
        SimulatedSaleEvent::DepositReceived | SimulatedSaleEvent::DepositLate => deposit(None)?,
        SimulatedSaleEvent::DepositAmountWrong => {
            let twice = sale.crypto.amount.checked_add(sale.crypto.amount);
            deposit(Some(twice.ok_or_else(|| Error::invariant("double a sale's amount"))?))?
        }
        SimulatedSaleEvent::PaidOut => SaleEvent::PaidOut,
        SimulatedSaleEvent::Hold => SaleEvent::Hold { reason: None },
        SimulatedSaleEvent::Release => SaleEvent::Release,
        SimulatedSaleEvent::Refund => SaleEvent::Refund { reason: None },
        SimulatedSaleEvent::Cancel => SaleEvent::Cancel { reason: None },
        SimulatedSaleEvent::Expire => SaleEvent::Expire,
    })
}

/// Makes a pending sale overdue and applies an event to it, in one transaction, so that no sweep
/// comes between.
async fn apply_overdue(
    core: &Core,
    client: ClientId,
    sale: &Sale,
    event: &SaleEvent,
) -> Result<Applied, NotApplied> {
    let mut tx = core.db.begin().await.map_err(Error::from)?;
    sqlx::query!(
        "update sell_order set expires_at = rampart_now() - interval '1 millisecond' \
         where client_id = $1 and order_id = $2 and status = 'pending'",
        client.uuid(),
        sale.id.number(),
    )
    .execute(&mut *tx)
    .await
    .map_err(Error::from)?;
    let applied = apply_in(&mut tx, core, client, sale.id, event, ACTOR).await?;
    tx.commit().await.map_err(Error::from)?;
    core.metrics.orders.with_label_values(&[applied.cause.as_str()]).inc();
    Ok(applied)
}
