//! HTML of the payment page.

use http::StatusCode;
use maud::{Markup, html};

use super::heading::heading_and_text;
use super::provider::{CardForm, ProviderForm};
use super::steps::steps;
use super::transfer::bank_transfer;
use super::{Action, Link, Payment, PaymentState};
use crate::http::html::components::{address, countdown, dialog, linked_address, money, time_in};
use crate::http::html::{PAGE_SCRIPT, Page, PageScripts, back_link};
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::platform::settings::Pages;
use crate::trading::checks::check_links::still_to_do;
use crate::trading::orders::status::OrderStatus;
use rampart_types::ReturnUrl;

/// Time after which a page that waits for the payment provider is loaded again without script, in
/// seconds.
const REFRESH_SECONDS: u32 = 2;
/// The same for one that waits for coins.
const REFRESH_PAID_SECONDS: u32 = 5;
/// The same for one that waits for a person or a bank.
const REFRESH_SLOW_SECONDS: u32 = 30;
/// Our scripts of the page that follows its order.
const FOLLOW: &str = concat!(include_str!("../../http/html/page.js"), include_str!("follow.js"));
/// Our scripts of the page with a form for cards.
const CARD_FORM: &str =
    concat!(include_str!("../../http/html/page.js"), include_str!("card_form.js"));

/// The page of an order, with the buttons that apply.
pub(super) fn show(link: &Link, settings: &Pages, status: StatusCode, payment: &Payment) -> Reply {
    let texts = link.texts.of_account(payment.region.as_deref());
    let (heading, text) = heading_and_text(payment);
    let followed = payment.is_followed();
    let body = html! {
        p data-state=[followed.then_some(&payment.shown_state)] { (texts.get(text)) }
        (steps(texts, payment))
        @if let PaymentState::Held(links) = &payment.state { (still_to_do(texts, links)) }
        @if let PaymentState::AtProvider(ProviderForm::Transfer(account)) = &payment.state {
            (bank_transfer(texts, account, payment.fiat_amount, &payment.fiat))
        }
        (terms(texts, payment))
        (price(texts, payment))
        @if let PaymentState::Moved(OrderStatus::Completed, _) = &payment.state {
            (receipt(texts, &link.token))
        }
        @match (&payment.state, &payment.return_url) {
            (PaymentState::Payable, _) => (buttons(texts)),
            (PaymentState::AtProvider(ProviderForm::Page(url)), _) => {
                p { a.button href=(url) rel="noreferrer" { (texts.get("pay-now")) } }
            }
            (PaymentState::AtProvider(ProviderForm::Card(form)), _) => {
                (card_form(texts, form, payment))
            }
            // As a query alone, the link leads to this page without one.
            (PaymentState::Confirming, _) => p { a href="?" { (texts.get("pay-not-yet")) } },
            (_, Some(url)) => (back_link(texts, url, &payment.partner)),
            (_, None) => {}
        }
    };
    let scripts = match &payment.state {
        PaymentState::AtProvider(ProviderForm::Card(form)) => {
            let (url, sources) = (&form.script_url, &form.sources);
            PageScripts::Provider { url, sources, own: CARD_FORM }
        }
        _ if followed => PageScripts::Calling(FOLLOW),
        _ => PageScripts::Own(PAGE_SCRIPT),
    };
    let title = texts.get(heading);
    Page {
        is_test: payment.is_test,
        return_url: payment.return_url.as_ref(),
        scripts: Some(scripts),
        refresh_seconds: payment.refresh_seconds(),
        ..Page::new(texts, settings, &title).branded(&payment.partner, &payment.brand)
    }
    .render(status, &body)
}

impl Payment {
    /// True if the page is to show changes by itself. A provider's form has scripts of its own, and
    /// says where its payer goes next; what is final does not change.
    fn is_followed(&self) -> bool {
        use OrderStatus::{Cancelled, Completed, Refunded};
        !matches!(
            &self.state,
            PaymentState::AtProvider(ProviderForm::Card(_))
                | PaymentState::Moved(Completed | Cancelled | Refunded, _)
        )
    }

    /// Time after which the page looks again without script.
    fn refresh_seconds(&self) -> Option<u32> {
        match &self.state {
            PaymentState::Preparing | PaymentState::Confirming => Some(REFRESH_SECONDS),
            PaymentState::Held(_) | PaymentState::Moved(OrderStatus::InProgress, _) => {
                Some(REFRESH_PAID_SECONDS)
            }
            PaymentState::AtProvider(ProviderForm::Transfer(_) | ProviderForm::Elsewhere)
            | PaymentState::Moved(OrderStatus::Blocked, _) => Some(REFRESH_SLOW_SECONDS),
            _ => None,
        }
    }
}

/// The provider's form for cards, which its script fills in. The button works once that has run.
fn card_form(texts: Texts, form: &CardForm, payment: &Payment) -> Markup {
    let amount = texts.amount(&payment.fiat);
    html! {
        form #card-form method="post" data-public-key=(form.public_key)
            data-client-token=(form.client_token)
            data-refused=(texts.get("pay-card-refused"))
            data-unavailable=(texts.get("pay-card-unavailable")) {
            div #card-element.element {}
            p #card-notice.note role="alert" hidden {}
            button.main type="submit" disabled {
                (texts.with("pay-amount", &[("amount", &amount)]))
            }
        }
        noscript { p.note { (texts.get("pay-card-script")) } }
    }
}

/// The page for an invalid link; the same for every reason.
pub(super) fn not_found(texts: Texts, settings: &Pages) -> Reply {
    let title = texts.get("pay-unknown-title");
    let body = html! { p { (texts.get("pay-unknown")) } };
    Page::new(texts, settings, &title).render(StatusCode::NOT_FOUND, &body)
}

/// The redirect after a button: back to the partner, or to this page. 303 makes it a GET, so that a
/// reload repeats nothing.
pub(super) fn redirect(token: &str, return_url: Option<&ReturnUrl>) -> Reply {
    let mut reply = Reply::empty(StatusCode::SEE_OTHER);
    match return_url {
        Some(url) => reply.set("location", &*url.to_ascii()),
        None => reply.set("location", format!("/pay/{token}")),
    }
    reply.set("referrer-policy", "no-referrer");
    reply
}

fn terms(texts: Texts, payment: &Payment) -> Markup {
    let waits = !matches!(
        payment.state,
        PaymentState::Closed | PaymentState::Held(_) | PaymentState::Moved(..)
    );
    let blockchain = &payment.blockchain;
    html! {
        dl {
            dt { (texts.get("term-shop")) } dd { (payment.partner) }
            dt { (texts.get("term-pays")) }
            dd { strong { (money(&texts.amount(&payment.fiat))) } }
            dt { (texts.get("term-gets")) } dd { (money(&texts.amount(&payment.crypto))) }
            dt { (texts.get("term-method")) }
            dd { (payment.catalogue.payment_method_name(texts, &payment.method)) }
            dt { (texts.get("term-network")) } dd { (payment.network) }
            dt { (texts.get("term-wallet")) }
            dd {
                @if waits { (address(&blockchain.wallet_address)) }
                @else { (linked_address(&blockchain.wallet_address, &blockchain.wallet_explorer)) }
            }
            @if let Some(tag) = &payment.destination_tag {
                dt { (texts.get("checkout-tag")) } dd { code { (tag) } }
            }
            @if !blockchain.transaction_id.is_empty() {
                dt { (texts.get("term-transaction")) }
                dd { (linked_address(&blockchain.transaction_id, &blockchain.transaction_explorer)) }
            }
            dt { (texts.get("term-order")) } dd { (payment.key.order) }
            @if let (true, Some(end)) = (waits, payment.expires_at) {
                dt { (texts.get("term-pay-before")) } dd { (time_in(texts, end)) " " (countdown(end)) }
            }
        }
    }
}

/// The price and each fee, which the payer has seen before.
fn price(texts: Texts, payment: &Payment) -> Markup {
    let body = html! {
        dl {
            @for term in &payment.price_terms {
                @let (name, amount) = term.text(texts, &payment.partner);
                dt { (name) } dd { (money(&amount)) }
            }
        }
        @if payment.is_estimated { p.hint { (texts.get("checkout-estimated")) } }
    };
    dialog(&texts.get("pay-price-and-fees"), &body)
}

/// The receipt, of an order that is completed.
fn receipt(texts: Texts, token: &str) -> Markup {
    html! {
        p.row {
            a.button href={ "/pay/" (token) "/receipt.pdf" } { (texts.get("pay-receipt")) }
            a href={ "/pay/" (token) "/receipt.json" } { (texts.get("pay-receipt-signed")) }
        }
    }
}

fn buttons(texts: Texts) -> Markup {
    let label = |action| match action {
        Action::Pay => texts.get("pay-action-pay"),
        Action::Deny => texts.get("pay-action-deny"),
        Action::Cancel => texts.get("pay-action-cancel"),
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
    use std::sync::Arc;

    use super::*;
    use crate::http::html::brand::Brand;
    use crate::http::language::Language;
    use crate::trading::orders::BlockchainInfo;
    use crate::trading::orders::status::Cause;
    use rampart_types::{ClientId, OrderId, OrderKey};

    fn payment(state: PaymentState, return_url: &str) -> Payment {
        Payment {
            region: None,
            key: OrderKey {
                client: ClientId::from(uuid::Uuid::nil()),
                order: OrderId::new(7).unwrap(),
            },
            partner: "<b>Acme</b>".to_owned(),
            brand: Brand::default(),
            fiat: "100.00 EUR".to_owned(),
            fiat_amount: 100.into(),
            crypto: "0.5 ETH".to_owned(),
            method: "Card".to_owned(),
            catalogue: Arc::default(),
            network: "Ethereum".to_owned(),
            price_terms: Vec::new(),
            is_estimated: false,
            blockchain: BlockchainInfo::new(None, "0xabc", ""),
            destination_tag: Some("4711".to_owned()),
            expires_at: Some(chrono::DateTime::UNIX_EPOCH),
            is_test: true,
            state,
            shown_state: "pending".to_owned(),
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

    fn show(status: StatusCode, payment: &Payment) -> Reply {
        let (token, texts) = ("token".to_owned(), Language::English.texts());
        let link = Link { token, request_id: String::new(), texts };
        super::show(&link, &Pages::default(), status, payment)
    }

    fn text(reply: &Reply) -> &str {
        std::str::from_utf8(&reply.body).unwrap()
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let page = show(StatusCode::OK, &payment(PaymentState::Payable, ""));
        assert!(text(&page).contains("<dt>Tag or memo</dt><dd><code>4711</code></dd>"));
        assert!(text(&page).contains("&lt;b&gt;Acme") && !text(&page).contains("<b>"));
        assert!(!text(&page).contains("<script src"));
    }

    #[test]
    fn a_payment_at_a_provider_links_there_and_one_that_is_prepared_looks_again() {
        let at = show(StatusCode::OK, &payment(at_page(), ""));
        assert!(text(&at).contains("href=\"https://psp.example/pay?a=1&amp;b=2\""));
        assert!(!text(&at).contains("http-equiv"));
        let again = "<noscript><meta http-equiv=\"refresh\" content=\"2\"></noscript>";
        let preparing = show(StatusCode::OK, &payment(PaymentState::Preparing, ""));
        assert!(text(&preparing).contains(again) && !text(&preparing).contains("psp.example"));
        let confirming = show(StatusCode::OK, &payment(PaymentState::Confirming, ""));
        assert!(text(&confirming).contains(again));
        let blocked = PaymentState::Moved(OrderStatus::Blocked, Cause::Held);
        for waits in [PaymentState::AtProvider(ProviderForm::Elsewhere), blocked] {
            let page = show(StatusCode::OK, &payment(waits, ""));
            assert!(text(&page).contains("http-equiv=\"refresh\" content=\"30\""));
        }
    }

    #[test]
    fn a_page_follows_its_order_until_the_end() {
        let moved = |status| PaymentState::Moved(status, Cause::PaymentReceived);
        for (state, followed) in [
            (PaymentState::Payable, true),
            (PaymentState::Preparing, true),
            (at_page(), true),
            (at_card(), false),
            (PaymentState::Closed, true),
            (PaymentState::Held(Vec::new()), true),
            (moved(OrderStatus::InProgress), true),
            (moved(OrderStatus::Blocked), true),
            (moved(OrderStatus::Completed), false),
            (moved(OrderStatus::Refunded), false),
        ] {
            let page = show(StatusCode::OK, &payment(state.clone(), ""));
            let policy = page.headers["content-security-policy"].to_str().unwrap();
            assert_eq!(text(&page).contains("<p data-state=\"pending\">"), followed, "{state:?}");
            assert_eq!(policy.contains("connect-src 'self'; "), followed, "{state:?}: {policy}");
        }
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
            assert!(policy(&page).contains("script-src 'sha256-"), "{}", policy(&page));
            assert!(!policy(&page).contains("psp.example") && !text(&page).contains("<script src"));
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
            assert_eq!(text(&page).matches("type=\"submit\"").count(), buttons, "{state:?}");
            assert_eq!(text(&page).contains("href="), buttons == 0, "{state:?}");
        }
    }
}
