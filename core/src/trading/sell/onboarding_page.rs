//! `GET` and `POST /sell/onboarding`: the page of an onboarding URL. The user signs in or
//! registers, is linked to the partner's identifier, adds a bank account, and returns to the
//! partner.
//!
//! The signature covers the whole query, byte for byte: an altered URL shows and does nothing. It
//! also identifies the partner, which no parameter names.

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::onboarding::PAGE;
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::{Body, Endpoint};
use crate::http::fields::Fields;
use crate::http::form::Form;
use crate::http::html::render_page;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use crate::trading::offers::signature;
use crate::users::account_pages::bank_account::{add, redeem, section};
use crate::users::account_pages::sign_in::{error_page, forms, sign_in_or_register};
use crate::users::accounts::Kind;
use crate::users::identifiers;
use rampart_types::{ReturnUrl, UserId, UserIdentifier};

const TITLE: &str = "Get ready to sell";

/// Shows the forms.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PAGE;
    const ERRORS: &'static [Code] = &[];
    type Caller = Anyone;
    type Request = SignedUrl;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<SignedUrl> {
        Ok(SignedUrl::read(input))
    }

    async fn call(core: &Core, _: Anyone, signed_url: SignedUrl) -> Result<Reply> {
        Ok(match VerifiedUrl::open(core, &signed_url) {
            Some(url) => url.sign_in_page(StatusCode::OK, &html! {}),
            None => not_genuine(),
        })
    }
}

/// Handles a submitted form.
pub struct Act;

impl Endpoint for Act {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PAGE;
    const ERRORS: &'static [Code] = &[];
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (SignedUrl, Form);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(SignedUrl, Form)> {
        Ok((SignedUrl::read(input), Form::read(&input.body)))
    }

    async fn call(core: &Core, _: Anyone, (signed_url, form): (SignedUrl, Form)) -> Result<Reply> {
        let Some(url) = VerifiedUrl::open(core, &signed_url) else { return Ok(not_genuine()) };
        if form.get("action") == "account" {
            return url.add_account(core, &form).await;
        }
        match sign_in_or_register(core, &url.client, &form, (url.identifier.as_ref(), None)).await {
            Ok(user) => {
                let mut conn = core.db.acquire().await?;
                url.accounts_page(&mut conn, core, user, &html! {}).await
            }
            Err(error) => error_page(error, |status, note| url.sign_in_page(status, note)),
        }
    }
}

/// The URL, before its verification.
#[derive(Debug)]
pub struct SignedUrl {
    query: String,
    request_id: String,
}

impl SignedUrl {
    fn read(input: &Input) -> Self {
        let query = input.head.query.clone().unwrap_or_default();
        Self { query, request_id: input.head.request_id.clone() }
    }
}

/// A verified URL.
#[derive(Debug)]
struct VerifiedUrl {
    client: Client,
    identifier: Option<UserIdentifier>,
    /// Offered payout methods.
    methods: Vec<Kind>,
    return_url: ReturnUrl,
}

impl VerifiedUrl {
    /// Verifies a URL; `None` unless a partner that is not suspended has signed all of it.
    fn open(core: &Core, signed_url: &SignedUrl) -> Option<Self> {
        let (signed, signature) = signed_url.query.rsplit_once("&signature=")?;
        let (snapshot, now) = (core.snapshots.current(), core.clock.now());
        let is_signer = |secrets| signature::check(secrets, now, signed, signature).is_ok();
        let mut tenants = snapshot.tenants.values();
        let tenant = tenants.find(|tenant| is_signer(&tenant.signing_secrets))?;
        let client = Client::for_page(core, tenant.id, &signed_url.request_id)?;
        let query = Fields::of_query(Some(signed));
        let text = |name| query.value(name).and_then(|value| value.as_str());
        let identifier = match text("identifier") {
            Some(sealed) => Some(identifiers::open(core, client.id(), sealed)?),
            None => None,
        };
        let named = text("payoutMethod").map(|methods| methods.split(',').collect::<Vec<_>>());
        let offered =
            |method: &Kind| named.as_ref().is_none_or(|named| named.contains(&method.as_str()));
        Some(Self {
            identifier,
            methods: Kind::ALL.into_iter().filter(offered).collect(),
            return_url: text("returnUrl")?.parse().ok()?,
            client,
        })
    }

    fn page(&self, status: StatusCode, body: &Markup) -> Reply {
        let tenant = &self.client.tenant;
        let body = html! {
            @if tenant.is_test() {
                p.note { "This is a test. No money is moved and no coins are taken." }
            }
            h1 { (TITLE) }
            (body)
            p { a.button href=(self.return_url) rel="noreferrer" { "Back to " (tenant.name) } }
        };
        render_page(status, TITLE, &body, Some(&self.return_url))
    }

    /// The page with the forms to sign in or register.
    fn sign_in_page(&self, status: StatusCode, note: &Markup) -> Reply {
        let body = html! {
            p {
                (self.client.tenant.name) " sends you here to get an account ready that your sales \
                are paid out to. Nothing is sold yet."
            }
            (note)
            (forms())
        };
        self.page(status, &body)
    }

    /// The page with the user's accounts.
    async fn accounts_page(
        &self,
        conn: &mut Connection,
        core: &Core,
        user: UserId,
        note: &Markup,
    ) -> Result<Reply> {
        let section = section(conn, core, (self.client.id(), user), &self.methods).await?;
        Ok(self.page(StatusCode::OK, &html! { (note) (section) }))
    }

    /// Adds the bank account that the form names to the user of its token.
    async fn add_account(&self, core: &Core, form: &Form) -> Result<Reply> {
        let mut tx = core.db.begin().await?;
        let user = redeem(&mut tx, form).await?;
        let user = user.filter(|(client, _)| *client == self.client.id()).map(|(_, user)| user);
        let offered = self.methods.contains(&Kind::BankTransfer);
        let Some(user) = user.filter(|_| offered) else {
            let note = html! { p.note role="alert" { "Please sign in again." } };
            return Ok(self.sign_in_page(StatusCode::BAD_REQUEST, &note));
        };
        let note = add(&mut tx, core, (&self.client, user), form).await?;
        let reply = self.accounts_page(&mut tx, core, user, &note).await?;
        tx.commit().await?;
        Ok(reply)
    }
}

/// The page for an invalid signature. It has no link back, which may be the forged part.
fn not_genuine() -> Reply {
    let body = html! {
        h1 { "This link is not genuine" }
        p { "Please open it again from the shop that you came from." }
    };
    render_page(StatusCode::NOT_FOUND, "This link is not genuine", &body, None)
}
