//! Months of the audit whose retention is over. An edge, which has the key of the chain, releases each:
//! it adds a row with position and MAC of the month's last one. The role that migrates, which needs no
//! key, archives a month that is released. What is left then begins behind a row that such a row names,
//! so that a month that somebody else took out is found.

use serde_json::json;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use super::chain::Anchor;
use super::{Entry, record};
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::schema::partitions;

impl Core {
    /// Releases the months that are older than `retention.audit_days`, if the last verification of the
    /// chain was less than a day ago and found nothing.
    ///
    /// # Errors
    /// When the database cannot be used. Months before the one that failed stay released.
    pub(crate) async fn release_audit(&self) -> Result<()> {
        let Some(days) = self.settings.retention.audit_days else { return Ok(()) };
        let mut connection = self.db.acquire().await?;
        let ended = partitions::ended(&mut *connection, "audit", days).await?;
        if ended.is_empty() || !is_intact(&mut connection).await? {
            return Ok(());
        }
        for (partition, next_id) in ended {
            if unreleased_end(&mut connection, next_id).await?.is_none() {
                continue;
            }
            let mut tx = connection.begin().await?;
            // Another edge may have released it meanwhile, and releases nothing from here on.
            sqlx::query_scalar!("select position from audit_head for update")
                .fetch_one(&mut *tx)
                .await?;
            if let Some(end) = unreleased_end(&mut tx, next_id).await? {
                let entry = Entry {
                    actor: "edge",
                    action: "audit.archive",
                    target: &partition,
                    detail: json!({"position": end.position, "mac": hex::encode(&end.mac)}),
                };
                record(&mut tx, self, entry).await?;
            }
            tx.commit().await?;
        }
        Ok(())
    }
}

async fn is_intact(conn: &mut Connection) -> Result<bool> {
    let intact = sqlx::query_scalar!(
        r#"
        select broken_position is null and finished_at > now() - interval '1 day' as "intact?"
        from audit_check
        "#,
    );
    Ok(intact.fetch_one(conn).await?.unwrap_or(false))
}

/// The last row before the id, if it is not released yet and every row up to it has an id before that.
/// Of two edges of the version before, whose clocks differ, the later row may have the smaller id: such
/// a month is released with the next one.
async fn unreleased_end(conn: &mut Connection, next_id: Uuid) -> Result<Option<Anchor>> {
    let end = sqlx::query_as!(
        Anchor,
        r#"
        select position as "position!", mac as "mac!"
        from (
            select position, mac from audit where audit_id < $1 and position is not null
            order by position desc limit 1
        ) last
        where not exists (select from audit where audit_id >= $1 and position <= last.position)
            and not exists (
                select from audit where action = 'audit.archive' and position > last.position
                    and detail -> 'position' = to_jsonb(last.position)
            )
        "#,
        next_id,
    );
    Ok(end.fetch_optional(conn).await?)
}

/// The row that the rows from `first` on come behind, if its month was released and archived.
pub(super) async fn archived_end(conn: &mut Connection, first: i64) -> Result<Option<Anchor>> {
    let mac = sqlx::query_scalar!(
        r#"
        select detail ->> 'mac' as "mac!" from audit
        where action = 'audit.archive' and position > $1 and detail -> 'position' = to_jsonb($1)
        limit 1
        "#,
        first - 1,
    );
    let mac = mac.fetch_optional(conn).await?.and_then(|mac| hex::decode(mac).ok());
    Ok(mac.map(|mac| Anchor { position: first - 1, mac }))
}

/// The number of the first of these partitions, oldest first, that go together: the fewest whose last row
/// an edge has released, and that have every row up to it, or of which no row is of the chain. Zero while
/// none may go. Each comes with the id that its own are below.
///
/// A month goes with the next one if edges of the version before, whose clocks differ, have added to both
/// by turns: either alone would leave a gap in the chain.
pub(crate) async fn released_together(
    connection: &mut PgConnection,
    partitions: &[(String, Uuid)],
) -> std::result::Result<usize, sqlx::Error> {
    let mut last: Option<i64> = None;
    for (before, (partition, next_id)) in partitions.iter().enumerate() {
        let of_month = format!("select max(position) from {partition}");
        let of_month = sqlx::query_scalar::<_, Option<i64>>(AssertSqlSafe(of_month));
        last = last.max(of_month.fetch_one(&mut *connection).await?);
        let may_go = sqlx::query_scalar::<_, bool>(
            "select $1::bigint is null or ( \
                 exists (select from audit where action = 'audit.archive' \
                     and position > $1 and detail -> 'position' = to_jsonb($1)) \
                 and not exists (select from audit where audit_id >= $2 and position < $1))",
        );
        if may_go.bind(last).bind(next_id).fetch_one(&mut *connection).await? {
            return Ok(before + 1);
        }
    }
    Ok(0)
}

/// Takes the rows of this partition that are from before the chain off their number in its head.
pub(crate) async fn forget_unchained(
    connection: &mut PgConnection,
    partition: &str,
) -> std::result::Result<(), sqlx::Error> {
    let forget = format!(
        "update audit_head set unchained = unchained - unchained_here \
         from (select count(*) as unchained_here from {partition} where position is null) month \
         where unchained_here > 0"
    );
    sqlx::query(AssertSqlSafe(forget)).execute(connection).await?;
    Ok(())
}
