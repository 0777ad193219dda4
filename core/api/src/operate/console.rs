//! The operators' console at `/console`: pages over the operators' API. A page reads what calls show, and
//! a form makes one call, with the roles of the operator; nothing here reads or writes by itself.
//!
//! - `visit` makes the calls, `submission` those of forms, once; `view` shows members of their
//!   answers
//! - `list`, `form` and `action` are what pages are made of
//! - the others are the pages: their columns, their facts, their actions

mod action;
mod approvals;
mod audit;
mod call;
mod connectors;
mod credentials;
mod decisions;
mod deliveries;
mod figures;
mod form;
mod layout;
mod list;
mod lists;
mod maintenance;
mod market;
mod operators;
mod orders;
mod overview;
mod partners;
mod payments;
mod pictures;
mod policies;
mod reconciliations;
mod reviews;
mod routes;
mod savings_plans;
mod sign_in;
mod signing;
mod staff;
mod submission;
mod target;
mod typed;
mod users;
mod view;
mod visit;

use std::sync::Arc;

use http::{Method, StatusCode};

use self::form::Typed;
use self::layout::{NAME, Page, ROOT, render};
pub(super) use self::layout::{render_error, render_failure};
use self::list::List;
use self::sign_in::{SIGN_IN, led_to, redirect};
use self::target::{Target, page};
use self::visit::{Refused, Visit};
use crate::Core;
use crate::auth::caller::Caller as _;
use crate::http::reply::Reply;
use crate::http::request::{Head, UnreadBody};
use crate::operate::admin::browser::check_origin;
use crate::operate::admin::login::alarm;
use crate::operate::admin::login::session::Session;
use crate::operate::{asked_page, cross_site};
use crate::platform::db::share_holder::run_for_operator;
use crate::platform::error::Result;

/// True if a path is one of the console's.
pub(super) fn has(path: &str) -> bool {
    path.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request of a page.
pub(super) async fn answer(core: &Arc<Core>, head: &Head, body: impl UnreadBody) -> Result<Reply> {
    if let Err(refusal) = check_origin(head) {
        return cross_site::lead_on(NAME, head).ok_or(refusal);
    }
    let is_post = head.method == Method::POST;
    if is_post && head.path == SIGN_IN {
        let typed = Typed::read(&body.read(false).await?);
        return sign_in::submit(core, head, &typed).await;
    }
    let Some(session) = Session::find(core, head).await? else {
        let (status, reason) = match (is_post, &*head.path) {
            (false, ROOT | SIGN_IN) => (StatusCode::OK, None),
            (false, _) => (StatusCode::UNAUTHORIZED, Some("Please sign in to see this page.")),
            (true, _) => (
                StatusCode::UNAUTHORIZED,
                Some(
                    "Your session has ended: nothing was done. Sign in, go back and send it again.",
                ),
            ),
        };
        // Other paths of the console are no pages.
        let asked = Target::of(&head.path).and_then(|_| asked_page::of(ROOT, head));
        return sign_in::show(core, head, status, reason, asked.as_deref());
    };
    if session.operator.is_break_glass() {
        alarm(core, head);
    }
    // As after a failed sign-in, and another one in another window.
    if head.path == SIGN_IN {
        return Ok(redirect(ROOT));
    }
    let visit = Visit { core, head, session: &session };
    let identity = session.operator.key_owner().into();
    run_for_operator(identity, Box::pin(answer_visit(&visit, body))).await
}

/// Answers a signed-in operator's request of a page.
async fn answer_visit(visit: &Visit<'_>, body: impl UnreadBody) -> Result<Reply> {
    let head = visit.head;
    let is_post = head.method == Method::POST;
    let body = body.read(true).await?;
    if is_post && head.path == reconciliations::UPLOAD {
        return Box::pin(reconciliations::submit(visit, &body)).await;
    }
    // The listener bounds it.
    let typed = match is_post {
        true => Typed::sent(&head.headers, &body),
        false => Typed::read(head.query.as_deref().unwrap_or_default().as_bytes()),
    };
    if is_post && head.path == "/console/sign-out" {
        return sign_out(visit, &typed).await;
    }
    // On the heap: unoptimised, the states of all pages would not fit on the stack together.
    Box::pin(respond(visit, typed, is_post)).await
}

async fn sign_out(visit: &Visit<'_>, typed: &Typed) -> Result<Reply> {
    if visit.session.nonce(typed.get("csrfToken")).is_none() {
        return Ok(redirect(ROOT));
    }
    Ok(led_to(ROOT, visit.session.end(visit.core).await?))
}

async fn respond(visit: &Visit<'_>, typed: Typed, is_post: bool) -> Result<Reply> {
    let Some(target) = Target::of(&visit.head.path) else {
        return render(visit, &Page::refused(&Refused::nothing()));
    };
    match target {
        Target::Action(subject, ids, name) if is_post => {
            action::submit(visit, subject, &ids, &name, typed).await
        }
        Target::Action(subject, ids, name) => {
            action::show(visit, subject, &ids, &name, &typed).await
        }
        Target::CarryOut(id) => approvals::carry_out(visit, &id, is_post.then_some(&typed)).await,
        Target::Users => users::search(visit, &typed, is_post).await,
        Target::Upload => reconciliations::show_form(visit),
        _ if is_post || visit.head.method != Method::GET => {
            let reason = "This page only shows something.".to_owned();
            let refused = Refused { status: StatusCode::METHOD_NOT_ALLOWED, reason };
            let mut reply = render(visit, &Page::refused(&refused))?;
            reply.set("allow", "GET, HEAD");
            Ok(reply)
        }
        Target::List(list, ref ids) => list_or_file(visit, &target, list, ids, &typed).await,
        Target::Approvals => list_or_file(visit, &target, &approvals::LIST, &[], &typed).await,
        target => shown(visit, &target, &typed).await,
    }
}

/// The page of a list, or the list as a file.
async fn list_or_file(
    visit: &Visit<'_>,
    target: &Target,
    list: &'static List,
    ids: &[String],
    typed: &Typed,
) -> Result<Reply> {
    match list.file(visit, ids, typed).await {
        Ok(Some(file)) => Ok(file),
        Ok(None) => shown(visit, target, typed).await,
        Err(refused) => render(visit, &Page::refused(&refused)),
    }
}

async fn shown(visit: &Visit<'_>, target: &Target, query: &Typed) -> Result<Reply> {
    let page = page(visit, target, query).await;
    render(visit, &page.unwrap_or_else(|refused| Page::refused(&refused)))
}
