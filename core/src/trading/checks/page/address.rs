//! The user's residential address.

use maud::{Markup, html};
use serde_json::json;

use super::Visit;
use crate::Core;
use crate::http::fields::Fields;
use crate::http::form::Form;
use crate::http::html::components::{Field, field};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::http::language::Texts;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Refusal, Result};
use crate::users::account_pages::sign_in::refusal_text;
use crate::users::residence;
use rampart_types::UserId;

/// Members of the form in the API's names, their labels' messages, and what browsers fill in.
const MEMBERS: [(&str, &str, &str); 4] = [
    ("address", "check-address-street", "address-line1"),
    ("addressNo", "check-address-number", "off"),
    ("postalCode", "check-address-postal-code", "postal-code"),
    ("city", "check-address-city", "address-level2"),
];

pub(super) fn form(texts: Texts, TypedForm { form, errors }: TypedForm<'_>) -> Markup {
    html! {
        p { (texts.get("check-address-intro")) }
        form method="post" {
            @for (name, label, autocomplete) in MEMBERS {
                @let (value, error) = (form.get(name), errors.of(name));
                (field(&Field {
                    value, error, autocomplete, ..Field::text(name, &texts.get(label))
                }))
            }
            button.main type="submit" { (texts.get("check-send")) }
        }
    }
}

/// Takes the address.
pub(super) async fn submit(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<FormErrors> {
    let members = MEMBERS.map(|(name, ..)| (name.to_owned(), json!(form.get(name).trim())));
    let document = serde_json::Value::Object(members.into_iter().collect());
    let fields = Fields::from_object(&document)?;
    match residence::declare(conn, core, &visit.client, user, fields).await {
        Ok(()) => Ok(FormErrors::default()),
        Err(Error::Refused(refusal)) => Ok(errors(visit.texts, &refusal)),
        Err(error) => Err(error),
    }
}

/// The violations, each at its field.
fn errors(texts: Texts, refusal: &Refusal) -> FormErrors {
    let mut errors = FormErrors::default();
    for violation in refusal.violations() {
        let member = MEMBERS.iter().find(|(name, ..)| Some(*name) == violation.field);
        match member {
            Some((name, label, _)) => {
                errors.add_labelled(name, &texts.get(label), texts.get("check-address-wrong"));
            }
            None => errors.add("", refusal_text(texts, violation.code)),
        }
    }
    errors
}
