//! Records of erased users that law wants kept for years after the last order: identity, answers about
//! the origin of money, identity documents, and the accounts that were traded with.
//!
//! A record is sealed under a key of its own, which is deleted with it; the images' keys are in it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::account::Account;
use super::accounts;
use super::personal_data::{self, PersonalData};
use crate::Core;
use crate::platform::crypto::DataKey;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use rampart_types::UserKey;

/// Most records of one statement of the worker.
const DESTROYED_MAX: i64 = 100;

/// A record of an erased user.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "RetainedRecord")]
pub struct RetainedRecord {
    /// Without contact details.
    personal: PersonalData,
    /// Those that orders were paid from or to.
    accounts: Vec<RetainedAccount>,
    /// Images of identity documents.
    pub documents: Vec<RetainedDocument>,
}

/// An account of a user, as a retained record has it.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
struct RetainedAccount {
    #[serde(rename = "type")]
    kind: accounts::AccountType,
    /// IBAN, masked card number, or the provider's id.
    identifier: String,
    /// Name of the holder; empty if unknown.
    name: String,
}

/// The image of a side of an identity document.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetainedDocument {
    /// The image's id.
    pub id: Uuid,
    /// The document, such as `passport`.
    #[serde(rename = "type")]
    kind: String,
    /// `front` or `back`.
    side: String,
    /// Such as `image/png`.
    pub media_type: String,
}

rampart_types::opaque_debug!(RetainedRecord);

/// A record as it is sealed.
#[derive(Deserialize, Serialize)]
struct Stored {
    record: RetainedRecord,
    /// Keys of the images, in base64.
    keys: BTreeMap<Uuid, String>,
}

/// A record that was opened.
pub struct OpenedRecord {
    /// The record.
    pub record: RetainedRecord,
    /// Keys of the images.
    pub keys: BTreeMap<Uuid, DataKey>,
    /// Time of the last order.
    pub last_order_at: DateTime<Utc>,
    /// End of the retention.
    pub retained_until: DateTime<Utc>,
}

/// The context that a record's key is sealed for.
pub fn key_context(UserKey { client, user }: UserKey) -> String {
    format!("retention_key/{client}/{user}")
}

fn record_context(UserKey { client, user }: UserKey) -> String {
    format!("retained_record/{client}/{user}")
}

fn image_context(id: Uuid) -> String {
    format!("retained_record/image/{id}")
}

fn years(core: &Core) -> i32 {
    i32::from(core.settings.privacy.retention_years)
}

/// Keeps a record of a user who is about to be erased, in the caller's transaction, if the last order
/// is recent enough. Returns the images that it names.
///
/// # Errors
/// When the database or the store of documents cannot be used.
pub(super) async fn keep(conn: &mut Connection, core: &Core, user: UserKey) -> Result<Vec<Uuid>> {
    let last_order_at = sqlx::query_scalar!(
        r#"
        select max(created_at) from (
            (select created_at from buy_order where client_id = $1 and user_id = $2
                order by created_at desc limit 1)
            union all
            (select created_at from sell_order where client_id = $1 and user_id = $2
                order by created_at desc limit 1)
        ) o where created_at + make_interval(years => $3) > now()
        "#,
        user.client.uuid(),
        user.user.uuid(),
        years(core),
    )
    .fetch_one(&mut *conn)
    .await?;
    let Some(last_order_at) = last_order_at else { return Ok(Vec::new()) };
    let account = Account::load(conn, core, user).await?;
    let Some(account) = account.filter(|account| account.deleted_at.is_none()) else {
        return Ok(Vec::new());
    };
    let key = DataKey::random(&core.clock)?;
    let accounts = traded_accounts(conn, core, user).await?;
    let (documents, keys) = documents(conn, core, user, &key).await?;
    let ids: Vec<Uuid> = documents.iter().map(|document| document.id).collect();
    let record = RetainedRecord { personal: account.personal.retained(), accounts, documents };
    let plain = serde_json::to_vec(&Stored { record, keys })
        .map_err(|error| Error::internal("write a retained record", error))?;
    let (cipher, context) = (core.cipher(user.client), key_context(user));
    sqlx::query!(
        "with key as (insert into retention_key (client_id, user_id, sealed) \
             values ($1, $2, case when exists (select from user_key_master_seal) then $7::bytea \
                 else $3::bytea end)) \
         insert into retained_record \
             (client_id, user_id, sealed, document_ids, last_order_at, created_at) \
         values ($1, $2, $4, $5, $6, now())",
        user.client.uuid(),
        user.user.uuid(),
        cipher.wrap(&context, &key)?,
        key.seal(&core.clock, &record_context(user), &plain)?,
        &ids,
        last_order_at,
        cipher.wrap_twice(&context, &key)?,
    )
    .execute(conn)
    .await?;
    Ok(ids)
}

/// The accounts that the user's orders name.
async fn traded_accounts(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
) -> Result<Vec<RetainedAccount>> {
    let traded = sqlx::query_scalar!(
        "select account_id from payment_account a where client_id = $1 and user_id = $2 \
         and (exists (select from buy_order o where o.client_id = $1 and o.user_id = $2 \
                 and o.account_id = a.account_id) \
             or exists (select from sell_order o where o.client_id = $1 and o.user_id = $2 \
                 and o.account_id = a.account_id))",
        key.client.uuid(),
        key.user.uuid(),
    )
    .fetch_all(&mut *conn)
    .await?;
    let known = accounts::list(conn, core, key).await?;
    let kept = known.into_iter().filter(|account| traded.contains(&account.id));
    let kept = kept.map(|account| RetainedAccount {
        kind: account.kind,
        identifier: account.details.identifier,
        name: account.details.holder,
    });
    Ok(kept.collect())
}

/// The identity documents that were not refused, and their images' keys, sealed under the record's.
async fn documents(
    conn: &mut Connection,
    core: &Core,
    user: UserKey,
    record_key: &DataKey,
) -> Result<(Vec<RetainedDocument>, BTreeMap<Uuid, String>)> {
    let rows = sqlx::query_as!(
        RetainedDocument,
        r#"
        select document_id as id, type as kind, side, media_type as "media_type!"
        from user_document
        where client_id = $1 and user_id = $2 and media_type is not null and status <> 'failed'
        order by type, side
        "#,
        user.client.uuid(),
        user.user.uuid(),
    )
    .fetch_all(&mut *conn)
    .await?;
    if rows.is_empty() {
        return Ok((rows, BTreeMap::new()));
    }
    let personal_key = personal_data::load_key(conn, core, user).await?;
    let found = image_keys(core, &personal_key, rows.iter().map(|row| row.id).collect()).await?;
    let mut keys = BTreeMap::new();
    for (id, key) in &found {
        let sealed = record_key.seal_key(&core.clock, &image_context(*id), key)?;
        keys.insert(*id, STANDARD.encode(sealed));
    }
    let kept = rows.into_iter().filter(|row| keys.contains_key(&row.id)).collect();
    Ok((kept, keys))
}

/// The keys of these images. One that is lost or damaged is logged: it must not be in the way of an
/// erasure.
async fn image_keys(
    core: &Core,
    personal_key: &PersonalDataKey,
    ids: Vec<Uuid>,
) -> Result<Vec<(Uuid, DataKey)>> {
    let mut keys = Vec::with_capacity(ids.len());
    for id in ids {
        match core.documents.key(personal_key, id).await? {
            Some(key) => keys.push((id, key)),
            None => tracing::error!(%id, "the image of an identity document is lost or damaged"),
        }
    }
    Ok(keys)
}

/// Opens the record of an erased user, if one is kept.
///
/// # Errors
/// When the database cannot be read, or the record cannot be opened.
pub async fn open(
    conn: &mut Connection,
    core: &Core,
    user: UserKey,
) -> Result<Option<OpenedRecord>> {
    let row = sqlx::query!(
        r#"
        select r.sealed, k.sealed as sealed_key, last_order_at,
            last_order_at + make_interval(years => $3) as "retained_until!"
        from retained_record r join retention_key k using (client_id, user_id)
        where client_id = $1 and user_id = $2
            and last_order_at + make_interval(years => $3) > now()
        "#,
        user.client.uuid(),
        user.user.uuid(),
        years(core),
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let key = core.cipher(user.client).unwrap_key(&key_context(user), &row.sealed_key)?;
    let plain = key.open(&record_context(user), &row.sealed)?;
    let stored: Stored =
        serde_json::from_slice(&plain).map_err(|_| Error::invariant("read a retained record"))?;
    let mut keys = BTreeMap::new();
    for (id, sealed) in stored.keys {
        let sealed =
            STANDARD.decode(sealed).map_err(|_| Error::invariant("read a retained record"))?;
        keys.insert(id, key.open_key(&image_context(id), &sealed)?);
    }
    let (last_order_at, retained_until) = (row.last_order_at, row.retained_until);
    Ok(Some(OpenedRecord { record: stored.record, keys, last_order_at, retained_until }))
}

impl Core {
    /// Destroys the records whose time is over, with their keys and images: one run of a worker.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub async fn destroy_retained_records(&self) -> Result<()> {
        loop {
            let destroyed = sqlx::query_scalar!(
                r#"
                with due as materialized (
                    select client_id, user_id from retained_record
                    where last_order_at <= now() - make_interval(years => $1)
                    order by last_order_at limit $2 for update skip locked
                ), gone as (
                    delete from retained_record r using due
                    where r.client_id = due.client_id and r.user_id = due.user_id
                    returning r.client_id, r.user_id, r.document_ids
                ), keys as (
                    delete from retention_key k using gone
                    where k.client_id = gone.client_id and k.user_id = gone.user_id
                ), queued as (
                    insert into document_removal (client_id, document_id, created_at)
                    select client_id, unnest(document_ids), now() from gone
                    on conflict do nothing
                )
                select count(*) as "count!" from gone
                "#,
                years(self),
                DESTROYED_MAX,
            )
            .fetch_one(&self.db)
            .await?;
            if destroyed > 0 {
                tracing::info!(records = destroyed, "retained records were destroyed");
            }
            if destroyed < DESTROYED_MAX {
                return Ok(());
            }
        }
    }
}
