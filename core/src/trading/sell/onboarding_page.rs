//! `GET` and `POST /sell/onboarding`: where an onboarding URL leads. The user signs in or registers,
//! is linked to the partner's identifier, states a bank account, and goes back.
//!
//! The whole query is what was signed, byte for byte: of a URL that is altered in any way, nothing
//! is shown and nothing is done. The signature also says whose URL it is, because no parameter does.

use http::{Method, StatusCode};
use maud::{Markup, html};
use sqlx::PgConnection;

use super::PAYOUT_METHODS;
use super::onboarding::PAGE;
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::{Body, Endpoint};
use crate::http::fields::Fields;
use crate::http::html::render_page;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::trading::offers::signature;
use crate::users::accounts::Kind;
use crate::users::identifiers;
use crate::users::portal::bank_account::{add, redeem, section};
use crate::users::portal::sign_in::{Form, error_page, forms, sign_in_or_register};
use rampart_types::{ReturnUrl, UserId, UserIdentifier};

const TITLE: &str = "Get ready to sell";

/// Shows the forms.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PAGE;
    const ERRORS: &'static [Code] = &[];
    type Caller = Anyone;
    type Request = Address;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Address> {
        Ok(Address::read(input))
    }

    async fn call(core: &Core, _: Anyone, address: Address) -> Result<Reply> {
        Ok(match Visit::open(core, &address) {
            Some(visit) => visit.ask(StatusCode::OK, &html! {}),
            None => not_genuine(),
        })
    }
}

/// Does what a form says.
pub struct Act;

impl Endpoint for Act {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PAGE;
    const ERRORS: &'static [Code] = &[];
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (Address, Form);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Address, Form)> {
        Ok((Address::read(input), Form::read(&input.body)))
    }

    async fn call(core: &Core, _: Anyone, (address, form): (Address, Form)) -> Result<Reply> {
        let Some(visit) = Visit::open(core, &address) else { return Ok(not_genuine()) };
        if form.get("action") == "account" {
            return visit.add_account(core, &form).await;
        }
        match sign_in_or_register(core, &visit.client, &form, (visit.identifier.as_ref(), None))
            .await
        {
            Ok(user) => {
                let mut conn = core.db.acquire().await?;
                visit.accounts(&mut conn, core, user, &html! {}).await
            }
            Err(error) => error_page(error, |status, note| visit.ask(status, note)),
        }
    }
}

/// The URL, not checked yet.
#[derive(Debug)]
pub struct Address {
    query: String,
    request_id: String,
}

impl Address {
    fn read(input: &Input) -> Self {
        let query = input.head.query.clone().unwrap_or_default();
        Self { query, request_id: input.head.request_id.clone() }
    }
}

/// A genuine URL.
#[derive(Debug)]
struct Visit {
    client: Client,
    identifier: Option<UserIdentifier>,
    /// What may be paid out to.
    methods: Vec<&'static str>,
    return_url: ReturnUrl,
}

impl Visit {
    /// What the URL says; `None` unless a partner that is not suspended has signed all of it.
    fn open(core: &Core, address: &Address) -> Option<Self> {
        let (signed, signature) = address.query.rsplit_once("&signature=")?;
        let (snapshot, now) = (core.snapshots.current(), core.clock.now());
        let is_signer = |secrets| signature::check(secrets, now, signed, signature).is_ok();
        let mut tenants = snapshot.tenants.values();
        let tenant = tenants.find(|tenant| is_signer(&tenant.signing_secrets))?;
        let client = Client::for_page(core, tenant.id, &address.request_id)?;
        let query = Fields::of_query(Some(signed));
        let text = |name| query.value(name).and_then(|value| value.as_str());
        let identifier = match text("identifier") {
            Some(sealed) => Some(identifiers::open(core, client.id(), sealed)?),
            None => None,
        };
        let named = text("payoutMethod").map(|methods| methods.split(',').collect::<Vec<_>>());
        let offered = |method: &&str| named.as_ref().is_none_or(|named| named.contains(method));
        Some(Self {
            identifier,
            methods: PAYOUT_METHODS.into_iter().filter(offered).collect(),
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

    /// Asks the user to sign in or to register.
    fn ask(&self, status: StatusCode, note: &Markup) -> Reply {
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

    /// Shows the user its accounts.
    async fn accounts(
        &self,
        conn: &mut PgConnection,
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
        let user = redeem(&mut tx, core, form).await?;
        let user = user.filter(|(client, _)| *client == self.client.id()).map(|(_, user)| user);
        let offered = self.methods.contains(&Kind::BankTransfer.as_str());
        let Some(user) = user.filter(|_| offered) else {
            let note = html! { p.note role="alert" { "Please sign in again." } };
            return Ok(self.ask(StatusCode::BAD_REQUEST, &note));
        };
        let note = add(&mut tx, core, (&self.client, user), form).await?;
        let reply = self.accounts(&mut tx, core, user, &note).await?;
        tx.commit().await?;
        Ok(reply)
    }
}

/// For a URL that nobody has signed as it is. It leads nowhere: its way back may be the forgery.
fn not_genuine() -> Reply {
    let body = html! {
        h1 { "This link is not genuine" }
        p { "Please open it again from the shop that you came from." }
    };
    render_page(StatusCode::NOT_FOUND, "This link is not genuine", &body, None)
}
