//! `GET` and `POST /{region}/forgot-password`: the page on which a user asks for a link to set a new
//! password. The partner's name stands in the URL, because an address is unique for a partner only.

use std::net::IpAddr;

use http::{Method, StatusCode};
use maud::html;

use super::by_email::mail_reset_link;
use super::details::required_email;
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::{Body, Endpoint};
use crate::http::fields::Fields;
use crate::http::form::Form;
use crate::http::html::components::{Field, Tone, error_summary, field, toast};
use crate::http::html::{PAGE_SCRIPT, Page, PageScripts, dead_link};
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Error, Result};
use rampart_types::EmailAddress;

const PATH: &str = "/{region}/forgot-password";
/// Parameter of the page after the form.
const SENT: &str = "sent";

/// Shows the form.
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
        Ok(match link.client(core) {
            Some(client) if link.is_sent => link.sent(core, &client),
            Some(client) => link.form(core, StatusCode::OK, &client, "", None),
            None => link.unknown(core),
        })
    }
}

/// Mails the link.
pub struct Submit;

impl Endpoint for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (Link, Typed);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Link, Typed)> {
        let mut fields = Fields::of_query(std::str::from_utf8(&input.body).ok());
        let text = Form::read(&input.body).get("email").to_owned();
        Ok((Link::read(input), Typed { text, email: required_email(&mut fields, "email") }))
    }

    /// The page is the same when nobody has the address.
    async fn call(core: &Core, _: Anyone, (link, typed): (Link, Typed)) -> Result<Reply> {
        let Some(client) = link.client(core) else { return Ok(link.unknown(core)) };
        let Typed { text, email } = typed;
        let Some(email) = email else {
            let error = if text.is_empty() { "forgot-missing" } else { "error-email" };
            let refused = Some(Refused::Field(error));
            return Ok(link.form(core, StatusCode::BAD_REQUEST, &client, &text, refused));
        };
        let counted = core.user_attempts.count_forgotten(core, &client, link.peer).await;
        let mailed = match counted {
            Ok(()) => mail_reset_link(core, &client, email, None).await,
            Err(error) => Err(error),
        };
        match mailed {
            Ok(()) => Ok(link.to_sent(&client)),
            Err(Error::Refused(refusal)) => {
                let (status, reason) =
                    (StatusCode::TOO_MANY_REQUESTS, Refused::Whole("forgot-too-many"));
                let mut reply = link.form(core, status, &client, &text, Some(reason));
                refusal.set_headers(&mut reply);
                Ok(reply)
            }
            Err(error) => Err(error),
        }
    }
}

/// The address of a form.
pub struct Typed {
    text: String,
    /// `None` if the text is none.
    email: Option<EmailAddress>,
}

/// The message of a refusal, by its id.
#[derive(Clone, Copy)]
enum Refused {
    /// Of the address.
    Field(&'static str),
    /// Of the request.
    Whole(&'static str),
}

/// The region and the partner that a URL names.
#[derive(Debug)]
pub struct Link {
    region: String,
    slug: String,
    /// True on the way from a form that was sent.
    is_sent: bool,
    peer: IpAddr,
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
            is_sent: query.value(SENT).is_some(),
            peer: input.head.peer,
            request_id: input.head.request_id.clone(),
            texts: Texts::of(input),
        }
    }

    fn client(&self, core: &Core) -> Option<Client> {
        let snapshot = core.snapshots.current();
        let served = snapshot.catalogue.page_regions.contains(&self.region);
        let tenant = snapshot.tenant_by_slug(&self.slug)?;
        served.then(|| Client::for_page(core, tenant.id, &self.request_id))?
    }

    fn form(
        &self,
        core: &Core,
        status: StatusCode,
        client: &Client,
        typed: &str,
        refused: Option<Refused>,
    ) -> Reply {
        let texts = self.texts;
        let [title, label] = ["forgot-title", "email"].map(|id| texts.get(id));
        let (error, note) = match refused {
            Some(Refused::Field(id)) => (Some(texts.get(id)), None),
            Some(Refused::Whole(id)) => (None, Some(texts.get(id))),
            None => (None, None),
        };
        let error = error.as_deref();
        let errors: Vec<_> = error.iter().map(|text| ("email", *text)).collect();
        let email = Field {
            kind: "email",
            value: typed,
            error,
            autocomplete: "email",
            ..Field::text("email", &label)
        };
        let body = html! {
            p { (texts.with("forgot-intro", &[("shop", &client.tenant.name)])) }
            (error_summary(&texts.get("error-summary"), &errors))
            @if let Some(note) = note { (toast(Tone::Bad, &note)) }
            form method="post" {
                (field(&email))
                button.main type="submit" { (texts.get("forgot-send")) }
            }
        };
        let tenant = &client.tenant;
        let page =
            Page::new(texts, &core.settings.pages, &title).branded(&tenant.name, &tenant.brand);
        let scripts = Some(PageScripts::Own(PAGE_SCRIPT));
        Page { scripts, ..page }.render(status, &body)
    }

    /// Leads to the page after the form, so that a reload mails nothing.
    fn to_sent(&self, client: &Client) -> Reply {
        let (region, slug) = (&self.region, &client.tenant.slug);
        Reply::see_other(&format!("/{region}/forgot-password?client={slug}&{SENT}=yes"))
    }

    fn sent(&self, core: &Core, client: &Client) -> Reply {
        let (title, tenant) = (self.texts.get("forgot-sent-title"), &client.tenant);
        let body = html! { p { (self.texts.get("forgot-sent")) } };
        Page::new(self.texts, &core.settings.pages, &title)
            .branded(&tenant.name, &tenant.brand)
            .render(StatusCode::OK, &body)
    }

    fn unknown(&self, core: &Core) -> Reply {
        dead_link(self.texts, &core.settings.pages)
    }
}
