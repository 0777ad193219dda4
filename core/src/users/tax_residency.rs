//! The DAC8 declaration of tax residency (Directive (EU) 2023/2226), as the user gives it on a page.

use super::account::{self, Account, RowLock};
use super::personal_data::{self, PersonalData};
use crate::Core;
use crate::money::connectors::payouts::command_payouts_and_transfers;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use rampart_types::{Country, UserKey};

/// Longest tax identification number, in characters.
pub(crate) const NUMBER_CHARS_MAX: usize = 32;

/// Stores the declaration in the caller's transaction, sealed, and commands what waited for it.
///
/// # Errors
/// ER709 when the user is deleted.
pub(crate) async fn declare(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    country: Country,
    number: String,
) -> Result<()> {
    if !account::lock(conn, key, RowLock::Update).await? {
        return Err(Code::UserNotFound.into());
    }
    let known = Account::load(conn, core, key).await?.ok_or(Code::UserNotFound)?;
    let mut personal = known.personal;
    personal.merge(PersonalData {
        tax_country: Some(country),
        tax_number: Some(number),
        ..PersonalData::default()
    });
    let personal_key = personal_data::load_key(conn, core, key).await?;
    sqlx::query!(
        "update end_user set personal = $3, dac8_status = 'present' \
         where client_id = $1 and user_id = $2",
        key.client.uuid(),
        key.user.uuid(),
        personal_data::seal(&personal_key, core, &personal)?,
    )
    .execute(&mut *conn)
    .await?;
    command_payouts_and_transfers(conn, core, key).await
}
