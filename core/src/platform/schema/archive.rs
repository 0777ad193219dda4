//! Archive of months whose retention is over: each is written to a CSV file, and dropped when the file
//! is on the disk.

use std::path::Path;
use std::{fmt, io};

use futures::TryStreamExt as _;
use sqlx::{Connection as _, PgConnection};
use tokio::fs::{self, OpenOptions};
use tokio::io::{AsyncWriteExt as _, BufWriter};

use super::partitions::{self, Table, run};
use super::{connect_to_migrate, refused, turn};
use crate::Core;
use crate::platform::audit::archive as audit;
use crate::platform::db::DatabaseError;
use crate::platform::error::{Error, Result, database_message};
use crate::platform::settings::{self, Retention};

/// Bytes that are written to the file at a time.
const WRITE_BYTES: usize = 1 << 20;

/// Makes the partitions of the months to come, and archives those whose retention is over, under the
/// role that migrates. Reports each that is archived, and returns their number; `None` if this role
/// does not own the tables, or another process is at it.
///
/// # Errors
/// One sentence. Months before the one that failed stay archived.
pub async fn maintain_partitions(
    settings: &settings::Database,
    retention: &Retention,
    mut report: impl FnMut(&str),
) -> Result<Option<usize>, DatabaseError> {
    let failed = |error: sqlx::Error| refused("partitions cannot be maintained", &error);
    let (options, mut connection) = connect_to_migrate(settings).await?;
    let mut turns = PgConnection::connect_with(&options).await.map_err(failed)?;
    let mut archived = None;
    loop {
        // A turn for each month: who waits to migrate waits for no other ones.
        let mut turn = turn::begin(&mut turns).await.map_err(failed)?;
        if !turn::try_take(&mut turn).await.map_err(failed)?
            || !partitions::create(&mut connection, settings.lock_timeout_ms)
                .await
                .map_err(failed)?
        {
            return Ok(archived);
        }
        let months = archive_next(&mut connection, retention, settings.lock_timeout_ms).await?;
        turn.commit().await.map_err(failed)?;
        months.iter().for_each(|month| report(month));
        let count = archived.unwrap_or(0) + months.len();
        if months.is_empty() {
            return Ok(Some(count));
        }
        archived = Some(count);
    }
}

/// Archives the oldest month that is older than its table's retention, with those that go with it, and
/// drops them. Returns the names of their partitions.
///
/// # Errors
/// One sentence.
async fn archive_next(
    connection: &mut PgConnection,
    retention: &Retention,
    lock_timeout_ms: u64,
) -> Result<Vec<String>, DatabaseError> {
    let Some(folder) = &retention.archive_folder else { return Ok(Vec::new()) };
    for Table { name: table, .. } in partitions::TABLES {
        let days = match table {
            "audit" => retention.audit_days,
            "event" => retention.event_days,
            _ => retention.order_transition_days,
        };
        let Some(days) = days else { continue };
        let failed =
            |error: Failure| DatabaseError::new(format!("{table} is not archived: {error}"));
        let oldest = oldest(connection, table, days).await.map_err(|e| failed(e.into()))?;
        if oldest.is_empty() {
            continue;
        }
        move_out(connection, table, &oldest, folder, lock_timeout_ms).await.map_err(failed)?;
        return Ok(oldest);
    }
    Ok(Vec::new())
}

/// A failure of the database or of the file.
#[derive(Debug)]
enum Failure {
    Database(sqlx::Error),
    File(io::Error),
    /// This role does not see every row.
    Hidden,
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(error) => f.write_str(&database_message(error)),
            Self::File(error) => write!(f, "the folder cannot be written: {error}"),
            Self::Hidden => f.write_str("the role that migrates does not see every tenant"),
        }
    }
}

/// The oldest of the partitions whose last month has ended this many days ago; of the audit, if an edge
/// has released it, with those that are released with it.
async fn oldest(
    connection: &mut PgConnection,
    table: &str,
    days: u32,
) -> Result<Vec<String>, sqlx::Error> {
    let ended = partitions::ended(&mut *connection, table, days).await?;
    let count =
        if table == "audit" { audit::released_together(connection, &ended).await? } else { 1 };
    Ok(ended.into_iter().take(count).map(|(partition, _)| partition).collect())
}

/// Writes partitions to a file each and drops them in one transaction, within which nobody else writes
/// or archives them: one whose turn was lost with its connection would be writing the same files.
async fn move_out(
    connection: &mut PgConnection,
    table: &str,
    partitions: &[String],
    folder: &Path,
    lock_timeout_ms: u64,
) -> Result<(), Failure> {
    let mut tx = connection.begin().await?;
    run(&mut tx, &format!("set local lock_timeout = {lock_timeout_ms}")).await?;
    run(&mut tx, "set local statement_timeout = 0").await?;
    run(&mut tx, "set local rampart.all_tenants = 'on'").await?;
    for partition in partitions {
        run(&mut tx, &format!("lock table {partition} in share row exclusive mode")).await?;
        let sees_all = "select sees_all_tenants() or not row_security_active($1)";
        if !sqlx::query_scalar::<_, bool>(sees_all).bind(partition).fetch_one(&mut *tx).await? {
            return Err(Failure::Hidden);
        }
        write_out(&mut tx, partition, folder).await?;
    }
    fs::File::open(folder).await?.sync_all().await?;
    if table == "audit" {
        // Before the table is locked: whoever adds a row locks the head first.
        for partition in partitions {
            audit::forget_unchained(&mut tx, partition).await?;
        }
    }
    for partition in partitions {
        run(&mut tx, &format!("alter table {table} detach partition {partition}")).await?;
        run(&mut tx, &format!("drop table {partition}")).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Writes a partition to its file in the folder, which is made if need be. One that fails leaves no
/// unfinished file.
async fn write_out(
    connection: &mut PgConnection,
    partition: &str,
    folder: &Path,
) -> Result<(), Failure> {
    let (path, part) =
        (folder.join(format!("{partition}.csv")), folder.join(format!("{partition}.csv.part")));
    fs::create_dir_all(folder).await?;
    // Another file than that of a run that was given up: a write of it may be under way.
    match fs::remove_file(&part).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    if let Err(failure) = write(connection, partition, &part, &path).await {
        // Where the disk is full, it has room for others until the next run.
        drop(fs::remove_file(&part).await);
        return Err(failure);
    }
    Ok(())
}

/// Writes a partition to an unfinished file, which is renamed once it is on the disk.
async fn write(
    connection: &mut PgConnection,
    partition: &str,
    part: &Path,
    path: &Path,
) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part).await?;
    let mut file = BufWriter::with_capacity(WRITE_BYTES, file);
    // A query, because row-level security refuses to copy a table.
    let copy = format!("copy (table {partition}) to stdout with (format csv, header)");
    {
        let mut rows = connection.copy_out_raw(&copy).await?;
        while let Some(bytes) = rows.try_next().await? {
            file.write_all(&bytes).await?;
        }
    }
    file.flush().await?;
    file.get_ref().sync_all().await?;
    fs::rename(part, path).await?;
    Ok(())
}

impl Core {
    /// Makes the partitions of the months to come and archives old ones, if the role of this edge's
    /// connections may; `rampart migrate` and `rampart archive` do it otherwise. Releases months of the
    /// audit, and shows how many months are ready: one run of a worker.
    ///
    /// # Errors
    /// When the database cannot be read, or a month cannot be made or archived: that is tried again at
    /// the next run, and what is ready is shown all the same.
    pub async fn maintain_partitions(&self) -> Result<()> {
        let maintained = self.make_and_archive().await;
        // The next run archives it.
        let released = self.release_audit().await;
        let mut connection = self.db.acquire().await?;
        for Table { name, .. } in partitions::TABLES {
            let ahead = partitions::ahead(&mut *connection, name).await?;
            self.metrics.partitions_ahead.with_label_values(&[name]).set(ahead.into());
        }
        maintained.and(released)
    }

    async fn make_and_archive(&self) -> Result<()> {
        let (database, retention) = (&self.settings.database, &self.settings.retention);
        // Not held meanwhile: an archive takes long, on connections of its own.
        let may = database.migrate_url.is_some()
            || partitions::is_owner(&mut *self.db.acquire().await?).await?;
        if !may {
            return Ok(());
        }
        let report =
            |partition: &str| tracing::info!(partition, "a month was archived and dropped");
        let maintained = maintain_partitions(database, retention, report).await;
        maintained.map(drop).map_err(|error| Error::internal("maintain partitions", error))
    }
}
