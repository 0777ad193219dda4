//! What the payer's browser gets: plain HTML that works without script, under a policy that lets
//! nothing else run or load.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest;
use url::Url;

use super::{Action, Payment, Standing};
use crate::exchange::Reply;
use crate::orders::status::{Cause, OrderStatus};
use crate::types::ReturnUrl;

/// The page's whole style; its digest stands in the content security policy.
const STYLE: &str = "\
:root{color-scheme:light dark;font:1.0625rem/1.5 system-ui,sans-serif}\
body{margin:0;display:grid;place-items:center;min-height:100vh}\
main{box-sizing:border-box;width:100%;max-width:30rem;padding:2rem 1.25rem}\
h1{font-size:1.5rem;line-height:1.25;margin:0 0 1rem}\
dl{display:grid;grid-template-columns:auto 1fr;gap:.4rem 1.25rem;margin:1.5rem 0}\
dt{opacity:.75}\
dd{margin:0;overflow-wrap:anywhere}\
form{display:grid;gap:.75rem}\
button,a.button{font:inherit;padding:.75rem 1rem;border:1px solid;border-radius:.5rem;\
background:transparent;color:inherit;text-align:center;text-decoration:none;cursor:pointer}\
button.main,a.button{background:#0b57d0;border-color:#0b57d0;color:#fff}\
:focus-visible{outline:3px solid #f9ab00;outline-offset:2px}\
.note{border-left:4px solid #f9ab00;padding:.25rem 0 .25rem .75rem;margin:1rem 0}";

static STYLE_SOURCE: LazyLock<String> = LazyLock::new(|| {
    let digest = digest::digest(&digest::SHA256, STYLE.as_bytes());
    format!("'sha256-{}'", STANDARD.encode(digest))
});

/// The order and what can be done about it.
pub(super) fn show(status: StatusCode, payment: &Payment) -> Reply {
    let (heading, text) = words(payment);
    let body = html! {
        @if payment.is_test {
            p.note { "This is a test. No money is moved and no coins are sent." }
        }
        h1 { (heading) }
        p { (text) }
        (terms(payment))
        @if payment.standing == Standing::Payable {
            (buttons())
        } @else if let Some(url) = &payment.return_url {
            p { a.button href=(url) rel="noreferrer" { "Back to " (payment.partner) } }
        }
    };
    guarded(status, heading, &body, payment.return_url.as_ref())
}

/// For a link that is none of ours. It says the same whatever is wrong with it.
pub(super) fn not_found() -> Reply {
    let body = html! {
        h1 { "There is no such payment" }
        p { "Please open the link again from the shop that you bought at." }
    };
    guarded(StatusCode::NOT_FOUND, "There is no such payment", &body, None)
}

/// Where the browser goes after a button: back to the partner, or to the page as it is now. 303
/// makes it a GET, so that a reload repeats nothing.
pub(super) fn leave(token: &str, return_url: Option<&ReturnUrl>) -> Reply {
    let mut reply = Reply::empty(StatusCode::SEE_OTHER);
    match return_url {
        Some(url) => reply.set("location", url.as_str()),
        None => reply.set("location", &format!("/pay/{token}")),
    }
    reply.set("referrer-policy", "no-referrer");
    reply
}

fn words(payment: &Payment) -> (&'static str, &'static str) {
    match payment.standing {
        Standing::Payable => ("Pay for your order", "Choose how this test payment ends."),
        Standing::NoProvider => (
            "This order cannot be paid here yet",
            "The payment provider is not configured. Please contact the shop.",
        ),
        Standing::Closed => {
            ("This order can no longer be paid", "Nothing was charged. Please order again.")
        }
        Standing::Moved(status, cause) => moved(status, cause),
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
    let waits = matches!(payment.standing, Standing::Payable | Standing::NoProvider);
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

/// A page with its policy. A form may lead to us and on to the partner, and nowhere else.
fn guarded(
    status: StatusCode,
    title: &str,
    body: &Markup,
    return_url: Option<&ReturnUrl>,
) -> Reply {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    };
    let form_action =
        return_url.and_then(form_source).map_or_else(String::new, |s| format!(" {s}"));
    let style = &*STYLE_SOURCE;
    let policy = format!(
        "default-src 'none'; style-src {style}; form-action 'self'{form_action}; \
         base-uri 'none'; frame-ancestors 'none'"
    );
    let mut reply = Reply::html(status, page.into_string());
    reply.set("content-security-policy", &policy);
    reply.set("referrer-policy", "no-referrer");
    reply.set("x-content-type-options", "nosniff");
    reply.set("x-frame-options", "DENY");
    reply.set("cache-control", "no-store");
    reply
}

/// The source expression that lets a form's redirect reach the URL: its origin where that can be
/// written in a policy without a doubt, its scheme otherwise (CSP level 3, section 2.3.1).
fn form_source(url: &ReturnUrl) -> Option<String> {
    let url = Url::parse(url.as_str()).ok()?;
    let origin = url.origin();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    match url.host_str() {
        Some(host) if origin.is_tuple() && host.bytes().all(plain) => {
            Some(origin.ascii_serialization())
        }
        _ => Some(format!("{}:", url.scheme())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{ClientId, OrderId};

    fn payment(standing: Standing, return_url: &str) -> Payment {
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
            standing,
            return_url: return_url.parse().ok(),
        }
    }

    fn text(reply: &Reply) -> &str {
        std::str::from_utf8(&reply.body).unwrap()
    }

    #[test]
    fn a_form_may_lead_to_the_partner_and_nowhere_else() {
        for (url, source) in [
            ("https://shop.example/done?x=1", "https://shop.example"),
            ("https://shop.example:8443/", "https://shop.example:8443"),
            ("http://[::1]:3000/", "http:"),
            ("yourapp://done", "yourapp:"),
            ("https://a;sandbox/", "https:"),
        ] {
            assert_eq!(form_source(&url.parse().unwrap()).as_deref(), Some(source), "{url}");
        }
    }

    #[test]
    fn the_style_is_the_one_that_the_policy_names() {
        let reply = show(StatusCode::OK, &payment(Standing::Payable, ""));
        let style = text(&reply).split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let digest = STANDARD.encode(digest::digest(&digest::SHA256, style.as_bytes()));
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains(&format!("style-src 'sha256-{digest}'")), "{policy}");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let page = show(StatusCode::OK, &payment(Standing::Payable, ""));
        assert!(text(&page).contains("&lt;b&gt;Acme") && !text(&page).contains("<b>"));
        assert!(!text(&page).contains("<script"));
    }

    #[test]
    fn only_a_payable_order_has_buttons() {
        let moved = Standing::Moved(OrderStatus::Cancelled, Cause::PaymentDenied);
        for (standing, buttons) in
            [(Standing::Payable, 3), (Standing::NoProvider, 0), (Standing::Closed, 0), (moved, 0)]
        {
            let page = show(StatusCode::OK, &payment(standing, "https://shop.example/"));
            assert_eq!(text(&page).matches("<button").count(), buttons, "{standing:?}");
            assert_eq!(text(&page).contains("href="), buttons == 0, "{standing:?}");
        }
    }
}
