//! The KYC share token of a user, from a registration, a change or the URL of a sale's onboarding:
//! sealed with the personal data until an identity check, which it is given to and erased by that.

use super::account::Account;
use super::personal_data::{self, PersonalData};
use crate::Core;
use crate::platform::crypto::Secret;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::UserKey;

/// Stores the token that a user has come with, for the first identity check, in the caller's
/// transaction, which has locked the user's row: in place of an earlier one, and not once that check
/// was begun, so that a URL that is opened again gives its token once.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn store_for_first_check(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    token: &Secret,
) -> Result<()> {
    // A check is begun under the same lock.
    let is_begun = sqlx::query_scalar!(
        r#"
        select exists (select from command
            where client_id = $1 and user_id = $2 and kind = 'identity.start') as "is_begun!"
        "#,
        key.client.uuid(),
        key.user.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    let account = Account::load(conn, core, key).await?;
    let Some(account) = account else { return Ok(()) };
    if is_begun || account.statuses.identity == "verified" {
        return Ok(());
    }
    write(conn, core, &account, Some(token.expose().to_owned())).await
}

/// Takes the user's token, and erases it, in the caller's transaction, which has locked the user's row.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn take(
    conn: &mut Connection,
    core: &Core,
    account: &Account,
) -> Result<Option<Secret>> {
    let Some(token) = account.personal.share_token.clone() else { return Ok(None) };
    write(conn, core, account, None).await?;
    Ok(Some(Secret::new(token)))
}

/// Replaces the token.
async fn write(
    conn: &mut Connection,
    core: &Core,
    account: &Account,
    share_token: Option<String>,
) -> Result<()> {
    let personal_key = personal_data::load_key(conn, core, account.key()).await?;
    let personal = PersonalData { share_token, ..account.personal.clone() };
    sqlx::query!(
        "update end_user set personal = $3 where client_id = $1 and user_id = $2",
        account.client.uuid(),
        account.user.uuid(),
        personal_data::seal(&personal_key, core, &personal)?,
    )
    .execute(conn)
    .await?;
    Ok(())
}
