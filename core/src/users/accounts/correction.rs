//! Corrections of an account that the user has already: the newest holder and token.

use super::{AccountDetails, PaymentAccount, location};
use crate::Core;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::users::personal_data;
use rampart_types::UserKey;

/// Bytes of the digest in a version.
const VERSION_BYTES: usize = 8;

/// The version of an account's sealed details. It tells nothing of them, and begins with a letter: no
/// reader takes it for a number.
pub(super) fn version(sealed: &[u8]) -> String {
    format!("v{}", hex::encode(&sha256(sealed)[..VERSION_BYTES]))
}

/// Stores the newest holder and token of an account that is neither verified nor disabled; any other
/// stays as it was verified. The user's row must be locked.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn correct(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    account: PaymentAccount,
    newest: AccountDetails,
) -> Result<PaymentAccount> {
    let known = &account.details;
    let holder = if newest.holder.is_empty() { known.holder.clone() } else { newest.holder };
    let token = newest.token.or_else(|| known.token.clone());
    let is_known = (&holder, &token) == (&known.holder, &known.token);
    if is_known || account.verified || account.disabled {
        return Ok(account);
    }
    let details = AccountDetails { identifier: known.identifier.clone(), holder, token };
    let plain = serde_json::to_vec(&details).map_err(|e| Error::internal("write an account", e))?;
    let personal_key = personal_data::load_key(conn, core, key).await?;
    let sealed = personal_key.seal(&core.clock, &location(account.id), &plain)?;
    let corrected = sqlx::query!(
        "update payment_account set sealed = $4 \
         where client_id = $1 and user_id = $2 and account_id = $3 \
             and verified_at is null and disabled_at is null",
        key.client.uuid(),
        key.user.uuid(),
        account.id,
        &sealed,
    )
    .execute(conn)
    .await?;
    Ok(match corrected.rows_affected() {
        0 => account,
        _ => PaymentAccount { details, version: version(&sealed), ..account },
    })
}
