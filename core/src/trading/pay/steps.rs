//! The steps of an order on its page, from the payment to the coins.

use maud::Markup;

use super::{Payment, PaymentState};
use crate::http::html::steps::{Step, stepper};
use crate::http::language::Texts;
use crate::trading::orders::status::OrderStatus;

/// The names of the steps.
const MESSAGES: [&str; 5] = [
    "pay-step-payment",
    "pay-step-checks",
    "pay-step-sending",
    "pay-step-confirmations",
    "pay-step-done",
];

/// Those of an order in its state.
pub(super) fn steps(texts: Texts, payment: &Payment) -> Markup {
    use Step::{Ahead, Current, Done, Failed};
    let is_sent = !payment.blockchain.transaction_id.is_empty();
    let steps = match &payment.state {
        PaymentState::Closed | PaymentState::Moved(OrderStatus::Cancelled, _) => {
            [Failed, Ahead, Ahead, Ahead, Ahead]
        }
        PaymentState::Held(_) | PaymentState::Moved(OrderStatus::Blocked, _) => {
            [Done, Current, Ahead, Ahead, Ahead]
        }
        PaymentState::Moved(OrderStatus::InProgress, _) if is_sent => {
            [Done, Done, Done, Current, Ahead]
        }
        PaymentState::Moved(OrderStatus::InProgress, _) => [Done, Done, Current, Ahead, Ahead],
        PaymentState::Moved(OrderStatus::Completed, _) => [Done; 5],
        PaymentState::Moved(OrderStatus::Refunded, _) => [Done, Failed, Ahead, Ahead, Ahead],
        _ => [Current, Ahead, Ahead, Ahead, Ahead],
    };
    let names = MESSAGES.map(|id| texts.get(id));
    let steps: Vec<_> = names.iter().map(String::as_str).zip(steps).collect();
    stepper(texts, &steps)
}
