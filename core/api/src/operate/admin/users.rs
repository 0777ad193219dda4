//! Users, and the images that they have sent.

pub mod images;
pub mod read;
pub mod retained_record;
pub mod search;
pub mod update;

use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use crate::users::account::{self, RowLock};
use rampart_types::{UserId, UserKey};

/// The path's `{uuid}`.
pub(super) const UUID: Member = required("uuid", Kind::Format("uuid"), "The user's id.");

/// The key of the user that the path names.
///
/// # Errors
/// 404 when there is none.
pub(super) async fn find(conn: &mut Connection, uuid: &str) -> Result<UserKey> {
    let unknown = || Denial::not_found("user");
    let user: UserId = uuid.parse().map_err(|_| unknown())?;
    let client =
        sqlx::query_scalar!("select client_id from end_user where user_id = $1", user.uuid())
            .fetch_optional(conn)
            .await?
            .ok_or_else(unknown)?;
    Ok(UserKey { client: client.into(), user })
}

/// As [`find`], with the user's row locked until the transaction ends.
///
/// # Errors
/// Those of [`find`]; 409 when the user is deleted.
pub(super) async fn lock(conn: &mut Connection, uuid: &str) -> Result<UserKey> {
    let key = find(conn, uuid).await?;
    match account::lock(conn, key, RowLock::Update).await? {
        true => Ok(key),
        false => Err(Denial::conflict("the user is deleted").into()),
    }
}
