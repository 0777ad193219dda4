//! HTML of the payment page.

use http::StatusCode;
use maud::{Markup, html};

use super::provider::{CardForm, ProviderForm};
use super::{Action, Payment, PaymentState};
use crate::http::html::{PageScripts, render_page, render_page_with};
use crate::http::reply::Reply;
use crate::trading::orders::status::{Cause, OrderStatus};
use rampart_types::ReturnUrl;

/// Time after which a page that waits for the payment provider is loaded again, in seconds.
const REFRESH_SECONDS: &str = "2";
/// Our script of the page with a form for cards.
const CARD_FORM: &str = include_str!("card_form.js");

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
        @match (&payment.state, &payment.return_url) {
            (PaymentState::Payable, _) => (buttons()),
            (PaymentState::AtProvider(ProviderForm::Page(url)), _) => {
                p { a.button href=(url) rel="noreferrer" { "Pay now" } }
            }
            (PaymentState::AtProvider(ProviderForm::Card(form)), _) => (card_form(form, payment)),
            // As a query alone, the link leads to this page without one.
            (PaymentState::Confirming, _) => p { a href="?" { "I have not paid yet" } },
            (_, Some(url)) => {
                p { a.button href=(url) rel="noreferrer" { "Back to " (payment.partner) } }
            }
            (_, None) => {}
        }
    };
    let scripts = match &payment.state {
        PaymentState::AtProvider(ProviderForm::Card(form)) => {
            let (url, sources) = (&form.script_url, &form.sources);
            Some(PageScripts::Provider { url, sources, own: CARD_FORM })
        }
        _ => None,
    };
    let mut reply =
        render_page_with(status, heading, &body, (payment.return_url.as_ref(), scripts));
    if matches!(payment.state, PaymentState::Preparing | PaymentState::Confirming) {
        // Without a script, the page looks again by itself.
        reply.set("refresh", REFRESH_SECONDS);
    }
    reply
}

/// The provider's form for cards, which its script fills in. The button works once that has run.
fn card_form(form: &CardForm, payment: &Payment) -> Markup {
    html! {
        form #card-form method="post" data-public-key=(form.public_key)
            data-client-token=(form.client_token)
            data-refused="Nothing was charged. Please try again, or use another card."
            data-unavailable="The form for cards could not be loaded. Please load this page again." {
            div #card-element.element {}
            p #card-notice.note role="alert" hidden {}
            button.main type="submit" disabled { "Pay " (payment.fiat) }
        }
        noscript { p.note { "Cards are taken by our payment provider's script: please allow it." } }
    }
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
    match &payment.state {
        PaymentState::Payable => ("Pay for your order", "Choose how this test payment ends."),
        PaymentState::Preparing => {
            ("Your payment is being prepared", "This page goes on by itself in a moment.")
        }
        PaymentState::AtProvider(ProviderForm::Card(_)) => {
            ("Pay for your order", "Your card is charged by our payment provider.")
        }
        PaymentState::AtProvider(ProviderForm::Page(_)) => {
            ("Pay for your order", "You pay at our payment provider and come back here.")
        }
        PaymentState::AtProvider(ProviderForm::Elsewhere) => {
            ("Pay for your order", "Please pay as you have agreed with the shop.")
        }
        PaymentState::Confirming => {
            ("Your payment is being confirmed", "This page goes on by itself in a moment.")
        }
        PaymentState::NoProvider => (
            "This order cannot be paid here yet",
            "The payment provider is not configured. Please contact the shop.",
        ),
        PaymentState::Closed => {
            ("This order can no longer be paid", "Nothing was charged. Please order again.")
        }
        PaymentState::Moved(status, cause) => moved(*status, *cause),
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
        }
    }

    fn at_page() -> PaymentState {
        let url = "https://psp.example/pay?a=1&b=2".to_owned();
        PaymentState::AtProvider(ProviderForm::Page(url))
    }

    fn at_card() -> PaymentState {
        PaymentState::AtProvider(ProviderForm::Card(CardForm {
            client_token: "pi_1_secret_\"2".to_owned(),
            script_url: "https://js.psp.example/v3/".to_owned(),
            public_key: "pk_1".to_owned(),
            sources: vec!["https://js.psp.example".to_owned()],
        }))
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
        let at = show(StatusCode::OK, &payment(at_page(), ""));
        assert!(text(&at).contains("href=\"https://psp.example/pay?a=1&amp;b=2\""));
        assert!(!at.headers.contains_key("refresh"));
        let preparing = show(StatusCode::OK, &payment(PaymentState::Preparing, ""));
        assert_eq!(preparing.headers["refresh"], "2");
        assert!(!text(&preparing).contains("psp.example"));
        let confirming = show(StatusCode::OK, &payment(PaymentState::Confirming, ""));
        assert_eq!(confirming.headers["refresh"], "2");
    }

    #[test]
    fn a_form_for_cards_lets_in_its_provider_alone() {
        let policy =
            |reply: &Reply| reply.headers["content-security-policy"].to_str().unwrap().to_owned();
        let card = show(StatusCode::OK, &payment(at_card(), ""));
        assert!(
            policy(&card).contains(" https://js.psp.example; connect-src"),
            "{}",
            policy(&card)
        );
        assert!(text(&card).contains("data-client-token=\"pi_1_secret_&quot;2\""));
        assert!(text(&card).contains("<script src=\"https://js.psp.example/v3/\">"));
        for state in [PaymentState::Payable, PaymentState::Confirming, at_page()] {
            let page = show(StatusCode::OK, &payment(state, ""));
            assert!(!policy(&page).contains("script-src") && !text(&page).contains("<script"));
        }
    }

    #[test]
    fn only_a_payable_order_has_buttons() {
        let moved = PaymentState::Moved(OrderStatus::Cancelled, Cause::PaymentDenied);
        for (state, buttons) in [
            (PaymentState::Payable, 3),
            (PaymentState::NoProvider, 0),
            (PaymentState::Preparing, 0),
            (PaymentState::Confirming, 0),
            (at_page(), 0),
            (at_card(), 1),
            (PaymentState::Closed, 0),
            (moved, 0),
        ] {
            let page = show(StatusCode::OK, &payment(state.clone(), "https://shop.example/"));
            assert_eq!(text(&page).matches("<button").count(), buttons, "{state:?}");
            assert_eq!(text(&page).contains("href="), buttons == 0, "{state:?}");
        }
    }
}
