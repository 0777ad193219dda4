//! `GET` and `POST /{region}/forgot-password`: the page on which a user asks for a link to set a new
//! password. The partner's name stands in the URL, because an address is unique for a partner only.

use http::{Method, StatusCode};
use maud::html;

use super::by_email::mail_reset_link;
use super::details::required_email;
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::{Body, Endpoint};
use crate::http::fields::Fields;
use crate::http::html::components::{Tone, toast};
use crate::http::html::{Page, dead_link};
use crate::http::language::{Language, Texts};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use rampart_types::EmailAddress;

const PATH: &str = "/{region}/forgot-password";

/// Shows the form.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ERRORS: &'static [Code] = &[];
    type Caller = Anyone;
    type Request = Link;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Link> {
        Ok(Link::read(input))
    }

    async fn call(core: &Core, _: Anyone, link: Link) -> Result<Reply> {
        Ok(match link.client(core) {
            Some(client) => link.form(core, StatusCode::OK, &client, None),
            None => link.unknown(core),
        })
    }
}

/// Mails the link.
pub struct Submit;

impl Endpoint for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const ERRORS: &'static [Code] = &[];
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (Link, Option<EmailAddress>);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Link, Option<EmailAddress>)> {
        let mut fields = Fields::of_query(std::str::from_utf8(&input.body).ok());
        Ok((Link::read(input), required_email(&mut fields, "email")))
    }

    /// The page is the same when nobody has the address.
    async fn call(
        core: &Core,
        _: Anyone,
        (link, email): (Link, Option<EmailAddress>),
    ) -> Result<Reply> {
        let Some(client) = link.client(core) else { return Ok(link.unknown(core)) };
        let Some(email) = email else {
            let hint = Some("forgot-missing");
            return Ok(link.form(core, StatusCode::BAD_REQUEST, &client, hint));
        };
        match mail_reset_link(core, &client, email).await {
            Ok(()) => Ok(link.sent(core, &client)),
            Err(error @ Error::Failed(_)) => Err(error),
            Err(_) => {
                let hint = Some("forgot-too-many");
                Ok(link.form(core, StatusCode::TOO_MANY_REQUESTS, &client, hint))
            }
        }
    }
}

/// The region and the partner that a URL names.
#[derive(Debug)]
pub struct Link {
    region: String,
    slug: String,
    request_id: String,
    texts: Texts,
}

impl Link {
    fn read(input: &Input) -> Self {
        let query = Fields::of_query(input.head.query.as_deref());
        let slug = query.value("client").and_then(|value| value.as_str()).unwrap_or_default();
        Self {
            region: input.param("region").to_owned(),
            slug: slug.to_owned(),
            request_id: input.head.request_id.clone(),
            texts: Language::of(input).texts(),
        }
    }

    fn client(&self, core: &Core) -> Option<Client> {
        let snapshot = core.snapshots.current();
        let served = snapshot.catalogue.regions.contains(&self.region);
        let tenant = snapshot.tenant_by_slug(&self.slug)?;
        served.then(|| Client::for_page(core, tenant.id, &self.request_id))?
    }

    fn form(
        &self,
        core: &Core,
        status: StatusCode,
        client: &Client,
        hint: Option<&'static str>,
    ) -> Reply {
        let texts = self.texts;
        let title = texts.get("forgot-title");
        let body = html! {
            p { (texts.with("forgot-intro", &[("shop", &client.tenant.name)])) }
            @if let Some(hint) = hint { (toast(Tone::Bad, &texts.get(hint))) }
            form method="post" {
                label {
                    (texts.get("email"))
                    input type="email" name="email" autocomplete="email" required;
                }
                button.main type="submit" { (texts.get("forgot-send")) }
            }
        };
        let tenant = &client.tenant;
        Page::new(texts, &core.settings.pages, &title)
            .branded(&tenant.name, &tenant.brand)
            .render(status, &body)
    }

    fn sent(&self, core: &Core, client: &Client) -> Reply {
        let (title, tenant) = (self.texts.get("forgot-sent-title"), &client.tenant);
        let body = html! { p { (self.texts.get("forgot-sent")) } };
        Page::new(self.texts, &core.settings.pages, &title)
            .branded(&tenant.name, &tenant.brand)
            .render(StatusCode::OK, &body)
    }

    fn unknown(&self, core: &Core) -> Reply {
        dead_link(self.texts, &core.settings.pages, "dead-link-shop")
    }
}
