//! The review queue: users and orders that wait for a person.

use http::{Method, StatusCode};
use maud::{Markup, html};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::action::{Action, Subject, Verb, outcome};
use super::form::{Input, Kind, Typed};
use super::layout::Page;
use super::list::{List, titled_table};
use super::users::{decided, dossier};
use super::view::{Cell, text};
use super::visit::{Refused, Visit, segment};

const SECTION: &str = "/console/reviews";
const PATH: &str = "/admin/v1/reviews/{subject}/{id}/claim";
const COLUMNS: &[(&str, Cell)] = &[
    ("Waiting since", Cell::Time("/waitingSince")),
    ("What", Cell::Text("/subject")),
    ("Id", Cell::LinkOfTwo("/console/reviews/", "/subject", "/id")),
    ("Partner", Cell::Text("/partner")),
    ("Why", Cell::Words("/reasons")),
    ("Claimed by", Cell::Text("/claimedBy")),
    ("Until", Cell::Time("/claimedUntil")),
];

const SCREENINGS: &[(&str, Cell)] = &[
    ("Screening", Cell::Link("/console/screenings/", "/id")),
    ("State", Cell::Badge("/state")),
    ("Made", Cell::Time("/createdAt")),
];

/// The queue.
pub(super) const LIST: List = List {
    title: "Review queue",
    section: SECTION,
    page: SECTION,
    call: "/admin/v1/reviews",
    criteria: &[
        Input::new("subject", "What").kind(Kind::Choice(&[("user", "users"), ("order", "orders")])),
        Input::new("partner", "Partner"),
    ],
    columns: COLUMNS,
    empty: "Nobody waits for a decision.",
};

/// One user or order of it.
pub(super) const REVIEW: Subject = Subject {
    name: "review",
    section: SECTION,
    page: "/console/reviews/{subject}/{id}",
    read: "",
    facts: &[],
    actions: &[
        Action::new(
            "claim",
            "Claim",
            Verb::Post.call(PATH),
            "Nobody else can claim it for half an hour; you can claim it again.",
        )
        .having(&[("/mayClaim", "yes")]),
        Action::new("release", "Give back", Verb::Delete.call(PATH), "Somebody else can claim it.")
            .having(&[("/mayRelease", "yes")]),
    ],
};

/// A screening that an operator decides about.
pub(super) const SCREENING: Subject = Subject {
    name: "screening",
    section: SECTION,
    page: "/console/screenings/{id}",
    read: "/admin/v1/screenings/{id}",
    facts: &[
        ("State", Cell::Badge("/state")),
        ("Partner", Cell::Text("/partner")),
        ("Order", Cell::Link("/console/orders/", "/orderId")),
        ("User", Cell::Link("/console/users/", "/userId")),
        ("Provider's reasons", Cell::Words("/reasons")),
        ("Made", Cell::Time("/createdAt")),
        ("Decided by", Cell::Text("/decidedBy")),
        ("Reason", Cell::Text("/decisionReason")),
    ],
    actions: &[Action::new(
        "decide",
        "Decide",
        Verb::Post.call("/admin/v1/screenings/{id}/decision"),
        "Clear lets the coins leave that wait for it alone, at once; block holds them.",
    )
    .with(&[
        Input::new("decision", "Decision")
            .kind(Kind::Choice(&[("clear", "clear"), ("block", "block")]))
            .required(),
        Input::REASON,
    ])],
};

/// The page of a user or an order in the queue: the claim, what is to be decided, and what is next.
pub(super) async fn show(
    visit: &Visit<'_>,
    subject: &str,
    id: &str,
    query: &Typed,
) -> Result<Page, Refused> {
    let ids = [subject.to_owned(), id.to_owned()];
    let query_of_this = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("subject", subject), ("id", id)])
        .finish();
    let this = visit.rows(&format!("/admin/v1/reviews?{query_of_this}")).await;
    let (this, _) = this.map_err(|refused| match refused.status {
        // The query has nothing but the path's segments: they name nothing that could be reviewed.
        StatusCode::UNPROCESSABLE_ENTITY => Refused::nothing(),
        _ => refused,
    })?;
    if this.is_empty() && subject == "order" {
        // It may have left the queue, or never have been.
        visit.get(&format!("/admin/v1/orders/{}", segment(id))).await?;
    }
    let user_call = "/admin/v1/users/{uuid}";
    let dossier = match subject == "user" && visit.may(&Method::GET, user_call) {
        true => Some(dossier_of(visit, id).await?),
        false => None,
    };
    let (queue, _) = visit.rows("/admin/v1/reviews").await?;
    let is_this = |row: &&Value| row["subject"] == subject && row["id"] == id;
    let me = visit.session.operator.actor();
    let is_free = |row: &&Value| row["claimedBy"].as_str().is_none_or(|by| by == me);
    let next = queue.iter().find(|row| !is_this(row) && is_free(row));
    let claim = json!({
        "mayClaim": this.iter().any(|row| is_free(&row)),
        "mayRelease": this.iter().any(|row| row["claimedBy"] == me),
    });
    let screenings = match visit.may(&Method::GET, "/admin/v1/screenings") {
        true => visit.rows(&screenings_of(subject, id)).await?.0,
        false => Vec::new(),
    };
    let body = html! {
        (outcome(query, REVIEW.actions))
        @if this.is_empty() { p { "It waits for nobody any more." } }
        (titled_table(visit, "Waiting", &this, COLUMNS))
        (REVIEW.actions(visit, &ids, &claim))
        @if let Some(dossier) = &dossier { (dossier) }
        (titled_table(visit, "Screenings", &screenings, SCREENINGS))
        p.row {
            a.button href={ "/console/" (subject) "s/" (segment(id)) } { "Look at it and decide" }
            @if let Some(next) = next { a href=(page_of(next)) { "Next in the queue" } }
        }
    };
    let has_images = dossier.is_some();
    Ok(Page { has_images, ..Page::new(format!("Review of {subject} {id}"), SECTION, body) })
}

/// The call that lists the screening of a user or an order.
fn screenings_of(subject: &str, id: &str) -> String {
    let criterion = if subject == "user" { "userId" } else { "orderId" };
    let query = form_urlencoded::Serializer::new(String::new()).append_pair(criterion, id).finish();
    format!("/admin/v1/screenings?{query}")
}

/// The data and the pictures of a user in the queue.
async fn dossier_of(visit: &Visit<'_>, uuid: &str) -> Result<Markup, Refused> {
    let user = visit.get(&format!("/admin/v1/users/{}", segment(uuid))).await?;
    let (accounts, _) = visit.rows(&format!("/admin/v1/users/{}/accounts", segment(uuid))).await?;
    let decided = decided(visit, &user).await?;
    Ok(html! { (dossier(visit, &user, &accounts, uuid)) (decided) })
}

fn page_of(review: &Value) -> String {
    format!("{SECTION}/{}/{}", text(review, "/subject"), segment(&text(review, "/id")))
}

/// Links to the pages of a queue's rows.
pub(super) fn links(rows: &[Value]) -> Markup {
    html! {
        p.row {
            @if let Some(oldest) = rows.iter().find(|row| row["claimedBy"].is_null()) {
                a.button href=(page_of(oldest)) { "Begin with the oldest" }
            }
        }
    }
}
