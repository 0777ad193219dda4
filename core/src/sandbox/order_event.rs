//! `POST /api/v2/sandbox/orders/{id}/{event}`: lets something happen to a test client's order that
//! a payment provider, a chain or an operator would report of a live one.

use chrono::TimeDelta;
use http::{Method, StatusCode};

use crate::Core;
use crate::caller::Client;
use crate::endpoint::{Endpoint, Json};
use crate::error::{Code, Error, Result};
use crate::exchange::Input;
use crate::orders::Order;
use crate::orders::lookup::{OrderName, find};
use crate::orders::read::OrderV2;
use crate::orders::status::{NotApplied, OrderEvent, apply};
use crate::sandbox::{ACTOR, transaction_id};
use crate::types::ClientId;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/sandbox/orders/{id}/{event}";
    const ERRORS: &'static [Code] = &[Code::ER033, Code::ER034, Code::ER035];
    type Caller = Client;
    type Request = (OrderName, Happening);
    type Response = Json<OrderV2>;

    /// For a live client, and for an event of another name, there is no such route.
    fn read(input: &Input, client: &Client) -> Result<(OrderName, Happening)> {
        let happening = Happening::from_name(input.param("event"));
        match happening.filter(|_| client.tenant.is_test()) {
            Some(happening) => Ok((OrderName::read(input)?, happening)),
            None => Err(Code::ER998.into()),
        }
    }

    /// The order as it then is; 409 when its state forbids the event.
    async fn call(
        core: &Core,
        client: Client,
        (name, happening): (OrderName, Happening),
    ) -> Result<Json<OrderV2>> {
        let order = find(core, &client, None, &name).await?;
        happen(core, client.id(), &order, happening).await?;
        Ok(Json(find(core, &client, None, &name).await?.into()))
    }
}

async fn happen(core: &Core, client: ClientId, order: &Order, happening: Happening) -> Result<()> {
    if happening == Happening::Expire {
        end_time_to_pay(core, client, order).await?;
    }
    let event = happening.event(core, order)?;
    match apply(core, client, order.id, event, ACTOR).await {
        Ok(_) => Ok(()),
        Err(NotApplied::NoSuchOrder) => Err(Code::ER035.into()),
        Err(NotApplied::Forbidden { status }) => {
            let detail = format!("an order that is {} forbids it", status.as_str());
            Err(Error::with_status(Code::ER999, StatusCode::CONFLICT, detail))
        }
        Err(NotApplied::Failed(error)) => Err(error),
    }
}

/// Makes a pending order overdue, as every edge's own sweep then sees it too.
async fn end_time_to_pay(core: &Core, client: ClientId, order: &Order) -> Result<()> {
    sqlx::query!(
        "update buy_order set expires_at = $3 \
         where client_id = $1 and order_id = $2 and status = 'pending'",
        client.uuid(),
        order.id.number(),
        core.clock.now() - TimeDelta::milliseconds(1),
    )
    .execute(&core.db)
    .await?;
    Ok(())
}

/// What can be made to happen. The names are those that operators use and timelines show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The exact amount arrives.
    PaymentReceived,
    /// Twice the amount arrives.
    PaymentAmountWrong,
    /// The payment is denied.
    PaymentDenied,
    /// The time to pay ends.
    Expire,
    /// The user calls it off.
    Cancel,
    /// The coins are sent, in a simulated transaction.
    CoinsSent,
    /// That transaction is confirmed.
    ConfirmedOnChain,
    /// The operator holds it.
    Hold,
    /// The operator lets it go on.
    Release,
    /// The payment is given back.
    Refund,
}

impl Happening {
    const ALL: [Self; 10] = [
        Self::PaymentReceived,
        Self::PaymentAmountWrong,
        Self::PaymentDenied,
        Self::Expire,
        Self::Cancel,
        Self::CoinsSent,
        Self::ConfirmedOnChain,
        Self::Hold,
        Self::Release,
        Self::Refund,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::PaymentReceived => "payment-received",
            Self::PaymentAmountWrong => "payment-amount-wrong",
            Self::PaymentDenied => "payment-denied",
            Self::Expire => "expire",
            Self::Cancel => "cancel",
            Self::CoinsSent => "coins-sent",
            Self::ConfirmedOnChain => "confirmed-on-chain",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Refund => "refund",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|happening| happening.as_str() == name)
    }

    fn event(self, core: &Core, order: &Order) -> Result<OrderEvent> {
        Ok(match self {
            Self::PaymentReceived => OrderEvent::PaymentReceived { amount: None, reference: None },
            Self::PaymentAmountWrong => {
                let amount = order.fiat.amount.checked_add(order.fiat.amount);
                let amount = amount.ok_or_else(|| Error::broken("double an order's amount"))?;
                OrderEvent::PaymentReceived { amount: Some(amount), reference: None }
            }
            Self::PaymentDenied => OrderEvent::PaymentDenied { reason: None },
            Self::Expire => OrderEvent::Expire,
            Self::Cancel => OrderEvent::Cancel { reason: None },
            Self::CoinsSent => {
                OrderEvent::CoinsSent { transaction_id: transaction_id(&core.clock)? }
            }
            Self::ConfirmedOnChain => OrderEvent::ConfirmedOnChain,
            Self::Hold => OrderEvent::Hold { reason: None },
            Self::Release => OrderEvent::Release,
            Self::Refund => OrderEvent::Refund { reason: None },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_happening_is_found_by_its_own_name_alone() {
        for happening in Happening::ALL {
            assert_eq!(Happening::from_name(happening.as_str()), Some(happening));
        }
        assert_eq!(Happening::from_name(""), None);
        assert_eq!(Happening::from_name("Cancel"), None);
    }
}
