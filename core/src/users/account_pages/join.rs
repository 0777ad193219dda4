//! `GET` and `POST /{region}/register/{session}`: an invited user signs in or registers, is linked to
//! the partner's identifier, and returns to the partner.

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::invitation::{InvitedPage, Link};
use super::passkey::SCRIPT;
use super::sign_in::{error_page, forms, sign_in_or_register};
use super::sign_in_outcome::{SignIn, SignInStep};
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::{Body, Endpoint};
use crate::http::form::Form;
use crate::http::html::{Page, PageScripts, back_link, redirect};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::Result;

const PATH: &str = "/{region}/register/{session}";

/// Shows the forms.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    type Caller = Anyone;
    type Request = Link;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Link> {
        Ok(Link::read(input))
    }

    async fn call(core: &Core, _: Anyone, link: Link) -> Result<Reply> {
        Ok(link.page(core, |page| show(page, StatusCode::OK, &html! {}, None)))
    }
}

/// Signs in or registers the user.
pub struct Submit;

impl Endpoint for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const IS_LOGIN: bool = true;
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (Link, Form);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Link, Form)> {
        Ok((Link::read(input), Form::read(&input.body)))
    }

    async fn call(core: &Core, _: Anyone, (link, form): (Link, Form)) -> Result<Reply> {
        let Some((client, invitation)) = link.open(core) else { return Ok(link.not_found(core)) };
        let page = InvitedPage { core, link: &link, client: &client, invitation: &invitation };
        let (texts, region) = (link.texts, Some(link.region()));
        let identifier = Some(&invitation.identifier);
        match sign_in_or_register(core, &client, texts, &form, identifier, region).await {
            Ok(SignIn::Done(_)) => Ok(redirect(&invitation.return_url)),
            Ok(SignIn::Incomplete(SignInStep { status, note, form: step })) => {
                let again = || forms(page.sign_in().after(Some(&form)), None);
                Ok(show(page, status, &note, Some(&step.unwrap_or_else(again))))
            }
            Err(error) => error_page(page.sign_in(), error, forms, &form, |status, note, form| {
                show(page, status, note, form)
            }),
        }
    }
}

fn show(page: InvitedPage<'_>, status: StatusCode, note: &Markup, form: Option<&Markup>) -> Reply {
    let InvitedPage { core, link, client, invitation } = page;
    let texts = link.texts;
    let (partner, brand) = (&client.tenant.name, &client.tenant.brand);
    let title = texts.get("join-title");
    let body = html! {
        p { (texts.with("join-intro", &[("shop", partner)])) }
        (note)
        @if let Some(form) = form { (form) } @else { (forms(page.sign_in(), None)) }
        (back_link(texts, &invitation.return_url, partner))
    };
    let page = Page::new(texts, &core.settings.pages, &title).branded(partner, brand);
    let scripts = Some(PageScripts::Own(SCRIPT));
    Page { return_url: Some(&invitation.return_url), scripts, ..page }.render(status, &body)
}
