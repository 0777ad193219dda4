//! Pages of what was not done.

use http::StatusCode;
use http::header::RETRY_AFTER;
use maud::html;

use super::{FORM_ID, FORM_TOKEN, NAVIGATION, Visit};
use crate::http::html::components::{Tone, toast};
use crate::http::reply::Reply;
use crate::platform::error::Error;

impl Visit<'_> {
    /// A page that says why something was refused.
    pub(in crate::operate::portal) fn refusal(&self, status: StatusCode, reason: &str) -> Reply {
        let body = html! {
            (toast(Tone::Bad, reason))
            p { a href="/portal" { "To the overview" } }
        };
        let title = match status {
            StatusCode::NOT_FOUND => "Not found",
            status if status.is_server_error() => "This does not work at the moment",
            _ => "This was refused",
        };
        self.page_with_status(status, "", title, &body)
    }

    /// The page after a form that no page of this session has sent: with what was typed, and, if
    /// that and `action` say what would be done, with a button that does it. A file would have to be
    /// chosen once more. What a page of a neighbouring host has sent, with which browsers send the
    /// session's cookie, is neither shown nor sent on.
    pub(super) fn not_of_session(&self, action: Option<&str>) -> Reply {
        let (mut sent, path) = (self.form().members(), &self.request.head.path);
        // No page shows a password.
        sent.retain(|(name, _)| ![FORM_TOKEN, FORM_ID, "password"].contains(name));
        let site = self.request.head.header("sec-fetch-site");
        if site.is_some_and(|site| site != "same-origin") {
            sent.clear();
        }
        let has_file = self.form().has_file();
        let action = action.filter(|_| !sent.is_empty() && !has_file);
        let again = html! {
            @for (name, value) in &sent { input type="hidden" name=(name) value=(value); }
            button.main type="submit" { "Send it again" }
        };
        let (page, label) = page_of(path);
        let reason = "This form is of an earlier sign-in, or not of this page: nothing was done.";
        let body = html! {
            (toast(Tone::Bad, reason))
            @if let Some(action) = action { h2 { (action) } }
            @if !sent.is_empty() {
                dl { @for (name, value) in &sent { dt { (name) } dd { (value) } } }
            }
            @if action.is_some() {
                p { "What you typed is still here: check it and send it again." }
                (self.form_to(path, &again))
            } @else if has_file {
                p { "Open " a href=(page) { (label) } " again, and choose the file once more." }
            } @else {
                p { "Open " a href=(page) { (label) } " again, and do it there." }
            }
        };
        self.page_with_status(StatusCode::FORBIDDEN, "", "This was not done", &body)
    }

    /// The page of something that does not exist, or is another partner's.
    pub(in crate::operate::portal) fn not_found(&self) -> Reply {
        self.refusal(StatusCode::NOT_FOUND, "There is nothing here that you may see.")
    }

    /// The page of an error. The cause of a failure is logged.
    pub(super) fn error_page(&self, error: &Error) -> Reply {
        if let Error::Denied(denial) = error {
            let mut reply = self.refusal(denial.status(), denial.reason());
            denial.set_headers(&mut reply);
            return reply;
        }
        let request_id = &self.request.head.request_id;
        let plain = self.core.reply_to(error, request_id);
        let wait = plain.headers.get(RETRY_AFTER);
        let reason = match (error, wait.and_then(|seconds| seconds.to_str().ok())) {
            (Error::Refused(refusal), _) => {
                let texts =
                    refusal.codes().map(|code| format!("{} {}", code.message(), code.solution()));
                texts.collect::<Vec<_>>().join(" ")
            }
            (_, Some(seconds)) => format!("Please try again in {seconds} s. Request: {request_id}"),
            (_, None) => format!("Something went wrong on our side. Request: {request_id}"),
        };
        let mut reply = self.refusal(plain.status, &reason);
        if let Some(seconds) = wait {
            reply.headers.insert(RETRY_AFTER, seconds.clone());
        }
        reply
    }
}

/// The entry of the navigation that a path belongs to, and its label.
fn page_of(path: &str) -> (&'static str, &'static str) {
    let above = NAVIGATION.iter().filter(|(page, ..)| path.starts_with(*page));
    let nearest = above.max_by_key(|(page, ..)| page.len());
    nearest.map_or(("/portal", "Overview"), |(page, label, _)| (*page, *label))
}
