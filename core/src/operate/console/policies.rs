//! A kind of policy of a partner: its versions, the one on trial, and the ways between them.

use maud::html;

use super::action::{Action, Subject, Verb, outcome};
use super::form::{Input, Kind, Typed};
use super::layout::Page;
use super::orders::of;
use super::view::{Cell, facts, text};
use super::visit::{Refused, Visit, segment};
use crate::http::html::components::{Tone, note, stat};

const SECTION: &str = "/console/partners";
const REASON: Input = Input { hint: "For the history, at most 500 characters.", ..Input::REASON };
const BECAUSE: &[Input] = &[REASON];

/// A kind of policy of a partner.
pub(super) const POLICY: Subject = Subject {
    name: "policy",
    section: SECTION,
    page: "/console/partners/{slug}/policies/{kind}",
    read: "/admin/v1/partners/{slug}/policies/{kind}",
    facts: &[("Active version", Cell::Text("/active")), ("On trial", Cell::Text("/trial/version"))],
    actions: &[
        Action::new(
            ("rollback", "Roll back"),
            (Verb::Post, "/admin/v1/partners/{slug}/policies/{kind}/rollback"),
            "One step back: from a canary to the active version, else to the version before. Every \
             edge follows within a second.",
        )
        .with(BECAUSE),
        Action::new(
            ("end-trial", "End the trial"),
            (Verb::Delete, "/admin/v1/partners/{slug}/policies/{kind}/trial"),
            "The active version serves everybody.",
        )
        .with(BECAUSE),
        Action::new(
            ("remove", "Return to the built-in rule"),
            (Verb::Delete, "/admin/v1/partners/{slug}/policies/{kind}"),
            "No version is active any more; they all stay stored.",
        )
        .with(BECAUSE)
        .destructive()
        .counting(
            "partner={}&policy={}",
            &[
                ("Versions that stay stored", Cell::Count("/versions")),
                ("Users of the partner", Cell::Count("/users")),
            ],
        ),
    ],
};

/// One version of it.
pub(super) const VERSION: Subject = Subject {
    name: "version",
    section: SECTION,
    page: "/console/partners/{slug}/policies/{kind}/versions/{version}",
    read: "/admin/v1/partners/{slug}/policies/{kind}",
    facts: POLICY.facts,
    actions: &[
        Action::new(
            ("activate", "Activate"),
            (Verb::Post, "/admin/v1/partners/{slug}/policies/{kind}/versions/{version}/activate"),
            "It serves everybody, or as a canary a percentage of the users. Every edge follows \
             within a second.",
        )
        .with(&[
            Input::new("percentage", "Percentage of the users")
                .kind(Kind::Integer)
                .hint("1 to 99 is a canary; everybody if left out."),
            REASON,
        ]),
        Action::new(
            ("shadow", "Run in the shadow"),
            (Verb::Post, "/admin/v1/partners/{slug}/policies/{kind}/versions/{version}/shadow"),
            "It gets the same inputs as the active version; its answers are compared, and used for \
             nothing.",
        )
        .with(BECAUSE),
    ],
};

const VERSIONS: &[(&str, Cell)] = &[
    ("Version", Cell::Text("/version")),
    ("Active", Cell::Text("/active")),
    ("Name", Cell::Text("/info/name")),
    ("Reason", Cell::Text("/reason")),
    ("Signed by", Cell::Text("/signedBy")),
    ("By", Cell::Text("/createdBy")),
    ("Made", Cell::Time("/createdAt")),
    ("Component", Cell::Address("/digest")),
];
const CHANGES: &[(&str, Cell)] = &[
    ("When", Cell::Time("/at")),
    ("By", Cell::Text("/actor")),
    ("Change", Cell::Text("/action")),
    ("Version", Cell::Text("/detail/version")),
    ("Reason", Cell::Text("/detail/reason")),
];

/// The page of a kind of policy.
///
/// # Errors
/// The refusal of the call.
pub(super) async fn show(
    visit: &Visit<'_>,
    (slug, kind): (&str, &str),
    query: &Typed,
) -> Result<Page, Refused> {
    let ids = [slug.to_owned(), kind.to_owned()];
    let url = format!("/admin/v1/partners/{}/policies/{}", segment(slug), segment(kind));
    let policy = visit.get(&url).await?;
    let rows = |name: &str| policy[name].as_array().cloned().unwrap_or_default();
    let path = format!("{SECTION}/{}/policies/{}", segment(slug), segment(kind));
    let trial = &policy["trial"];
    let versions = rows("versions");
    let body = html! {
        (outcome(query, POLICY.actions))
        (outcome(query, VERSION.actions))
        p { a href={ (SECTION) "/" (segment(slug)) } { "Partner " (slug) } }
        @if policy["active"].is_null() {
            (note(Tone::Info, &html! { "No version is active: the built-in rule serves." }))
        }
        (facts(&policy, POLICY.facts))
        (POLICY.actions(visit, &ids, &policy))
        @if trial.is_object() {
            h2 { "On trial: version " (text(trial, "/version")) }
            div.stats {
                @let share = text(trial, "/percentage");
                (stat("Users", &if share.is_empty() { "none (shadow)".to_owned() } else { format!("{share} %") }, None))
                (stat("Calls", &text(trial, "/calls"), None))
                (stat("Same answer", &text(trial, "/same"), None))
                (stat("Other answer", &text(trial, "/different"), None))
                (stat("Failed", &text(trial, "/failed"), None))
            }
            @for difference in trial["differences"].as_array().into_iter().flatten() {
                pre tabindex="0" { (format!("{difference:#}")) }
            }
        }
        (of("Versions", &versions, VERSIONS))
        p.row {
            @for version in &versions {
                @let number = text(version, "/version");
                @if version["active"] != true {
                    a.action href={ (path) "/versions/" (number) "/activate" } { "Activate " (number) }
                    a.action href={ (path) "/versions/" (number) "/shadow" } { "Shadow " (number) }
                }
            }
        }
        (of("History", &rows("changes"), CHANGES))
    };
    Ok(Page::new(format!("Policy {kind} of {slug}"), SECTION, body))
}
