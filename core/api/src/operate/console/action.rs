//! Actions: each is a form on a page of its own that shows what it is about, and one call of the
//! operators' API. Nothing acts without such a form, which counts once.

use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;

pub(super) use super::call::{Call, Verb};
use super::figures::Figures;
use super::form::{FieldError, Input, Kind, Typed, body};
use super::layout::{Page, render};
use super::sign_in::redirect;
use super::signing::{Statement, Unsigned, leave_to_manifest, to_be_signed};
use super::submission::Submission;
use super::typed::CALL_KEY;
use super::view::{self, Cell, answered};
use super::visit::{Refused, Visit, fill, segment};
use crate::auth::roles::Role;
use crate::http::html::components::{Tone, error_summary, note, toast};
use crate::http::reply::Reply;
use crate::platform::error::Result;

/// An action of a subject.
#[derive(Clone, Copy, Debug)]
pub(super) struct Action {
    /// The last segment of its page's path.
    pub(super) name: &'static str,
    /// Its button.
    pub(super) label: &'static str,
    /// Its effect, and the people it reaches.
    pub(super) effect: &'static str,
    pub(super) call: Call,
    pub(super) inputs: &'static [Input],
    /// Members that the call always has.
    pub(super) fixed: &'static [(&'static str, &'static str)],
    pub(super) is_destructive: bool,
    /// Values of the subject's `status` or `state` in which it is offered; any, if there are none.
    pub(super) when: &'static [&'static str],
    /// Members of the subject with the values, shown as text, for which alone it is offered; an
    /// empty text is none.
    pub(super) members: &'static [(&'static str, &'static str)],
    /// A role that it takes besides one of its call's.
    pub(super) role: Option<Role>,
    /// `true` if the call's answer is shown, such as a secret that is shown only once.
    pub(super) shows_answer: bool,
    /// Numbers of what it touches.
    pub(super) figures: Option<Figures>,
    /// The statement that an operator signs, where such changes must be signed.
    pub(super) statement: Option<Statement>,
}

impl Action {
    /// A change without a form field.
    pub(super) const fn new(
        name: &'static str,
        label: &'static str,
        call: Call,
        effect: &'static str,
    ) -> Self {
        Self {
            name,
            label,
            effect,
            call,
            inputs: &[],
            fixed: &[],
            is_destructive: false,
            when: &[],
            members: &[],
            role: None,
            shows_answer: false,
            figures: None,
            statement: None,
        }
    }

    /// The same with fields.
    pub(super) const fn with(self, inputs: &'static [Input]) -> Self {
        Self { inputs, ..self }
    }

    /// The same with members that are always sent.
    pub(super) const fn fixed(self, fixed: &'static [(&'static str, &'static str)]) -> Self {
        Self { fixed, ..self }
    }

    /// The same, marked as one that cannot be taken back.
    pub(super) const fn destructive(self) -> Self {
        Self { is_destructive: true, ..self }
    }

    /// The same, whose page counts what it touches: the query of the call, and what is shown of it.
    pub(super) const fn counting(
        self,
        query: &'static str,
        rows: &'static [(&'static str, Cell)],
    ) -> Self {
        Self { figures: Some(Figures { query, rows }), ..self }
    }

    /// The same, which a statement of this action about the page's ids signs.
    pub(super) const fn signed(self, action: &'static str, ids: &'static [&'static str]) -> Self {
        Self { statement: Some(Statement { action, ids }), ..self }
    }

    /// The ids of its call: the page's, and those that were typed.
    fn ids(&self, page: &[String], typed: &Typed) -> Vec<String> {
        let named = self.inputs.iter().filter(|input| matches!(input.kind, Kind::Segment));
        let named = named.map(|input| typed.get(input.member).trim().to_owned());
        page.iter().cloned().chain(named).collect()
    }

    /// The same, offered only while the subject is in one of these states.
    pub(super) const fn when(self, when: &'static [&'static str]) -> Self {
        Self { when, ..self }
    }

    /// The same, offered only while these members of the subject have these values.
    pub(super) const fn having(self, members: &'static [(&'static str, &'static str)]) -> Self {
        Self { members, ..self }
    }

    /// The same, for this role alone.
    pub(super) const fn of_role(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }

    /// True if the operator's roles let them do it.
    fn is_permitted(&self, visit: &Visit<'_>) -> bool {
        let has_role = |role| visit.session.operator.check(&[role]).is_ok();
        visit.may(&self.call.verb.method(), self.call.path) && self.role.is_none_or(has_role)
    }

    fn is_offered(&self, visit: &Visit<'_>, subject: &Value) -> bool {
        let state = ["/status", "/state"].map(|pointer| view::text(subject, pointer));
        let fits = self.when.is_empty() || state.iter().any(|one| self.when.contains(&&**one));
        let mut members = self.members.iter();
        let has = members.all(|(pointer, value)| view::text(subject, pointer) == *value);
        fits && has && self.is_permitted(visit)
    }

    /// The same, whose answer is shown.
    pub(super) const fn answering(self) -> Self {
        Self { shows_answer: true, ..self }
    }
}

/// A kind of thing that has a page and actions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    /// A word for it.
    pub(super) name: &'static str,
    /// The entry in the navigation.
    pub(super) section: &'static str,
    /// The page's path, with `{ids}`.
    pub(super) page: &'static str,
    /// The call that reads it; empty if there is nothing to read.
    pub(super) read: &'static str,
    /// The numbers and names that an action's page shows.
    pub(super) facts: &'static [(&'static str, Cell)],
    pub(super) actions: &'static [Action],
}

impl Subject {
    /// The action of this name that the operator may do.
    fn action(&self, name: &str) -> Option<&'static Action> {
        self.actions.iter().find(|action| action.name == name)
    }

    /// True if the operator's roles let them do the action of this name.
    pub(super) fn may(&self, visit: &Visit<'_>, name: &str) -> bool {
        self.action(name).is_some_and(|action| action.is_permitted(visit))
    }

    /// The path of its page.
    pub(super) fn path(&self, ids: &[String]) -> String {
        fill(self.page, ids)
    }

    /// Links to the actions that the operator may do with a subject in this state.
    pub(super) fn actions(&self, visit: &Visit<'_>, ids: &[String], read: &Value) -> Markup {
        let links = self.links(visit, ids, read);
        html! {
            @if !links.0.is_empty() { nav.row aria-label="Actions" { (links) } }
        }
    }

    /// The same without a frame around them.
    pub(super) fn links(&self, visit: &Visit<'_>, ids: &[String], read: &Value) -> Markup {
        let path = self.path(ids);
        html! {
            @for action in self.actions.iter().filter(|action| action.is_offered(visit, read)) {
                a.action href={ (path) "/" (action.name) } { (action.label) }
            }
        }
    }

    async fn read(&self, visit: &Visit<'_>, ids: &[String]) -> Result<Value, Refused> {
        if self.read.is_empty() { Ok(Value::Null) } else { visit.get(&fill(self.read, ids)).await }
    }
}

/// The result of an action on the page that it led to.
pub(super) fn outcome(query: &Typed, actions: &[Action]) -> Markup {
    let done = actions.iter().find(|action| action.name == query.get("done"));
    let waits = query.get("waits");
    html! {
        @if let Some(action) = done { (toast(Tone::Good, &format!("Done: {}.", action.label))) }
        @if !waits.is_empty() {
            (note(Tone::Warning, &html! {
                p {
                    "Another operator must agree first. "
                    a href="/console/approvals" { "The call waits among the approvals" }
                    "; once it is granted, carry it out from there."
                }
            }))
        }
    }
}

/// A form as it was sent, or as it is shown at first.
struct Attempt<'a> {
    subject: &'a Subject,
    action: &'static Action,
    ids: &'a [String],
    typed: Typed,
}

/// Shows the form of an action.
///
/// # Errors
/// Without entropy.
pub(super) async fn show(
    visit: &Visit<'_>,
    subject: &Subject,
    ids: &[String],
    name: &str,
    query: &Typed,
) -> Result<Reply> {
    let (action, read) = match find(visit, subject, ids, name).await {
        Ok(found) => found,
        Err(refused) => return render(visit, &Page::refused(&refused)),
    };
    let mut typed = query.of_link();
    typed.fill(action.inputs, &read);
    let attempt = Attempt { subject, action, ids, typed };
    attempt.render(visit, &read, StatusCode::OK, None, &[]).await
}

async fn find(
    visit: &Visit<'_>,
    subject: &Subject,
    ids: &[String],
    name: &str,
) -> Result<(&'static Action, Value), Refused> {
    let action = subject.action(name).ok_or_else(Refused::nothing)?;
    if !action.is_permitted(visit) {
        let reason = format!("“{}” is not for your role.", action.label);
        return Err(Refused { status: StatusCode::FORBIDDEN, reason });
    }
    Ok((action, subject.read(visit, ids).await?))
}

/// Does an action.
pub(super) async fn submit(
    visit: &Visit<'_>,
    subject: &Subject,
    ids: &[String],
    name: &str,
    typed: Typed,
) -> Result<Reply> {
    let (action, read) = match find(visit, subject, ids, name).await {
        Ok(found) => found,
        Err(refused) => return render(visit, &Page::refused(&refused)),
    };
    let mut attempt = Attempt { subject, action, ids, typed };
    attempt.typed.keep_call_key();
    let token = attempt.typed.get("csrfToken");
    let Some(submission) = Submission::of(visit, token, &attempt.typed) else {
        let reason = "This form is of an earlier sign-in, or not of this page: nothing was done. \
                      What you typed is still here; check it and send it again.";
        return attempt.render(visit, &read, StatusCode::FORBIDDEN, Some(reason), &[]).await;
    };
    if let Some(reply) = submission.earlier().await? {
        return attempt.answer(visit, &read, &reply).await;
    }
    let mut body = match body(action.inputs, action.fixed, &attempt.typed, &read) {
        Ok(body) => body,
        Err(errors) => {
            attempt.typed.renew(action.inputs, &read);
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return attempt.render(visit, &read, status, None, &errors).await;
        }
    };
    leave_to_manifest(&mut body);
    let ids = action.ids(ids, &attempt.typed);
    let at = visit.core.clock.unix_seconds();
    if let Some(unsigned) = Unsigned::of(action, &ids, &read, &attempt.typed, &body, at) {
        let error = unsigned.show(&mut attempt.typed);
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return attempt.render(visit, &read, status, None, &[error]).await;
    }
    let Call { verb, path } = action.call;
    let (url, key) = (fill(path, &ids), attempt.typed.get(CALL_KEY));
    let call = visit.call_once(key, verb.method(), &url, &body);
    let Some(reply) = submission.once(action.shows_answer, call).await? else {
        let reason = "This form was sent before, and counts once. Look at the page of what it is \
                      about, and open the form anew to do it once more.";
        return attempt.render(visit, &read, StatusCode::CONFLICT, Some(reason), &[]).await;
    };
    attempt.answer(visit, &read, &reply).await
}

impl Attempt<'_> {
    /// A refusal's reason at the field that it names, or above the form.
    fn place(&self, reason: String) -> (Vec<FieldError>, Option<String>) {
        // The API names an element of a list as `documents[0].side`.
        let named = reason.split(':').next().unwrap_or_default().replace('[', ".").replace(']', "");
        let outer = named.split('.').next();
        let inputs = self.action.inputs;
        let exact = inputs.iter().find(|input| input.member == named);
        let input =
            exact.or_else(|| inputs.iter().find(|input| input.member.split('.').next() == outer));
        match input {
            Some(input) => (vec![(input.member, reason)], None),
            None => (Vec::new(), Some(reason)),
        }
    }

    /// The page after the call.
    async fn answer(&self, visit: &Visit<'_>, subject: &Value, reply: &Reply) -> Result<Reply> {
        if let Some(refused) = Refused::of(reply) {
            let (at_field, above) = self.place(refused.reason);
            return self.render(visit, subject, refused.status, above.as_deref(), &at_field).await;
        }
        let page = self.subject.path(self.ids);
        let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        if reply.status == StatusCode::ACCEPTED {
            let approval = segment(answer["approval"].as_str().unwrap_or_default());
            return Ok(redirect(&format!("{page}?waits={approval}")));
        }
        if !self.action.shows_answer {
            return Ok(redirect(&format!("{page}?done={}", self.action.name)));
        }
        let body = html! {
            (toast(Tone::Good, &format!("Done: {}.", self.action.label)))
            (answered(&answer))
            p { a.button href=(page) { "Go on" } }
        };
        render(visit, &Page::new(self.action.label, self.subject.section, body))
    }

    /// The page of the form, with a token of its own, what was typed, and what is wrong with it.
    async fn render(
        &self,
        visit: &Visit<'_>,
        subject: &Value,
        status: StatusCode,
        above: Option<&str>,
        errors: &[FieldError],
    ) -> Result<Reply> {
        let Self { action, typed, .. } = self;
        let csrf_token = visit.session.form_token(visit.core)?;
        let page = self.subject.path(self.ids);
        let listed: Vec<_> = errors.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let class = if action.is_destructive { "danger" } else { "main" };
        let has_file = action.inputs.iter().any(|input| matches!(input.kind, Kind::File));
        let encoding = has_file.then_some("multipart/form-data");
        let figures = match &action.figures {
            Some(figures) => figures.show(visit, self.ids).await,
            None => html! {},
        };
        let body = html! {
            @if let Some(above) = above { (toast(Tone::Bad, above)) }
            (error_summary("Please correct this", &listed))
            p { (action.effect) }
            (view::facts(visit, subject, self.subject.facts))
            (figures)
            form method="post" action={ (page) "/" (action.name) } enctype=[encoding] novalidate {
                input type="hidden" name="csrfToken" value=(csrf_token);
                (typed.hidden())
                @for input in action.inputs {
                    @let error = listed.iter().find(|(name, _)| *name == input.member);
                    (input.show(typed, error.map(|(_, text)| *text)))
                }
                (to_be_signed(typed))
                div.row {
                    button class=(class) { (action.label) }
                    a href=(page) { "Back without doing it" }
                }
            }
        };
        let title = match self.ids {
            [] => action.label.to_owned(),
            ids => format!("{}: {} {}", action.label, self.subject.name, ids.join(" ")),
        };
        let page = Page { status, ..Page::new(title, self.subject.section, body) };
        render(visit, &page)
    }
}
