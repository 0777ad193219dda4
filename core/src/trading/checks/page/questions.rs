//! The AMLD5 questions that the user has not answered yet, or all again where the answers count no more.

use std::collections::BTreeMap;

use maud::html;

use super::{Content, Visit};
use crate::Core;
use crate::http::form::Form;
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use crate::users::account::Account;
use crate::users::answers;
use crate::users::verification::questions::{Question, to_ask};
use rampart_types::UserId;

/// Message of a question without an answer.
const MISSING: &str = "check-questions-missing";

/// The form with the open questions. What was answered before is not shown.
pub(super) async fn show(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    TypedForm { form, errors }: TypedForm<'_>,
) -> Result<Content> {
    let (language, open) = (visit.texts.language(), open(conn, core, visit, user).await?);
    if open.is_empty() {
        let body = html! { p { (visit.texts.get("check-questions-answered")) } };
        return Ok(Content { is_complete: true, ..body.into() });
    }
    let body = html! {
        p { (visit.texts.get("check-questions-intro")) }
        form method="post" {
            @for question in open {
                @let label = question.page_label(language);
                @let options = question.page_options(language);
                (errors.choice(question.key, label, form.get(question.key), &options))
            }
            button.main type="submit" { (visit.texts.get("check-send")) }
        }
    };
    Ok(body.into())
}

/// The questions that are open.
async fn open(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
) -> Result<Vec<&'static Question>> {
    let account = Account::load(conn, core, visit.client.key_of(user)).await?;
    let account = account.ok_or(Code::UserNotFound)?;
    let answers = &account.personal.amld5_answers;
    Ok(to_ask(account.is_business, &account.statuses.amld5, answers))
}

/// Takes the answers: an option each, by its key.
pub(super) async fn submit(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<FormErrors> {
    let (mut given, mut errors) = (BTreeMap::new(), FormErrors::default());
    let language = visit.texts.language();
    for question in open(conn, core, visit, user).await? {
        let option = form.get(question.key);
        match question.has_option(option) {
            true => drop(given.insert(question.key.to_owned(), option.to_owned())),
            false => {
                let (label, text) = (question.page_label(language), visit.texts.get(MISSING));
                errors.add_labelled(question.key, label, text);
            }
        }
    }
    if errors.is_empty() && !given.is_empty() {
        answers::add(conn, core, &visit.client, user, given).await?;
    }
    Ok(errors)
}
