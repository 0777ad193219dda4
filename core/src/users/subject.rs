//! Writing what was learnt of a user, in the caller's transaction.

use sqlx::PgConnection;

use super::details::Details;
use super::documents;
use super::email_code;
use super::personal::{self, Personal, email_index};
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::error::{Code, OnConstraint as _, Result};
use crate::platform::object_store::StoredObject;
use rampart_types::{Country, EmailAddress, UserId, WebsiteLocale};

/// What the request's `emailCode` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// It has none: a code is to be mailed.
    Missing,
    /// It was mailed to this address.
    Of(EmailAddress),
    /// Nothing (ER090).
    Wrong,
}

impl Proof {
    /// Checks a code. A wrong one is counted, so this comes before any transaction.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub(super) async fn of(
        core: &Core,
        client: &Client,
        email: Option<&EmailAddress>,
        code: Option<&str>,
    ) -> Result<Self> {
        Ok(match (email, code) {
            (_, None) => Self::Missing,
            (Some(email), Some(code))
                if email_code::is_right(core, client, email, code).await? =>
            {
                Self::Of(email.clone())
            }
            _ => Self::Wrong,
        })
    }
}

/// The user that is written to.
pub(super) struct Subject<'a> {
    pub(super) core: &'a Core,
    pub(super) client: &'a Client,
    pub(super) user: UserId,
    pub(super) vault: PersonalDataKey,
}

impl<'a> Subject<'a> {
    /// A user whose row the transaction has locked. One that came without personal values gets a
    /// key now.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub(super) async fn of(
        conn: &mut PgConnection,
        core: &'a Core,
        client: &'a Client,
        user: UserId,
    ) -> Result<Self> {
        let vault = personal::key_of(conn, core, client.id(), user).await?;
        Ok(Self { core, client, user, vault })
    }

    /// Stores what the user is now; `known` is what was known before. A check of what has changed
    /// counts no more. The images that came are for the caller to retain.
    ///
    /// # Errors
    /// ER708 for a document that must not be replaced.
    pub(super) async fn store(
        &self,
        conn: &mut PgConnection,
        (known, personal): (&Personal, &Personal),
        details: Details,
    ) -> Result<Vec<StoredObject>> {
        let agreement = details.privacy_agreement.map(|agreed| match agreed {
            true => "verified",
            false => "pending",
        });
        sqlx::query!(
            "update end_user set \
                 personal = $3, \
                 country = coalesce($4, country), \
                 region = coalesce($5, region), \
                 is_business = coalesce($6, is_business), \
                 newsletter = coalesce($7, newsletter), \
                 privacy_agreement_status = coalesce($8, privacy_agreement_status), \
                 identity_status = case when $9 and identity_status = 'verified' \
                     then 'pending' else identity_status end, \
                 residential_address_status = case when $10 \
                     then 'present' else residential_address_status end \
             where client_id = $1 and user_id = $2",
            self.client.id().uuid(),
            self.user.uuid(),
            personal::seal(&self.vault, self.core, personal)?,
            details.country.map(Country::as_str),
            details.region.as_ref().map(WebsiteLocale::to_string),
            details.is_business,
            details.newsletter,
            agreement,
            known.identity() != personal.identity(),
            personal.residence().is_some() && known.residence() != personal.residence(),
        )
        .execute(&mut *conn)
        .await?;
        let holder = (self.client.id(), self.user, &self.vault);
        documents::store(conn, self.core, holder, details.documents).await
    }

    /// Gives the user this address; `false` when another one has it.
    ///
    /// # Errors
    /// ER002 when another one takes it at this moment.
    pub(super) async fn take_email(
        &self,
        conn: &mut PgConnection,
        email: &EmailAddress,
    ) -> Result<bool> {
        let index = email_index(self.core, self.client.id(), email)?;
        let taken = sqlx::query_scalar!(
            r#"
            select 1 as "taken!" from end_user
            where client_id = $1 and email_index = $2 and user_id <> $3
            "#,
            self.client.id().uuid(),
            index,
            self.user.uuid(),
        )
        .fetch_optional(&mut *conn)
        .await?;
        if taken.is_some() {
            return Ok(false);
        }
        sqlx::query!(
            "update end_user set email_index = $3, email_status = 'pending' \
             where client_id = $1 and user_id = $2",
            self.client.id().uuid(),
            self.user.uuid(),
            index,
        )
        .execute(conn)
        .await
        .on_constraint("end_user_email_index_key", Code::EmailTaken)?;
        Ok(true)
    }

    /// Marks the address as proven where the proof is of it; else mails a code to it.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub(super) async fn settle_email(
        &self,
        conn: &mut PgConnection,
        email: &EmailAddress,
        proof: &Proof,
    ) -> Result<()> {
        if *proof != Proof::Of(email.clone()) {
            return email_code::mail(conn, self.core, self.client, (self.user, email)).await;
        }
        sqlx::query!(
            "update end_user set email_status = 'verified', \
                 activated_at = coalesce(activated_at, $3) \
             where client_id = $1 and user_id = $2",
            self.client.id().uuid(),
            self.user.uuid(),
            self.core.clock.now(),
        )
        .execute(&mut *conn)
        .await?;
        email_code::forget(conn, self.core, self.client.id(), email).await
    }

    /// Replaces the password.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub(super) async fn set_password(&self, conn: &mut PgConnection, hash: &str) -> Result<()> {
        sqlx::query!(
            "update end_user set password_hash = $3 where client_id = $1 and user_id = $2",
            self.client.id().uuid(),
            self.user.uuid(),
            hash,
        )
        .execute(conn)
        .await?;
        Ok(())
    }
}
