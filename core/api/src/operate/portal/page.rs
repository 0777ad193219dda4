//! The way of a request to a page of the portal: it has a session, its role may see the page, and a
//! form was sent by a page of that session's.

mod refusals;

use std::marker::PhantomData;

use http::{Method, StatusCode};
use maud::{Markup, html};
use serde_json::Value;
use url::form_urlencoded;
use uuid::Uuid;

use super::sign_in;
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::{Body, Endpoint};
use crate::http::cookie::{self, SameSite, is_tls};
use crate::http::form::Form;
use crate::http::html::components::{Tone, toast};
use crate::http::html::shell::Shell;
use crate::http::reply::Reply;
use crate::http::request::{Head, Input};
use crate::operate::{asked_page, cross_site};
use crate::partners::staff::StaffRole;
use crate::partners::staff::session::Session;
use crate::platform::audit::{self, Entry};
use crate::platform::db::{Connection, Transaction};
use crate::platform::error::{Denial, Result};

/// The first page, whose path every other one has before its own.
pub(super) const ROOT: &str = "/portal";
/// The page that a request without a session is led to.
pub(super) const SIGN_IN: &str = "/portal/sign-in";
/// The action that ends a session.
pub(super) const SIGN_OUT: &str = "/portal/sign-out";
/// Name of the portal, in titles and headers.
pub(super) const PORTAL: &str = "Partner portal";

const EVERYBODY: &[StaffRole] = &[StaffRole::Owner, StaffRole::Developer, StaffRole::Support];
/// Roles that have keys, webhooks and the sandbox.
pub(super) const DEVELOPERS: &[StaffRole] = &[StaffRole::Owner, StaffRole::Developer];
/// Roles that help users.
pub(super) const HELPERS: &[StaffRole] = &[StaffRole::Owner, StaffRole::Support];
/// The role that administers.
pub(super) const OWNERS: &[StaffRole] = &[StaffRole::Owner];

/// Heading of the errors of a form.
pub(super) const FORM_ERRORS: &str = "Please correct this";

/// The page that test clients alone have.
const SANDBOX: &str = "/portal/sandbox";

/// Pages of the navigation: path, label, and roles that see it.
const NAVIGATION: &[(&str, &str, &[StaffRole])] = &[
    (ROOT, "Overview", EVERYBODY),
    ("/portal/orders", "Orders", EVERYBODY),
    ("/portal/users", "Users", HELPERS),
    ("/portal/keys", "API keys", DEVELOPERS),
    ("/portal/webhooks", "Webhooks", DEVELOPERS),
    ("/portal/events", "Events", DEVELOPERS),
    ("/portal/policies", "Policies", EVERYBODY),
    (SANDBOX, "Sandbox", DEVELOPERS),
    ("/portal/branding", "Branding", OWNERS),
    ("/portal/team", "Team", OWNERS),
    ("/portal/account", "Your account", EVERYBODY),
];

/// A page of the portal, or an action that a form on one of them sends.
pub trait StaffPage: 'static {
    /// Method: `GET` of a page, `POST` of an action.
    const METHOD: Method;
    /// Path, with `{name}` for a segment that varies.
    const PATH: &'static str;
    /// Roles that may.
    const ROLES: &'static [StaffRole] = EVERYBODY;
    /// The form that an action takes.
    const BODY: Body = Body::Form;
    /// An action in words, if its fields and not its path say all of it: such a form can be sent
    /// again from a page that shows them.
    const ACTION: Option<&'static str> = None;

    /// Shows the page, or carries the action out.
    fn answer(visit: &Visit<'_>) -> impl Future<Output = Result<Reply>> + Send;
}

/// The endpoint of a page.
#[derive(Debug)]
pub struct Page<P>(PhantomData<P>);

/// A request of a page.
#[derive(Debug)]
pub struct PageRequest {
    head: Head,
    form: Form,
    params: Vec<(&'static str, String)>,
}

impl<P: StaffPage> Endpoint for Page<P> {
    const METHOD: Method = P::METHOD;
    const PATH: &'static str = P::PATH;
    const BODY: Body = P::BODY;
    type Caller = Anyone;
    type Request = PageRequest;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<PageRequest> {
        let form = Form::read_with_files(&input.head.headers, &input.body);
        Ok(PageRequest { head: input.head.clone(), form, params: input.params.clone() })
    }

    async fn call(core: &Core, _: Anyone, request: PageRequest) -> Result<Reply> {
        let cookie = request.head.cookie(session_cookie(core));
        let session = match cookie {
            Some(cookie) => Session::find(core, cookie, &request.head.request_id).await?,
            None => None,
        };
        let Some(session) = session else {
            if let Some(page) = cross_site::lead_on(PORTAL, &request.head) {
                return Ok(page);
            }
            let is_lost = P::METHOD != Method::GET && P::PATH != SIGN_OUT;
            if is_lost {
                return sign_in::ended(core, &request.head, request.form.has_file());
            }
            let page = asked_page::of(ROOT, &request.head);
            return Ok(Reply::see_other(&asked_page::link(SIGN_IN, page.as_deref())));
        };
        let (roles, form_id) = (P::ROLES, core.clock.uuid()?);
        let visit = Visit { core, session, roles, request, form_id };
        if !roles.contains(&visit.session.role) {
            return Ok(
                visit.refusal(StatusCode::FORBIDDEN, "Your role does not include this page.")
            );
        }
        let token = visit.form().get(FORM_TOKEN);
        if P::METHOD != Method::GET && !visit.session.is_own_form(token) {
            return Ok(visit.not_of_session(P::ACTION));
        }
        match Box::pin(P::answer(&visit)).await {
            Ok(reply) => Ok(reply),
            Err(error) => Ok(visit.error_page(&error)),
        }
    }
}

/// A request of a signed-in staff member.
pub struct Visit<'a> {
    pub(super) core: &'a Core,
    pub(super) session: Session,
    /// Roles that may.
    roles: &'static [StaffRole],
    request: PageRequest,
    /// Tells the forms of this page from those of every other one.
    pub(super) form_id: Uuid,
}

impl std::fmt::Debug for Visit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Visit(…)")
    }
}

impl Visit<'_> {
    /// The decoded path segment `{name}`.
    pub(super) fn param(&self, name: &str) -> &str {
        let params = &self.request.params;
        params.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// The decoded path segments that vary, with their names.
    pub(super) fn params(&self) -> &[(&'static str, String)] {
        &self.request.params
    }

    /// The form that was sent.
    pub(super) fn form(&self) -> &Form {
        &self.request.form
    }

    /// A parameter of the query; empty without it.
    pub(super) fn query(&self, name: &str) -> String {
        let query = self.request.head.query.as_deref().unwrap_or_default();
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(known, _)| known == name).map_or_else(String::new, |(_, v)| v.into_owned())
    }

    /// Begins the transaction of an action. Nobody ends the session, removes the member or changes its
    /// role until the transaction ends.
    ///
    /// # Errors
    /// 403 when that has happened since the session was found; when the database cannot be used.
    pub(super) async fn begin(&self) -> Result<Transaction<'static>> {
        let mut tx = self.core.db.begin().await?;
        let role = self.session.lock(&mut tx).await?;
        if role.is_none_or(|role| !self.roles.contains(&role)) {
            let reason = "You are signed out, or your role has changed: nothing was done.";
            return Err(Denial::new(StatusCode::FORBIDDEN, reason).into());
        }
        Ok(tx)
    }

    /// Renders a page in the portal's frame. `current` is the entry of the navigation that it belongs
    /// to.
    pub(super) fn page(&self, current: &str, title: &str, body: &Markup) -> Reply {
        self.page_with_status(StatusCode::OK, current, title, body)
    }

    /// Renders a page with another status, such as that of a form that is shown again.
    pub(super) fn page_with_status(
        &self,
        status: StatusCode,
        current: &str,
        title: &str,
        body: &Markup,
    ) -> Reply {
        let is_test = self.session.client.tenant.is_test();
        let seen = NAVIGATION.iter().filter(|(path, _, roles)| {
            roles.contains(&self.session.role) && (is_test || *path != SANDBOX)
        });
        let navigation: Vec<_> = seen.map(|(path, label, _)| (*path, *label)).collect();
        let leave = html! { button.small type="submit" { "Sign out" } };
        let account = html! {
            div.row {
                span.hint { (self.session.client.tenant.name) " · " (self.session.email.as_str()) }
                (self.form_to(SIGN_OUT, &leave))
            }
        };
        let shell = Shell { name: PORTAL, navigation: &navigation, current, account };
        let done = self.query(DONE);
        let tone = if NOTHING_DONE.contains(&&*done) { Tone::Warning } else { Tone::Good };
        let body = html! {
            @if let Some(sentence) = done_sentence(&done) { (toast(tone, sentence)) }
            (body)
        };
        shell.render(status, title, &body)
    }

    /// Records what this member has changed, in the audit that operators see. It names nobody.
    pub(super) async fn record(
        &self,
        conn: &mut Connection,
        action: &'static str,
        detail: Value,
    ) -> Result<()> {
        let actor = self.actor();
        let target = &self.session.client.tenant.slug;
        audit::record(conn, self.core, Entry { actor: &actor, action, target, detail }).await
    }

    /// This member as the author of changes, by an id that names nobody.
    pub(super) fn actor(&self) -> String {
        format!("staff:{}", self.session.staff)
    }

    /// Takes a change of the partner over into this edge's snapshot, which is of every partner.
    pub(super) async fn serve_committed(&self) {
        self.core.serve_committed().await;
    }
}

/// Name of the token in forms.
pub(super) const FORM_TOKEN: &str = "formToken";
/// Name of the id in forms by which one counts once.
pub(super) const FORM_ID: &str = "formId";
/// Parameter of a page that says what was done before.
const DONE: &str = "done";

/// Words of the parameter after which nothing is on its way.
const NOTHING_DONE: [&str; 2] = ["not-resent", "unheard"];

/// The sentence for a word of the parameter: no text of a URL is shown.
fn done_sentence(word: &str) -> Option<&'static str> {
    Some(match word {
        "revoked" => "The key is revoked.",
        "invited" => "The invitation is mailed.",
        "removed" => "It is removed.",
        "resent" => "It is on its way again.",
        "not-resent" => {
            "Nothing is sent: the endpoint has no delivery since then, or is switched off."
        }
        "unheard" => "Nothing is sent: no endpoint that is active listens to this event.",
        "saved" => "The branding is saved.",
        "simulated" => "It is simulated.",
        "examining" => "The upload is being examined: reload this page to see its result.",
        "staged" => "The version has passed its examination. An operator can activate it.",
        "tested" => "The test event is on its way.",
        "factor" => "The second factor is in use.",
        "no-factor" => "The second factor is removed.",
        _ => return None,
    })
}

/// Renders a page for somebody who is not signed in.
pub(super) fn open_page(status: StatusCode, title: &str, body: &Markup) -> Reply {
    let (navigation, account) = (&[], html! {});
    Shell { name: PORTAL, navigation, current: "", account }.render(status, title, body)
}

/// Leads to a page after an action, so that a reload repeats nothing.
pub(super) fn done(path: &str, word: &str) -> Reply {
    Reply::see_other(&done_path(path, word))
}

/// The path of a page that says what was done.
pub(super) fn done_path(path: &str, word: &str) -> String {
    format!("{path}?{DONE}={word}")
}

/// The name of the session's cookie. Over TLS browsers take this prefix from this very host alone.
pub(super) fn session_cookie(core: &Core) -> &'static str {
    if is_tls(core) { "__Host-rampart_staff" } else { "rampart_staff" }
}

/// The name of the cookie of a browser without a session, which its forms are bound to.
pub(super) fn visitor_cookie(core: &Core) -> &'static str {
    if is_tls(core) { "__Host-rampart_visitor" } else { "rampart_visitor" }
}

/// Sets a cookie that no script can read and no other site sends.
///
/// # Errors
/// Never for values in base64; the header's type says it could.
pub(super) fn set_cookie(
    core: &Core,
    reply: &mut Reply,
    name: &str,
    value: &str,
    seconds: i32,
) -> Result<()> {
    cookie::set(core, reply, name, value, seconds.into(), SameSite::Strict)
}
