//! The DAC8 declaration: the country in which the user is resident for tax.

use maud::{Markup, html};

use super::Visit;
use crate::Core;
use crate::http::form::Form;
use crate::http::language::Texts;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::tax_residency::{self, NUMBER_CHARS_MAX};
use rampart_types::{Country, UserId, plain_text};

const WRONG: &str = "check-tax-wrong";

/// The form.
pub(super) fn form(texts: Texts) -> Markup {
    html! {
        p { (texts.get("check-tax-intro")) }
        form method="post" {
            label {
                (texts.get("check-tax-country"))
                input name="country" autocomplete="country" required pattern="[A-Za-z]{2}"
                    maxlength="2";
            }
            label {
                (texts.get("check-tax-number"))
                input name="number" autocomplete="off" required maxlength=(NUMBER_CHARS_MAX);
            }
            button.main type="submit" { (texts.get("check-send")) }
        }
    }
}

/// Takes the declaration.
pub(super) async fn submit(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<Option<&'static str>> {
    let country: Option<Country> = form.get("country").trim().to_ascii_uppercase().parse().ok();
    let number = plain_text(form.get("number").trim(), NUMBER_CHARS_MAX);
    let (Some(country), Some(number)) = (country, number) else { return Ok(Some(WRONG)) };
    tax_residency::declare(conn, core, (visit.client.id(), user), (country, number)).await?;
    Ok(None)
}
