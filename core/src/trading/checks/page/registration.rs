//! The end of a registration: the user agrees to the privacy statement.

use maud::{Markup, html};

use super::Visit;
use crate::Core;
use crate::http::form::Form;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::consent;
use rampart_types::UserId;

const MISSING: &str = "Your order can go on once you agree.";

/// The form.
pub(super) fn form() -> Markup {
    html! {
        p { "Your registration is not complete yet." }
        form method="post" {
            label.tick {
                input type="checkbox" name="privacy" value="yes" required;
                "I agree to the privacy statement"
            }
            button.main type="submit" { "Complete the registration" }
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
