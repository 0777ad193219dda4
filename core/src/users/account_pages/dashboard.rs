//! `GET` and `POST /{region}/dashboard/{session}`: a linked user signs in and sees the account.
//! Nothing is stored in the browser: the page is the response to the form.

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::invitation::{Invitation, Link};
use super::sign_in::{error_page, log_in, login_form};
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::{Body, Endpoint};
use crate::http::form::Form;
use crate::http::html::components::{Column, empty_state, money, table};
use crate::http::html::{Page, back_link};
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use crate::users::account::Account;
use crate::users::accounts;
use crate::users::identifier::linked_user;
use rampart_types::UserId;

const PATH: &str = "/{region}/dashboard/{session}";
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
            login_page(core, (StatusCode::OK, link.texts), (client, invitation), &html! {})
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
        let Some((client, invitation)) = link.open(core) else { return Ok(link.not_found(core)) };
        match sign_in(core, &client, &invitation, &form).await {
            Ok(user) => show(core, link.texts, (&client, &invitation), user).await,
            Err(error) => error_page(link.texts, error, |status, note| {
                login_page(core, (status, link.texts), (&client, &invitation), note)
            }),
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
    core: &Core,
    (status, texts): (StatusCode, Texts),
    (client, invitation): (&Client, &Invitation),
    note: &Markup,
) -> Reply {
    let title = texts.get("account-title");
    let body = html! {
        p { (texts.with("account-intro", &[("shop", &client.tenant.name)])) }
        (note)
        (login_form(texts))
        (back_link(texts, &invitation.return_url, &client.tenant.name))
    };
    let tenant = &client.tenant;
    let page = Page::new(texts, &core.settings.pages, &title).branded(&tenant.name, &tenant.brand);
    Page { return_url: Some(&invitation.return_url), ..page }.render(status, &body)
}

async fn show(
    core: &Core,
    texts: Texts,
    (client, invitation): (&Client, &Invitation),
    user: UserId,
) -> Result<Reply> {
    let mut conn = core.db.acquire().await?;
    let account =
        Account::load(&mut conn, core, client.id(), user).await?.ok_or(Code::UserNotFound)?;
    let accounts = accounts::list(&mut conn, core, client.id(), user).await?;
    let level = account.level.to_string();
    let verified = match account.statuses.is_verified() {
        true => texts.with("account-verified", &[("level", &level)]),
        false => texts.with("account-unverified", &[("level", &level)]),
    };
    let title = texts.get("account-title");
    let body = html! {
        dl {
            dt { (texts.get("email")) }
            dd { (account.personal.email.as_ref().map_or("", |email| email.as_str())) }
            dt { (texts.get("account-verification")) } dd { (verified) }
        }
        h2 { (texts.get("account-payment-accounts")) }
        ul {
            @for account in accounts.iter().filter(|account| !account.disabled) {
                li {
                    (account.label()) ", "
                    @if account.verified { (texts.get("account-ready")) }
                    @else { (texts.get("account-waits")) }
                }
            }
        }
        (orders(&mut conn, texts, client, user).await?)
        (back_link(texts, &invitation.return_url, &client.tenant.name))
    };
    let tenant = &client.tenant;
    let page = Page::new(texts, &core.settings.pages, &title).branded(&tenant.name, &tenant.brand);
    Ok(Page { return_url: Some(&invitation.return_url), ..page }.render(StatusCode::OK, &body))
}

/// The user's latest orders.
async fn orders(
    conn: &mut Connection,
    texts: Texts,
    client: &Client,
    user: UserId,
) -> Result<Markup> {
    let rows = sqlx::query!(
        r#"
        select order_id, status, crypto_amount, crypto_currency, fiat_amount, fiat_currency
        from buy_order where client_id = $1 and user_id = $2
        order by created_at desc, order_id desc limit $3
        "#,
        client.id().uuid(),
        user.uuid(),
        ORDERS_MAX,
    )
    .fetch_all(conn)
    .await?;
    let title = texts.get("account-orders");
    if rows.is_empty() {
        return Ok(empty_state(&title, &texts.get("account-no-orders")));
    }
    let amount = |value, code: &str| texts.amount(&client.catalogue.format_amount(value, code));
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            vec![
                html! { (row.order_id) },
                html! { (texts.get(status_message(&row.status))) },
                money(&amount(row.crypto_amount, &row.crypto_currency)),
                money(&amount(row.fiat_amount, &row.fiat_currency)),
            ]
        })
        .collect();
    let names = ["term-order", "account-status", "term-gets", "term-pays"].map(|id| texts.get(id));
    let columns = [
        Column::Text(&names[0]),
        Column::Text(&names[1]),
        Column::Amount(&names[2]),
        Column::Amount(&names[3]),
    ];
    Ok(table(&title, &columns, &rows))
}

fn status_message(status: &str) -> &'static str {
    match status {
        "pending" => "status-pending",
        "in progress" => "status-in-progress",
        "blocked" => "status-blocked",
        "completed" => "status-completed",
        "cancelled" => "status-cancelled",
        _ => "status-refunded",
    }
}
