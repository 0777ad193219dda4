//! The end of a registration: the user agrees to the privacy statement.

use maud::{Markup, html};

use super::Visit;
use crate::Core;
use crate::http::form::Form;
use crate::http::language::Texts;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::consent;
use rampart_types::UserId;

const MISSING: &str = "check-registration-missing";

/// The form.
pub(super) fn form(texts: Texts) -> Markup {
    html! {
        p { (texts.get("check-registration-intro")) }
        form method="post" {
            label.tick {
                input type="checkbox" name="privacy" value="yes" required;
                (texts.get("agree-privacy"))
            }
            button.main type="submit" { (texts.get("check-registration-complete")) }
        }
    }
}

/// Takes the agreement.
pub(super) async fn submit(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<Option<&'static str>> {
    if form.get("privacy") != "yes" {
        return Ok(Some(MISSING));
    }
    consent::agree(conn, core, (visit.client.id(), user)).await?;
    Ok(None)
}
