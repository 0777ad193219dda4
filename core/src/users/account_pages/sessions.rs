//! A user's open sessions on the account's page: each can be ended, and all of them at once.

use maud::{Markup, html};
use uuid::Uuid;

use super::view::View;
use crate::Core;
use crate::http::device;
use crate::http::form::Form;
use crate::http::html::components::{Tone, badge, time_in, toast};
use crate::http::language::Texts;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::session::{self, OpenSession};
use rampart_types::UserKey;

/// Seconds of a minute.
const MINUTE_SECONDS: u32 = 60;

/// Ends the session that the form names, if it is an open one of the user.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn end(core: &Core, key: UserKey, texts: Texts, form: &Form) -> Result<Markup> {
    let ended = match Uuid::try_parse(form.get("session")) {
        Ok(id) => session::end_one(core, key, id).await?,
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
pub(super) async fn end_all(core: &Core, key: UserKey) -> Result<()> {
    let mut tx = core.db.begin().await?;
    session::end_all(&mut tx, core, key).await?;
    tx.commit().await?;
    Ok(())
}

/// Ends the visit of this page, and every page that it leads to.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn end_visit(core: &Core, key: UserKey) -> Result<()> {
    let mut tx = core.db.begin().await?;
    session::end_visits(&mut tx, core, key).await?;
    tx.commit().await?;
    Ok(())
}

/// The visit of the page and the user's open sessions, each with its device, and the buttons that end
/// them.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn section(conn: &mut Connection, view: &View<'_>) -> Result<Markup> {
    let texts = view.texts();
    let sessions = session::open_sessions(conn, view.account.key()).await?;
    let seconds = view.invited.core.settings.lifetimes.access_token_seconds;
    let minutes = seconds.div_ceil(MINUTE_SECONDS).to_string();
    let (device, current) =
        (device::shown(texts, view.invited.link.device()), texts.get("session-current"));
    Ok(html! {
        h2 { (texts.get("sessions-title")) }
        @if sessions.is_empty() { p { (texts.get("sessions-none")) } }
        @else { p { (texts.with("sessions-about", &[("minutes", &minutes)])) } }
        div.panel role="group" aria-label={ (device) ", " (current) } {
            strong { (device) } " " (badge(Tone::Good, &current))
            (view.button("visit-end", "small", &[], &texts.get("session-end")))
        }
        // Newest first.
        @for (index, session) in sessions.iter().enumerate() { (row(view, session, index == 0)) }
        (view.button("sessions-end", "danger", &[], &texts.get("sessions-end")))
    })
}

fn row(view: &View<'_>, session: &OpenSession, is_newest: bool) -> Markup {
    let (texts, id) = (view.texts(), session.id.to_string());
    let device = device::shown(texts, session.device.as_deref());
    // Tells the buttons of several sessions apart.
    let began_at = texts.time(session.began_at);
    html! {
        div.panel role="group" aria-label={ (device) ", " (began_at) } {
            strong { (device) }
            @if is_newest { " " (badge(Tone::Info, &texts.get("session-newest"))) }
            p.hint {
                (texts.get("session-began")) " " (time_in(texts, session.began_at)) br;
                (texts.get("session-ends")) " " (time_in(texts, session.ends_at))
            }
            (view.button("session-end", "small", &[("session", &id)], &texts.get("session-end")))
        }
    }
}
