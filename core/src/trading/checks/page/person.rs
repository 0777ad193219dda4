//! Names and birth date, as far as they are not known.

use maud::html;

use super::{Content, Visit};
use crate::Core;
use crate::http::form::Form;
use crate::http::html::components::{Field, field};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::users::account::Account;
use crate::users::account_pages::sign_in::refusal_text;
use crate::users::person::{self, Member};
use rampart_types::UserId;

/// Members of the form, with the messages of their labels and of what is wrong with them, the type of
/// their element, and what browsers fill in.
const FIELDS: [(Member, &str, &str, &str, &str); 3] = [
    (Member::FirstName, "check-person-first-name", NAME_WRONG, "text", "given-name"),
    (Member::LastName, "check-person-last-name", NAME_WRONG, "text", "family-name"),
    (Member::DateOfBirth, "personal-born", "check-person-born-wrong", "date", "bday"),
];
const NAME_WRONG: &str = "check-person-name-wrong";

/// The form.
pub(super) async fn show(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    TypedForm { form, errors }: TypedForm<'_>,
) -> Result<Content> {
    let texts = visit.texts;
    let account = Account::load(conn, core, visit.client.key_of(user)).await?;
    let account = account.ok_or(Code::UserNotFound)?;
    let hint = texts.get("check-person-born-hint");
    let body = html! {
        p { (texts.get("check-person-intro")) }
        form method="post" {
            @for (member, label, _, kind, autocomplete) in FIELDS {
                @let name = member.name();
                @if !member.is_known(&account) {
                    (field(&Field {
                        kind,
                        value: form.get(name),
                        hint: (member == Member::DateOfBirth).then_some(&*hint),
                        error: errors.of(name),
                        autocomplete,
                        ..Field::text(name, &texts.get(label))
                    }))
                }
            }
            button.main type="submit" { (texts.get("check-send")) }
        }
    };
    Ok(body.into())
}

/// Takes the members that are not known.
pub(super) async fn submit(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<FormErrors> {
    let members = FIELDS.map(|(member, ..)| member);
    match person::declare(conn, core, &visit.client, user, &members, form).await {
        Ok(()) => Ok(FormErrors::default()),
        Err(Error::Refused(refusal)) => {
            let mut errors = FormErrors::default();
            for violation in refusal.violations() {
                let known =
                    FIELDS.iter().find(|(member, ..)| Some(member.name()) == violation.field);
                match known {
                    Some(&(member, label, wrong, ..)) => {
                        let label = visit.texts.get(label);
                        errors.add_labelled(member.name(), &label, visit.texts.get(wrong));
                    }
                    None => errors.add("", refusal_text(visit.texts, violation.code)),
                }
            }
            Ok(errors)
        }
        Err(error) => Err(error),
    }
}
