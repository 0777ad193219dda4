//! The residential address, as the user gives it on a page.

use super::account::{self, Account, RowLock};
use super::details::{self, FormKind};
use super::user_update::{Previous, UserUpdate};
use crate::Core;
use crate::auth::caller::Client;
use crate::http::fields::Fields;
use crate::money::connectors::payouts::command_payouts_and_transfers;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use rampart_types::UserId;

/// Stores the address in `fields`, named as in the API, in the caller's transaction, and commands
/// what waited for it.
///
/// # Errors
/// ER181 to ER184; ER709 when the user is deleted.
pub(crate) async fn declare(
    conn: &mut Connection,
    core: &Core,
    client: &Client,
    user: UserId,
    mut fields: Fields<'_>,
) -> Result<()> {
    let mut details = details::read(&mut fields, FormKind::Change, client, core.clock.now(), None);
    for (member, code) in [
        ("address", Code::StreetInvalid),
        ("addressNo", Code::HouseNumberInvalid),
        ("postalCode", Code::PostalCodeInvalid),
        ("city", Code::CityInvalid),
    ] {
        if fields.value(member).and_then(|value| value.as_str()).is_none_or(str::is_empty) {
            fields.refuse_member(code, member);
        }
    }
    fields.finish(Some(()))?;
    let key = client.key_of(user);
    if !account::lock(conn, key, RowLock::Update).await? {
        return Err(Code::UserNotFound.into());
    }
    let known = Account::load(conn, core, key).await?.ok_or(Code::UserNotFound)?;
    let mut personal = known.personal.clone();
    personal.merge(std::mem::take(&mut details.personal));
    let update = UserUpdate::start(conn, core, client, user).await?;
    let before = Previous { personal: &known.personal, country: known.country.as_deref() };
    update.store(conn, before, &personal, details, Vec::new()).await?;
    command_payouts_and_transfers(conn, core, key).await
}
