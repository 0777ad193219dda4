//! The page on which operators sign in, by the provider or with a token of their own, and out again.

use http::StatusCode;
use http::header::{HeaderValue, SET_COOKIE};
use maud::html;

use super::form::Typed;
use super::layout::{ROOT, render_signed_out};
use crate::Core;
use crate::http::html::components::{Field, Tone, field, toast};
use crate::http::reply::Reply;
use crate::http::request::Head;
use crate::operate::admin::login::form::{self as login, SignInForm};
use crate::operate::asked_page::{self, PAGE};
use crate::platform::error::{Error, Result};

/// The path that the form is sent to.
pub(super) const SIGN_IN: &str = "/console/sign-in";

/// The page; `reason` is why it is shown, if the reader could wonder, and `page` what it leads to.
///
/// # Errors
/// Without entropy.
pub(super) fn show(
    core: &Core,
    head: &Head,
    status: StatusCode,
    reason: Option<&str>,
    page: Option<&str>,
) -> Result<Reply> {
    let SignInForm { csrf_token, cookie } = login::show(core, head)?;
    let token = Field {
        kind: "password",
        hint: Some("The one that was shown when it was issued; it begins with rop_."),
        autocomplete: "current-password",
        ..Field::text("token", "Operator token")
    };
    let body = html! {
        @if let Some(reason) = reason { (toast(Tone::Bad, reason)) }
        @if core.oidc.is_some() {
            p {
                a.button href=(asked_page::link("/console/login", page)) {
                    "Sign in with your organisation"
                }
            }
            p { "Or with a token of your own:" }
        }
        form method="post" action=(SIGN_IN) {
            input type="hidden" name="csrfToken" value=(csrf_token);
            (asked_page::field(page))
            (field(&token))
            button.main { "Sign in" }
        }
    };
    let mut reply = render_signed_out(status, "Sign in", &body);
    reply.headers.append(SET_COOKIE, cookie);
    Ok(reply)
}

/// Begins a session, and leads to the page that was asked for.
///
/// # Errors
/// When it cannot be begun, for a reason that is not the operator's.
pub(super) async fn submit(core: &Core, head: &Head, typed: &Typed) -> Result<Reply> {
    let page = asked_page::below(ROOT, typed.get(PAGE));
    if !login::is_own(core, head, typed.get("csrfToken")) {
        let reason = "This form is no longer good, or not of this page. Please sign in here.";
        return show(core, head, StatusCode::FORBIDDEN, Some(reason), page);
    }
    match login::sign_in(core, head, typed.get("token").trim()).await {
        Ok(cookie) => Ok(led_to(page.unwrap_or(ROOT), cookie)),
        Err(Error::Denied(denial)) if denial.status().is_client_error() => {
            let reason = match denial.status() {
                StatusCode::TOO_MANY_REQUESTS => {
                    "Too many failed sign-ins from this address. Try again in a few minutes."
                }
                _ => "This token is wrong, has ended or was revoked.",
            };
            let mut reply = show(core, head, denial.status(), Some(reason), page)?;
            denial.set_headers(&mut reply);
            Ok(reply)
        }
        Err(error) => Err(error),
    }
}

/// Leads to a page with a cookie of the session set.
pub(super) fn led_to(path: &str, cookie: HeaderValue) -> Reply {
    let mut reply = redirect(path);
    reply.headers.append(SET_COOKIE, cookie);
    reply
}

/// Leads to a page of the console. 303 makes it a GET, so that a reload repeats nothing.
pub(super) fn redirect(path: &str) -> Reply {
    let mut reply = Reply::empty(StatusCode::SEE_OTHER);
    reply.set("location", path);
    reply.set("referrer-policy", "no-referrer");
    reply
}
