//! Rotation of the master key: what an earlier key of the ring has sealed is sealed again under the one
//! in use, in the background, table after table.

use rampart_types::{ClientId, OfferId, StaffId, UserId};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::Core;
use crate::money::connectors::commands;
use crate::money::connectors::events::report_context;
use crate::money::payments::record::report_context as payment_context;
use crate::notify::webhooks::secrets;
use crate::operate::acme;
use crate::partners::staff;
use crate::platform::crypto::lasting_context;
use crate::platform::crypto::personal_data_key::key_context;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::mail;
use crate::policies::runtime::verification_keys::seal_context;
use crate::tenancy::tenants::load::secret_context;
use crate::trading::checkout::create::share_token_context;
use crate::trading::receipt_keys;
use crate::users::retained_record;

/// Rows of one transaction.
const BATCH_ROWS: i64 = 200;
/// Most transactions of one turn of the worker.
const BATCHES_MAX: usize = 100;

/// A column of values that the master key has sealed.
struct SealedColumn {
    table: &'static str,
    /// The column that names the tenant; of a table that is no tenant's, one for all.
    client: &'static str,
    /// The column that names a row of a tenant, and its type.
    id: (&'static str, &'static str),
    /// A text that stands before every id.
    first_id: &'static str,
    column: &'static str,
    /// The context of a row's value, by tenant and id.
    context: fn(Uuid, &str) -> Option<String>,
}

/// The column of a tenant's table that names the tenant.
const CLIENT: &str = "client_id";
/// What stands for it in a table that is no tenant's.
const NO_CLIENT: &str = "'00000000-0000-0000-0000-000000000000'::uuid";
const NIL: &str = "00000000-0000-0000-0000-000000000000";

/// Every such column, but for values that live for a day or less. Its order is stored with a rotation
/// that is under way: add at the end.
const COLUMNS: [SealedColumn; 17] = [
    SealedColumn {
        table: "client_secret",
        client: CLIENT,
        id: ("secret_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| Some(secret_context(client, id.parse().ok()?)),
    },
    SealedColumn {
        table: "verification_key",
        client: CLIENT,
        id: ("name", "text"),
        first_id: "",
        column: "sealed",
        context: |client, id| Some(seal_context(client, id)),
    },
    SealedColumn {
        table: "end_user",
        client: CLIENT,
        id: ("user_id", "uuid"),
        first_id: NIL,
        column: "sealed_key",
        context: |client, id| {
            Some(key_context(ClientId::from(client), UserId::from(id.parse::<Uuid>().ok()?)))
        },
    },
    SealedColumn {
        table: "mail_outbox",
        client: CLIENT,
        id: ("mail_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| Some(mail::context(ClientId::from(client), id.parse().ok()?)),
    },
    SealedColumn {
        table: "checkout",
        client: CLIENT,
        id: ("offer_id", "uuid"),
        first_id: NIL,
        column: "sealed_share_token",
        context: |client, id| {
            let offer = OfferId::from(id.parse::<Uuid>().ok()?);
            Some(share_token_context(ClientId::from(client), offer))
        },
    },
    SealedColumn {
        table: "payment_report",
        client: CLIENT,
        id: ("payment_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| Some(payment_context(ClientId::from(client), id.parse().ok()?)),
    },
    SealedColumn {
        table: "command",
        client: CLIENT,
        id: ("command_id", "uuid"),
        first_id: NIL,
        column: "sealed_body",
        context: |client, id| Some(commands::body_context(client, id.parse().ok()?)),
    },
    SealedColumn {
        table: "command",
        client: CLIENT,
        id: ("command_id", "uuid"),
        first_id: NIL,
        column: "sealed_result",
        context: |client, id| Some(commands::result_context(client, id.parse().ok()?)),
    },
    SealedColumn {
        table: "connector_event",
        client: NO_CLIENT,
        id: ("report_id", "uuid"),
        first_id: NIL,
        column: "sealed_report",
        context: |_, id| Some(report_context(id.parse().ok()?)),
    },
    SealedColumn {
        table: "personal_key",
        client: CLIENT,
        id: ("user_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| {
            Some(key_context(ClientId::from(client), UserId::from(id.parse::<Uuid>().ok()?)))
        },
    },
    SealedColumn {
        table: "retention_key",
        client: CLIENT,
        id: ("user_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| {
            let user = UserId::from(id.parse::<Uuid>().ok()?);
            Some(retained_record::key_context(ClientId::from(client), user))
        },
    },
    SealedColumn {
        table: "receipt_key",
        client: NO_CLIENT,
        id: ("key_id", "text"),
        first_id: "",
        column: "sealed",
        context: |_, id| Some(receipt_keys::seal_context(id)),
    },
    SealedColumn {
        table: "staff_member",
        client: CLIENT,
        id: ("staff_id", "uuid"),
        first_id: NIL,
        column: "sealed_email",
        context: |client, id| {
            let staff = StaffId::from(id.parse::<Uuid>().ok()?);
            Some(staff::email_context(ClientId::from(client), staff))
        },
    },
    SealedColumn {
        table: "staff_member",
        client: CLIENT,
        id: ("staff_id", "uuid"),
        first_id: NIL,
        column: "sealed_totp",
        context: |client, id| {
            let staff = StaffId::from(id.parse::<Uuid>().ok()?);
            Some(staff::totp_context(ClientId::from(client), staff))
        },
    },
    SealedColumn {
        table: "webhook_endpoint_secret",
        client: CLIENT,
        id: ("secret_id", "uuid"),
        first_id: NIL,
        column: "sealed",
        context: |client, id| Some(secrets::secret_context(client, id.parse().ok()?)),
    },
    SealedColumn {
        table: "acme_account",
        client: NO_CLIENT,
        id: ("directory_url", "text"),
        first_id: "",
        column: "sealed",
        context: |_, id| Some(acme::account_context(id)),
    },
    SealedColumn {
        table: "acme_certificate",
        client: NO_CLIENT,
        id: ("domains", "text"),
        first_id: "",
        column: "sealed_key",
        context: |_, id| Some(acme::key_context(id)),
    },
];

/// The name of the table that a stage of a rotation is about.
pub(super) fn table(stage: i32) -> &'static str {
    let column = usize::try_from(stage).ok().and_then(|stage| COLUMNS.get(stage));
    column.map_or("lasting_key", |column| column.table)
}

/// Begins the rotation to the key in use, or begins a finished one anew.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn begin(conn: &mut Connection, core: &Core, by: &str) -> Result<()> {
    sqlx::query!(
        "insert into key_rotation as r \
             (key_id, requested_by, requested_at, stage, after_client, after_row, resealed) \
         values ($1, $2, now(), 0, $3, $4, 0) \
         on conflict (key_id) do update set requested_by = excluded.requested_by, \
             requested_at = excluded.requested_at, finished_at = null, stage = 0, \
             after_client = excluded.after_client, after_row = excluded.after_row, resealed = 0 \
         where r.finished_at is not null",
        core.keys.id().to_string(),
        by,
        Uuid::nil(),
        COLUMNS[0].first_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

impl Core {
    /// Goes on with the rotation to the key in use, if one is under way.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn rotate_keys(&self) -> Result<()> {
        for _ in 0..BATCHES_MAX {
            if !reseal_batch(self).await? {
                break;
            }
        }
        Ok(())
    }
}

/// Seals the next rows again. False when there is nothing to do, or another edge does it.
async fn reseal_batch(core: &Core) -> Result<bool> {
    let mut tx = core.db.begin().await?;
    let key = core.keys.id().to_string();
    let rotation = sqlx::query!(
        "select stage, after_client, after_row from key_rotation \
         where key_id = $1 and finished_at is null for update skip locked",
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
    let batch = column.reseal(&mut tx, core, (at.after_client, &at.after_row)).await?;
    let (stage, client, row) = match batch.last {
        Some((client, row)) => (at.stage, client, row),
        None => {
            let next = usize::try_from(at.stage + 1).ok().and_then(|stage| COLUMNS.get(stage));
            (at.stage + 1, Uuid::nil(), next.map_or("", |next| next.first_id).to_owned())
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

/// The result of one batch.
struct Batch {
    resealed: i64,
    /// The last row looked at; `None` at the end of the table.
    last: Option<(Uuid, String)>,
}

impl SealedColumn {
    /// Seals the rows behind `after` again. One that cannot be opened is logged and stays.
    async fn reseal(
        &self,
        conn: &mut Connection,
        core: &Core,
        after: (Uuid, &str),
    ) -> Result<Batch> {
        let Self { table, client, id: (id, id_type), column, .. } = self;
        let select = format!(
            "select {client}, {id}::text, {column} from {table} \
             where ({client}, {id}) > ($1, $2::text::{id_type}) order by 1, {id} limit $3"
        );
        let rows: Vec<(Uuid, String, Option<Vec<u8>>)> = sqlx::query_as(AssertSqlSafe(select))
            .bind(after.0)
            .bind(after.1)
            .bind(BATCH_ROWS)
            .fetch_all(&mut *conn)
            .await?;
        let is_last = i64::try_from(rows.len()).is_ok_and(|count| count < BATCH_ROWS);
        let last = rows.last().filter(|_| !is_last);
        let last = last.map(|(client, id, _)| (*client, id.clone()));
        let (mut clients, mut ids, mut old, mut new) = (vec![], vec![], vec![], vec![]);
        for (client, id, sealed) in rows {
            let is_earlier = |sealed: &Vec<u8>| !sealed.is_empty() && !core.keys.is_current(sealed);
            let Some(sealed) = sealed.filter(is_earlier) else { continue };
            let Some(context) = (self.context)(client, &id) else { continue };
            let again = core.keys.open(&context, &sealed);
            match again.and_then(|plain| core.keys.seal(&core.clock, &context, &plain)) {
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
