//! Passwords of staff: `GET` and `POST /portal/password/{token}`, to which invitations and mails about
//! forgotten passwords lead, and `/portal/forgot-password`, which asks for such a mail.

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::page::{FORM_ERRORS, FORM_TOKEN, SIGN_IN, open_page};
use super::sign_in::{FORM_EXPIRED, Typed, bound_page, client_of, is_own_form};
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::{Body, Endpoint, FormUse};
use crate::http::form::Form;
use crate::http::html::components::{Field, Tone, error_summary, field, toast};
use crate::http::reply::Reply;
use crate::http::request::{Head, Input};
use crate::partners::staff::invitation::{self, PASSWORD_CHARS};
use crate::partners::staff::sign_in::{count_mail, count_unknown_mail};
use crate::platform::crypto::{Secret, sha256};
use crate::platform::error::{Error, Result};
use rampart_types::EmailAddress;

const PATH: &str = "/portal/password/{token}";
const FORGOT: &str = "/portal/forgot-password";
/// Query of the page after the form that asks for a link.
const SENT: &str = "sent=yes";

/// Shows the form of a mailed link.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    type Caller = Anyone;
    type Request = (Head, String);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Head, String)> {
        Ok((input.head.clone(), input.param("token").to_owned()))
    }

    async fn call(core: &Core, _: Anyone, (head, token): (Head, String)) -> Result<Reply> {
        match invitation::usable(core, &token).await? {
            Some(_) => form(core, &head, StatusCode::OK, None),
            None => Ok(dead()),
        }
    }
}

/// Sets the password, once per link.
pub struct Submit;

impl Endpoint for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const IS_LOGIN: bool = true;
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (Head, String, Form);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Head, String, Form)> {
        Ok((input.head.clone(), input.param("token").to_owned(), Form::read(&input.body)))
    }

    async fn call(
        core: &Core,
        _: Anyone,
        (head, token, sent): (Head, String, Form),
    ) -> Result<Reply> {
        // A password is hashed only for a valid link.
        if invitation::usable(core, &token).await?.is_none() {
            return Ok(dead());
        }
        if !is_own_form(core, &head, &sent) {
            return form(core, &head, StatusCode::FORBIDDEN, Some(FORM_EXPIRED));
        }
        let password = sent.get("password");
        if !PASSWORD_CHARS.contains(&password.chars().count()) {
            let reason = "A password has 12 to 128 characters.";
            return form(core, &head, StatusCode::BAD_REQUEST, Some(reason));
        }
        match invitation::set_password(core, &token, Secret::new(password)).await? {
            Some((client, _)) => Ok(set(Client::for_page(core, client, &head.request_id).as_ref())),
            None => Ok(dead()),
        }
    }
}

fn form(core: &Core, head: &Head, status: StatusCode, reason: Option<&str>) -> Result<Reply> {
    let error = reason.filter(|_| status == StatusCode::BAD_REQUEST);
    let password = Field {
        kind: "password",
        hint: Some("12 to 128 characters."),
        error,
        autocomplete: "new-password",
        ..Field::text("password", "New password")
    };
    bound_page(core, head, status, "Choose a password", |token| {
        html! {
            (refused("password", reason, error.is_some()))
            form method="post" {
                input type="hidden" name=(FORM_TOKEN) value=(token);
                (field(&password))
                button.main type="submit" { "Set the password" }
            }
        }
    })
}

/// The reason of a refusal above the form, with a link to its field if it is about that.
fn refused(name: &str, reason: Option<&str>, is_of_field: bool) -> Markup {
    html! {
        @match reason {
            Some(reason) if is_of_field => (error_summary(FORM_ERRORS, &[(name, reason)])),
            Some(reason) => (toast(Tone::Bad, reason)),
            None => {}
        }
    }
}

fn set(client: Option<&Client>) -> Reply {
    let slug = client.map_or("", |client| &client.tenant.slug);
    let title = "Your password is set";
    let body = html! {
        @if !slug.is_empty() { p { "Your partner's slug is " b { (slug) } "." } }
        p { a.button href={ (SIGN_IN) "?partner=" (slug) } { "Sign in" } }
    };
    open_page(StatusCode::OK, title, &body)
}

fn dead() -> Reply {
    let body = html! {
        p { "If you have just set your password with it, " a href=(SIGN_IN) { "sign in" } "." }
        p { "Otherwise ask for a new one: who invited you can do so again." }
        p { "If you had a password before, " a href=(FORGOT) { "have another link mailed" } "." }
    };
    open_page(StatusCode::NOT_FOUND, "This link does not work any more", &body)
}

/// Shows the form that asks for a link.
pub struct ShowForgot;

impl Endpoint for ShowForgot {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = FORGOT;
    type Caller = Anyone;
    type Request = Head;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Head> {
        Ok(input.head.clone())
    }

    async fn call(core: &Core, _: Anyone, head: Head) -> Result<Reply> {
        match head.query.as_deref() {
            Some(SENT) => Ok(forgot_sent()),
            _ => forgot_form(core, &head, StatusCode::OK, &Typed::default(), None),
        }
    }
}

/// Mails a link. The page is the same when nobody has the address.
pub struct SubmitForgot;

impl Endpoint for SubmitForgot {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = FORGOT;
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (Head, Form);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Head, Form)> {
        Ok((input.head.clone(), Form::read(&input.body)))
    }

    async fn call(core: &Core, _: Anyone, (head, sent): (Head, Form)) -> Result<Reply> {
        let (partner, email) = (sent.get("partner").trim(), sent.get("email").trim());
        let typed = Typed { partner, email, page: None };
        if !is_own_form(core, &head, &sent) {
            return forgot_form(core, &head, StatusCode::FORBIDDEN, &typed, Some(FORM_EXPIRED));
        }
        let Ok(email) = typed.email.parse::<EmailAddress>() else {
            let reason = "Enter your e-mail address.";
            return forgot_form(core, &head, StatusCode::BAD_REQUEST, &typed, Some(reason));
        };
        match mail_link(core, &head, &sent, email).await {
            Ok(()) => {}
            Err(Error::Refused(refusal)) => {
                let (status, reason) = (
                    StatusCode::TOO_MANY_REQUESTS,
                    "Too many links were asked for. Try again in an hour.",
                );
                let mut reply = forgot_form(core, &head, status, &typed, Some(reason))?;
                refusal.set_headers(&mut reply);
                return Ok(reply);
            }
            Err(error) => return Err(error),
        }
        // A reload of the page there mails nothing.
        Ok(Reply::see_other(&format!("{FORGOT}?{SENT}")))
    }
}

fn forgot_sent() -> Reply {
    let body = html! {
        p { "If somebody with this address works for this partner, a link is on its way." }
        p { a href=(SIGN_IN) { "Sign in" } }
    };
    open_page(StatusCode::OK, "Look into your mail", &body)
}

/// Mails a link, unless there is no such partner: one per form, since a second link voids the first. It
/// is counted all the same.
async fn mail_link(core: &Core, head: &Head, sent: &Form, email: EmailAddress) -> Result<()> {
    core.attempts.count_staff(core, head.peer)?;
    let partner = sent.get("partner").trim();
    let Some(client) = client_of(core, partner, &head.request_id) else {
        let (mut tx, form) = (core.db.begin().await?, sent.get(FORM_TOKEN));
        count_unknown_mail(&mut tx, core, partner, &email, form).await?;
        tx.commit().await?;
        return Ok(());
    };
    // Each form has a token of its own.
    let key = hex::encode(sha256(&format!("{} {}", sent.get(FORM_TOKEN), email.as_str())));
    let form = FormUse { client: client.id(), route: FORGOT, key };
    let mut tx = core.db.begin().await?;
    if form.begin(core, &mut tx).await?.is_some() {
        return Ok(());
    }
    invitation::mail_reset_link(&mut tx, core, &client.tenant, email.clone()).await?;
    // After the lock of the staff. One mail too many is an error, which rolls all of it back.
    count_mail(&mut tx, core, &client, &email, "mail").await?;
    tx.commit().await?;
    Ok(())
}

fn forgot_form(
    core: &Core,
    head: &Head,
    status: StatusCode,
    typed: &Typed<'_>,
    reason: Option<&str>,
) -> Result<Reply> {
    let error = reason.filter(|_| status == StatusCode::BAD_REQUEST);
    let partner = Field {
        value: typed.partner,
        autocomplete: "organization",
        is_verbatim: true,
        ..Field::text("partner", "Partner")
    };
    let email = Field {
        kind: "email",
        value: typed.email,
        error,
        autocomplete: "username",
        ..Field::text("email", "E-mail address")
    };
    bound_page(core, head, status, "Forgotten your password?", |token| {
        html! {
            p { "We mail you a link to set a new one." }
            (refused("email", reason, error.is_some()))
            form method="post" {
                input type="hidden" name=(FORM_TOKEN) value=(token);
                (field(&partner)) (field(&email))
                button.main type="submit" { "Mail me a link" }
            }
        }
    })
}
