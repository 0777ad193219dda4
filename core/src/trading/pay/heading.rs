//! Heading and first sentence of the payment page, by the state of the payment.

use super::provider::ProviderForm;
use super::{Payment, PaymentState};
use crate::trading::catalogue::PaymentMethodKind;
use crate::trading::orders::status::{Cause, OrderStatus};

/// The messages of the heading and of the sentence below it.
pub(super) fn heading_and_text(payment: &Payment) -> (&'static str, &'static str) {
    match &payment.state {
        PaymentState::Payable => ("pay-title", "pay-choose"),
        PaymentState::Preparing => ("pay-preparing-title", "pay-goes-on"),
        PaymentState::AtProvider(ProviderForm::Card(_)) => ("pay-title", "pay-card"),
        PaymentState::AtProvider(ProviderForm::Page(_)) => ("pay-title", "pay-at-provider"),
        PaymentState::AtProvider(ProviderForm::Transfer(_)) => ("pay-title", "pay-transfer"),
        PaymentState::AtProvider(ProviderForm::Elsewhere) => ("pay-title", "pay-elsewhere"),
        PaymentState::Confirming => ("pay-confirming-title", "pay-goes-on"),
        PaymentState::NoProvider => ("pay-no-provider-title", "pay-no-provider"),
        PaymentState::Closed => ("pay-closed-title", "pay-closed"),
        PaymentState::Held(links) if links.is_empty() => ("check-waiting", "pay-held"),
        PaymentState::Held(_) => ("check-title", "pay-checks"),
        PaymentState::Moved(status, cause) => {
            let method = payment.catalogue.payment_method(&payment.method);
            moved(*status, *cause, method.map(|method| method.kind))
        }
    }
}

/// `kind` is the payment method's; `None` if the catalogue has it no more.
const fn moved(
    status: OrderStatus,
    cause: Cause,
    kind: Option<PaymentMethodKind>,
) -> (&'static str, &'static str) {
    match (status, cause) {
        (OrderStatus::Completed, _) => ("pay-completed-title", "pay-completed"),
        (OrderStatus::Cancelled, Cause::PaymentDenied) => ("pay-denied-title", denied(kind)),
        (OrderStatus::Cancelled, Cause::Expired) => ("pay-expired-title", "pay-expired"),
        (OrderStatus::Cancelled, _) => ("pay-cancelled-title", cancelled(kind)),
        (OrderStatus::Refunded, _) => ("pay-refunded-title", "pay-refunded"),
        (OrderStatus::Blocked, _) => ("pay-blocked-title", "pay-blocked"),
        (OrderStatus::InProgress | OrderStatus::Pending, _) => {
            ("pay-received-title", "pay-received")
        }
    }
}

/// The sentence of an order whose payment was denied: a bank may have been told to transfer all the
/// same.
const fn denied(kind: Option<PaymentMethodKind>) -> &'static str {
    match kind {
        Some(PaymentMethodKind::BankTransfer) => "pay-cancelled-transfer",
        _ => "pay-denied",
    }
}

/// The sentence of an order that was cancelled: only what a provider charges is known not to be on its
/// way.
const fn cancelled(kind: Option<PaymentMethodKind>) -> &'static str {
    match kind {
        Some(PaymentMethodKind::Card | PaymentMethodKind::Wallet) => "pay-cancelled",
        Some(PaymentMethodKind::BankTransfer) => "pay-cancelled-transfer",
        _ => "pay-closed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_ended_unpaid_says_what_its_method_may_have_done() {
        use PaymentMethodKind::{BankTransfer, Card, Cash, InstantTransfer, Wallet};
        let transfer = "pay-cancelled-transfer";
        for (kind, cancelled, denied) in [
            (Some(Card), "pay-cancelled", "pay-denied"),
            (Some(Wallet), "pay-cancelled", "pay-denied"),
            (Some(BankTransfer), transfer, transfer),
            (Some(InstantTransfer), "pay-closed", "pay-denied"),
            (Some(Cash), "pay-closed", "pay-denied"),
            (None, "pay-closed", "pay-denied"),
        ] {
            for (cause, text) in [(Cause::Cancelled, cancelled), (Cause::PaymentDenied, denied)] {
                let shown = moved(OrderStatus::Cancelled, cause, kind).1;
                assert_eq!(shown, text, "{kind:?} {cause:?}");
            }
        }
    }
}
