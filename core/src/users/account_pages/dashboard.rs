//! `GET` and `POST /{region}/dashboard/{session}`: a linked user signs in and sees the account.
//! Nothing is stored in the browser: the page is the response to the form, and each of its forms
//! carries the challenge that the sign-in has given.

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::authenticator_app::Confirmed;
use super::invitation::{InvitedPage, Link};
use super::orders::Filter;
use super::sign_in::{error_page, login_form, sign_in};
use super::sign_in_outcome::{SignIn, SignInStep};
use super::view::{self, View};
use super::{
    authenticator_app, bank_account, erasure, languages, orders, passkey, personal, requirements,
    sessions,
};
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::{Body, Endpoint};
use crate::http::form::Form;
use crate::http::html::components::{Tone, toast};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use crate::users::account::{Account, RowLock};
use crate::users::accounts;
use crate::users::identifier::{self, LinkOutcome, linked_user};
use crate::users::one_time_token::{self, Purpose};
use crate::users::passkeys;
use rampart_types::UserId;

const PATH: &str = "/{region}/dashboard/{session}";
/// Actions of the account's page that only read, as often as the user likes.
const READS: [&str; 5] = ["show", "download", "erase-ask", "bank-add", "plans"];
/// Actions of the account's page that use its challenge up.
const CHANGES: [&str; 11] = [
    "passkey-add",
    "passkey-remove",
    "app-begin",
    "app-confirm",
    "app-remove",
    "language",
    "card",
    "session-end",
    "sessions-end",
    "visit-end",
    "erase",
];

/// Shows the login form.
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
        Ok(link.page(core, |page| login_page(page, StatusCode::OK, &html! {}, None)))
    }
}

/// Shows the account to its user.
pub struct Submit;

impl Endpoint for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
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
        match answer(page, &form).await {
            Ok(reply) => Ok(reply),
            Err(error) => {
                error_page(page.sign_in(), error, login_form, &form, |status, note, form| {
                    login_page(page, status, note, form)
                })
            }
        }
    }
}

/// Outcome of a form.
enum Entry {
    Granted(Grant),
    Incomplete(SignInStep),
}

/// The account's page of a user who has signed in.
struct Grant {
    user: UserId,
    /// Good for the next form of the page.
    challenge: String,
}

/// Signs the user in, or does what the page's form asks for.
///
/// # Errors
/// Those of [`sign_in`], ER700 for a user who is disabled or erased, ER703.
async fn answer(page: InvitedPage<'_>, form: &Form) -> Result<Reply> {
    let InvitedPage { core, link, client, .. } = page;
    let texts = link.texts;
    let Grant { user, challenge } = match enter(page, form).await? {
        Entry::Granted(grant) => grant,
        Entry::Incomplete(SignInStep { status, note, form: step }) => {
            let again = || login_form(page.sign_in().after(Some(form)), None);
            return Ok(login_page(page, status, &note, Some(&step.unwrap_or_else(again))));
        }
    };
    let (key, action) = (client.key_of(user), form.get("action"));
    let signed_out = match action {
        "sessions-end" => {
            sessions::end_all(core, key).await?;
            Some("sessions-ended")
        }
        "visit-end" => {
            sessions::end_visit(core, key).await?;
            Some("session-ended")
        }
        _ => None,
    };
    if let Some(said) = signed_out {
        let note = toast(Tone::Good, &texts.get(said));
        return Ok(login_page(page, StatusCode::OK, &note, None));
    }
    let (note, errors) = change(page, user, &challenge, form).await?;
    let mut conn = core.db.acquire().await?;
    let account = Account::load(&mut conn, core, key).await?;
    drop(conn);
    let account = account.filter(|one| one.deleted_at.is_none() && one.disabled_at.is_none());
    let account = &account.ok_or(Code::UserCredentialMissing)?;
    let view = View { invited: page, account, challenge: &challenge };
    let typed = TypedForm { form, errors: &errors };
    match action {
        "download" => personal::download(&view).await,
        "bank-add" => lead_to_secured_page(&view, "verify-bank-account").await,
        "plans" => lead_to_secured_page(&view, "dca").await,
        "erase-ask" => erasure::ask(&view).await,
        "erase" => erasure::submit(&view, form).await,
        "app-begin" => match authenticator_app::begin(&view).await? {
            Some(reply) => Ok(reply),
            None => show(&view, &Filter::default(), &html! {}, typed).await,
        },
        "app-confirm" => {
            let (tone, said) = match authenticator_app::confirm(&view, form).await? {
                Confirmed::Again(reply) => return Ok(*reply),
                Confirmed::InUse => (Tone::Good, "app-added"),
                Confirmed::Nothing => (Tone::Bad, "app-code-wrong"),
            };
            let note = toast(tone, &view.texts().get(said));
            show(&view, &Filter::default(), &note, typed).await
        }
        _ => show(&view, &Filter::read(form), &note, typed).await,
    }
}

/// Signs the user in, or takes the challenge of the page's form. The identifier must be linked to the
/// user; a sign-in links one that nobody has.
///
/// # Errors
/// Those of [`sign_in`], ER703.
async fn enter(page: InvitedPage<'_>, form: &Form) -> Result<Entry> {
    let InvitedPage { core, link, client, .. } = page;
    let texts = link.texts;
    let action = form.get("action");
    // The form for a passkey has a challenge of its own.
    let [visit, challenge] = ["visit", "challenge"].map(|name| form.get(name));
    let shown = if visit.is_empty() { challenge } else { visit };
    let known = if READS.contains(&action) {
        let holder = passkeys::account_challenge_holder(core, client.id(), shown).await?;
        holder.map(|user| (user, shown.to_owned()))
    } else if CHANGES.contains(&action) {
        passkeys::renew_account_challenge(core, client.id(), shown).await?
    } else {
        let signed_in = match sign_in(core, client, texts, form).await? {
            SignIn::Done(signed_in) => signed_in,
            SignIn::Incomplete(step) => return Ok(Entry::Incomplete(step)),
        };
        let user = signed_in.user;
        let key = client.key_of(user);
        let mut tx = core.db.begin().await?;
        signed_in.lock(&mut tx, key).await?;
        // One that is nobody's by now is linked, as on the page that registers.
        let linked = identifier::link(&mut tx, core, key, &page.invitation.identifier).await?;
        if linked == LinkOutcome::Conflict {
            return Err(Code::UserIdentifierMismatch.into());
        }
        let challenge = passkeys::account_challenge(&mut tx, core, key).await?;
        tx.commit().await?;
        return Ok(Entry::Granted(Grant { user, challenge }));
    };
    let Some((user, challenge)) = known else {
        let again = texts.get("checkout-signed-out");
        // The first click of a double click has taken the challenge.
        let note = html! {
            @if CHANGES.contains(&action) {
                (toast(Tone::Bad, &texts.get("bank-form-ended")))
                p { (again) }
            } @else {
                (toast(Tone::Bad, &again))
            }
        };
        let status = StatusCode::BAD_REQUEST;
        return Ok(Entry::Incomplete(SignInStep { status, note, form: None }));
    };
    check_linked(page, user).await?;
    Ok(Entry::Granted(Grant { user, challenge }))
}

/// # Errors
/// ER703.
async fn check_linked(page: InvitedPage<'_>, user: UserId) -> Result<()> {
    let InvitedPage { core, client, invitation, .. } = page;
    let mut conn = core.db.acquire().await?;
    let holder = linked_user(&mut conn, core, client.id(), &invitation.identifier).await?;
    if holder == Some(user) { Ok(()) } else { Err(Code::UserIdentifierMismatch.into()) }
}

/// Makes the change that the form asks for, if it is one after which the page is shown again, and says
/// what came of it, also at the form's field.
async fn change(
    page: InvitedPage<'_>,
    user: UserId,
    visit: &str,
    form: &Form,
) -> Result<(Markup, FormErrors)> {
    let InvitedPage { core, link, client, .. } = page;
    let (texts, key) = (link.texts, client.key_of(user));
    let note = match form.get("action") {
        "passkey-add" => return passkey::add(core, client, user, visit, texts, form).await,
        "passkey-remove" => passkey::remove(core, client, user, visit, texts, form).await?,
        "app-remove" => {
            return authenticator_app::remove(core, client, user, visit, texts, form).await;
        }
        "session-end" => sessions::end(core, key, texts, form).await?,
        "card" => bank_account::verify_card(core, client, user, texts, form).await?.1,
        "language" => {
            languages::keep(core, key, link.region()).await?;
            toast(Tone::Good, &texts.get("language-kept"))
        }
        _ => html! {},
    };
    Ok((note, FormErrors::default()))
}

fn login_page(
    page: InvitedPage<'_>,
    status: StatusCode,
    note: &Markup,
    form: Option<&Markup>,
) -> Reply {
    let shop = &page.client.tenant.name;
    let body = html! {
        p { (page.link.texts.with("account-intro", &[("shop", shop)])) }
        (note)
        @if let Some(form) = form { (form) } @else { (login_form(page.sign_in(), None)) }
    };
    view::page(page, status, &body)
}

/// A verification level in the reader's language.
fn level_name(texts: Texts, level: &str) -> String {
    match level {
        "bronze" => texts.get("level-bronze"),
        "silver" => texts.get("level-silver"),
        "gold" => texts.get("level-gold"),
        _ => level.to_owned(),
    }
}

async fn show(
    view: &View<'_>,
    filter: &Filter,
    note: &Markup,
    typed: TypedForm<'_>,
) -> Result<Reply> {
    let InvitedPage { core, client, .. } = view.invited;
    let account = view.account;
    let texts = view.texts();
    let mut conn = core.db.acquire().await?;
    let level = level_name(texts, &account.level);
    let verified = match account.statuses.is_verified() {
        true => texts.with("account-verified", &[("level", &level)]),
        false => texts.with("account-unverified", &[("level", &level)]),
    };
    let passkeys =
        passkey::section(&mut conn, core, client, account, texts, view.challenge, typed).await?;
    let body = html! {
        (note)
        dl {
            dt { (texts.get("email")) }
            dd { (account.personal.email.as_ref().map_or("", |email| email.as_str())) }
            dt { (texts.get("account-verification")) } dd { (verified) }
        }
        (requirements::section(&mut conn, view).await?)
        (orders::section(&mut conn, view, filter).await?)
        (payment_accounts(&mut conn, view).await?)
        (savings_plans(&mut conn, view).await?)
        (passkeys)
        (authenticator_app::section(&mut conn, view, typed.errors).await?)
        (sessions::section(&mut conn, view).await?)
        (languages::section(view))
        (personal::section(view))
    };
    Ok(view.page(StatusCode::OK, &body))
}

async fn payment_accounts(conn: &mut Connection, view: &View<'_>) -> Result<Markup> {
    let key = view.account.key();
    let texts = view.texts();
    let mut accounts = accounts::list(conn, view.invited.core, key).await?;
    accounts.retain(|account| !account.disabled);
    Ok(html! {
        h2 { (texts.get("account-payment-accounts")) }
        (bank_account::list(texts, &accounts, &view.challenge_input()))
        form method="post" {
            (view.challenge_input())
            button type="submit" name="action" value="bank-add" { (texts.get("bank-add-title")) }
        }
    })
}

/// Leads to a secured page, with a login token of its own that is made when somebody goes there.
async fn lead_to_secured_page(view: &View<'_>, page: &str) -> Result<Reply> {
    let (core, key) = (view.invited.core, view.account.key());
    let mut tx = core.db.begin().await?;
    if !passkeys::lock_visit(&mut tx, key, view.challenge, RowLock::NoKeyUpdate).await? {
        return Err(Code::UserCredentialMissing.into());
    }
    let token = one_time_token::issue_for_pages(&mut tx, core, Purpose::Login, key).await?;
    tx.commit().await?;
    let (region, user, back) = (view.invited.link.region(), key.user, view.invited.link.session());
    let path = format!("/{region}/account/{page}?token={token}&uuid={user}&back={back}");
    Ok(Reply::see_other(&path))
}

/// The way to the page of the savings plans, for who has any.
async fn savings_plans(conn: &mut Connection, view: &View<'_>) -> Result<Markup> {
    let (client, user, texts) = (view.invited.client.id(), view.account.user, view.texts());
    let count = sqlx::query_scalar!(
        r#"
        select count(*) as "count!" from dca_plan
        where client_id = $1 and user_id = $2 and not hidden
        "#,
        client.uuid(),
        user.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    if count == 0 {
        return Ok(html! {});
    }
    Ok(html! {
        h2 { (texts.get("plans-title")) }
        form method="post" {
            (view.challenge_input())
            button type="submit" name="action" value="plans" {
                (texts.with("plans-link", &[("count", &count.to_string())]))
            }
        }
    })
}
