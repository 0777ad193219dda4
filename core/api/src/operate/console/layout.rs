//! The frame of the console: the pages that the operator's roles lead to, and who is signed in.

use http::header::{ALLOW, RETRY_AFTER};
use http::{Method, StatusCode};
use maud::{Markup, html};

use super::visit::{Refused, Visit};
use crate::Core;
use crate::http::html::allow_images;
use crate::http::html::components::{Tone, toast};
use crate::http::html::shell::Shell;
use crate::http::plain_error;
use crate::http::reply::Reply;
use crate::platform::error::{Error, Result};

/// The first page, whose path every other one has before its own.
pub(super) const ROOT: &str = "/console";
/// Name of the console, in titles and headers.
pub(super) const NAME: &str = "Rampart console";

/// A page, before its frame.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: StatusCode,
    pub(super) title: String,
    /// Path of the entry in the navigation that it belongs to.
    pub(super) section: &'static str,
    pub(super) body: Markup,
    /// `true` if it shows pictures of this service.
    pub(super) has_images: bool,
}

impl Page {
    /// A page that shows what was asked for.
    pub(super) fn new(title: impl Into<String>, section: &'static str, body: Markup) -> Self {
        Self { status: StatusCode::OK, title: title.into(), section, body, has_images: false }
    }

    /// The page of a refusal.
    pub(super) fn refused(refused: &Refused) -> Self {
        let title = match refused.status {
            StatusCode::NOT_FOUND => "Not found",
            StatusCode::FORBIDDEN => "Not for your role",
            StatusCode::CONFLICT => "Not possible now",
            status if status.is_server_error() => "This does not work at the moment",
            _ => "Not understood",
        };
        let body = html! {
            (toast(Tone::Bad, &refused.reason))
            p { a href="/console" { "To the overview" } }
        };
        Self { status: refused.status, ..Self::new(title, "", body) }
    }
}

/// Entries of the navigation: path, label, and the call that the page shows.
const ENTRIES: &[(&str, &str, &str)] = &[
    ("/console", "Overview", "/admin/v1/overview"),
    ("/console/orders", "Orders", "/admin/v1/orders"),
    ("/console/reviews", "Review queue", "/admin/v1/reviews"),
    ("/console/payments", "Payments", "/admin/v1/payments"),
    ("/console/users", "Users", "/admin/v1/users"),
    ("/console/savings-plans", "Savings plans", "/admin/v1/dca-codes"),
    ("/console/partners", "Partners", "/admin/v1/partners"),
    ("/console/market", "Market", "/admin/v1/prices"),
    ("/console/ledger", "Ledger", "/admin/v1/ledger/balances"),
    ("/console/deliveries", "Deliveries", "/admin/v1/deliveries"),
    ("/console/connectors", "Connectors", "/admin/v1/connectors"),
    ("/console/approvals", "Approvals", "/admin/v1/approvals"),
    ("/console/operators", "Operators", "/admin/v1/operators"),
    ("/console/audit", "Audit", "/admin/v1/audit"),
];

/// The page inside the frame.
///
/// # Errors
/// Without entropy.
pub(super) fn render(visit: &Visit<'_>, page: &Page) -> Result<Reply> {
    let permitted = ENTRIES.iter().filter(|(_, _, call)| visit.may(&Method::GET, call));
    let navigation: Vec<_> = permitted.map(|(path, label, _)| (*path, *label)).collect();
    let operator = &visit.session.operator;
    let roles: Vec<_> = operator.roles().iter().map(|role| role.as_str()).collect();
    let csrf_token = visit.session.form_token(visit.core)?;
    let account = html! {
        div.row {
            span.hint title=(roles.join(", ")) { (operator.actor()) }
            form method="post" action="/console/sign-out" {
                input type="hidden" name="csrfToken" value=(csrf_token);
                button.small { "Sign out" }
            }
        }
    };
    let shell = Shell { name: NAME, navigation: &navigation, current: page.section, account };
    let mut reply = shell.render(page.status, &page.title, &page.body);
    if page.has_images {
        allow_images(&mut reply, "'self'");
    }
    Ok(reply)
}

/// A page for somebody who is not signed in.
pub(super) fn render_signed_out(status: StatusCode, title: &str, body: &Markup) -> Reply {
    let shell = Shell { name: NAME, navigation: &[], current: "", account: html! {} };
    shell.render(status, title, body)
}

/// The page of an error: of a refusal in words, of a failure with what support looks for in the log.
pub(in crate::operate) fn render_error(core: &Core, error: &Error, request_id: &str) -> Reply {
    let plain = plain_error::reply(core, error, request_id);
    match error {
        Error::Failed(_) => render_failure(&plain, request_id),
        Error::Denied(_) | Error::Refused(_) => {
            let reason = Refused::of(&plain).map_or_else(String::new, |refused| refused.reason);
            render_plain(&plain, &reason)
        }
    }
}

/// The page of a failure that is `plain` to a program.
pub(in crate::operate) fn render_failure(plain: &Reply, request_id: &str) -> Reply {
    let wait = plain.headers.get(RETRY_AFTER).and_then(|seconds| seconds.to_str().ok());
    let reason = match wait {
        Some(seconds) => format!("Please try again in {seconds} s. Request: {request_id}"),
        None => format!("Something went wrong on our side. Request: {request_id}"),
    };
    render_plain(plain, &reason)
}

/// The page of an answer to a program, with its status and headers.
fn render_plain(plain: &Reply, reason: &str) -> Reply {
    let title = match plain.status.is_server_error() {
        true => "This does not work at the moment",
        false => "This was refused",
    };
    let body = html! {
        (toast(Tone::Bad, reason))
        p { a href=(ROOT) { "To the overview" } }
    };
    let mut reply = render_signed_out(plain.status, title, &body);
    for name in [ALLOW, RETRY_AFTER] {
        if let Some(value) = plain.headers.get(&name) {
            reply.headers.insert(name, value.clone());
        }
    }
    reply
}
