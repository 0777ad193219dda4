//! The nationality: one of those of the catalogue.

use maud::{Markup, html};

use super::{Typed, Visit};
use crate::Core;
use crate::http::form::Form;
use crate::http::html::form_errors::FormErrors;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result, Violation};
use crate::users::person::{self, Member};
use rampart_types::UserId;

/// Name of the field.
const NATIONALITY: &str = Member::Nationality.name();

/// The form.
pub(super) fn form(visit: &Visit, (form, errors): Typed<'_>) -> Markup {
    let (texts, error) = (visit.texts, errors.of(NATIONALITY));
    let about = error.map(|_| "field-nationality-about");
    html! {
        p { (texts.get("check-nationality-intro")) }
        form method="post" {
            label for="field-nationality" {
                span { (texts.get("personal-nationality")) }
                @if let Some(error) = error {
                    span #field-nationality-about { span.field-error { (error) } }
                }
                select #field-nationality name=(NATIONALITY) required
                    aria-describedby=[about] aria-invalid=[error.map(|_| "true")] {
                    option value="" { "…" }
                    @for known in &visit.client.catalogue.nationalities {
                        option value=(known.code) selected[form.get(NATIONALITY) == known.code] {
                            (known.name)
                        }
                    }
                }
            }
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
    let given = (&[Member::Nationality][..], form);
    match person::declare(conn, core, (&visit.client, user), given).await {
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
