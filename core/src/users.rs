//! End users: who they are, how they prove it, what is kept of them.
//!
//! What identifies a person is in one sealed object under a key of the user's own ([`personal`]);
//! an e-mail address is found through a keyed digest. No statement, log line or audit row has a
//! personal value in clear.

pub(crate) mod account;
pub mod accounts;
pub(crate) mod answers;
mod attempts;
mod birth_date;
pub mod by_email;
mod chamber_of_commerce;
mod details;
pub(crate) mod documents;
mod email_code;
pub(crate) mod erase;
pub(crate) mod identifier;
pub mod identifiers;
pub mod link_identifier;
mod member_docs;
pub(crate) mod one_time_token;
pub(crate) mod personal;
pub mod portal;
pub mod profile;
pub mod register;
pub mod register_identifier;
pub mod reset_page;
pub mod session;
mod subject;
pub mod verification;

pub use attempts::Attempts;

use chrono::TimeDelta;

use crate::Core;
use crate::platform::error::Result;

/// How long a mail is kept after it was written.
const MAIL_KEPT: TimeDelta = TimeDelta::days(30);
/// How long a token is kept after it has ended, so that whoever presents it learns that it has.
const TOKENS_KEPT: TimeDelta = TimeDelta::days(1);
/// Rows of one table and client that one turn of the worker forgets.
const FORGOTTEN_MAX: i64 = 5_000;

impl Core {
    /// Forgets codes and tokens that have ended, and old mail: a turn of a worker.
    ///
    /// # Errors
    /// When the database cannot be written; the next turn goes on.
    pub async fn forget_ended_codes(&self) -> Result<()> {
        let now = self.clock.now();
        for client in self.snapshots.current().tenants.keys() {
            sqlx::query!(
                "delete from email_code where client_id = $1 and email_index in ( \
                     select email_index from email_code \
                     where client_id = $1 and expires_at <= $2 limit $3)",
                client.uuid(),
                now,
                FORGOTTEN_MAX,
            )
            .execute(&self.db)
            .await?;
            sqlx::query!(
                "delete from one_time_token where client_id = $1 and token_digest in ( \
                     select token_digest from one_time_token \
                     where client_id = $1 and expires_at <= $2 limit $3)",
                client.uuid(),
                now - TOKENS_KEPT,
                FORGOTTEN_MAX,
            )
            .execute(&self.db)
            .await?;
            sqlx::query!(
                "delete from mail_outbox where client_id = $1 and mail_id in ( \
                     select mail_id from mail_outbox \
                     where client_id = $1 and created_at <= $2 limit $3)",
                client.uuid(),
                now - MAIL_KEPT,
                FORGOTTEN_MAX,
            )
            .execute(&self.db)
            .await?;
        }
        Ok(())
    }
}
