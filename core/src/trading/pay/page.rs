//! HTML of the payment page.

use http::StatusCode;
use maud::{Markup, html};

use super::{Action, Payment, PaymentState};
use crate::http::html::render_page;
use crate::http::reply::Reply;
use crate::trading::orders::status::{Cause, OrderStatus};
use rampart_types::ReturnUrl;

/// Time after which a page whose payment is being prepared is loaded again, in seconds.
const PREPARING_SECONDS: &str = "2";

/// The page of an order, with the buttons that apply.
pub(super) fn show(status: StatusCode, payment: &Payment) -> Reply {
    let (heading, text) = heading_and_text(payment);
    let body = html! {
        @if payment.is_test {
            p.note { "This is a test. No money is moved and no coins are sent." }
        }
        h1 { (heading) }
        p { (text) }
        (terms(payment))
        @if payment.state == PaymentState::Payable {
            (buttons())
        } @else if let (PaymentState::AtProvider, Some(url)) = (payment.state, &payment.provider_url) {
            p { a.button href=(url) rel="noreferrer" { "Pay now" } }
        } @else if let Some(url) = &payment.return_url {
            p { a.button href=(url) rel="noreferrer" { "Back to " (payment.partner) } }
        }
    };
    let mut reply = render_page(status, heading, &body, payment.return_url.as_ref());
    if payment.state == PaymentState::Preparing {
        // Without a script, the page looks again by itself.
        reply.set("refresh", PREPARING_SECONDS);
    }
    reply
}

/// The page for an invalid link; the same for every reason.
pub(super) fn not_found() -> Reply {
    let body = html! {
        h1 { "There is no such payment" }
        p { "Please open the link again from the shop that you bought at." }
    };
    render_page(StatusCode::NOT_FOUND, "There is no such payment", &body, None)
}

/// The redirect after a button: back to the partner, or to this page. 303 makes it a GET, so that a
/// reload repeats nothing.
pub(super) fn redirect(token: &str, return_url: Option<&ReturnUrl>) -> Reply {
    let mut reply = Reply::empty(StatusCode::SEE_OTHER);
    match return_url {
        Some(url) => reply.set("location", &url.to_ascii()),
        None => reply.set("location", &format!("/pay/{token}")),
    }
    reply.set("referrer-policy", "no-referrer");
    reply
}

fn heading_and_text(payment: &Payment) -> (&'static str, &'static str) {
    match payment.state {
        PaymentState::Payable => ("Pay for your order", "Choose how this test payment ends."),
        PaymentState::Preparing => {
            ("Your payment is being prepared", "This page goes on by itself in a moment.")
        }
        PaymentState::AtProvider => {
            ("Pay for your order", "You pay at our payment provider and come back here.")
        }
        PaymentState::NoProvider => (
            "This order cannot be paid here yet",
            "The payment provider is not configured. Please contact the shop.",
        ),
        PaymentState::Closed => {
            ("This order can no longer be paid", "Nothing was charged. Please order again.")
        }
        PaymentState::Moved(status, cause) => moved(status, cause),
    }
}

const fn moved(status: OrderStatus, cause: Cause) -> (&'static str, &'static str) {
    match (status, cause) {
        (OrderStatus::Completed, _) => {
            ("Your order is complete", "The coins have arrived at your wallet.")
        }
        (OrderStatus::Cancelled, Cause::PaymentDenied) => {
            ("The payment was denied", "Nothing was charged. You may order again.")
        }
        (OrderStatus::Cancelled, Cause::Expired) => {
            ("This order has expired", "It was not paid in time. You may order again.")
        }
        (OrderStatus::Cancelled, _) => ("The order is cancelled", "Nothing was charged."),
        (OrderStatus::Refunded, _) => ("The payment was given back", "The order has ended."),
        (OrderStatus::Blocked, _) => {
            ("Your order is being looked at", "The payment has arrived. Please wait for the shop.")
        }
        (OrderStatus::InProgress | OrderStatus::Pending, _) => {
            ("Thank you, the payment has arrived", "The coins are on their way to your wallet.")
        }
    }
}

fn terms(payment: &Payment) -> Markup {
    let waits = !matches!(payment.state, PaymentState::Closed | PaymentState::Moved(..));
    html! {
        dl {
            dt { "Shop" } dd { (payment.partner) }
            dt { "You pay" } dd { strong { (payment.fiat) } }
            dt { "You get" } dd { (payment.crypto) }
            dt { "Payment method" } dd { (payment.method) }
            dt { "Wallet" } dd { (payment.wallet_address) }
            dt { "Order" } dd { (payment.order) }
            @if let (true, Some(end)) = (waits, payment.expires_at) {
                dt { "Pay before" }
                dd {
                    time datetime=(end.to_rfc3339()) { (end.format("%-d %B %Y, %H:%M UTC")) }
                }
            }
        }
    }
}

fn buttons() -> Markup {
    let label = |action| match action {
        Action::Pay => "Pay",
        Action::Deny => "Deny the payment",
        Action::Cancel => "Cancel the order",
    };
    html! {
        form method="post" {
            @for action in Action::ALL {
                button.main[action == Action::Pay] type="submit" name="action"
                    value=(action.as_str()) { (label(action)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rampart_types::{ClientId, OrderId};

    fn payment(state: PaymentState, return_url: &str) -> Payment {
        Payment {
            client: ClientId::from(uuid::Uuid::nil()),
            order: OrderId::new(7).unwrap(),
            partner: "<b>Acme</b>".to_owned(),
            fiat: "100.00 EUR".to_owned(),
            crypto: "0.5 ETH".to_owned(),
            method: "Card".to_owned(),
            wallet_address: "0xabc".to_owned(),
            expires_at: Some(chrono::DateTime::UNIX_EPOCH),
            is_test: true,
            state,
            return_url: return_url.parse().ok(),
            provider_url: Some("https://psp.example/pay?a=1&b=2".to_owned()),
        }
    }

    fn text(reply: &Reply) -> &str {
        std::str::from_utf8(&reply.body).unwrap()
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let page = show(StatusCode::OK, &payment(PaymentState::Payable, ""));
        assert!(text(&page).contains("&lt;b&gt;Acme") && !text(&page).contains("<b>"));
        assert!(!text(&page).contains("<script"));
    }

    #[test]
    fn a_payment_at_a_provider_links_there_and_one_that_is_prepared_looks_again() {
        let at = show(StatusCode::OK, &payment(PaymentState::AtProvider, ""));
        assert!(text(&at).contains("href=\"https://psp.example/pay?a=1&amp;b=2\""));
        assert!(!at.headers.contains_key("refresh"));
        let preparing = show(StatusCode::OK, &payment(PaymentState::Preparing, ""));
        assert_eq!(preparing.headers["refresh"], "2");
        assert!(!text(&preparing).contains("psp.example"));
    }

    #[test]
    fn only_a_payable_order_has_buttons() {
        let moved = PaymentState::Moved(OrderStatus::Cancelled, Cause::PaymentDenied);
        for (state, buttons) in [
            (PaymentState::Payable, 3),
            (PaymentState::NoProvider, 0),
            (PaymentState::Preparing, 0),
            (PaymentState::AtProvider, 0),
            (PaymentState::Closed, 0),
            (moved, 0),
        ] {
            let page = show(StatusCode::OK, &payment(state, "https://shop.example/"));
            assert_eq!(text(&page).matches("<button").count(), buttons, "{state:?}");
            assert_eq!(text(&page).contains("href="), buttons == 0, "{state:?}");
        }
    }
}
