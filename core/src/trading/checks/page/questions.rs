//! The AMLD5 questions that the user has not answered yet.

use std::collections::BTreeMap;

use maud::html;

use super::{Content, Visit};
use crate::Core;
use crate::http::form::Form;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use crate::users::account::Account;
use crate::users::answers;
use crate::users::verification::questions::{QUESTIONS, find_option, unanswered};
use rampart_types::{Language, UserId};

const MISSING: &str = "check-questions-missing";

/// The form with the open questions. What was answered before is not shown.
pub(super) async fn show(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
) -> Result<Content> {
    let account = Account::load(conn, core, visit.client.id(), user).await?;
    let account = account.ok_or(Code::UserNotFound)?;
    let language: Language = visit.texts.language().code().parse().unwrap_or_default();
    let open: Vec<_> = unanswered(account.is_business, &account.personal.amld5_answers).collect();
    if open.is_empty() {
        return Ok(html! { p { (visit.texts.get("check-questions-answered")) } }.into());
    }
    let body = html! {
        p { (visit.texts.get("check-questions-intro")) }
        form method="post" {
            @for question in open {
                label {
                    (question.label(language))
                    select name=(question.key) required {
                        option value="" { "…" }
                        @for option in question.options(language) {
                            option value=(option) { (option) }
                        }
                    }
                }
            }
            button.main type="submit" { (visit.texts.get("check-send")) }
        }
    };
    Ok(body.into())
}

/// Takes the answers.
pub(super) async fn submit(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<Option<&'static str>> {
    let mut given = BTreeMap::new();
    for question in QUESTIONS {
        if let Some(option) = find_option(question.key, form.get(question.key)) {
            given.insert(question.key.to_owned(), option.to_owned());
        }
    }
    if given.is_empty() {
        return Ok(Some(MISSING));
    }
    answers::add(conn, core, (&visit.client, user), given).await?;
    Ok(None)
}
