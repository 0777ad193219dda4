//! `POST /admin/v1/orders/{id}/events`: what an operator makes happen to an order. A sale's payment
//! is the user's deposit of coins, and its end the payout.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use sqlx::PgConnection;

use super::Named;
use crate::Core;
use crate::operate::admin::{Answer, Input, Refused, ok};
use crate::platform::audit::{self, Entry};
use crate::trading::orders::status::{Applied, NotApplied, OrderEvent, apply_in};
use crate::trading::quotes::Side;
use crate::trading::sell::status::SaleEvent;
use rampart_types::JsonDecimal;

/// Longest reason or reference, in characters.
const TEXT_CHARS_MAX: usize = 255;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Happened {
    event: Name,
    amount: Option<JsonDecimal>,
    reference: Option<String>,
    transaction_id: Option<String>,
    reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
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

impl Happened {
    /// The same, once it has the members that its event takes and no others.
    fn checked(self) -> Result<Self, Refused> {
        let texts = [&self.reference, &self.transaction_id, &self.reason];
        if texts.into_iter().flatten().any(|text| text.chars().count() > TEXT_CHARS_MAX) {
            return Err(Refused::unprocessable("a text is longer than 255 characters"));
        }
        let takes = match self.event {
            Name::PaymentReceived => [true, true, false, false],
            Name::CoinsSent => [false, false, true, false],
            Name::ConfirmedOnChain | Name::PaidOut | Name::Release => [false; 4],
            _ => [false, false, false, true],
        };
        let given = [
            self.amount.is_some(),
            self.reference.is_some(),
            self.transaction_id.is_some(),
            self.reason.is_some(),
        ];
        if given.iter().zip(takes).any(|(given, takes)| *given && !takes) {
            return Err(Refused::unprocessable("a member that this event does not take"));
        }
        Ok(self)
    }

    /// The event of an order that is bought.
    fn of_order(self) -> Result<OrderEvent, Refused> {
        let Self { event, amount, reference, transaction_id, reason } = self;
        Ok(match event {
            Name::PaymentReceived => {
                let amount = amount.map(|JsonDecimal(amount)| amount);
                OrderEvent::PaymentReceived { amount, reference }
            }
            Name::PaymentDenied => OrderEvent::PaymentDenied { reason },
            Name::CoinsSent => OrderEvent::CoinsSent {
                transaction_id: transaction_id
                    .filter(|id| !id.is_empty())
                    .ok_or_else(|| Refused::unprocessable("transactionId is required"))?,
            },
            Name::ConfirmedOnChain => OrderEvent::ConfirmedOnChain,
            Name::Hold => OrderEvent::Hold { reason },
            Name::Release => OrderEvent::Release,
            Name::Refund => OrderEvent::Refund { reason },
            Name::Cancel => OrderEvent::Cancel { reason },
            Name::PaidOut => {
                return Err(Refused::unprocessable("event: only a sale is paid out"));
            }
        })
    }

    /// The event of a sale; the reference of its payment is the transaction on chain.
    fn of_sale(self) -> Result<SaleEvent, Refused> {
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
                return Err(Refused::unprocessable("event: not one of a sale"));
            }
        })
    }
}

/// Lets an event happen to an order; 409 when its state forbids it. The audit's row is of the same
/// transaction: neither is there without the other.
pub(in crate::operate::admin) async fn happen(core: &Arc<Core>, input: Input) -> Answer {
    let happened = input.json::<Happened>()?.checked()?;
    let order = Named::find(core, input.param("id")).await?;
    let mut tx = core.db.begin().await?;
    let applied = apply(&mut tx, core, order, happened, input.actor()).await?;
    let target = order.order.to_string();
    let mut detail: Value = input.json()?;
    detail["from"] = applied.from.as_str().into();
    detail["to"] = applied.to.as_str().into();
    let entry = Entry { actor: input.actor(), action: "order.event", target: &target, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    core.metrics.orders.with_label_values(&[applied.cause.as_str()]).inc();
    ok(&order.detail(core).await?)
}

async fn apply(
    conn: &mut PgConnection,
    core: &Core,
    Named { client, side, order }: Named,
    happened: Happened,
    actor: &str,
) -> Result<Applied, Refused> {
    let applied = match side {
        Side::Buy => apply_in(conn, core, client, order, &happened.of_order()?, actor).await,
        Side::Sell => apply_in(conn, core, client, order, &happened.of_sale()?, actor).await,
    };
    applied.map_err(|error| match error {
        NotApplied::NoSuchOrder => Refused::not_found("order"),
        NotApplied::Forbidden { status } => {
            Refused::conflict(format!("an order that is {} forbids it", status.as_str()))
        }
        NotApplied::Failed(error) => error.into(),
    })
}
