//! Rotation of the master key: what an earlier key of the ring has sealed is sealed again, in the
//! background, table after table. A tenant's values go under that tenant's key, if it has one; of what
//! is there already, the rotation wraps the tenant's key alone, and the keys of users, mail and share
//! tokens, which the master key seals once more: no earlier copy of these opens once the earlier key is
//! destroyed.

mod columns;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use self::columns::{COLUMNS, IdColumn, NO_CLIENT, SealedColumn};
use crate::Core;
use crate::platform::crypto::lasting_context;
use crate::platform::crypto::tenant_key::TenantCipher;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::sweeps::run_batches;

/// Rows of one transaction.
const BATCH_ROWS: i64 = 200;
/// Most transactions of one turn of the worker.
const BATCHES_MAX: usize = 100;
/// Seconds until the first rotation that seals keys of users twice goes on: what was stored in the
/// earlier form until it was asked for is committed by then.
const COMMITTED_EVERYWHERE_SECONDS: i64 = 60;
/// The rotation in metrics and logs.
const SWEEP: &str = "key rotation";

/// The name of the table that a stage of a rotation is about.
pub(super) fn table(stage: i32) -> &'static str {
    let column = usize::try_from(stage).ok().and_then(|stage| COLUMNS.get(stage));
    column.map_or("lasting_key", |column| column.table)
}

/// Begins the rotation to the key in use, or begins a finished one anew. The first that is asked for
/// has keys of users, mail and share tokens sealed twice, and begins anew what an edge of the version
/// before has begun.
pub(super) async fn begin(conn: &mut Connection, core: &Core, by: &str) -> Result<()> {
    let first = sqlx::query!(
        "insert into user_key_master_seal (since) \
         values (rampart_now() + $1::bigint * interval '1 second') on conflict (only_row) do nothing",
        COMMITTED_EVERYWHERE_SECONDS,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "insert into key_rotation as r \
             (key_id, requested_by, requested_at, stage, after_client, after_row, resealed) \
         values ($1, $2, now(), 0, $3, $4, 0) \
         on conflict (key_id) do update set requested_by = excluded.requested_by, \
             requested_at = excluded.requested_at, finished_at = null, stage = 0, \
             after_client = excluded.after_client, after_row = excluded.after_row, resealed = 0 \
         where r.finished_at is not null or $5::boolean",
        core.keys.id().to_string(),
        by,
        Uuid::nil(),
        COLUMNS[0].first_id(),
        first.rows_affected() > 0,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Goes on with the rotation to the key in use, if one is under way. A row that somebody holds is
/// waited for in the next turn and not passed over: a finished rotation has left none behind.
///
/// # Errors
/// When the database cannot be used.
pub async fn rotate_keys(core: &Core) -> Result<()> {
    run_batches(&core.metrics, SWEEP, BATCHES_MAX, || reseal_batch(core)).await
}

/// Seals the next rows again. False when there is nothing to do, or another edge does it.
async fn reseal_batch(core: &Core) -> Result<bool> {
    let mut tx = core.db.begin().await?;
    let key = core.keys.id().to_string();
    let rotation = sqlx::query!(
        // Tenants' keys that not every edge has loaded yet would seal nothing, and keys of users that
        // are not committed yet would not be found.
        r#"
        select stage, after_client, after_row,
            exists (select from user_key_master_seal) as "seals_twice!"
        from key_rotation
        where key_id = $1 and finished_at is null
            and not exists (select from tenant_key where usable_from > rampart_now())
            and not exists (select from user_key_master_seal where since > rampart_now())
        for update skip locked
        "#,
        key,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(at) = rotation else { return Ok(false) };
    let column = usize::try_from(at.stage).ok().and_then(|stage| COLUMNS.get(stage));
    let Some(column) = column else {
        let resealed = reseal_lasting(&mut tx, core).await?;
        sqlx::query!(
            "update key_rotation set finished_at = now(), resealed = resealed + $2 \
             where key_id = $1",
            key,
            resealed,
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        tracing::info!(key, "the master key is rotated");
        return Ok(false);
    };
    let seals = match column.is_twice && at.seals_twice {
        true => Seals::Twice,
        false => Seals::Once,
    };
    let batch = column.reseal(&mut tx, core, seals, at.after_client, &at.after_row).await?;
    let (stage, client, row) = match batch.last {
        Some((client, row)) => (at.stage, client, row),
        None => {
            let next = usize::try_from(at.stage + 1).ok().and_then(|stage| COLUMNS.get(stage));
            (at.stage + 1, Uuid::nil(), next.map_or("", SealedColumn::first_id).to_owned())
        }
    };
    sqlx::query!(
        "update key_rotation \
         set stage = $2, after_client = $3, after_row = $4, resealed = resealed + $5 \
         where key_id = $1",
        key,
        stage,
        client,
        row,
        batch.resealed,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(true)
}

/// The keys that a value is sealed with again, where its tenant has one.
#[derive(Clone, Copy)]
enum Seals {
    /// The tenant's.
    Once,
    /// The tenant's, and then the master key.
    Twice,
}

impl Seals {
    fn is_current(self, cipher: &TenantCipher<'_>, sealed: &[u8]) -> bool {
        match self {
            Self::Once => cipher.is_current(sealed),
            Self::Twice => cipher.is_current_twice(sealed),
        }
    }

    fn reseal(self, cipher: &TenantCipher<'_>, context: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        let plain = cipher.open(context, sealed)?;
        match self {
            Self::Once => cipher.seal(context, &plain),
            Self::Twice => cipher.seal_twice(context, &plain),
        }
    }
}

/// The result of one batch.
struct Batch {
    resealed: i64,
    /// The last row looked at; `None` at the end of the table.
    last: Option<(Uuid, String)>,
}

impl SealedColumn {
    /// Seals the rows behind `after_row` of `after_client` again. One that cannot be opened is
    /// logged and stays.
    async fn reseal(
        &self,
        conn: &mut Connection,
        core: &Core,
        seals: Seals,
        after_client: Uuid,
        after_row: &str,
    ) -> Result<Batch> {
        let Self { table, client, id: IdColumn { name: id, sql_type: id_type }, column, .. } = self;
        // No index begins with a constant.
        let (behind, order) = match *client {
            NO_CLIENT => (format!("{id} > $1::text::{id_type}"), (*id).to_owned()),
            _ => {
                let behind = format!("({client}, {id}) > ($3, $1::text::{id_type})");
                (behind, format!("{client}, {id}"))
            }
        };
        let select = format!(
            // named: it would be what the page is ordered by, and no index has the text
            "select {client}, {id}::text as row_id, {column} from {table} \
             where {behind} order by {order} limit $2"
        );
        let mut page = sqlx::query_as(AssertSqlSafe(select)).bind(after_row).bind(BATCH_ROWS);
        if *client != NO_CLIENT {
            page = page.bind(after_client);
        }
        let rows: Vec<(Uuid, String, Option<Vec<u8>>)> = page.fetch_all(&mut *conn).await?;
        let is_last = i64::try_from(rows.len()).is_ok_and(|count| count < BATCH_ROWS);
        let last = rows.last().filter(|_| !is_last);
        let last = last.map(|(client, id, _)| (*client, id.clone()));
        let (mut clients, mut ids, mut old, mut new) = (vec![], vec![], vec![], vec![]);
        for (client, id, sealed) in rows {
            let cipher = core.cipher(client.into());
            let is_earlier =
                |sealed: &Vec<u8>| !sealed.is_empty() && !seals.is_current(&cipher, sealed);
            let Some(sealed) = sealed.filter(is_earlier) else { continue };
            let Some(context) = (self.context)(client, &id) else { continue };
            match seals.reseal(&cipher, &context, &sealed) {
                Ok(again) => {
                    clients.push(client);
                    ids.push(id);
                    old.push(sealed);
                    new.push(again);
                }
                Err(error) => {
                    tracing::error!(%error, table, %client, "a value cannot be sealed again");
                }
            }
        }
        let update = format!(
            "update {table} t set {column} = v.new \
             from unnest($1::uuid[], $2::text[], $3::bytea[], $4::bytea[]) v (client, id, old, new) \
             where {client} = v.client and t.{id} = v.id::{id_type} and t.{column} = v.old"
        );
        let updated = sqlx::query(AssertSqlSafe(update))
            .bind(clients)
            .bind(ids)
            .bind(old)
            .bind(new)
            .execute(conn)
            .await?;
        let resealed = i64::try_from(updated.rows_affected()).unwrap_or(i64::MAX);
        Ok(Batch { resealed, last })
    }
}

/// Seals the keys that outlive the rotation again.
async fn reseal_lasting(conn: &mut Connection, core: &Core) -> Result<i64> {
    let rows = sqlx::query!("select name, sealed from lasting_key for update")
        .fetch_all(&mut *conn)
        .await?;
    let mut resealed = 0;
    for row in rows.into_iter().filter(|row| !core.keys.is_current(&row.sealed)) {
        let context = lasting_context(&row.name);
        let plain = core.keys.open(&context, &row.sealed)?;
        sqlx::query!(
            "update lasting_key set sealed = $2 where name = $1",
            row.name,
            core.keys.seal(&core.clock, &context, &plain)?,
        )
        .execute(&mut *conn)
        .await?;
        resealed += 1;
    }
    Ok(resealed)
}
