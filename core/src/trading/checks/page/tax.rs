//! The DAC8 declaration: the country in which the user is resident for tax.

use maud::{Markup, html};

use super::Visit;
use crate::Core;
use crate::http::form::Form;
use crate::http::html::components::{Field, field};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::http::language::Texts;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::tax_residency::{self, NUMBER_CHARS_MAX};
use rampart_types::{Country, UserId, plain_text};

pub(super) fn form(texts: Texts, TypedForm { form, errors }: TypedForm<'_>) -> Markup {
    let (country, number) = (texts.get("check-tax-country"), texts.get("check-tax-number"));
    html! {
        p { (texts.get("check-tax-intro")) }
        form method="post" {
            (field(&Field {
                value: form.get("country"),
                error: errors.of("country"),
                autocomplete: "country",
                ..Field::text("country", &country)
            }))
            (field(&Field {
                value: form.get("number"),
                error: errors.of("number"),
                is_verbatim: true,
                ..Field::text("number", &number)
            }))
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
) -> Result<FormErrors> {
    let country: Option<Country> = form.get("country").trim().to_ascii_uppercase().parse().ok();
    let number = plain_text(form.get("number").trim(), NUMBER_CHARS_MAX);
    let mut errors = FormErrors::default();
    if country.is_none() {
        errors.add("country", visit.texts.get("error-country"));
    }
    if number.is_none() {
        errors.add("number", visit.texts.get("check-tax-number-wrong"));
    }
    let (Some(country), Some(number)) = (country, number) else { return Ok(errors) };
    tax_residency::declare(conn, core, visit.client.key_of(user), country, number).await?;
    Ok(errors)
}
