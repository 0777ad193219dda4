//! The result of an examination: each check, and what failed.

use maud::{Markup, html};
use rampart_plugins::Check;

use crate::http::html::components::{Column, Tone, badge, table};

/// The checks of a version that has passed them all.
pub(super) fn passed() -> Markup {
    checks(None, "")
}

/// The checks of an upload of which one has failed: those before it have passed, those after it were
/// not made.
pub(super) fn failed(check: Check, reason: &str) -> Markup {
    checks(Some(check), reason)
}

fn checks(failed: Option<Check>, reason: &str) -> Markup {
    let at = |check: Check| Check::ALL.into_iter().position(|one| one == check);
    let failed_at = failed.and_then(at);
    let row = |(index, check): (usize, Check)| {
        let (state, note) = match failed_at {
            Some(failed_at) if index == failed_at => (badge(Tone::Bad, "failed"), reason),
            Some(failed_at) if index > failed_at => (badge(Tone::Neutral, "not made"), ""),
            _ => (badge(Tone::Good, "passed"), ""),
        };
        vec![html! { (question(check)) }, state, html! { (note) }]
    };
    let rows: Vec<_> = Check::ALL.into_iter().enumerate().map(row).collect();
    let columns = [Column::Text("Check"), Column::Text("Result"), Column::Text("Reason")];
    table("Examination", &columns, &rows)
}

const fn question(check: Check) -> &'static str {
    match check {
        Check::Size => "Size: within the limit",
        Check::Compilation => "Compilation: a component that compiles in time",
        Check::Imports => "Imports: only what its kind is granted",
        Check::Exports => "Exports: exactly its kind, and meta",
        Check::Resources => "Resources: memories and tables within the limits",
        Check::Contract => "Contract: functions of the right types",
        Check::Description => "Description: describe answers within the limits",
        Check::Configuration => "Configuration: as declared, and accepted",
        Check::Samples => "Samples: two runs of each give the same answer",
        Check::Fuel => "Fuel: each sample takes at most half of a call's, the largest all of it",
    }
}
