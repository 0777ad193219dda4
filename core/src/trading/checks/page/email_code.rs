//! The code that was mailed to the user's address.

use maud::{Markup, html};

use super::Visit;
use crate::Core;
use crate::http::form::Form;
use crate::http::html::components::{Field, Tone, field, toast};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::http::language::Texts;
use crate::platform::error::Result;
use crate::users::email_confirmation;
use rampart_types::UserId;

/// Name of the field.
const CODE: &str = "code";
/// The action that has another code mailed.
const MAIL: &str = "mail";

/// The form for the code, and the button that mails another one.
pub(super) fn form(texts: Texts, TypedForm { form, errors }: TypedForm<'_>) -> Markup {
    html! {
        p { (texts.get("check-email-intro")) }
        form method="post" {
            (field(&Field {
                value: form.get(CODE),
                error: errors.of(CODE),
                ..Field::one_time_code(CODE, &texts.get("check-email-code"))
            }))
            button.main type="submit" name="action" value="confirm" {
                (texts.get("check-email-confirm"))
            }
        }
        form method="post" {
            button type="submit" name="action" value=(MAIL) { (texts.get("check-email-mail")) }
        }
    }
}

/// The note after a code was mailed.
pub(super) fn note(texts: Texts) -> Markup {
    toast(Tone::Info, &texts.get("check-email-mailed"))
}

/// True if the form has another code mailed.
pub(super) fn asks_for_mail(form: &Form) -> bool {
    form.get("action") == MAIL
}

/// Mails another code, or takes the one of the form.
pub(super) async fn submit(
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<FormErrors> {
    let (client, token) = (&visit.client, visit.sign_in_token());
    if asks_for_mail(form) {
        email_confirmation::mail_code(core, client, user, token).await?;
        return Ok(FormErrors::default());
    }
    match email_confirmation::confirm(core, client, user, token, form.get(CODE).trim()).await? {
        true => Ok(FormErrors::default()),
        false => Ok(FormErrors::one(CODE, visit.texts.get("check-email-wrong"))),
    }
}
