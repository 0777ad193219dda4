//! Links to the pages on which a user passes the open checks of an order.

use maud::{Markup, html};

use super::Hold;
use super::link;
use crate::Core;
use crate::http::language::Texts;
use crate::platform::error::Result;
use crate::trading::quotes::Side;
use rampart_types::{ClientId, OrderId};

/// The link to the page of an open check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckLink {
    url: String,
    /// The message with what passes the check.
    message: &'static str,
}

impl CheckLink {
    /// Links to those of an order's open checks that its user passes.
    ///
    /// # Errors
    /// Those of the master key.
    pub(crate) fn all(
        core: &Core,
        order: (Side, (ClientId, OrderId)),
        open: &[Hold],
    ) -> Result<Vec<Self>> {
        let mut links = Vec::new();
        for hold in open {
            if let Some(url) = link::url(core, order, *hold)? {
                links.push(Self { url, message: message(*hold) });
            }
        }
        Ok(links)
    }
}

/// The list of links to open checks; nothing where there is none.
pub(crate) fn still_to_do(texts: Texts, links: &[CheckLink]) -> Markup {
    html! {
        @if !links.is_empty() {
            h2 { (texts.get("check-left")) }
            ul { @for link in links { li { a href=(link.url) { (texts.get(link.message)) } } } }
        }
    }
}

/// The message with what passes a check.
pub(super) const fn message(hold: Hold) -> &'static str {
    match hold {
        Hold::Registration => "check-registration",
        Hold::User => "check-user",
        Hold::Identity => "check-identity",
        Hold::Amld5 => "check-amld5",
        Hold::Tax => "check-tax",
        Hold::Address => "check-address",
        Hold::Account => "check-account",
        Hold::Wallet => "check-wallet",
        Hold::Screening | Hold::ScreeningReview => "check-waiting",
    }
}
