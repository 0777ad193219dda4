//! Proof that a change of password or e-mail address is the user's own: the password until now, or a
//! code that was mailed to the address known. A stolen session is neither.

use super::account::{self, Account, RowLock};
use super::details::Details;
use super::user_update::EmailProof;
use crate::Core;
use crate::auth::caller::ClientAndUser;
use crate::auth::user_credentials::lock_user;
use crate::http::request::Head;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Refusal, Result};
use rampart_types::EmailAddress;

/// A request to update a user.
#[derive(Debug)]
pub struct Update {
    pub(super) details: Details,
    /// The proof of the user.
    pub(super) head: Head,
}

/// The proofs that came with an update, checked before its transaction.
pub(super) struct Ownership {
    /// That of the request's code, for the address known.
    pub(super) email_proof: EmailProof,
    /// The address known, against which the code was checked; `None` for a request that has neither an
    /// address, a password nor a proof.
    email: Option<EmailAddress>,
    /// The hash that the password until now has matched.
    password_hash: Option<String>,
}

impl Ownership {
    /// Checks the proofs of an update, and that it has one if it needs it. Tries of a password count
    /// like logins.
    ///
    /// # Errors
    /// ER004 without a proof that is needed, ER005 for a wrong password and ER090 for a wrong code beside
    /// it, code 920 for too many tries.
    pub(super) async fn prove(
        core: &Core,
        caller: &ClientAndUser,
        details: &mut Details,
    ) -> Result<Self> {
        let (client, named) = (&caller.client, details.personal.email.as_ref());
        let current = details.old_password.take();
        let code = details.email_code.as_deref();
        let mut proven =
            Self { email_proof: EmailProof::Missing, email: None, password_hash: None };
        if named.is_none() && details.password.is_none() && current.is_none() && code.is_none() {
            return Ok(proven);
        }
        let mut conn = core.db.acquire().await?;
        let known = Account::load(&mut conn, core, client.key_of(caller.user)).await?;
        let hash = stored_hash(&mut conn, caller).await?;
        drop(conn);
        proven.email = known.and_then(|known| known.personal.email);
        let email = proven.email.as_ref();
        let is_sensitive =
            details.password.is_some() || named.is_some_and(|named| Some(named) != email);
        proven.email_proof = EmailProof::check(core, client, email, code).await?;
        if let Some(current) = current {
            if let Some(email) = email {
                core.user_attempts.count(core, client, email).await?;
            }
            if !core.passwords.verify(current, hash.clone()).await? {
                return Err(proven.wrong_password());
            }
            proven.password_hash = hash;
        } else if is_sensitive && proven.email_proof == EmailProof::Missing {
            return Err(unproven());
        }
        Ok(proven)
    }

    /// Locks the user's row, and checks again under the lock: the user's credential in the head, the
    /// password or the address that was proven, and that a change without a proof still needs none.
    ///
    /// # Errors
    /// Those of [`lock_user`]; ER005 when the password has changed; when the address has, ER090 for a
    /// code, or ER004 without a proof.
    pub(super) async fn lock(
        &self,
        tx: &mut Connection,
        core: &Core,
        caller: &ClientAndUser,
        head: &Head,
    ) -> Result<Account> {
        let (client, user) = (&caller.client, caller.user);
        let key = client.key_of(user);
        if !account::lock(&mut *tx, key, RowLock::Update).await? {
            return Err(Code::UserNotFound.into());
        }
        lock_user(&mut *tx, core, client, user, head).await?;
        let known = Account::load(&mut *tx, core, key).await?.ok_or(Code::UserNotFound)?;
        if self.password_hash.is_some() && stored_hash(tx, caller).await? != self.password_hash {
            return Err(self.wrong_password());
        }
        let is_other = known.personal.email != self.email;
        if self.email_proof != EmailProof::Missing && is_other {
            return Err(Error::of_member(Code::EmailCodeInvalid, "emailCode"));
        }
        // Without a proof the address named was the one known: by now it would replace another.
        if self.email.is_some() && self.password_hash.is_none() && is_other {
            return Err(unproven());
        }
        Ok(known)
    }

    /// The refusal of the password, with that of a code that is wrong, too.
    fn wrong_password(&self) -> Error {
        let mut refusal = Refusal::new();
        refusal.add_of_member(Code::LoginInvalid, "oldPassword");
        if self.email_proof == EmailProof::Invalid {
            refusal.add_of_member(Code::EmailCodeInvalid, "emailCode");
        }
        refusal.into()
    }
}

fn unproven() -> Error {
    let detail = "oldPassword, or an emailCode that was mailed to the address known";
    Error::with_detail(Code::PasswordMissing, detail)
}

async fn stored_hash(conn: &mut Connection, caller: &ClientAndUser) -> Result<Option<String>> {
    let hash = sqlx::query_scalar!(
        "select password_hash from end_user where client_id = $1 and user_id = $2",
        caller.client.id().uuid(),
        caller.user.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(hash.flatten())
}
