//! Names, birth date and nationality, as the user gives them on a page: each once, what is known stays.

use serde_json::{Value, json};

use super::account::{self, Account, RowLock};
use super::changed;
use super::details::{self, FormKind};
use super::user_update::{Previous, UserUpdate};
use crate::Core;
use crate::auth::caller::Client;
use crate::http::fields::Fields;
use crate::http::form::Form;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use rampart_types::UserId;

/// A member of the API that a page takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// The first name.
    FirstName,
    /// The last name.
    LastName,
    /// The birth date.
    DateOfBirth,
    /// The nationality.
    Nationality,
}

impl Member {
    /// The name in the API, and of the field.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::FirstName => "firstName",
            Self::LastName => "lastName",
            Self::DateOfBirth => "dateOfBirth",
            Self::Nationality => "nationality",
        }
    }

    /// True if the user has given it.
    pub(crate) fn is_known(self, account: &Account) -> bool {
        let personal = &account.personal;
        match self {
            Self::FirstName => personal.first_name.is_some(),
            Self::LastName => personal.last_name.is_some(),
            Self::DateOfBirth => personal.date_of_birth.is_some(),
            Self::Nationality => personal.nationality.is_some(),
        }
    }

    /// The refusal of an invalid one.
    const fn code(self) -> Code {
        match self {
            Self::FirstName => Code::FirstNameInvalid,
            Self::LastName => Code::LastNameInvalid,
            Self::DateOfBirth => Code::UserUnderage,
            Self::Nationality => Code::CountryCodeInvalid,
        }
    }
}

/// Stores the form's members that are not known, in the caller's transaction, with what follows from
/// them.
///
/// # Errors
/// ER061, ER085, ER126 and ER127, each by its member; ER709 when the user is deleted.
pub(crate) async fn declare(
    conn: &mut Connection,
    core: &Core,
    client: &Client,
    user: UserId,
    members: &[Member],
    form: &Form,
) -> Result<()> {
    let key = client.key_of(user);
    if !account::lock(conn, key, RowLock::Update).await? {
        return Err(Code::UserNotFound.into());
    }
    let known = Account::load(conn, core, key).await?.ok_or(Code::UserNotFound)?;
    let wanted: Vec<_> = members.iter().filter(|member| !member.is_known(&known)).collect();
    let given = |member: &&Member| {
        let name = member.name();
        (name.to_owned(), json!(form.get(name).trim()))
    };
    let document = Value::Object(wanted.iter().map(given).collect());
    let mut fields = Fields::from_object(&document)?;
    let mut details = details::read(&mut fields, FormKind::Change, client, core.clock.now(), None);
    for member in &wanted {
        if fields.value(member.name()).and_then(Value::as_str).is_none_or(str::is_empty) {
            fields.refuse_member(member.code(), member.name());
        }
    }
    fields.finish(Some(()))?;
    let mut personal = known.personal.clone();
    personal.merge(std::mem::take(&mut details.personal));
    let update = UserUpdate::start(conn, core, client, user).await?;
    let before = Previous { personal: &known.personal, country: known.country.as_deref() };
    update.store(conn, before, &personal, details, Vec::new()).await?;
    let needs_screening = known.personal.identity() != personal.identity();
    let account = Account { personal, ..known };
    Box::pin(changed::follow(conn, core, client, &account, needs_screening)).await
}
