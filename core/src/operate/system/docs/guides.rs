//! Guides written by hand, in Markdown.

use maud::{Markup, PreEscaped};
use pulldown_cmark::{Options, Parser, html};

/// A guide: name of its page, title, text.
pub(super) struct Guide {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) text: &'static str,
}

const fn guide(name: &'static str, title: &'static str, text: &'static str) -> Guide {
    Guide { name, title, text }
}

/// Every guide, in the order in which a partner's developer reads them.
pub(super) const GUIDES: [Guide; 10] = [
    guide("start", "Start in five minutes", include_str!("guides/five-minutes.md")),
    guide("authentication", "Authentication", include_str!("guides/authentication.md")),
    guide("quote-to-order", "Quote to order", include_str!("guides/quote-to-order.md")),
    guide(
        "offers-and-signatures",
        "Offers and signatures",
        include_str!("guides/offers-and-signatures.md"),
    ),
    guide("receipts", "Receipts", include_str!("guides/receipts.md")),
    guide("webhooks", "Webhooks", include_str!("guides/webhooks.md")),
    guide(
        "idempotency-and-retries",
        "Idempotency and retries",
        include_str!("guides/idempotency-and-retries.md"),
    ),
    guide("sandbox", "Sandbox", include_str!("guides/sandbox.md")),
    guide("going-live", "Going live", include_str!("guides/going-live.md")),
    guide("changelog", "Changelog", include_str!("guides/changelog.md")),
];

/// The guide as HTML. Its text is this binary's own.
pub(super) fn render(guide: &Guide) -> Markup {
    let mut page = String::new();
    html::push_html(&mut page, Parser::new_ext(guide.text, Options::ENABLE_TABLES));
    PreEscaped(page)
}
