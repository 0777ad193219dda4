//! End users: registration, credentials, verification, personal data, accounts.
//!
//! Personal data are in one object that is sealed with the user's own key ([`personal_data`]); an
//! e-mail address is found by a keyed digest. No statement, log line or audit row has a personal value
//! in clear.

pub mod account;
pub mod account_pages;
pub mod accounts;
pub(crate) mod answers;
mod attempts;
pub(crate) mod authenticator_app;
mod birth_date;
pub mod by_email;
mod chamber_of_commerce;
pub mod changed;
pub(crate) mod consent;
mod details;
pub mod documents;
mod email_code;
pub(crate) mod email_confirmation;
pub mod erase;
pub mod forgot_password;
pub mod identifier;
pub mod identifiers;
pub mod identity_checks;
pub mod link_identifier;
mod member_docs;
pub(crate) mod one_time_token;
mod ownership;
pub(crate) mod passkeys;
pub(crate) mod person;
pub mod personal_data;
mod personal_keys;
pub mod profile;
pub mod register;
pub mod register_identifier;
pub mod reset_page;
pub(crate) mod residence;
pub mod retained_record;
pub mod search_index;
mod second_factor_change;
pub mod second_factors;
pub mod security_notice;
pub mod session;
pub(crate) mod share_token;
pub mod simulated_checks;
pub(crate) mod tax_residency;
pub(crate) mod uploads;
pub mod user_update;
pub mod verification;
mod wallets;
mod website_region;

pub use attempts::Attempts;

use chrono::TimeDelta;

use crate::Core;
use crate::platform::error::Result;
use crate::platform::sweeps::{DELETED_MAX, delete_expired};
use rampart_types::ClientId;

/// Retention of a mail.
const MAIL_RETENTION: TimeDelta = TimeDelta::days(30);
/// Retention of an expired token, so that its use is reported as expired.
const TOKEN_RETENTION: TimeDelta = TimeDelta::days(1);

impl Core {
    /// Deletes expired codes and tokens, and old mail: one run of a worker. True if there may be more.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub async fn delete_expired_codes(&self) -> Result<bool> {
        let more_buckets = self.delete_full_buckets().await?;
        let clients = sqlx::query_scalar!(
            // Each table by its index, whatever the statistics say: one look for each client.
            "select c.client_id from client c cross join lateral ( \
                 (select 1 from email_code e \
                 where e.client_id = c.client_id and e.expires_at <= rampart_now() limit 1) \
                 union all \
                 (select 1 from one_time_token t where t.client_id = c.client_id \
                 and t.expires_at <= rampart_now() - $1::bigint * interval '1 second' limit 1) \
                 union all \
                 (select 1 from mail_outbox m where m.client_id = c.client_id \
                 and m.created_at <= rampart_now() - $2::bigint * interval '1 second' limit 1) \
                 union all \
                 (select 1 from passkey_challenge p \
                 where p.client_id = c.client_id and p.expires_at <= rampart_now() limit 1) \
                 limit 1) due",
            TOKEN_RETENTION.num_seconds(),
            MAIL_RETENTION.num_seconds(),
        )
        .fetch_all(&self.db)
        .await?;
        let delete = |client| self.delete_expired_codes_of(client);
        let more = delete_expired(&self.metrics, "codes and mail", clients, delete).await?;
        Ok(more_buckets || more)
    }

    async fn delete_expired_codes_of(&self, client: ClientId) -> Result<bool> {
        let codes = sqlx::query!(
            "delete from email_code where client_id = $1 and email_index in ( \
                 select email_index from email_code \
                 where client_id = $1 and expires_at <= rampart_now() \
                 limit $2 for update skip locked)",
            client.uuid(),
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        let tokens = sqlx::query!(
            "delete from one_time_token where client_id = $1 and token_digest in ( \
                 select token_digest from one_time_token where client_id = $1 \
                     and expires_at <= rampart_now() - $2::bigint * interval '1 second' \
                 limit $3 for update skip locked)",
            client.uuid(),
            TOKEN_RETENTION.num_seconds(),
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        let mails = sqlx::query!(
            "delete from mail_outbox where client_id = $1 and mail_id in ( \
                 select mail_id from mail_outbox where client_id = $1 \
                     and created_at <= rampart_now() - $2::bigint * interval '1 second' \
                 limit $3 for update skip locked)",
            client.uuid(),
            MAIL_RETENTION.num_seconds(),
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        let challenges = passkeys::delete_expired_challenges(self, client, DELETED_MAX).await?;
        let deleted = [codes, tokens, mails].map(|deleted| deleted.rows_affected());
        Ok(deleted.into_iter().chain([challenges]).any(|rows| rows >= DELETED_MAX.unsigned_abs()))
    }
}
