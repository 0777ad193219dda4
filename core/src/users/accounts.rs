//! Payment and payout accounts of users: bank accounts, cards, wallet-provider accounts.
//!
//! An account's identifier is an IBAN, a masked card number, or the wallet provider's payer id.
//! Identifier and holder are sealed with the user's key and found by a keyed digest. Card numbers are
//! never received: the processor's session replaces them.

mod account_type;
mod correction;
pub mod register_card;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub use self::account_type::AccountType;
use crate::Core;
use crate::platform::crypto::Purpose;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::users::account::{self, RowLock};
use crate::users::personal_data;
use rampart_types::{ClientId, CurrencyCode, Iban, UserKey};

/// Most accounts of one user.
pub const ACCOUNTS_MAX: i64 = 32;
/// Longest identifier, in bytes.
pub const IDENTIFIER_BYTES_MAX: usize = 255;
/// Longest name of a holder, in characters.
pub const HOLDER_CHARS_MAX: usize = 100;

/// The sealed details of an account.
#[derive(Clone, Deserialize, Serialize)]
pub struct AccountDetails {
    /// IBAN, masked card number, or the provider's id.
    pub identifier: String,
    /// Name of the holder; empty if unknown.
    pub holder: String,
    /// The provider's token of the account.
    #[serde(default)]
    pub token: Option<String>,
}

rampart_types::opaque_debug!(AccountDetails);

/// One account of a user.
#[derive(Clone, Debug)]
pub struct PaymentAccount {
    /// Its id.
    pub id: Uuid,
    /// Kind of account.
    pub kind: AccountType,
    /// Number, holder and what else belongs to its kind.
    pub details: AccountDetails,
    /// Text that changes with the details.
    pub version: String,
    pub(crate) is_stored_card: bool,
    /// True if its daily limit is raised.
    pub limit_raised: bool,
    /// Its daily limit in the currency of limits, if an operator has set one.
    pub amount_limit: Option<Decimal>,
    /// True once it is verified.
    pub verified: bool,
    /// True while an operator disables it.
    pub disabled: bool,
    /// Time of the last order that named it; until then, of its creation.
    pub(crate) last_used_at: DateTime<Utc>,
    pub(crate) created_at: DateTime<Utc>,
    /// True for a card that sales can be paid out to at once, as an operator has set.
    pub(crate) fast_access: bool,
}

impl PaymentAccount {
    /// True if sales are paid out to it at once; `None` for what is no card.
    pub fn fast_access_enabled(&self) -> Option<bool> {
        let usable = self.fast_access && self.verified && !self.disabled;
        (self.kind == AccountType::CreditCard).then_some(usable)
    }

    /// The display name: its type and the end of its identifier.
    pub fn label(&self) -> String {
        format!("{} … {}", self.kind.label(), self.identifier_end())
    }

    /// The last four characters of its identifier.
    pub(crate) fn identifier_end(&self) -> &str {
        let identifier = &self.details.identifier;
        let end = identifier.char_indices().rev().nth(3).map_or(0, |(at, _)| at);
        identifier.get(end..).unwrap_or_default()
    }
}

/// A new account.
#[derive(Debug)]
pub struct NewAccount {
    /// Kind of account.
    pub kind: AccountType,
    /// Number, holder and what else belongs to its kind.
    pub details: AccountDetails,
    /// True for a card that the provider stores.
    pub is_stored_card: bool,
    /// True if it counts as verified at once.
    pub verified: bool,
}

/// A completed session with the processor of cards, and the card's holder.
#[derive(Debug)]
pub struct CardSession {
    pub(crate) identifier: String,
    pub(crate) holder: String,
    pub(crate) currency: CurrencyCode,
}

/// The outcome of opening an account.
#[derive(Debug)]
pub enum OpenOutcome {
    /// It was created.
    Created(PaymentAccount),
    /// The user had it before.
    Existing(PaymentAccount),
    /// The user has the most accounts allowed.
    LimitReached,
}

/// Normalizes an identifier for storage: an IBAN without blanks, any other unchanged.
pub(crate) fn canonical(identifier: &str) -> String {
    identifier.parse().map_or_else(|_| identifier.to_owned(), |iban: Iban| iban.as_str().to_owned())
}

/// Reads `accountIdentifier` of a request.
pub(crate) fn identifier(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty())?;
    (text.len() <= IDENTIFIER_BYTES_MAX).then(|| text.to_owned())
}

/// The blind index of an account: a keyed digest, scoped to the client.
fn identifier_index(core: &Core, client: ClientId, identifier: &str) -> Result<Vec<u8>> {
    let message = format!("account/{client}/{identifier}");
    Ok(core.keys.mac(Purpose::BlindIndex, message.as_bytes())?.as_ref().to_vec())
}

fn location(account: Uuid) -> String {
    format!("payment_account/{account}")
}

/// All accounts of the user, including disabled ones, in order of creation.
///
/// # Errors
/// When the database cannot be read, or the accounts cannot be opened.
pub async fn list(
    conn: &mut Connection,
    core: &Core,
    UserKey { client, user }: UserKey,
) -> Result<Vec<PaymentAccount>> {
    let rows = sqlx::query_as!(
        Row,
        r#"
        select account_id, type as kind, sealed as "sealed!", is_stored_card, limit_raised,
            amount_limit, verified_at, disabled_at, last_used_at, created_at, fast_access
        from payment_account
        where client_id = $1 and user_id = $2 and sealed is not null
        order by account_id limit $3
        "#,
        client.uuid(),
        user.uuid(),
        ACCOUNTS_MAX,
    )
    .fetch_all(&mut *conn)
    .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let personal_key = personal_data::load_key(conn, core, UserKey { client, user }).await?;
    rows.into_iter().map(|row| row.open(&personal_key)).collect()
}

/// The user's account with this identifier.
///
/// # Errors
/// Those of [`list`].
pub async fn find(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    identifier: &str,
) -> Result<Option<PaymentAccount>> {
    let row = sqlx::query_as!(
        Row,
        r#"
        select account_id, type as kind, sealed as "sealed!", is_stored_card, limit_raised,
            amount_limit, verified_at, disabled_at, last_used_at, created_at, fast_access
        from payment_account
        where client_id = $1 and user_id = $2 and identifier_index = $3 and sealed is not null
        "#,
        key.client.uuid(),
        key.user.uuid(),
        identifier_index(core, key.client, &canonical(identifier))?,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let personal_key = personal_data::load_key(conn, core, key).await?;
    row.open(&personal_key).map(Some)
}

struct Row {
    account_id: Uuid,
    kind: String,
    sealed: Vec<u8>,
    is_stored_card: bool,
    limit_raised: bool,
    amount_limit: Option<Decimal>,
    verified_at: Option<DateTime<Utc>>,
    disabled_at: Option<DateTime<Utc>>,
    last_used_at: DateTime<Utc>,
    created_at: DateTime<Utc>,
    fast_access: bool,
}

impl Row {
    fn open(self, personal_key: &PersonalDataKey) -> Result<PaymentAccount> {
        let plain = personal_key.open_sealed(&location(self.account_id), &self.sealed)?;
        let details = serde_json::from_slice(&plain)
            .map_err(|_| Error::invariant("read a sealed account"))?;
        Ok(PaymentAccount {
            id: self.account_id,
            kind: AccountType::from_name(&self.kind)
                .ok_or_else(|| Error::invariant("read an account's type"))?,
            details,
            version: correction::version(&self.sealed),
            is_stored_card: self.is_stored_card,
            limit_raised: self.limit_raised,
            amount_limit: self.amount_limit,
            verified: self.verified_at.is_some(),
            disabled: self.disabled_at.is_some(),
            last_used_at: self.last_used_at,
            created_at: self.created_at,
            fast_access: self.fast_access,
        })
    }
}

/// True if the user has accounts of a kind and all of them are disabled.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn all_disabled(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
    kind: AccountType,
) -> Result<bool> {
    let all = sqlx::query_scalar!(
        "select bool_and(disabled_at is not null) from payment_account \
         where client_id = $1 and user_id = $2 and type = $3 and sealed is not null",
        client.uuid(),
        user.uuid(),
        kind.as_str(),
    )
    .fetch_one(conn)
    .await?;
    Ok(all.unwrap_or(false))
}

/// Opens an account for the user in the caller's transaction. Of an existing one with the same
/// identifier the newest holder and token count until it is verified. The user's row is locked from
/// then on.
///
/// # Errors
/// ER709 when the user is deleted; when the database cannot be written.
pub async fn open(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    account: NewAccount,
) -> Result<OpenOutcome> {
    let NewAccount { kind, mut details, is_stored_card, verified } = account;
    details.identifier = canonical(&details.identifier);
    // Racing transactions count one after the other.
    if !account::lock(conn, key, RowLock::NoKeyUpdate).await? {
        return Err(Code::UserNotFound.into());
    }
    let (id, now) = (core.clock.uuid()?, core.clock.now());
    let personal_key = personal_data::load_key(conn, core, key).await?;
    let plain = serde_json::to_vec(&details).map_err(|e| Error::internal("write an account", e))?;
    let sealed = personal_key.seal(&core.clock, &location(id), &plain)?;
    let inserted = sqlx::query!(
        "insert into payment_account (client_id, user_id, account_id, type, sealed, \
             identifier_index, is_stored_card, verified_at, last_used_at, created_at) \
         select $1, $2, $3, $4, $5, $6, $7, case when $8 then $9::timestamptz end, $9, $9 \
         where (select count(*) from payment_account where client_id = $1 and user_id = $2) < $10 \
         on conflict (client_id, user_id, identifier_index) do nothing",
        key.client.uuid(),
        key.user.uuid(),
        id,
        kind.as_str(),
        &sealed,
        identifier_index(core, key.client, &details.identifier)?,
        is_stored_card,
        verified,
        now,
        ACCOUNTS_MAX,
    )
    .execute(&mut *conn)
    .await?;
    if inserted.rows_affected() == 0 {
        let Some(existing) = find(conn, core, key, &details.identifier).await? else {
            return Ok(OpenOutcome::LimitReached);
        };
        let existing = correction::correct(conn, core, key, existing, details).await?;
        return Ok(OpenOutcome::Existing(existing));
    }
    Ok(OpenOutcome::Created(PaymentAccount {
        id,
        kind,
        details,
        version: correction::version(&sealed),
        is_stored_card,
        limit_raised: false,
        amount_limit: None,
        verified,
        disabled: false,
        last_used_at: now,
        created_at: now,
        fast_access: false,
    }))
}

/// Marks an account as verified; `false` when it was verified before, or is disabled.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn verify(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    account: Uuid,
) -> Result<bool> {
    let done = sqlx::query!(
        "update payment_account set verified_at = $4 \
         where client_id = $1 and user_id = $2 and account_id = $3 \
             and verified_at is null and disabled_at is null",
        key.client.uuid(),
        key.user.uuid(),
        account,
        core.clock.now(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Disables an account.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn disable(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    account: Uuid,
) -> Result<()> {
    sqlx::query!(
        "update payment_account set disabled_at = coalesce(disabled_at, $4) \
         where client_id = $1 and user_id = $2 and account_id = $3",
        key.client.uuid(),
        key.user.uuid(),
        account,
        core.clock.now(),
    )
    .execute(conn)
    .await?;
    Ok(())
}
