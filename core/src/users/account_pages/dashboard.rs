//! `GET` and `POST /{region}/dashboard/{session}`: a linked user signs in and sees the account.
//! Nothing is stored in the browser: the page is the response to the form.

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::invitation::{Invitation, Link};
use super::passkey::{self, SCRIPT};
use super::sign_in::{Asked, SignIn, error_page, login_form, sign_in};
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::{Body, Endpoint};
use crate::http::form::Form;
use crate::http::html::components::{Column, Tone, empty_state, money, table, toast};
use crate::http::html::{Page, PageScripts, back_link};
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::trading::orders::payment_link::payment_url;
use crate::users::account::Account;
use crate::users::accounts;
use crate::users::identifier::linked_user;
use crate::users::passkeys;
use rampart_types::{OrderId, UserId};

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
            let first = (&html! {}, None);
            login_page(core, (StatusCode::OK, link.texts), (client, invitation), first)
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
        let (texts, of) = (link.texts, (&client, &invitation));
        match enter(core, texts, of, &form).await {
            Ok(Entry::Granted(grant)) => show(core, texts, of, grant).await,
            Ok(Entry::Asked(Asked { status, note, form })) => {
                Ok(login_page(core, (status, texts), of, (&note, form.as_ref())))
            }
            Err(error) => error_page(texts, error, |status, note| {
                login_page(core, (status, texts), of, (note, None))
            }),
        }
    }
}

/// What a form opens.
enum Entry {
    Granted(Grant),
    Asked(Asked),
}

/// The account of a user who has signed in.
struct Grant {
    user: UserId,
    /// Good for one change of the passkeys.
    challenge: String,
    /// What the form's change has come to.
    note: Markup,
}

/// Signs the user in and checks that the identifier is linked to it, or makes a change that a user who
/// has just signed in may make.
///
/// # Errors
/// ER005, ER703.
async fn enter(
    core: &Core,
    texts: Texts,
    (client, invitation): (&Client, &Invitation),
    form: &Form,
) -> Result<Entry> {
    let action = form.get("action");
    if matches!(action, "passkey-add" | "passkey-remove") {
        let challenge = form.get("challenge");
        let renewed = passkeys::renew_account_challenge(core, client.id(), challenge).await?;
        let Some((user, challenge)) = renewed else {
            let note = toast(Tone::Bad, &texts.get("checkout-signed-out"));
            let status = StatusCode::BAD_REQUEST;
            return Ok(Entry::Asked(Asked { status, note, form: None }));
        };
        check_linked(core, client, invitation, user).await?;
        let note = match action {
            "passkey-add" => passkey::add(core, client, user, (texts, form)).await?,
            _ => passkey::remove(core, client, user, (texts, form)).await?,
        };
        return Ok(Entry::Granted(Grant { user, challenge, note }));
    }
    let user = match sign_in(core, client, (texts, form)).await? {
        SignIn::Done(user) => user,
        SignIn::Asked(asked) => return Ok(Entry::Asked(asked)),
    };
    check_linked(core, client, invitation, user).await?;
    let mut conn = core.db.acquire().await?;
    let challenge = passkeys::account_challenge(&mut conn, core, client.id(), user).await?;
    Ok(Entry::Granted(Grant { user, challenge, note: html! {} }))
}

/// # Errors
/// ER703.
async fn check_linked(
    core: &Core,
    client: &Client,
    invitation: &Invitation,
    user: UserId,
) -> Result<()> {
    let mut conn = core.db.acquire().await?;
    let holder = linked_user(&mut conn, core, client.id(), &invitation.identifier).await?;
    if holder == Some(user) { Ok(()) } else { Err(Code::UserIdentifierMismatch.into()) }
}

fn login_page(
    core: &Core,
    (status, texts): (StatusCode, Texts),
    (client, invitation): (&Client, &Invitation),
    (note, form): (&Markup, Option<&Markup>),
) -> Reply {
    let title = texts.get("account-title");
    let body = html! {
        p { (texts.with("account-intro", &[("shop", &client.tenant.name)])) }
        (note)
        @if let Some(form) = form { (form) } @else { (login_form(texts)) }
        (back_link(texts, &invitation.return_url, &client.tenant.name))
    };
    let tenant = &client.tenant;
    let page = Page::new(texts, &core.settings.pages, &title).branded(&tenant.name, &tenant.brand);
    let scripts = Some(PageScripts::Own(SCRIPT));
    Page { return_url: Some(&invitation.return_url), scripts, ..page }.render(status, &body)
}

async fn show(
    core: &Core,
    texts: Texts,
    (client, invitation): (&Client, &Invitation),
    Grant { user, challenge, note }: Grant,
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
    let passkeys =
        passkey::section(&mut conn, core, (client, &account), (texts, &challenge)).await?;
    let body = html! {
        (note)
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
        (orders(&mut conn, core, texts, (client, user)).await?)
        (passkeys)
        (back_link(texts, &invitation.return_url, &client.tenant.name))
    };
    let tenant = &client.tenant;
    let page = Page::new(texts, &core.settings.pages, &title).branded(&tenant.name, &tenant.brand);
    let scripts = Some(PageScripts::Own(SCRIPT));
    let page = Page { return_url: Some(&invitation.return_url), scripts, ..page };
    Ok(page.render(StatusCode::OK, &body))
}

/// The user's latest orders.
async fn orders(
    conn: &mut Connection,
    core: &Core,
    texts: Texts,
    (client, user): (&Client, UserId),
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
    let mut lines = Vec::with_capacity(rows.len());
    for row in &rows {
        let order = OrderId::new(row.order_id).ok_or_else(|| Error::invariant("show an order"))?;
        // Its page has the receipt.
        let page = payment_url(core, client.id(), order)?;
        lines.push(vec![
            html! { a href=(page) { (order) } },
            html! { (texts.get(status_message(&row.status))) },
            money(&amount(row.crypto_amount, &row.crypto_currency)),
            money(&amount(row.fiat_amount, &row.fiat_currency)),
        ]);
    }
    let names = ["term-order", "account-status", "term-gets", "term-pays"].map(|id| texts.get(id));
    let columns = [
        Column::Text(&names[0]),
        Column::Text(&names[1]),
        Column::Amount(&names[2]),
        Column::Amount(&names[3]),
    ];
    Ok(table(&title, &columns, &lines))
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
