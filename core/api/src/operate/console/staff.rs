//! A partner's staff: who may sign in to the portal, and invitations.

use maud::html;

use super::action::{Action, Subject, Verb, outcome};
use super::form::{Input, Kind, Typed};
use super::layout::Page;
use super::list::{List, with_actions};
use super::partners::{PARTNER, SECTION};
use super::view::Cell;
use super::visit::{Refused, Visit, fill};
use crate::http::html::components::empty_state;

/// The call that lists and invites.
pub(super) const STAFF_CALL: &str = "/admin/v1/partners/{slug}/staff";

/// The staff of a partner.
pub(super) const STAFF: Subject = Subject {
    name: "staff of",
    section: SECTION,
    page: "/console/partners/{slug}/staff",
    read: "",
    facts: &[],
    actions: &[],
};

/// Mails somebody an invitation; it stands among the actions of the partner.
pub(super) const INVITE: Action = Action::new(
    "invite",
    "Invite to its staff",
    Verb::Post.call(STAFF_CALL),
    "A link is mailed to the address, by which its reader chooses a password for the portal within \
     three days. Earlier links to the same address are void then.",
)
.with(&[
    Input::new("email", "E-mail address").required(),
    Input::new("role", "Role")
        .kind(Kind::Choice(&[
            ("owner", "owner"),
            ("developer", "developer"),
            ("support", "support"),
        ]))
        .required(),
]);

/// One of its people.
pub(super) const MEMBER: Subject = Subject {
    name: "staff of",
    section: SECTION,
    page: "/console/partners/{slug}/staff/{id}",
    read: "",
    facts: &[],
    actions: &[Action::new(
        "remove",
        "Remove",
        Verb::Delete.call("/admin/v1/partners/{slug}/staff/{id}"),
        "Sessions and links of this person end at once, on every edge.",
    )
    .destructive()
    .counting("partner={}&staff={}", &[("Sessions that end", Cell::Count("/sessions"))])],
};

const COLUMNS: &[(&str, Cell)] = &[
    ("Address", Cell::Text("/email")),
    ("Role", Cell::Text("/role")),
    ("Joined", Cell::Text("/joined")),
    ("Second factor", Cell::Text("/secondFactor")),
    ("Invited", Cell::Time("/createdAt")),
];

/// The staff as a list.
pub(super) const LIST: List = List {
    title: "Staff of",
    section: SECTION,
    page: "/console/partners/{slug}/~/staff",
    call: STAFF_CALL,
    criteria: &[],
    columns: COLUMNS,
    empty: "Invite the first owner.",
};

/// The page of a partner's staff.
pub(super) async fn show(visit: &Visit<'_>, slug: &str, query: &Typed) -> Result<Page, Refused> {
    let ids = [slug.to_owned()];
    let (people, _) = visit.rows(&fill(STAFF_CALL, &ids)).await?;
    let body = html! {
        (outcome(query, MEMBER.actions))
        p.hint { "Every look at this page stands in the audit." }
        @if people.is_empty() { (empty_state("Nobody", "Invite the first owner.")) }
        (with_actions(visit, &MEMBER, &ids, "People who may sign in", COLUMNS, &people))
        @if !people.is_empty() { (LIST.export(&ids, query)) }
        p { a href=(PARTNER.path(&ids)) { "To the partner, and to invitations" } }
    };
    Ok(Page::new(format!("Staff of {slug}"), SECTION, body))
}
