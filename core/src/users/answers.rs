//! Answers to the AMLD5 questions, as part of a user's personal data.

use std::collections::BTreeMap;

use super::account::{self, Account, RowLock};
use super::changed;
use super::details::Details;
use super::personal_data::{self, PersonalData};
use super::user_update::UserUpdate;
use crate::Core;
use crate::auth::caller::Client;
use crate::money::connectors::payouts::command_payouts_and_transfers;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Refusal, Result, Violation};
use crate::users::verification::questions;
use rampart_types::{UserId, UserKey};

/// Most answers of one user: to our questions, and to others that partners ask.
const ANSWERS_MAX: usize = 64;

/// Refuses answers with which the user would have more than [`ANSWERS_MAX`] (ER048, in `refusal`):
/// each read of the user opens all of them.
pub(super) fn refuse_excess(known: &PersonalData, after: &PersonalData, refusal: &mut Refusal) {
    let most = known.amld5_answers.len().max(ANSWERS_MAX);
    if after.amld5_answers.len() > most {
        let detail = Some("at most 64 answers of one user".into());
        let field = Some("amld5QuestionAnswers");
        refusal.add_violation(Violation { code: Code::RequestMalformed, field, detail });
    }
}

/// Adds answers (question to option) to the user's personal data, in the caller's transaction.
///
/// # Errors
/// ER709 when the user is deleted.
pub(crate) async fn add(
    conn: &mut Connection,
    core: &Core,
    client: &Client,
    user: UserId,
    answers: BTreeMap<String, String>,
) -> Result<Account> {
    let key = client.key_of(user);
    if !account::lock(conn, key, RowLock::Update).await? {
        return Err(Code::UserNotFound.into());
    }
    let known = Account::load(conn, core, key).await?.ok_or(Code::UserNotFound)?;
    let answers_all = answers_all(&known, known.is_business, &answers);
    let mut personal = known.personal;
    personal.merge(PersonalData { amld5_answers: answers, ..PersonalData::default() });
    let user_update = UserUpdate::start(conn, core, client, user).await?;
    sqlx::query!(
        "update end_user set personal = $3 where client_id = $1 and user_id = $2",
        client.id().uuid(),
        user.uuid(),
        personal_data::seal(&user_update.personal_key, core, &personal)?,
    )
    .execute(&mut *conn)
    .await?;
    let mut account = Account { personal, ..known };
    if answers_all {
        account = complete_questionnaire(conn, core, account).await?;
    }
    command_payouts_and_transfers(conn, core, key).await?;
    Ok(account)
}

/// True if a change of a user may end the questionnaire: it answers all that was asked, or it makes
/// a person of a business, or the reverse, who may have answered those questions before.
pub(super) fn may_complete(known: &Account, change: &Details) -> bool {
    let is_business = change.is_business.unwrap_or(known.is_business);
    is_business != known.is_business
        || answers_all(known, is_business, &change.personal.amld5_answers)
}

/// True if a request answers each question that its user was asked. Kept answers alone do not count
/// while all are asked again.
fn answers_all(known: &Account, is_business: bool, given: &BTreeMap<String, String>) -> bool {
    let asked =
        questions::to_ask(is_business, &known.statuses.amld5, &known.personal.amld5_answers);
    asked.iter().all(|question| given.contains_key(question.key))
}

/// Marks the questionnaire as verified after the last answer, and records an event if the user is
/// fully verified by it. A decision of an operator stays.
///
/// # Errors
/// When the database cannot be written.
async fn complete_questionnaire(
    conn: &mut Connection,
    core: &Core,
    mut account: Account,
) -> Result<Account> {
    let answers = &account.personal.amld5_answers;
    let complete = questions::unanswered(account.is_business, answers).next().is_none();
    if !complete || account.statuses.amld5 != "pending" {
        return Ok(account);
    }
    sqlx::query!(
        "update end_user set amld5_status = 'verified' where client_id = $1 and user_id = $2",
        account.client.uuid(),
        account.user.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    let before = account.clone();
    account.statuses.amld5 = "verified".to_owned();
    changed::record_events(conn, core, &before, &account).await?;
    Ok(account)
}

/// Loads the user just written, records the events of its change, and ends the AMLD5 questions if the
/// request may. `before` is the user of a change.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn load_written(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    before: Option<&Account>,
    may_complete: bool,
) -> Result<Account> {
    let account = Account::load(conn, core, key).await?;
    let account = account.ok_or_else(|| Error::invariant("read the user just written"))?;
    if let Some(before) = before {
        changed::record_events(conn, core, before, &account).await?;
    }
    match may_complete {
        true => complete_questionnaire(conn, core, account).await,
        false => Ok(account),
    }
}
