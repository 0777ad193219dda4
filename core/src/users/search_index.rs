//! The index of users by phone number and full name: keyed digests, scoped to the client, so that the
//! database knows neither. It follows every write of a user's personal data; a worker indexes
//! earlier users.

use uuid::Uuid;

use super::personal_data::{self, PersonalData, SealedPersonalData};
use crate::Core;
use crate::platform::crypto::Purpose;
use crate::platform::db::{Connection, Transaction};
use crate::platform::error::Result;
use crate::platform::sweeps::run_batches;
use rampart_types::{ClientId, PhoneNumber, UserKey, folded_name};

/// Users of one transaction of the worker.
const BATCH_ROWS: i64 = 200;
/// Most transactions of one run of the worker.
const BATCHES_MAX: usize = 50;
/// The worker in metrics and logs.
const SWEEP: &str = "user search";

/// A value that users are found by.
#[derive(Clone, Debug)]
pub enum SearchKey {
    /// A phone number.
    Phone(PhoneNumber),
    /// A name of a person or a business, as [`folded_name`] makes it.
    Name(String),
}

impl SearchKey {
    /// The kind, as stored.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Phone(_) => "phone",
            Self::Name(_) => "name",
        }
    }

    /// The digest under which users of this client are found.
    ///
    /// # Errors
    /// Those of [`crate::platform::crypto::MasterKey::mac`].
    pub fn digest(&self, core: &Core, client: ClientId) -> Result<Vec<u8>> {
        let value = match self {
            Self::Phone(phone) => phone.as_str(),
            Self::Name(name) => name,
        };
        let message = format!("{}/{client}/{value}", self.kind());
        Ok(core.keys.mac(Purpose::BlindIndex, message.as_bytes())?.as_ref().to_vec())
    }

    /// True if these personal data have the value: the index may be older than they are.
    pub fn is_of(&self, personal: &PersonalData) -> bool {
        match self {
            Self::Phone(phone) => personal.phone_number.as_ref() == Some(phone),
            Self::Name(name) => names(personal).any(|known| known == *name),
        }
    }
}

/// The names that somebody is found by: the person's, and the business's.
fn names(personal: &PersonalData) -> impl Iterator<Item = String> {
    let parts = [personal.first_name.as_deref(), personal.last_name.as_deref()];
    let person = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let business = personal.business_name.as_deref().unwrap_or_default();
    [folded_name(&person), folded_name(business)].into_iter().filter(|name| !name.is_empty())
}

fn keys(personal: &PersonalData) -> Vec<SearchKey> {
    let phone = personal.phone_number.clone().map(SearchKey::Phone);
    phone.into_iter().chain(names(personal).map(SearchKey::Name)).collect()
}

/// Makes the user's rows those of the personal data, in the transaction that writes them.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn write(
    conn: &mut Connection,
    core: &Core,
    UserKey { client, user }: UserKey,
    personal: &PersonalData,
) -> Result<()> {
    let (mut kinds, mut digests) = (Vec::new(), Vec::new());
    for key in keys(personal) {
        kinds.push(key.kind().to_owned());
        digests.push(key.digest(core, client)?);
    }
    sqlx::query!(
        "with current as (select kind, digest from unnest($3::text[], $4::bytea[]) k (kind, digest)), \
             gone as (delete from user_search s where s.client_id = $1 and s.user_id = $2 \
                 and not exists (select from current k \
                     where k.kind = s.kind and k.digest = s.digest)) \
         insert into user_search (client_id, kind, digest, user_id) \
         select $1, kind, digest, $2 from current on conflict do nothing",
        client.uuid(),
        user.uuid(),
        &kinds,
        &digests,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes the user's rows, of one who is erased.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn delete(conn: &mut Connection, UserKey { client, user }: UserKey) -> Result<()> {
    sqlx::query!(
        "delete from user_search where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

impl Core {
    /// Indexes users who registered before the index existed: one run of a worker. The next run waits
    /// for a user whose row somebody holds: one that was passed over could not be found.
    ///
    /// # Errors
    /// When the database cannot be used; the next run continues.
    pub async fn index_users(&self) -> Result<()> {
        run_batches(&self.metrics, SWEEP, BATCHES_MAX, || index_batch(self)).await
    }
}

/// A user of a batch, with what its personal data are opened by.
struct Sealed {
    client_id: Uuid,
    user_id: Uuid,
    sealed_key: Option<Vec<u8>>,
    personal: Option<Vec<u8>>,
}

/// Indexes the next users. False when there is nothing to do, or another edge does it.
async fn index_batch(core: &Core) -> Result<bool> {
    let mut tx = core.db.begin().await?;
    let at = sqlx::query!(
        "select after_client, after_user from user_search_backfill \
         where finished_at is null for update skip locked",
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(at) = at else { return Ok(false) };
    // The lock makes a change of the user wait, so that its own rows are the last ones.
    let users = sqlx::query_as!(
        Sealed,
        r#"
        select u.client_id, u.user_id, u.personal,
            coalesce(k.sealed, nullif(u.sealed_key, '')) as sealed_key
        from end_user u left join personal_key k using (client_id, user_id)
        where (u.client_id, u.user_id) > ($1, $2)
        order by u.client_id, u.user_id limit $3 for share of u
        "#,
        at.after_client,
        at.after_user,
        BATCH_ROWS,
    )
    .fetch_all(&mut *tx)
    .await?;
    for user in &users {
        index(&mut tx, core, user).await?;
    }
    let last = users.last().map_or((at.after_client, at.after_user), |u| (u.client_id, u.user_id));
    let is_done = i64::try_from(users.len()).is_ok_and(|count| count < BATCH_ROWS);
    sqlx::query!(
        "update user_search_backfill set after_client = $1, after_user = $2, \
             finished_at = case when $3 then now() end",
        last.0,
        last.1,
        is_done,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(!is_done)
}

/// Indexes one user; one whose data cannot be opened is counted and left out.
async fn index(tx: &mut Transaction<'_>, core: &Core, user: &Sealed) -> Result<()> {
    let key = UserKey { client: user.client_id.into(), user: user.user_id.into() };
    let sealed =
        SealedPersonalData { key: user.sealed_key.as_deref(), personal: user.personal.as_deref() };
    match personal_data::read(core, key, sealed) {
        Ok(personal) => write(tx, core, key, &personal).await,
        Err(error) => core.metrics.row_failed(SWEEP, user.client_id, &user.user_id, error),
    }
}
