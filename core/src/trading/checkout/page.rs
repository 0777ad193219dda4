//! HTML of the checkout page.

use http::StatusCode;
use maud::{Markup, html};

use super::show::Checkout;
use crate::http::html::render_page;
use crate::http::reply::Reply;

/// The page with the checkout's terms.
pub(super) fn show(status: StatusCode, checkout: &Checkout) -> Reply {
    let (heading, text) = if checkout.is_open {
        ("Your purchase", "This is what the shop proposes.")
    } else {
        ("This checkout has ended", "Please start again at the shop.")
    };
    let body = html! {
        @if checkout.is_test {
            p.note { "This is a test. No money is moved and no coins are sent." }
        }
        h1 { (heading) }
        p { (text) }
        (terms(checkout))
        @if let Some(url) = &checkout.return_url {
            p { a.button href=(url) rel="noreferrer" { "Back to " (checkout.partner) } }
        }
    };
    render_page(status, heading, &body, checkout.return_url.as_ref())
}

fn terms(checkout: &Checkout) -> Markup {
    html! {
        dl {
            dt { "Shop" } dd { (checkout.partner) }
            dt { "You pay" } dd { strong { (checkout.pays) } }
            dt { "You get" } dd { (checkout.gets) }
            dt { "Payment method" } dd { (checkout.method) }
            @if let Some(address) = &checkout.wallet_address {
                dt { "Wallet" } dd { (address) }
            }
            @if checkout.is_open {
                dt { "Open until" }
                dd {
                    time datetime=(checkout.expires_at.to_rfc3339()) {
                        (checkout.expires_at.format("%-d %B %Y, %H:%M UTC"))
                    }
                }
            }
        }
    }
}

/// The page for an invalid link; the same for every reason.
pub(super) fn not_found() -> Reply {
    let body = html! {
        h1 { "There is no such checkout" }
        p { "Please open the link again from the shop." }
    };
    render_page(StatusCode::NOT_FOUND, "There is no such checkout", &body, None)
}
