//! A user's open sessions on the account's page: each can be ended, and all of them at once.

use maud::{Markup, html};
use uuid::Uuid;

use super::view::View;
use crate::Core;
use crate::http::form::Form;
use crate::http::html::components::{Tone, time_in, toast};
use crate::http::language::Texts;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::session::{self, OpenSession};
use rampart_types::{ClientId, UserId};

/// Seconds of a minute.
const MINUTE_SECONDS: u32 = 60;

/// Ends the session that the form names, if it is an open one of the user.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn end(
    core: &Core,
    (client, user): (ClientId, UserId),
    (texts, form): (Texts, &Form),
) -> Result<Markup> {
    let ended = match Uuid::try_parse(form.get("session")) {
        Ok(id) => session::end_one(core, (client, user), id).await?,
        Err(_) => false,
    };
    Ok(match ended {
        true => toast(Tone::Good, &texts.get("session-ended")),
        false => toast(Tone::Warning, &texts.get("session-unknown")),
    })
}

/// Ends every session, and the visit of this page with them.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn end_all(core: &Core, client: ClientId, user: UserId) -> Result<()> {
    let mut tx = core.db.begin().await?;
    session::end_all(&mut tx, core, client, user).await?;
    tx.commit().await?;
    Ok(())
}

/// The user's open sessions, with the buttons that end them.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn section(conn: &mut Connection, view: &View<'_>) -> Result<Markup> {
    let texts = view.texts();
    let sessions = session::open_sessions(conn, view.client.id(), view.account.user).await?;
    let seconds = view.core.settings.lifetimes.access_token_seconds;
    let minutes = seconds.div_ceil(MINUTE_SECONDS).to_string();
    Ok(html! {
        h2 { (texts.get("sessions-title")) }
        @if sessions.is_empty() { p { (texts.get("sessions-none")) } }
        @else { p { (texts.with("sessions-about", &[("minutes", &minutes)])) } }
        @for session in &sessions { (row(view, session)) }
        (view.button(("sessions-end", "danger"), &[], &texts.get("sessions-end")))
    })
}

fn row(view: &View<'_>, session: &OpenSession) -> Markup {
    let (texts, id) = (view.texts(), session.id.to_string());
    html! {
        div.panel {
            p.hint {
                (texts.get("session-began")) " " (time_in(texts, session.began_at)) br;
                (texts.get("session-ends")) " " (time_in(texts, session.ends_at))
            }
            (view.button(("session-end", "small"), &[("session", &id)], &texts.get("session-end")))
        }
    }
}
