//! A stored user with opened personal data, for the profile, registration and operators.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::personal_data::{self, PersonalData, SealedPersonalData};
use crate::Core;
use crate::http::language::{Language, Texts};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::{ClientId, EmailAddress, PhoneNumber, UserId, UserKey};

/// A user, possibly deleted.
#[derive(Clone, Debug)]
pub struct Account {
    /// Partner of the user.
    pub client: ClientId,
    /// Its id.
    pub user: UserId,
    /// Name, address and what else tells who it is.
    pub personal: PersonalData,
    /// Verification level.
    pub level: String,
    /// Country of residence.
    pub country: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) is_business: bool,
    /// True if the user takes the newsletter.
    pub newsletter: bool,
    /// Verification statuses.
    pub statuses: Statuses,
    /// Limits that an operator has set, by subtype.
    pub limit_overrides: Value,
    /// Time of the disabling.
    pub disabled_at: Option<DateTime<Utc>>,
    /// Time of the deletion.
    pub deleted_at: Option<DateTime<Utc>>,
    pub(crate) activated_at: Option<DateTime<Utc>>,
    /// Time of the registration.
    pub created_at: DateTime<Utc>,
}

/// The verification statuses of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses {
    /// Status of the e-mail address.
    pub email: String,
    /// Status of the identity check.
    pub identity: String,
    /// Status of the AMLD5 questions.
    pub amld5: String,
    pub(crate) privacy_agreement: String,
    /// Status of the residential address.
    pub residential_address: String,
    /// Status of the DAC8 declaration.
    pub dac8: String,
}

impl Statuses {
    /// True if every required verification is complete.
    pub fn is_verified(&self) -> bool {
        let needed = [&self.email, &self.identity, &self.amld5, &self.privacy_agreement];
        needed.into_iter().all(|status| status == "verified")
    }
}

impl Account {
    /// The user's key.
    pub(crate) fn key(&self) -> UserKey {
        UserKey { client: self.client, user: self.user }
    }

    /// Loads a user of this client, if it exists. A transaction that changes the user must lock its
    /// row first.
    ///
    /// # Errors
    /// When the database cannot be read, or the personal values cannot be opened.
    pub async fn load(
        conn: &mut Connection,
        core: &Core,
        UserKey { client, user }: UserKey,
    ) -> Result<Option<Self>> {
        let row = sqlx::query!(
            r#"
            select coalesce(k.sealed, nullif(sealed_key, '')) as sealed_key, personal, level,
                country, region, is_business, newsletter, email_status, identity_status,
                amld5_status, privacy_agreement_status, residential_address_status, dac8_status,
                limit_overrides, disabled_at, deleted_at, activated_at, created_at
            from end_user left join personal_key k using (client_id, user_id)
            where client_id = $1 and user_id = $2
            "#,
            client.uuid(),
            user.uuid(),
        )
        .fetch_optional(conn)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let sealed = SealedPersonalData {
            key: row.sealed_key.as_deref(),
            personal: row.personal.as_deref(),
        };
        Ok(Some(Self {
            client,
            user,
            personal: personal_data::read(core, UserKey { client, user }, sealed)?,
            level: row.level,
            country: row.country,
            region: row.region,
            is_business: row.is_business,
            newsletter: row.newsletter,
            statuses: Statuses {
                email: row.email_status,
                identity: row.identity_status,
                amld5: row.amld5_status,
                privacy_agreement: row.privacy_agreement_status,
                residential_address: row.residential_address_status,
                dac8: row.dac8_status,
            },
            limit_overrides: row.limit_overrides,
            disabled_at: row.disabled_at,
            deleted_at: row.deleted_at,
            activated_at: row.activated_at,
            created_at: row.created_at,
        }))
    }
}

/// The strength of a lock of a user's row.
#[derive(Clone, Copy, Debug)]
pub enum RowLock {
    /// `for update`: nobody writes rows that refer to the user beside it, such as tokens.
    Update,
    /// `for no key update`: others may write such rows, and the caller may have written some.
    NoKeyUpdate,
}

/// Locks the user's row until the transaction ends; `false` when there is none or it is deleted.
///
/// # Errors
/// When the database cannot be used.
pub async fn lock(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
    strength: RowLock,
) -> Result<bool> {
    let (client, user) = (client.uuid(), user.uuid());
    let found = match strength {
        RowLock::Update => {
            sqlx::query_scalar!(
                r#"
                select 1 as "found!" from end_user
                where client_id = $1 and user_id = $2 and deleted_at is null for update
                "#,
                client,
                user,
            )
            .fetch_optional(conn)
            .await?
        }
        RowLock::NoKeyUpdate => {
            sqlx::query_scalar!(
                r#"
                select 1 as "found!" from end_user
                where client_id = $1 and user_id = $2 and deleted_at is null for no key update
                "#,
                client,
                user,
            )
            .fetch_optional(conn)
            .await?
        }
    };
    Ok(found.is_some())
}

/// The texts in the user's language.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn texts_of(conn: &mut Connection, key: UserKey) -> Result<Texts> {
    let region = region_of(conn, key).await?;
    Ok(Language::of_region(region.as_deref()).texts())
}

/// The texts of a page whose reader turns out to be this user, as [`Texts::of_account`].
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn page_texts(core: &Core, texts: Texts, key: UserKey) -> Result<Texts> {
    page_texts_in(&mut *core.db.acquire().await?, texts, key).await
}

/// The same over the caller's connection.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn page_texts_in(
    conn: &mut Connection,
    texts: Texts,
    key: UserKey,
) -> Result<Texts> {
    let region = region_of(conn, key).await?;
    Ok(texts.of_account(region.as_deref()))
}

/// The user's website locale.
async fn region_of(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
) -> Result<Option<String>> {
    let region = sqlx::query_scalar!(
        "select region from end_user where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(region.flatten())
}

/// A registered user in responses.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredUser {
    /// E-mail address.
    email: Option<EmailAddress>,
    /// First name.
    first_name: Option<String>,
    /// Last name.
    last_name: Option<String>,
    /// Phone number.
    phone_number: Option<PhoneNumber>,
    /// Country of residence, by ISO 3166-1 alpha-2.
    country: Option<String>,
    /// `true` for a business.
    is_business: bool,
    /// Time of the registration.
    registration_date: DateTime<Utc>,
    /// Time at which the e-mail address was verified; null until then.
    activation_date: Option<DateTime<Utc>>,
}

impl From<Account> for RegisteredUser {
    fn from(account: Account) -> Self {
        let personal = account.personal;
        Self {
            email: personal.email,
            first_name: personal.first_name,
            last_name: personal.last_name,
            phone_number: personal.phone_number,
            country: account.country,
            is_business: account.is_business,
            registration_date: account.created_at,
            activation_date: account.activated_at,
        }
    }
}
