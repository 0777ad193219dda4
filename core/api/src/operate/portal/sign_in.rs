//! `GET` and `POST /portal/sign-in`, `POST /portal/sign-out`. An address is unique for a partner only,
//! so the form asks for the partner's slug too.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Method, StatusCode};
use maud::html;
use url::form_urlencoded;

use super::page::{
    FORM_TOKEN, PORTAL, ROOT, SIGN_IN, SIGN_OUT, StaffPage, Visit, open_page, session_cookie,
    set_cookie, visitor_cookie,
};
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::{Body, Endpoint};
use crate::http::form::Form;
use crate::http::html::components::{Field, Tone, field, toast};
use crate::http::reply::Reply;
use crate::http::request::{Head, Input};
use crate::operate::asked_page::{self, PAGE};
use crate::operate::cross_site;
use crate::partners::staff::session::{SESSION_SECONDS, visitor_form_token};
use crate::partners::staff::sign_in::{self, SignIn};
use crate::platform::crypto::{Secret, constant_time_eq};
use crate::platform::error::{Code, Error, Result};
use rampart_types::EmailAddress;

/// The refusal of a form that this browser did not get from here, or too long ago.
pub(super) const FORM_EXPIRED: &str = "This form was open for too long. Please send it again.";
/// Lifetime of the cookie that a form without a session is bound to, in seconds.
const VISITOR_SECONDS: i32 = 3_600;
/// Random bytes of that cookie.
const VISITOR_BYTES: usize = 32;
/// Random bytes of a form's token, which tell it from others.
const NONCE_BYTES: usize = 16;

/// Shows the form.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = SIGN_IN;
    type Caller = Anyone;
    type Request = (Head, String);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Head, String)> {
        let query = input.head.query.as_deref().unwrap_or_default();
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let partner = pairs.find(|(name, _)| name == "partner").map(|(_, value)| value);
        Ok((input.head.clone(), partner.unwrap_or_default().into_owned()))
    }

    async fn call(core: &Core, _: Anyone, (head, partner): (Head, String)) -> Result<Reply> {
        let page = asked_page::carried(ROOT, &head);
        let page = page.as_deref();
        let typed = Typed { partner: &partner, page, ..Typed::default() };
        form(core, &head, StatusCode::OK, &typed, None)
    }
}

/// Begins a session, and leads to the page that was asked for.
pub struct Submit;

impl Endpoint for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = SIGN_IN;
    const IS_LOGIN: bool = true;
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (Head, Form);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Head, Form)> {
        Ok((input.head.clone(), Form::read(&input.body)))
    }

    async fn call(core: &Core, _: Anyone, (head, sent): (Head, Form)) -> Result<Reply> {
        let typed = Typed::of(&sent);
        if !is_own_form(core, &head, &sent) {
            return form(core, &head, StatusCode::FORBIDDEN, &typed, Some(FORM_EXPIRED));
        }
        match begin(core, &head, &sent).await {
            Ok(SignIn::Done(cookie)) => {
                let mut reply = Reply::see_other(typed.page.unwrap_or(ROOT));
                set_cookie(core, &mut reply, session_cookie(core), &cookie, SESSION_SECONDS)?;
                Ok(reply)
            }
            Ok(SignIn::CodeNeeded) => {
                let reason =
                    "Enter the code that your authenticator app shows, and the password again.";
                form(core, &head, StatusCode::UNAUTHORIZED, &typed, Some(reason))
            }
            Ok(SignIn::Wrong) => {
                let reason = "Partner, address, password or code is wrong.";
                form(core, &head, StatusCode::UNAUTHORIZED, &typed, Some(reason))
            }
            Err(Error::Refused(refusal)) if refusal.has(Code::RateLimited) => {
                let reason = "Too many attempts. Wait a minute.";
                let status = StatusCode::TOO_MANY_REQUESTS;
                let mut reply = form(core, &head, status, &typed, Some(reason))?;
                refusal.set_headers(&mut reply);
                Ok(reply)
            }
            Err(error) => Err(error),
        }
    }
}

/// Proves the person of a form. For an unknown partner it takes as long.
async fn begin(core: &Core, head: &Head, sent: &Form) -> Result<SignIn> {
    core.attempts.count_staff(core, head.peer)?;
    let password = Secret::new(sent.get("password"));
    let (partner, email) = (sent.get("partner").trim(), sent.get("email").trim());
    let Ok(email) = email.parse::<EmailAddress>() else {
        core.passwords.verify(password, None).await?;
        return Ok(SignIn::Wrong);
    };
    let Some(client) = client_of(core, partner, &head.request_id) else {
        sign_in::count_unknown(core, partner, &email, head.peer).await?;
        core.passwords.verify(password, None).await?;
        return Ok(SignIn::Wrong);
    };
    sign_in::sign_in(core, &client, &email, head.peer, password, sent.get("code")).await
}

/// The partner of this slug, unless it is suspended. The request is of that partner from now on.
pub(super) fn client_of(core: &Core, slug: &str, request_id: &str) -> Option<Client> {
    let snapshot = core.snapshots.current();
    let tenant = snapshot.tenant_by_slug(slug)?;
    Client::for_page(core, tenant.id, request_id)
}

/// True if the form was sent by a page that this browser got from here.
pub(super) fn is_own_form(core: &Core, head: &Head, sent: &Form) -> bool {
    let cookie = head.cookie(visitor_cookie(core)).filter(|cookie| !cookie.is_empty());
    let token = sent.get(FORM_TOKEN);
    let nonce = token.split('.').next().unwrap_or_default();
    cookie.is_some_and(|cookie| {
        let own = visitor_form_token(cookie, nonce);
        constant_time_eq(own.as_bytes(), token.as_bytes())
    })
}

/// Renders a page whose form is bound to the browser by a cookie. The form gets a token of its own.
///
/// # Errors
/// Without entropy.
pub(super) fn bound_page(
    core: &Core,
    head: &Head,
    status: StatusCode,
    title: &str,
    body: impl FnOnce(&str) -> maud::Markup,
) -> Result<Reply> {
    if let Some(page) = cross_site::lead_on(PORTAL, head) {
        return Ok(page);
    }
    // A browser that has the cookie keeps it, so that the forms of two open pages both work.
    let known = head.cookie(visitor_cookie(core)).filter(|cookie| {
        URL_SAFE_NO_PAD.decode(cookie).is_ok_and(|secret| secret.len() == VISITOR_BYTES)
    });
    let cookie = match known {
        Some(known) => known.to_owned(),
        None => URL_SAFE_NO_PAD.encode(core.clock.random_bytes::<VISITOR_BYTES>()?),
    };
    let nonce = URL_SAFE_NO_PAD.encode(core.clock.random_bytes::<NONCE_BYTES>()?);
    let mut reply = open_page(status, title, &body(&visitor_form_token(&cookie, &nonce)));
    set_cookie(core, &mut reply, visitor_cookie(core), &cookie, VISITOR_SECONDS)?;
    Ok(reply)
}

/// The page in place of an action whose session has ended. No page can fill in a file that was chosen.
///
/// # Errors
/// Without entropy.
pub(super) fn ended(core: &Core, head: &Head, has_file: bool) -> Result<Reply> {
    let reason = match has_file {
        false => "Your session has ended: nothing was done. Sign in, go back and send it again.",
        true => {
            "Your session has ended: nothing was done, and the file is not kept. Sign in, open the \
             page again and choose the file once more."
        }
    };
    form(core, head, StatusCode::UNAUTHORIZED, &Typed::default(), Some(reason))
}

/// The fields of a form as they are shown again.
#[derive(Default)]
pub(super) struct Typed<'a> {
    pub(super) partner: &'a str,
    pub(super) email: &'a str,
    /// The page that the sign-in leads to, if it is not the first one.
    pub(super) page: Option<&'a str>,
}

impl<'a> Typed<'a> {
    fn of(sent: &'a Form) -> Self {
        let page = asked_page::below(ROOT, sent.get(PAGE));
        Self { partner: sent.get("partner"), email: sent.get("email"), page }
    }
}

fn form(
    core: &Core,
    head: &Head,
    status: StatusCode,
    typed: &Typed<'_>,
    reason: Option<&str>,
) -> Result<Reply> {
    let partner = Field {
        value: typed.partner,
        hint: Some("The slug in your invitation, such as acme."),
        autocomplete: "organization",
        is_verbatim: true,
        ..Field::text("partner", "Partner")
    };
    let email = Field {
        kind: "email",
        value: typed.email,
        autocomplete: "username",
        ..Field::text("email", "E-mail address")
    };
    let password = Field {
        kind: "password",
        autocomplete: "current-password",
        ..Field::text("password", "Password")
    };
    let code = Field {
        hint: Some("If you have set up an authenticator app."),
        required: false,
        ..Field::one_time_code("code", "Code")
    };
    bound_page(core, head, status, "Sign in", |token| {
        html! {
            @if let Some(reason) = reason { (toast(Tone::Bad, reason)) }
            form method="post" action=(SIGN_IN) {
                input type="hidden" name=(FORM_TOKEN) value=(token);
                (asked_page::field(typed.page))
                (field(&partner)) (field(&email)) (field(&password)) (field(&code))
                button.main type="submit" { "Sign in" }
            }
            p { a href="/portal/forgot-password" { "Forgotten your password?" } }
        }
    })
}

/// Ends the session.
pub struct SignOut;

impl StaffPage for SignOut {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = SIGN_OUT;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        visit.session.end(visit.core).await?;
        let mut reply = Reply::see_other(SIGN_IN);
        set_cookie(visit.core, &mut reply, session_cookie(visit.core), "", 0)?;
        Ok(reply)
    }
}
