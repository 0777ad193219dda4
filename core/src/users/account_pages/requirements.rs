//! Open requirements of the user's verification on the account's page, each with its state and the page
//! on which the user meets it.

use chrono::TimeDelta;
use maud::{Markup, html};

use super::view::View;
use crate::http::html::components::{Tone, badge};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::checks::link;
use crate::trading::checks::requirement::{Requirement, RequirementState, open_requirements};
use crate::users::account::RowLock;
use crate::users::one_time_token::{OneTimeToken, Purpose};
use crate::users::passkeys;

/// Time in which the pages are open to a user who has signed in: enough to find a document, and to show
/// it to a provider.
const LIFETIME: TimeDelta = TimeDelta::hours(1);

/// The open requirements; nothing for who has met all.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn section(conn: &mut Connection, view: &View<'_>) -> Result<Markup> {
    let (core, client, texts) = (view.invited.core, view.invited.client, view.texts());
    let open = open_requirements(conn, client, view.account).await?;
    if open.is_empty() {
        return Ok(html! {});
    }
    let key = view.account.key();
    let token = OneTimeToken::generate(&core.clock, key.client)?;
    let mut tx = conn.begin().await?;
    if !passkeys::lock_visit(&mut tx, key, view.challenge, RowLock::NoKeyUpdate).await? {
        return Ok(html! {});
    }
    token.store(&mut tx, core, Purpose::Checks, key.user, LIFETIME).await?;
    tx.commit().await?;
    let account_page = format!("{}/{}", view.invited.link.region(), view.invited.link.session());
    let url =
        |requirement: Requirement| link::account_url(core, &token.text, &account_page, requirement);
    Ok(html! {
        h2 { (texts.get("verification-title")) }
        p { (texts.get("verification-about")) }
        ul {
            @for (requirement, state) in open {
                @let (tone, name) = state_texts(state);
                li {
                    a href=(url(requirement)) { (texts.get(requirement.message())) } " "
                    (badge(tone, &texts.get(name)))
                }
            }
        }
    })
}

const fn state_texts(state: RequirementState) -> (Tone, &'static str) {
    match state {
        RequirementState::Missing => (Tone::Warning, "verification-missing"),
        RequirementState::Rejected => (Tone::Bad, "verification-rejected"),
        RequirementState::Pending => (Tone::Info, "verification-pending"),
    }
}
