//! The nationality: one of those of the catalogue.

use maud::{Markup, html};

use super::Visit;
use crate::Core;
use crate::http::form::Form;
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result, Violation};
use crate::users::person::{self, Member};
use rampart_types::UserId;

/// Name of the field.
const NATIONALITY: &str = Member::Nationality.name();

/// The form. A script names the regions in the reader's language; without one they are in English.
pub(super) fn form(visit: &Visit, TypedForm { form, errors }: TypedForm<'_>) -> Markup {
    let texts = visit.texts;
    let known = visit.client.catalogue.nationalities.iter();
    let options: Vec<_> = known.map(|known| (&*known.code, &*known.name)).collect();
    let label = texts.get("personal-nationality");
    html! {
        p { (texts.get("check-nationality-intro")) }
        form method="post" data-regions {
            (errors.choice(NATIONALITY, &label, form.get(NATIONALITY), &options))
            button.main type="submit" { (texts.get("check-send")) }
        }
    }
}

/// Takes the nationality.
pub(super) async fn submit(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<FormErrors> {
    let members = [Member::Nationality];
    match person::declare(conn, core, &visit.client, user, &members, form).await {
        Ok(()) => Ok(FormErrors::default()),
        Err(Error::Refused(refusal)) if refusal.violations().iter().all(is_of_field) => {
            Ok(FormErrors::one(NATIONALITY, visit.texts.get("check-nationality-missing")))
        }
        Err(error) => Err(error),
    }
}

fn is_of_field(violation: &Violation) -> bool {
    violation.field == Some(NATIONALITY)
}
