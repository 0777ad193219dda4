//! The end of a registration: the user agrees to the privacy statement.

use maud::{Markup, html};

use super::Visit;
use crate::Core;
use crate::http::form::Form;
use crate::http::html::form_errors::FormErrors;
use crate::http::html::privacy::agreement;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::consent;
use rampart_types::UserId;

pub(super) fn form(core: &Core, visit: &Visit, errors: &FormErrors) -> Markup {
    let (texts, brand) = (visit.texts, &visit.client.tenant.brand);
    let label = agreement(texts, &core.settings.pages, brand);
    html! {
        p { (texts.get("check-registration-intro")) }
        form method="post" {
            (errors.consent("privacy", &label))
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
) -> Result<FormErrors> {
    if form.get("privacy") != "yes" {
        let missing = visit.texts.get("check-registration-missing");
        return Ok(FormErrors::one("privacy", missing));
    }
    consent::agree(conn, core, visit.client.key_of(user)).await?;
    Ok(FormErrors::default())
}
