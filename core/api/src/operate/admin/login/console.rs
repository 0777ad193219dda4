//! The way into the console: to the provider (`/console/login`), back (`/console/callback`), the
//! session that begins there (`/console/session`) and its end (`/console/logout`).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::SET_COOKIE;
use http::{Method, StatusCode};
use maud::html;
use serde_json::{Value, json};

use super::session::{NewSession, Session, cookie_name, set_cookie, signed_out};
use super::{Attempt, admit, refused};
use crate::Core;
use crate::auth::oidc::{LoginState, PendingLogin, Provider, Refusal};
use crate::auth::roles::Role;
use crate::http::cookie::SameSite;
use crate::http::html::shell::Shell;
use crate::http::reply::Reply;
use crate::http::request::Head;
use crate::operate::admin::approvals::withdraw;
use crate::operate::admin::browser::check_origin;
use crate::operate::asked_page;
use crate::platform::audit::{self, Entry};
use crate::platform::error::{Error, Result};

/// Cookie with a login that waits for its person to come back from the provider.
const PENDING: &str = "rampart_login";
/// Time for that, in seconds.
const PENDING_SECONDS: i32 = 600;
/// Context that its state is sealed for.
const CONTEXT: &str = "operator_login";
const FOLDER: &str = "/console";
const CALLBACK: &str = "/console/callback";

/// The answer to a request of these paths; `None` for any other.
///
/// # Errors
/// The refusal.
pub(in crate::operate) async fn answer(core: &Core, head: &Head) -> Result<Option<Reply>> {
    Ok(Some(match (&core.oidc, &head.method, &*head.path) {
        (Some(provider), &Method::GET, "/console/login") => begin(core, provider, head).await?,
        // It comes from a page of the provider's; the state in the cookie says that it may.
        (Some(provider), &Method::GET, CALLBACK) => finish(core, provider, head).await?,
        (_, &Method::GET, "/console/session") => show(&session(core, head).await?)?,
        (_, &Method::POST, "/console/logout") => {
            signed_out(session(core, head).await?.end(core).await?)
        }
        _ => return Ok(None),
    }))
}

/// The session of a request by a page of our own.
async fn session(core: &Core, head: &Head) -> Result<Session> {
    check_origin(head)?;
    let attempt = Attempt::begin_with(core, head, Session::cookie(core, head))?;
    match Session::of(core, head).await? {
        Some(session) => Ok(session),
        None => Err(attempt.fail("missing")),
    }
}

fn show(session: &Session) -> Result<Reply> {
    let body = json!({
        "operator": session.operator.actor(),
        "roles": session.operator.roles(),
        "csrfToken": session.csrf_token(),
    });
    Reply::json(StatusCode::OK, &body)
}

async fn begin(core: &Core, provider: &Provider, head: &Head) -> Result<Reply> {
    let begun =
        provider.begin_login(&core.clock, &redirect_uri(core), PENDING_SECONDS.into()).await;
    let PendingLogin { url, state } = begun.map_err(|refusal| refused(core, head, &refusal))?;
    let mut state = serde_json::to_value(state).map_err(|e| Error::internal("keep a login", e))?;
    state["page"] = asked_page::carried(FOLDER, head).into();
    let sealed = core.keys.seal(&core.clock, CONTEXT, state.to_string().as_bytes())?;
    let sealed = URL_SAFE_NO_PAD.encode(sealed);
    let mut reply = Reply::see_other(url.as_str());
    // The provider's page leads back here: a stricter cookie would not come along.
    let cookie = set_cookie(core, PENDING, &sealed, SameSite::Lax, PENDING_SECONDS)?;
    reply.headers.append(SET_COOKIE, cookie);
    Ok(reply)
}

async fn finish(core: &Core, provider: &Provider, head: &Head) -> Result<Reply> {
    let attempt = Attempt::begin(core, head)?;
    // A page of another origin can ask for this, too: only a code that comes with the state of the login
    // can be a guess, which counts.
    let Some((pending, page)) = pending(core, head) else {
        let reason = "the login was not begun in this browser, or long ago";
        return Err(refused(core, head, &Refusal::Invalid(reason)));
    };
    let query = head.query.as_deref().unwrap_or_default();
    let proven = provider.finish_login(&core.clock, &pending, query, &redirect_uri(core)).await;
    let person = match proven {
        Ok(person) => person,
        Err(refusal) => {
            if let Refusal::NotPermitted { identity, .. } = &refusal {
                end_lost_roles(core, identity, &[]).await?;
            }
            match &refusal {
                Refusal::Invalid(reason) => {
                    tracing::info!(reason, "a login at the provider has failed");
                }
                Refusal::WrongCode => attempt.count("wrong")?,
                Refusal::NotPermitted { .. } | Refusal::Unavailable(_) => {}
            }
            return Err(refused(core, head, &refusal));
        }
    };
    let operator = admit(core, head, &person).await?;
    end_lost_roles(core, &person.identity, &person.roles).await?;
    let seconds = provider.session_seconds();
    let session = NewSession { operator: &operator, token_digest: None, seconds };
    let session = session.begin(core).await?;
    let page = html! {
        p { "As " strong { (person.name) } "." }
        p { a.button href=(page.as_deref().unwrap_or(FOLDER)) { "Go on" } }
    };
    let shell = Shell { name: "Console", navigation: &[], current: "/console", account: html! {} };
    let mut reply = shell.render(StatusCode::OK, "You are logged in", &page);
    reply.headers.append(SET_COOKIE, session);
    reply.headers.append(SET_COOKIE, set_cookie(core, PENDING, "", SameSite::Lax, 0)?);
    Ok(reply)
}

/// Ends what a person still has by roles that the provider names no more: sessions and grants.
async fn end_lost_roles(core: &Core, identity: &str, roles: &[Role]) -> Result<()> {
    let names: Vec<_> = roles.iter().map(|role| role.as_str().to_owned()).collect();
    let mut tx = core.db.begin().await?;
    // Before the grants: one that is being made by such a session comes first, or finds it ended.
    let ended = sqlx::query!(
        "delete from operator_session where identity = $1 and not roles <@ $2",
        identity,
        &names,
    )
    .execute(&mut *tx)
    .await?
    .rows_affected();
    let approvals = withdraw::beyond_roles(&mut tx, core, identity, roles).await?;
    if ended > 0 || !approvals.is_empty() {
        let detail = json!({ "roles": names, "sessionsEnded": ended, "approvals": approvals });
        let entry =
            Entry { actor: "edge", action: "operator.lose-roles", target: identity, detail };
        audit::record(&mut tx, core, entry).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// The login that was begun in this browser, and the page that was asked for.
fn pending(core: &Core, head: &Head) -> Option<(LoginState, Option<String>)> {
    let sealed = URL_SAFE_NO_PAD.decode(head.cookie(&cookie_name(core, PENDING))?).ok()?;
    let state: Value = serde_json::from_slice(&core.keys.open(CONTEXT, &sealed).ok()?).ok()?;
    let page = state["page"].as_str().map(str::to_owned);
    Some((serde_json::from_value(state).ok()?, page))
}

/// URL that the provider leads back to.
fn redirect_uri(core: &Core) -> String {
    format!("{}{CALLBACK}", core.settings.admin_url)
}
