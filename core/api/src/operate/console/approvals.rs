//! Approvals: calls that need a second person.

use http::{Method, StatusCode};
use maud::{Markup, html};
use serde_json::Value;

use super::action::{Action, Subject, Verb, outcome};
use super::form::Typed;
use super::layout::{Page, render};
use super::list::List;
use super::submission::{Submission, is_done};
use super::view::{Cell, answered, facts, state, text};
use super::visit::{Refused, Visit, segment};
use crate::http::html::components::{Tone, empty_state, toast};
use crate::http::reply::Reply;
use crate::platform::error::Result;

const SECTION: &str = "/console/approvals";
/// Says how a call is carried out that brings what is not kept.
const NOT_WHOLE: &str = "This call brings a secret or the component of a policy, which is not \
                         kept: make the same call again where it was made first.";

pub(super) const APPROVAL: Subject = Subject {
    name: "approval",
    section: SECTION,
    page: "/console/approvals/{id}",
    read: "",
    facts: &[],
    actions: &[
        Action::new(
            "grant",
            "Agree",
            Verb::Post.call("/admin/v1/approvals/{id}/grant"),
            "The operator who made the call can carry it out, once, within a day of when it was \
             made.",
        ),
        Action::new(
            "refuse",
            "Refuse",
            Verb::Post.call("/admin/v1/approvals/{id}/refuse"),
            "The call is not carried out.",
        ),
        Action::new(
            "withdraw",
            "Withdraw",
            Verb::Post.call("/admin/v1/approvals/{id}/refuse"),
            "The call is not carried out.",
        ),
    ],
};

/// Approvals as a file.
pub(super) const LIST: List = List {
    title: "Approvals",
    section: SECTION,
    page: SECTION,
    call: "/admin/v1/approvals",
    criteria: &[],
    columns: &[
        ("Approval", Cell::Text("/id")),
        ("State", Cell::Badge("/state")),
        ("Method", Cell::Text("/method")),
        ("Path", Cell::Text("/path")),
        ("Body", Cell::Json("/body")),
        ("Asked for by", Cell::Text("/requestedBy")),
        ("Asked for", Cell::Time("/requestedAt")),
        ("Ends", Cell::Time("/expiresAt")),
        ("Decided by", Cell::Text("/decidedBy")),
        ("Decided", Cell::Time("/decidedAt")),
    ],
    empty: "Calls that need a second person stand here.",
};

const FACTS: &[(&str, Cell)] = &[
    ("Asked for by", Cell::Text("/requestedBy")),
    ("Asked for", Cell::Time("/requestedAt")),
    ("Ends", Cell::Time("/expiresAt")),
    ("Decided by", Cell::Text("/decidedBy")),
    ("Decided", Cell::Time("/decidedAt")),
];

/// The page of approvals: those that wait first, each with the whole call.
pub(super) async fn show(visit: &Visit<'_>, query: &Typed) -> Result<Page, Refused> {
    let after = match query.get("after") {
        "" => String::new(),
        id => format!("?after={}", segment(id)),
    };
    let (approvals, next) = visit.rows(&format!("/admin/v1/approvals{after}")).await?;
    let is_open =
        |approval: &&Value| matches!(approval["state"].as_str(), Some("pending" | "granted"));
    let (open, ended): (Vec<_>, Vec<_>) = approvals.iter().partition(is_open);
    let body = html! {
        (outcome(query, APPROVAL.actions))
        @if open.is_empty() && after.is_empty() {
            (empty_state("Nothing waits", LIST.empty))
        }
        @if !open.is_empty() { h2 { "Open" } }
        @for approval in open { (shown(visit, approval)) }
        @if !ended.is_empty() { h2 { "Ended" } }
        @for approval in ended { (shown(visit, approval)) }
        @if let Some(next) = next { p { a.button href={ (SECTION) "?" (next) } { "Next page" } } }
        @if !approvals.is_empty() { (LIST.export(&[], query)) }
    };
    Ok(Page::new("Approvals", SECTION, body))
}

fn shown(visit: &Visit<'_>, approval: &Value) -> Markup {
    let (id, is_own) = (text(approval, "/id"), is_own(approval));
    let may_decide = approval["mayDecide"] == true;
    let is_state = |name: &str| approval["state"] == name;
    let is_open = is_state("pending") || is_state("granted");
    html! {
        section.panel #(id) {
            h3 {
                code { (text(approval, "/method")) " " (text(approval, "/path")) } " "
                (state(&text(approval, "/state")))
            }
            @if !approval["body"].is_null() {
                pre tabindex="0" { (format!("{:#}", approval["body"])) }
            }
            (facts(visit, approval, FACTS))
            p.row {
                @if is_state("pending") && may_decide {
                    a.action href={ (SECTION) "/" (id) "/grant" } { "Agree" }
                }
                @if is_open && may_decide {
                    a.action href={ (SECTION) "/" (id) "/refuse" } { "Refuse" }
                }
                @if is_open && is_own {
                    a.action href={ (SECTION) "/" (id) "/withdraw" } { "Withdraw" }
                }
                @if is_state("granted") && is_own && is_whole(approval) {
                    a.action href={ (SECTION) "/" (id) "/carry-out" } { "Carry out" }
                }
            }
            @if is_state("granted") && is_own && !is_whole(approval) { p.hint { (NOT_WHOLE) } }
        }
    }
}

fn is_own(approval: &Value) -> bool {
    approval["own"] == true
}

/// False for a call of whose body a digest alone is kept: of a component, or of a key that is a
/// secret.
fn is_whole(approval: &Value) -> bool {
    ["sha256", "fingerprint"].iter().all(|digest| approval["body"].get(digest).is_none())
}

/// Shows the form that makes a granted call of this operator's own again, or makes it.
pub(super) async fn carry_out(visit: &Visit<'_>, id: &str, typed: Option<&Typed>) -> Result<Reply> {
    let submission = typed.map(|typed| Submission::of(visit, typed.get("csrfToken"), typed));
    let approval = match granted(visit, id).await {
        Ok(approval) => approval,
        Err(refused) => {
            // The same form may have carried it out.
            if refused.status == StatusCode::CONFLICT
                && let Some(Some(submission)) = &submission
                && let Some(reply) = submission.earlier().await?
                && is_done(&reply)
            {
                return carried_out(visit, &reply);
            }
            return render(visit, &Page::refused(&refused));
        }
    };
    let Some(submission) = submission else { return ask(visit, &approval, StatusCode::OK, None) };
    let Some(submission) = submission else {
        let reason = "This form is of an earlier sign-in, or not of this page: nothing was done.";
        return ask(visit, &approval, StatusCode::FORBIDDEN, Some(reason));
    };
    let method: Method = text(&approval, "/method").parse().unwrap_or_default();
    let (path, body) = (text(&approval, "/path"), Some(&approval["body"]));
    let call = visit.call(method, &path, body.filter(|body| !body.is_null()));
    let Some(reply) = submission.once(true, call).await? else {
        let reason = "This form was sent before, and counts once.";
        return ask(visit, &approval, StatusCode::CONFLICT, Some(reason));
    };
    if let Some(refused) = Refused::of(&reply) {
        return ask(visit, &approval, refused.status, Some(&refused.reason));
    }
    if reply.status == StatusCode::ACCEPTED {
        let reason = "The call says more than this page can repeat, so it waits anew: make it \
                      again where it was made first.";
        return ask(visit, &approval, StatusCode::CONFLICT, Some(reason));
    }
    carried_out(visit, &reply)
}

/// The page with the answer of a call.
fn carried_out(visit: &Visit<'_>, reply: &Reply) -> Result<Reply> {
    let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let body = html! {
        (toast(Tone::Good, "The call is carried out."))
        @if !answer.is_null() { (answered(&answer)) }
        p { a.button href=(SECTION) { "Go on" } }
    };
    render(visit, &Page::new("Carried out", SECTION, body))
}

fn ask(
    visit: &Visit<'_>,
    approval: &Value,
    status: StatusCode,
    above: Option<&str>,
) -> Result<Reply> {
    let csrf_token = visit.session.form_token(visit.core)?;
    let id = text(approval, "/id");
    let body = html! {
        @if let Some(above) = above { (toast(Tone::Bad, above)) }
        p { "The call is made as it was agreed to:" }
        p { code { (text(approval, "/method")) " " (text(approval, "/path")) } }
        @if !approval["body"].is_null() {
            pre tabindex="0" { (format!("{:#}", approval["body"])) }
        }
        (facts(visit, approval, FACTS))
        form method="post" action={ (SECTION) "/" (id) "/carry-out" } {
            input type="hidden" name="csrfToken" value=(csrf_token);
            div.row {
                button.main { "Carry out" }
                a href=(SECTION) { "Back without doing it" }
            }
        }
    };
    render(visit, &Page { status, ..Page::new("Carry out", SECTION, body) })
}

/// A granted approval of this operator's own, with its whole call.
///
/// # Errors
/// 404 when there is none, 409 for one that cannot be carried out here; the refusal of the call that
/// lists them.
async fn granted(visit: &Visit<'_>, id: &str) -> Result<Value, Refused> {
    let approval = visit.find("/admin/v1/approvals", |approval| approval["id"] == id).await?;
    let reason = match approval["state"].as_str() {
        Some("used") => "This call is carried out already.",
        Some("refused") => "This call was refused or withdrawn: it is not carried out.",
        Some("pending" | "granted") if !is_own(&approval) => {
            "The operator who asked for this call carries it out."
        }
        Some("pending") => "Another operator must agree to this call first.",
        Some("granted") if is_whole(&approval) => return Ok(approval),
        Some("granted") => NOT_WHOLE,
        _ => "This approval has ended: make the same call again where it was made first.",
    };
    Err(Refused { status: StatusCode::CONFLICT, reason: reason.to_owned() })
}
