//! A way through the operations: what a new partner calls, in order.

use maud::{Markup, html};

use super::page::words;

/// Operations by their id, and why they come where they come.
const STEPS: &[(&str, &str)] = &[
    ("postV2Webhooks", "Register where you want to be told what happens; or read the event log."),
    (
        "postV2User",
        "Register a user under an identifier of yours, which then stands for the user in \
         `User-Identifier`. A test client's `emailCode` is always `000000`.",
    ),
    (
        "postV1UserLogin",
        "A user who logs in has a token for `User-Authorization`, which proves the user as well.",
    ),
    ("postV2UserLinkIdentifier", "Link any other identifier of yours to a user who has a token."),
    ("getV2UserVerificationStatus", "Ask what the user still has to show. An empty list: nothing."),
    (
        "postV1BuyQuote",
        "Quote the purchase, for the user. The quote is a sealed text: keep it as it is.",
    ),
    (
        "postV1BuyConfirm",
        "Confirm the quote and send the user to `paymentUrl`. For test clients that page has \
         buttons that pay, deny and cancel; `partnerOrderIdentifier` `sandbox-completed` pays by \
         itself.",
    ),
    ("getV2BuyOrdersId", "Read the order until it is `completed`; that takes seconds here."),
    ("getV2Events", "See what happened. Your webhook was told the same."),
];

/// The steps, each a link to its operation with its example. `summary` is of an operation's id.
pub(super) fn render<'a>(summary: impl Fn(&str) -> &'a str) -> Markup {
    html! {
        h2 id="walk" { "From nothing to a completed order" }
        ol {
            @for (operation, why) in STEPS {
                li { a href={ "#" (operation) } { (summary(operation)) } ". " (words(why)) }
            }
        }
    }
}
