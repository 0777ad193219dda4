//! `POST /admin/v1/orders/{id}/events`. A sale's payment is the user's deposit of coins, and its end
//! the payout.

use http::{Method, StatusCode};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::read::{EXAMPLE, Order};
use super::{FoundOrder, ID};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::payments::catch_up::{catch_up, hold_if_taken_back};
use crate::money::payments::locks::hold_for_order;
use crate::money::payments::store::MANUAL;
use crate::operate::admin::approvals;
use crate::operate::admin::line;
use crate::operate::admin::operator::Operator;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Error, Result};
use crate::trading::orders::status::{
    Applied, Cause, Event, NotApplied, OrderEvent, apply_in, permit,
};
use crate::trading::quotes::Side;
use crate::trading::sell::status::SaleEvent;
use rampart_types::JsonDecimal;
use rampart_types::money::AMOUNT_MAX;

/// Longest reference, in characters.
const TEXT_CHARS_MAX: usize = 255;

/// `POST /admin/v1/orders/{id}/events`
pub struct ApplyOrderEvent;

impl Endpoint for ApplyOrderEvent {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/orders/{id}/events";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Treasury, Role::Compliance];
    // What waits for a second person moves money.
    const APPROVERS: &'static [Role] = &[Role::Treasury];
    const APPROVAL: bool = true;
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Apply an event to an order",
        details: "409 when the order's state forbids it. `payment-received` takes `amount` and \
                  `reference`; `coins-sent` takes `transactionId`, and needs it; `hold`, \
                  `release`, `refund`, `cancel` and `payment-denied` take `reason`. `paid-out` is \
                  of sales alone; `payment-denied`, `coins-sent` and `confirmed-on-chain` are of \
                  bought orders alone. `payment-received`, `coins-sent`, `confirmed-on-chain` and \
                  `paid-out` are for the role `treasury`, which the second person has, too.",
        path: &[ID],
        body: Shape::of::<NewEvent>(),
        request: r#"{"event": "hold", "reason": "source of funds"}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Request;
    type Response = Json<Order>;

    fn read(input: &Input, operator: &Operator) -> Result<Request> {
        let event: NewEvent = strict::body(input)?;
        event.check()?;
        if event.event.reports_payment() {
            operator.check(&[Role::Treasury])?;
        }
        Ok(Request { id: input.param("id").to_owned(), event, detail: input.document.clone() })
    }

    async fn needs_approval(core: &Core, _: &Operator, request: &Request) -> Result<bool> {
        let Request { id, event, .. } = request;
        if !event.event.moves_money() {
            return Ok(false);
        }
        let order = FoundOrder::find(core, id).await?;
        event.check_side(order.side)?;
        let reported = event.amount.map(|JsonDecimal(amount)| amount);
        if let Some(amount) = reported {
            order.check_paid(core, amount).await?;
        }
        let mut conn = core.db.acquire().await?;
        let worth = order.worth(&mut conn, reported, event.event.gives_back()).await?;
        Ok(approvals::exceeds_alone(core, worth))
    }

    /// The audit's row is of the same transaction: neither is there without the other.
    async fn call(core: &Core, operator: Operator, request: Request) -> Result<Json<Order>> {
        let Request { id, event, mut detail } = request;
        let order = FoundOrder::find(core, &id).await?;
        let mut tx = core.db.begin().await?;
        let (applied, followed) = apply(&mut tx, core, order, event, &operator).await?;
        detail["from"] = applied.from.as_str().into();
        detail["to"] = followed.as_ref().unwrap_or(&applied).to.as_str().into();
        let target = order.key.order.to_string();
        operator.record(&mut tx, core, "order.event", &target, detail).await?;
        tx.commit().await?;
        Cause::count(core, [applied].into_iter().chain(followed).map(|applied| applied.cause));
        Ok(Json(order.detail(core).await?))
    }
}

/// An event and the order that it is of.
#[derive(Debug)]
pub struct Request {
    id: String,
    event: NewEvent,
    /// The body, for the audit.
    detail: Value,
}

/// An event of an order that an operator reports.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewOrderEvent")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NewEvent {
    /// Name of the event.
    event: Name,
    /// The amount received, above zero, in whole smallest units; the exact one if left out.
    amount: Option<JsonDecimal>,
    /// The payment's reference; of a sale the transaction on chain. 1 to 255 characters, none of
    /// control.
    reference: Option<String>,
    /// The transaction on chain. 1 to 255 characters, none of control.
    transaction_id: Option<String>,
    /// For the audit and, but for that of `release`, the timeline. The partner sees it, but for
    /// those of `hold` and `release`. 1 to 255 characters, none of control.
    reason: Option<String>,
}

/// An event of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "OrderEventName")]
#[serde(rename_all = "kebab-case")]
enum Name {
    PaymentReceived,
    PaymentDenied,
    CoinsSent,
    ConfirmedOnChain,
    PaidOut,
    Hold,
    Release,
    Refund,
    Cancel,
}

impl Name {
    /// True if it says that money or coins have come or gone.
    const fn reports_payment(self) -> bool {
        matches!(
            self,
            Self::PaymentReceived | Self::CoinsSent | Self::ConfirmedOnChain | Self::PaidOut
        )
    }

    /// True if it books money or coins.
    const fn moves_money(self) -> bool {
        self.reports_payment() || self.gives_back()
    }

    /// True if it gives back what is left of its order.
    const fn gives_back(self) -> bool {
        matches!(self, Self::Refund)
    }
}

impl NewEvent {
    /// Refuses members that the event does not take, and an amount that is none.
    fn check(&self) -> Result<()> {
        if let Some(text) = &self.reason {
            line::check("reason", text)?;
        }
        let is_name = |text: &String| {
            (1..=TEXT_CHARS_MAX).contains(&text.chars().count()) && !text.contains(char::is_control)
        };
        if ![&self.reference, &self.transaction_id].into_iter().flatten().all(is_name) {
            let reason = "reference, transactionId: 1 to 255 characters, none of control";
            return Err(Denial::unprocessable(reason).into());
        }
        let takes = match self.event {
            Name::PaymentReceived => [true, true, false, false],
            Name::CoinsSent => [false, false, true, false],
            Name::ConfirmedOnChain | Name::PaidOut => [false; 4],
            _ => [false, false, false, true],
        };
        let given = [
            ("amount", self.amount.is_some()),
            ("reference", self.reference.is_some()),
            ("transactionId", self.transaction_id.is_some()),
            ("reason", self.reason.is_some()),
        ];
        let mut others = given.iter().zip(takes).filter(|((_, given), takes)| *given && !takes);
        if let Some(((name, _), _)) = others.next() {
            let reason = format!("{name}: not a member of this event");
            return Err(Denial::unprocessable(reason).into());
        }
        if self.amount.is_some_and(|JsonDecimal(amount)| amount <= Decimal::ZERO) {
            return Err(Denial::unprocessable("amount: above zero").into());
        }
        if self.amount.is_some_and(|JsonDecimal(amount)| amount > Decimal::from(AMOUNT_MAX)) {
            return Err(Denial::unprocessable("amount: at most 1000000000000000").into());
        }
        Ok(())
    }

    /// Refuses an event that an order of this side does not have, or one without a member that it
    /// needs.
    fn check_side(&self, side: Side) -> Result<(), Denial> {
        let event = self.clone();
        match side {
            Side::Buy => event.into_order_event().map(drop),
            Side::Sell => event.into_sale_event().map(drop),
        }
    }

    /// The event of a bought order.
    fn into_order_event(self) -> Result<OrderEvent, Denial> {
        let Self { event, amount, reference, transaction_id, reason } = self;
        Ok(match event {
            Name::PaymentReceived => {
                let amount = amount.map(|JsonDecimal(amount)| amount);
                OrderEvent::PaymentReceived { amount, reference }
            }
            Name::PaymentDenied => OrderEvent::PaymentDenied { reason },
            Name::CoinsSent => OrderEvent::CoinsSent {
                transaction_id: transaction_id
                    .ok_or_else(|| Denial::unprocessable("transactionId is required"))?,
            },
            Name::ConfirmedOnChain => OrderEvent::ConfirmedOnChain,
            Name::Hold => OrderEvent::Hold { reason },
            Name::Release => OrderEvent::Release,
            Name::Refund => OrderEvent::Refund { reason },
            Name::Cancel => OrderEvent::Cancel { reason },
            Name::PaidOut => {
                return Err(Denial::unprocessable("event: only a sale is paid out"));
            }
        })
    }

    /// The event of a sale; the reference of its payment is the transaction on chain.
    fn into_sale_event(self) -> Result<SaleEvent, Denial> {
        let Self { event, amount, reference, reason, .. } = self;
        Ok(match event {
            Name::PaymentReceived => {
                let amount = amount.map(|JsonDecimal(amount)| amount);
                SaleEvent::DepositReceived { amount, transaction_id: reference }
            }
            Name::PaidOut => SaleEvent::PaidOut,
            Name::Hold => SaleEvent::Hold { reason },
            Name::Release => SaleEvent::Release,
            Name::Refund => SaleEvent::Refund { reason },
            Name::Cancel => SaleEvent::Cancel { reason },
            Name::PaymentDenied | Name::CoinsSent | Name::ConfirmedOnChain => {
                return Err(Denial::unprocessable("event: not one of a sale"));
            }
        })
    }
}

/// Applies the event, and what follows: an order that goes on after its payout has arrived is completed
/// too, and one waits whose payment was taken back before it was booked.
async fn apply(
    conn: &mut Connection,
    core: &Core,
    order: FoundOrder,
    event: NewEvent,
    operator: &Operator,
) -> Result<(Applied, Option<Applied>)> {
    let (FoundOrder { key, side }, actor) = (order, operator.actor());
    let (moves_money, gives_back) = (event.event.moves_money(), event.event.gives_back());
    let reference = event.reference.clone().filter(|_| side == Side::Buy);
    if let Some(reference) = &reference {
        // It comes before the order.
        hold_for_order(conn, MANUAL, reference).await?;
    }
    let applied = match side {
        Side::Buy => {
            let event = event.into_order_event()?;
            if moves_money {
                check_persons(conn, core, order, &event, gives_back, operator).await?;
            }
            apply_in(conn, core, key, &event, actor).await
        }
        Side::Sell => {
            let event = event.into_sale_event()?;
            if moves_money {
                check_persons(conn, core, order, &event, gives_back, operator).await?;
            }
            apply_in(conn, core, key, &event, actor).await
        }
    };
    let applied = applied.map_err(refusal)?;
    let held = match (applied.cause, reference) {
        (Cause::PaymentReceived, Some(reference)) => {
            hold_if_taken_back(conn, core, key, &reference, actor).await.map_err(refusal)?
        }
        _ => None,
    };
    let goes_on = matches!(applied.cause, Cause::PaymentReceived | Cause::Released);
    let followed = match goes_on && held.is_none() {
        true => catch_up(conn, core, key, side, actor).await.map_err(refusal)?,
        false => held,
    };
    Ok((applied, followed))
}

/// Refuses an event that takes two persons by what is stored now. The order's row stays locked.
///
/// # Errors
/// 409 without an approval, or when the order's state forbids the event.
async fn check_persons<E: Event>(
    conn: &mut Connection,
    core: &Core,
    order: FoundOrder,
    event: &E,
    gives_back: bool,
    operator: &Operator,
) -> Result<()> {
    permit(conn, core, order.key, event).await.map_err(refusal)?;
    let (reported, _) = event.payment();
    let worth = order.worth(conn, reported, gives_back).await?;
    if approvals::exceeds_alone(core, worth) {
        approvals::require(operator)?;
    }
    Ok(())
}

/// The answer to an event that was not applied.
fn refusal(error: NotApplied) -> Error {
    match error {
        NotApplied::NoSuchOrder => Denial::not_found("order").into(),
        NotApplied::Forbidden { status } => {
            let reason = format!("the order is {}, and takes no such event then", status.as_str());
            Denial::conflict(reason).into()
        }
        NotApplied::Refused(reason) => Denial::conflict(reason).into(),
        NotApplied::Failed(error) => error,
    }
}
