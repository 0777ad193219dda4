//! `GET` and `POST /{region}/dashboard/{session}`: a linked user signs in and sees the account.
//! Nothing is stored in the browser: the page is the response to the form.

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::invitation::{Invitation, Link, not_found};
use super::sign_in::{error_page, log_in, login_form};
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::{Body, Endpoint};
use crate::http::form::Form;
use crate::http::html::render_page;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::users::account::Account;
use crate::users::accounts;
use crate::users::identifier::linked_user;
use rampart_types::UserId;

const PATH: &str = "/{region}/dashboard/{session}";
const TITLE: &str = "Your account";
/// Most orders shown, newest first.
const ORDERS_MAX: i64 = 10;

/// Shows the login form.
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
        Ok(link.page(core, |client, invitation| {
            login_page(StatusCode::OK, client, invitation, &html! {})
        }))
    }
}

/// Shows the account to its user.
pub struct Submit;

impl Endpoint for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const ERRORS: &'static [Code] = &[];
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (Link, Form);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Link, Form)> {
        Ok((Link::read(input), Form::read(&input.body)))
    }

    async fn call(core: &Core, _: Anyone, (link, form): (Link, Form)) -> Result<Reply> {
        let Some((client, invitation)) = link.open(core) else { return Ok(not_found()) };
        match sign_in(core, &client, &invitation, &form).await {
            Ok(user) => show(core, &client, &invitation, user).await,
            Err(error) => {
                error_page(error, |status, note| login_page(status, &client, &invitation, note))
            }
        }
    }
}

/// Signs the user in, and checks that the identifier is linked to it.
///
/// # Errors
/// ER005, ER703.
async fn sign_in(
    core: &Core,
    client: &Client,
    invitation: &Invitation,
    form: &Form,
) -> Result<UserId> {
    let user = log_in(core, client, form).await?;
    let mut conn = core.db.acquire().await?;
    let holder = linked_user(&mut conn, core, client.id(), &invitation.identifier).await?;
    if holder == Some(user) { Ok(user) } else { Err(Code::UserIdentifierMismatch.into()) }
}

fn login_page(
    status: StatusCode,
    client: &Client,
    invitation: &Invitation,
    note: &Markup,
) -> Reply {
    let body = html! {
        h1 { (TITLE) }
        p { "You are connected with " (client.tenant.name) ". Sign in to see your account." }
        (note)
        (login_form())
        (back_link(client, invitation))
    };
    render_page(status, TITLE, &body, Some(&invitation.return_url))
}

async fn show(
    core: &Core,
    client: &Client,
    invitation: &Invitation,
    user: UserId,
) -> Result<Reply> {
    let mut conn = core.db.acquire().await?;
    let account =
        Account::load(&mut conn, core, client.id(), user).await?.ok_or(Code::UserNotFound)?;
    let accounts = accounts::list(&mut conn, core, client.id(), user).await?;
    let orders = sqlx::query!(
        r#"
        select order_id, status, crypto_amount, crypto_currency, fiat_amount, fiat_currency
        from buy_order where client_id = $1 and user_id = $2
        order by created_at desc, order_id desc limit $3
        "#,
        client.id().uuid(),
        user.uuid(),
        ORDERS_MAX,
    )
    .fetch_all(&mut *conn)
    .await?;
    let catalogue = &client.catalogue;
    let verified = if account.statuses.is_verified() { "complete" } else { "not complete yet" };
    let body = html! {
        h1 { (TITLE) }
        dl {
            dt { "E-mail address" }
            dd { (account.personal.email.as_ref().map_or("", |email| email.as_str())) }
            dt { "Verification" } dd { (verified) " (level " (account.level) ")" }
        }
        h2 { "Payment accounts" }
        ul {
            @for account in accounts.iter().filter(|account| !account.disabled) {
                li {
                    (account.label())
                    @if account.verified { ", verified" } @else { ", not verified yet" }
                }
            }
        }
        h2 { "Latest purchases" }
        ul {
            @for order in orders {
                li {
                    (order.order_id) ": "
                    (catalogue.format_amount(order.crypto_amount, &order.crypto_currency)) " for "
                    (catalogue.format_amount(order.fiat_amount, &order.fiat_currency)) ", "
                    (order.status)
                }
            }
        }
        (back_link(client, invitation))
    };
    Ok(render_page(StatusCode::OK, TITLE, &body, Some(&invitation.return_url)))
}

fn back_link(client: &Client, invitation: &Invitation) -> Markup {
    html! {
        p {
            a.button href=(invitation.return_url) rel="noreferrer" {
                "Back to " (client.tenant.name)
            }
        }
    }
}
