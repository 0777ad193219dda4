//! Updates of a user, in the caller's transaction.

use super::account::Account;
use super::details::Details;
use super::documents::{self, Outdated, StoredDocument};
use super::email_code::{self, CheckedCode};
use super::identity_checks;
use super::personal_data::{self, PersonalData, email_index};
use super::search_index;
use super::security_notice::{self, Changed};
use super::session;
use super::website_region::WebsiteRegion;
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::db::Connection;
use crate::platform::error::{Code, OnConstraint as _, Result};
use crate::platform::object_store::StoredObject;
use rampart_types::{Country, EmailAddress, UserId, UserKey, WebsiteLocale};

/// The verification of the request's `emailCode`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EmailProof {
    /// No code was sent: one must be mailed.
    Missing,
    /// The code was mailed to its address.
    Verified(CheckedCode),
    /// The code is wrong (ER090).
    Invalid,
}

impl EmailProof {
    /// Checks a code. A wrong one is counted, so this must precede any transaction.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub(super) async fn check(
        core: &Core,
        client: &Client,
        email: Option<&EmailAddress>,
        code: Option<&str>,
    ) -> Result<Self> {
        let Some(code) = code else { return Ok(Self::Missing) };
        let checked = match email {
            Some(email) => email_code::check(core, client, email, code).await?,
            None => None,
        };
        Ok(checked.map_or(Self::Invalid, Self::Verified))
    }
}

/// The state of a user before an update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Previous<'a> {
    pub(super) personal: &'a PersonalData,
    /// The country of residence, by ISO 3166-1 alpha-2.
    pub(super) country: Option<&'a str>,
}

/// An update of one user.
pub struct UserUpdate<'a> {
    pub(super) core: &'a Core,
    pub(super) client: &'a Client,
    pub(super) user: UserId,
    pub(super) personal_key: PersonalDataKey,
}

impl<'a> UserUpdate<'a> {
    /// Starts an update of a user whose row is locked by the transaction. A user without personal
    /// data gets a key.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub(super) async fn start(
        conn: &mut Connection,
        core: &'a Core,
        client: &'a Client,
        user: UserId,
    ) -> Result<Self> {
        let personal_key = personal_data::load_key(conn, core, client.key_of(user)).await?;
        Ok(Self { core, client, user, personal_key })
    }

    fn key(&self) -> UserKey {
        self.client.key_of(self.user)
    }

    /// Stores the user's data. Changed data must be verified again, by other images where the known
    /// ones were verified; an address in another country is another address. A check that is under
    /// way ends with the name that it was begun for, not with one that was missing, and a business
    /// has questions other than a person's. An agreement or an address that an operator has blocked
    /// stays so. The caller must retain the returned images.
    ///
    /// # Errors
    /// ER708 for a document that must not be replaced.
    pub(super) async fn store(
        &self,
        conn: &mut Connection,
        previous: Previous<'_>,
        personal: &PersonalData,
        details: Details,
        documents: Vec<StoredDocument>,
    ) -> Result<Vec<StoredObject>> {
        let Previous { personal: before, country } = previous;
        let is_other = before.identity() != personal.identity();
        let has_moved =
            before.residence() != personal.residence() || details.names_other_country(country);
        let proves_another = is_other && self.proves_another(conn, before, personal).await?;
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
                 amld5_status = case when is_business <> $6 and amld5_status = 'verified' \
                     then 'pending' else amld5_status end, \
                 newsletter = coalesce($7, newsletter), \
                 privacy_agreement_status = case when privacy_agreement_status = 'blocked' \
                     then 'blocked' else coalesce($8, privacy_agreement_status) end, \
                 identity_status = case when $9 and identity_status = 'verified' \
                     then 'pending' else identity_status end, \
                 residential_address_status = case \
                     when $11 and (residential_address_status = 'missing' \
                         or $10 and residential_address_status <> 'blocked') \
                     then 'present' \
                     when $10 and residential_address_status = 'verified' \
                     then 'missing' else residential_address_status end \
             where client_id = $1 and user_id = $2",
            self.client.id().uuid(),
            self.user.uuid(),
            personal_data::seal(&self.personal_key, self.core, personal)?,
            details.country.map(Country::as_str),
            details.region.as_ref().and_then(WebsiteRegion::locale).map(WebsiteLocale::to_string),
            details.is_business,
            details.newsletter,
            agreement,
            is_other,
            has_moved,
            personal.residence().is_some(),
        )
        .execute(&mut *conn)
        .await?;
        if proves_another {
            identity_checks::end(conn, self.key()).await?;
        }
        if proves_another || has_moved {
            let outdated = Outdated { person: proves_another, address: has_moved };
            documents::want_anew(conn, self.key(), outdated).await?;
        }
        search_index::write(conn, self.core, self.key(), personal).await?;
        let (key, personal_key) = (self.key(), &self.personal_key);
        documents::record(conn, self.core, key, personal_key, documents).await
    }

    /// True if checks and images prove another identity than the user has by now: one that was
    /// verified is taken back by a member that was missing too.
    async fn proves_another(
        &self,
        conn: &mut Connection,
        known: &PersonalData,
        personal: &PersonalData,
    ) -> Result<bool> {
        if known.contradicts(personal) {
            return Ok(true);
        }
        let is_verified = sqlx::query_scalar!(
            r#"
            select identity_status = 'verified' as "verified!" from end_user
            where client_id = $1 and user_id = $2
            "#,
            self.client.id().uuid(),
            self.user.uuid(),
        )
        .fetch_one(conn)
        .await?;
        Ok(is_verified)
    }

    /// Assigns this address to the user; `false` when another user has it. It must be proven anew, unless
    /// an operator has blocked the user's address: the block stays.
    ///
    /// # Errors
    /// ER002 when another user takes it concurrently.
    pub(super) async fn claim_email(
        &self,
        conn: &mut Connection,
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
        // The address until now has to hear of it.
        security_notice::mail(conn, self.core, self.key(), Changed::EmailAddress).await?;
        sqlx::query!(
            "update end_user set email_index = $3, email_status = case email_status \
                 when 'blocked' then 'blocked' else 'pending' end \
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

    /// Applies a code, or the naming of the address without one: the address is verified, or a
    /// code is mailed to it. A code is good for one request, whatever address it has proven. An address
    /// that an operator has blocked stays so.
    ///
    /// # Errors
    /// ER090 when another request has used the code meanwhile.
    pub(super) async fn settle_email(
        &self,
        conn: &mut Connection,
        email: Option<&EmailAddress>,
        proof: &EmailProof,
    ) -> Result<()> {
        let proven = match proof {
            EmailProof::Verified(code) => {
                email_code::consume(conn, self.core, self.client.id(), code).await?;
                Some(&code.email)
            }
            EmailProof::Missing | EmailProof::Invalid => None,
        };
        let Some(email) = email else { return Ok(()) };
        if proven != Some(email) {
            return email_code::mail(conn, self.core, self.client, self.user, email).await;
        }
        verify_email(conn, self.core, self.key()).await
    }

    /// Gives the user another address, which must be proven anew, and ends every session; `false` when
    /// another user has the address. For operators, who have seen other proof of who asks.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn change_email(
        conn: &mut Connection,
        core: &Core,
        client: &Client,
        account: &Account,
        email: &EmailAddress,
    ) -> Result<bool> {
        let update = UserUpdate::start(conn, core, client, account.user).await?;
        if !update.claim_email(conn, email).await? {
            return Ok(false);
        }
        let personal = PersonalData { email: Some(email.clone()), ..account.personal.clone() };
        sqlx::query!(
            "update end_user set personal = $3, email_status = 'pending' \
             where client_id = $1 and user_id = $2",
            client.id().uuid(),
            account.user.uuid(),
            personal_data::seal(&update.personal_key, core, &personal)?,
        )
        .execute(&mut *conn)
        .await?;
        session::end_all(conn, core, account.key()).await?;
        email_code::mail(conn, core, client, account.user, email).await?;
        Ok(true)
    }

    /// Replaces the password.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub(super) async fn set_password(&self, conn: &mut Connection, hash: &str) -> Result<()> {
        sqlx::query!(
            "update end_user set password_hash = $3 where client_id = $1 and user_id = $2",
            self.client.id().uuid(),
            self.user.uuid(),
            hash,
        )
        .execute(&mut *conn)
        .await?;
        security_notice::mail(conn, self.core, self.key(), Changed::Password).await
    }
}

/// Marks the user's address as verified. One that an operator has blocked stays so.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn verify_email(
    conn: &mut Connection,
    core: &Core,
    UserKey { client, user }: UserKey,
) -> Result<()> {
    sqlx::query!(
        "update end_user set email_status = 'verified', \
             activated_at = coalesce(activated_at, $3) \
         where client_id = $1 and user_id = $2 and email_status <> 'blocked'",
        client.uuid(),
        user.uuid(),
        core.clock.now(),
    )
    .execute(conn)
    .await?;
    Ok(())
}
