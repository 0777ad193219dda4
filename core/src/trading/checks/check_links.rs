//! Links to the pages on which a user passes the open checks of an order.

use maud::{Markup, html};

use super::Hold;
use super::link;
use super::requirement::message;
use crate::Core;
use crate::http::language::Texts;
use crate::platform::error::Result;
use crate::trading::quotes::Side;
use rampart_types::OrderKey;

/// The link to the page of an open check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckLink {
    url: String,
    /// The message with what passes the check.
    message: &'static str,
}

impl CheckLink {
    /// A link to this URL.
    pub(super) const fn new(url: String, message: &'static str) -> Self {
        Self { url, message }
    }

    /// Links to those of an order's open checks that its user passes.
    ///
    /// # Errors
    /// Those of the master key.
    pub(crate) fn all(
        core: &Core,
        side: Side,
        order: OrderKey,
        open: &[Hold],
    ) -> Result<Vec<Self>> {
        let mut links = Vec::new();
        for hold in open {
            if let Some(url) = link::url(core, side, order, *hold)? {
                links.push(Self::new(url, message(*hold)));
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
