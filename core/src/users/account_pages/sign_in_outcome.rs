//! The outcome of a form that signs in.

use chrono::{DateTime, Utc};
use http::StatusCode;
use maud::Markup;

use crate::auth::user_credentials::lock_login;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use rampart_types::{UserId, UserKey};

/// The state of a sign-in.
pub(crate) enum SignIn {
    /// The user is proven.
    Done(SignedIn),
    /// Something is missing, which the page asks for.
    Incomplete(SignInStep),
}

/// A user who is proven.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignedIn {
    pub(crate) user: UserId,
    /// Time before anything was verified: what ends the user's sessions since ends this sign-in, too.
    pub(crate) began_at: DateTime<Utc>,
    /// True if the password sufficed, for want of a second factor.
    by_password_alone: bool,
}

impl SignedIn {
    /// A user whom more than a password has proven, or who is new.
    pub(super) const fn proven(user: UserId, began_at: DateTime<Utc>) -> Self {
        Self { user, began_at, by_password_alone: false }
    }

    /// A user without a second factor who has given the password.
    pub(super) const fn by_password(user: UserId, began_at: DateTime<Utc>) -> Self {
        Self { user, began_at, by_password_alone: true }
    }

    /// Locks the row of this user until the transaction ends, for what the sign-in permits.
    ///
    /// # Errors
    /// ER005 when the user's sessions were ended since it began, or the password suffices no more.
    pub(crate) async fn lock(self, conn: &mut Connection, key: UserKey) -> Result<()> {
        let lasts = lock_login(&mut *conn, key, Some(self.began_at)).await?;
        if !lasts || (self.by_password_alone && has_second_factor(conn, key).await?) {
            return Err(Code::LoginInvalid.into());
        }
        Ok(())
    }
}

/// True if a passkey or an authenticator app is asked for besides the password. Whoever has locked the
/// user's row sees the one that was put in use last.
async fn has_second_factor(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
) -> Result<bool> {
    let has_one = sqlx::query_scalar!(
        r#"
        select exists (select from passkey where client_id = $1 and user_id = $2)
            or exists (select from authenticator_app
                where client_id = $1 and user_id = $2 and confirmed_at is not null) as "has_one!"
        "#,
        client.uuid(),
        user.uuid(),
    )
    .fetch_one(conn)
    .await?;
    Ok(has_one)
}

/// A step that a page shows in place of its first forms.
pub(crate) struct SignInStep {
    pub(crate) status: StatusCode,
    pub(crate) note: Markup,
    /// The form of the next step; `None`: the first ones again.
    pub(crate) form: Option<Markup>,
}
