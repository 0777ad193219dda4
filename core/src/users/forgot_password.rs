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
use crate::http::html::{dead_link, render_page};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use rampart_types::EmailAddress;

const PATH: &str = "/{region}/forgot-password";
const TITLE: &str = "Forgotten your password?";

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
            Some(client) => form(StatusCode::OK, &client, None),
            None => unknown(),
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
        let Some(client) = link.client(core) else { return Ok(unknown()) };
        let Some(email) = email else {
            let hint = "Enter the e-mail address of your account.";
            return Ok(form(StatusCode::BAD_REQUEST, &client, Some(hint)));
        };
        match mail_reset_link(core, &client, email).await {
            Ok(()) => Ok(sent()),
            Err(error @ Error::Failed(_)) => Err(error),
            Err(_) => {
                let hint = "Too many links were asked for. Try again in an hour.";
                Ok(form(StatusCode::TOO_MANY_REQUESTS, &client, Some(hint)))
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
}

impl Link {
    fn read(input: &Input) -> Self {
        let query = Fields::of_query(input.head.query.as_deref());
        let slug = query.value("client").and_then(|value| value.as_str()).unwrap_or_default();
        Self {
            region: input.param("region").to_owned(),
            slug: slug.to_owned(),
            request_id: input.head.request_id.clone(),
        }
    }

    fn client(&self, core: &Core) -> Option<Client> {
        let snapshot = core.snapshots.current();
        let served = snapshot.catalogue.regions.contains(&self.region);
        let tenant = snapshot.tenants.values().find(|tenant| *tenant.slug == *self.slug)?;
        served.then(|| Client::for_page(core, tenant.id, &self.request_id))?
    }
}

fn form(status: StatusCode, client: &Client, hint: Option<&str>) -> Reply {
    let body = html! {
        h1 { (TITLE) }
        p { "We mail you a link to set a new one for " (client.tenant.name) "." }
        @if let Some(hint) = hint { p.note role="alert" { (hint) } }
        form method="post" {
            label {
                "E-mail address"
                input type="email" name="email" autocomplete="email" required;
            }
            button.main type="submit" { "Mail me a link" }
        }
    };
    render_page(status, TITLE, &body, None)
}

fn sent() -> Reply {
    let body = html! {
        h1 { "Look into your mail" }
        p { "If there is an account with this address, a link is on its way. It works for an hour." }
    };
    render_page(StatusCode::OK, TITLE, &body, None)
}

fn unknown() -> Reply {
    dead_link("Please open it again from the shop that you came from.")
}
