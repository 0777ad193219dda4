//! The audit: the search in it, and the verification of its chain.

use maud::html;

use super::form::Input;
use super::layout::Page;
use super::list::List;
use super::view::{Cell, facts};
use super::visit::{Refused, Visit};
use crate::http::html::components::{Tone, toast};

/// The audit.
pub(super) const LIST: List = List {
    title: "Audit",
    section: "/console/audit",
    page: "/console/audit",
    call: "/admin/v1/audit",
    criteria: &[
        Input::new("target", "Target").hint("A partner's slug, an order's number, a user's id"),
        Input::new("actor", "Who"),
        Input::new("action", "What").hint("partner.change, for example"),
        Input::new("from", "From (UTC)"),
        Input::new("before", "Before (UTC)"),
    ],
    columns: &[
        ("When", Cell::Time("/at")),
        ("Who", Cell::Text("/actor")),
        ("What", Cell::Text("/action")),
        ("Target", Cell::Text("/target")),
        ("Detail", Cell::Json("/detail")),
    ],
    empty: "No row meets these criteria.",
};

/// The page that verifies the audit's chain.
pub(super) async fn verification(visit: &Visit<'_>) -> Result<Page, Refused> {
    let verified = visit.get("/admin/v1/audit/verification").await?;
    let intact = verified["intact"] == true;
    let (tone, sentence) = match intact {
        true => (Tone::Good, "No row was changed, taken out or put in."),
        false => (Tone::Bad, "The audit is not as it was written."),
    };
    let body = html! {
        (toast(tone, sentence))
        (facts(visit, &verified, &[
            ("Rows looked at", Cell::Text("/rows")),
            ("Up to position", Cell::Text("/position")),
            ("That is all of them", Cell::Text("/complete")),
            ("MAC of the last one", Cell::Text("/mac")),
            ("Archived up to", Cell::Text("/archived")),
            ("Broken", Cell::Json("/broken")),
        ]))
        p.hint { "Keep position and MAC elsewhere: rampart audit verify goes on from there." }
    };
    Ok(Page::new("Verification of the audit", LIST.section, body))
}
