//! `POST /api/v2/sandbox/sell/orders/{id}/{event}`: lets something happen to a test client's sale
//! that a chain, a bank or an operator would report of a live one.

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
use crate::trading::orders::lookup::OrderName;
use crate::trading::orders::status::{NotApplied, apply};
use crate::trading::sell::Sale;
use crate::trading::sell::orders::{EXAMPLE, SaleV1, find, shown};
use crate::trading::sell::status::SaleEvent;
use rampart_types::ClientId;

/// What can be made to happen: exactly the coins arrive, twice as many do, the payout arrives, the
/// time to deposit ends, an operator holds a sale, lets it go on, sends the coins back, or calls it
/// off.
const HAPPENINGS: [&str; 8] = [
    "deposit-received",
    "deposit-amount-wrong",
    "paid-out",
    "expire",
    "hold",
    "release",
    "refund",
    "cancel",
];

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/sandbox/sell/orders/{id}/{event}";
    const ERRORS: &'static [Code] =
        &[Code::OrderIdMissing, Code::OrderIdMalformed, Code::OrderNotFound];
    const DOC: Doc = Doc {
        summary: "Let something happen to a test sell order",
        details: "After a deposit the payout follows by itself within seconds. 409 when the \
                  order's state forbids the event; for live clients there is no such route.",
        path: &[
            required("id", Kind::Text, "The order's number, or your own identifier."),
            required("event", Kind::OneOf(&HAPPENINGS), "What happens."),
        ],
        answer: EXAMPLE,
        also: &[(409, Code::GeneralError)],
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = (OrderName, &'static str);
    type Response = Json<SaleV1>;

    /// For an event of another name there is no such route either.
    fn read(input: &Input, client: &Client) -> Result<(OrderName, &'static str)> {
        only_for_tests(client)?;
        let event = HAPPENINGS.into_iter().find(|name| *name == input.param("event"));
        Ok((OrderName::read(input)?, event.ok_or(Code::RouteNotFound)?))
    }

    /// The sale as it then is.
    async fn call(
        core: &Core,
        client: Client,
        (name, happening): (OrderName, &'static str),
    ) -> Result<Json<SaleV1>> {
        let sale = find(core, &client, None, &name).await?;
        let event = event(core, client.id(), &sale, happening).await?;
        match apply(core, client.id(), sale.id, &event, ACTOR).await {
            Ok(_) => {
                let sale = find(core, &client, None, &name).await?;
                Ok(Json(shown(core, &client, sale).await?))
            }
            Err(NotApplied::NoSuchOrder) => Err(Code::OrderNotFound.into()),
            Err(NotApplied::Forbidden { status }) => {
                let detail = format!("an order that is {} forbids it", status.as_str());
                Err(Error::with_status(Code::GeneralError, StatusCode::CONFLICT, detail))
            }
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }
}

async fn event(core: &Core, client: ClientId, sale: &Sale, happening: &str) -> Result<SaleEvent> {
    let deposit = |amount: Option<Decimal>| -> Result<SaleEvent> {
        let transaction_id = Some(transaction_id(&core.clock)?);
        Ok(SaleEvent::DepositReceived { amount, transaction_id })
    };
    Ok(match happening {
        "deposit-received" => deposit(None)?,
        "deposit-amount-wrong" => {
            let twice = sale.crypto.amount.checked_add(sale.crypto.amount);
            deposit(Some(twice.ok_or_else(|| Error::broken("double a sale's amount"))?))?
        }
        "paid-out" => SaleEvent::PaidOut,
        "hold" => SaleEvent::Hold { reason: None },
        "release" => SaleEvent::Release,
        "refund" => SaleEvent::Refund { reason: None },
        "cancel" => SaleEvent::Cancel { reason: None },
        _ => {
            end_time_to_deposit(core, client, sale).await?;
            SaleEvent::Expire
        }
    })
}

/// Makes a pending sale overdue, as every edge's own sweep then sees it too.
async fn end_time_to_deposit(core: &Core, client: ClientId, sale: &Sale) -> Result<()> {
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
