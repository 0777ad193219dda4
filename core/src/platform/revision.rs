//! Revision counters of tenants and the catalogue. A write raises one in its own transaction, and
//! edges that see a higher revision reload the changed rows (`snapshot.rs`).
//!
//! The counter's row is locked until the writer commits, so that revisions become visible in the
//! order of their changes: an edge that has revision N has everything up to N. A writer locks the rows
//! of the tenants that it changes before, so that no two of them wait for each other.
//!
//! That holds on one timeline of the database's log. A standby that takes over begins another one,
//! and may lack the last changes of the one before.

use std::collections::HashMap;
use std::sync::Once;

use crate::platform::db::{Connection, Pool};
use crate::platform::error::sqlstate::is_refused_function;
use rampart_types::ClientId;

/// The revision up to which the changes of tenants, or of the catalogue, are known, on its timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The revision; zero before anything is loaded.
    pub(crate) revision: i64,
    /// The timeline; `None` while it is not known.
    timeline: Option<u32>,
}

/// The rows that lead from one position to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// There are none.
    Nothing,
    /// Those of higher revisions.
    Newer,
    /// All: changes that are known may be lost.
    Everything,
}

impl Position {
    /// The position after loading what a server has at `seen`. Where that tells no timeline, it is
    /// still the one before.
    pub(crate) fn moved_to(self, seen: Self) -> Self {
        Self { timeline: seen.timeline.or(self.timeline), ..seen }
    }

    /// The rows to load in order to be at `next`.
    pub(crate) fn missing(self, next: Self) -> Missing {
        if next.timeline != self.timeline || next.revision < self.revision {
            Missing::Everything
        } else if next.revision > self.revision {
            Missing::Newer
        } else {
            Missing::Nothing
        }
    }
}

/// The revisions of all scopes in the database, with its timeline.
#[derive(Debug)]
pub(crate) struct Revisions {
    timeline: Option<u32>,
    by_scope: HashMap<String, i64>,
}

impl Revisions {
    /// Reads them. The timeline is read first, so that a standby that takes over meanwhile is seen
    /// by the next read rather than missed. `warned` is of the edge: that the timeline cannot be
    /// read is logged once.
    pub(crate) async fn read(db: &Pool, warned: &Once) -> Result<Self, sqlx::Error> {
        let timeline = timeline(db, warned).await?;
        let rows = sqlx::query!("select scope, revision from change_counter").fetch_all(db).await?;
        let by_scope = rows.into_iter().map(|row| (row.scope, row.revision)).collect();
        Ok(Self { timeline, by_scope })
    }

    /// The position of a scope.
    pub(crate) fn of(&self, scope: &str) -> Position {
        let revision = self.by_scope.get(scope).copied().unwrap_or_default();
        Position { revision, timeline: self.timeline }
    }
}

/// The timeline of the server; `None` of one in recovery, which writes on none, and where it cannot
/// be asked for.
async fn timeline(db: &Pool, warned: &Once) -> Result<Option<u32>, sqlx::Error> {
    // Of a constant position the server would compute the name as it plans, which fails in recovery.
    let file = sqlx::query_scalar!(
        r#"
        select case when not pg_is_in_recovery()
            then pg_walfile_name(pg_current_wal_lsn()) end as "file?"
        "#
    )
    .fetch_one(db)
    .await;
    match file {
        Ok(file) => Ok(file.as_deref().and_then(timeline_of)),
        Err(error) if is_refused_function(&error) => {
            warned.call_once(|| {
                tracing::warn!(
                    %error,
                    "the database does not tell its timeline: what a failover loses may stay served"
                );
            });
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The timeline of a file of the log, by its name.
fn timeline_of(file: &str) -> Option<u32> {
    u32::from_str_radix(file.get(..8)?, 16).ok()
}

/// Raises this tenant's revision after a change of its settings, secrets, keys or policies.
pub async fn client_changed(conn: &mut Connection, client: ClientId) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!(
        "select client_id from client where client_id = $1 for no key update",
        client.uuid(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let revision = next_client_revision(conn).await?;
    sqlx::query!("update client set revision = $2 where client_id = $1", client.uuid(), revision,)
        .execute(conn)
        .await?;
    Ok(())
}

/// Locks the row of the tenant of this slug, raises the revision of all tenants and returns it, for that
/// row.
pub async fn next_revision_of(conn: &mut Connection, slug: &str) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!("select client_id from client where slug = $1 for no key update", slug)
        .fetch_optional(&mut *conn)
        .await?;
    next_client_revision(conn).await
}

/// Raises the revision of all tenants and returns it, for rows that the caller has locked or inserts.
pub(crate) async fn next_client_revision(conn: &mut Connection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        "update change_counter set revision = revision + 1 where scope = 'clients' \
         returning revision"
    )
    .fetch_one(conn)
    .await
}

/// Raises the catalogue's revision and returns it.
pub async fn catalogue_changed(conn: &mut Connection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        "update change_counter set revision = revision + 1 where scope = 'catalogue' \
         returning revision"
    )
    .fetch_one(conn)
    .await
}

/// Raises the catalogue's revision above every one of any timeline, those that a failover has lost
/// too, and returns it: to the milliseconds since 1970 at least, which pass faster than it rises.
pub async fn catalogue_changed_beyond_lost(conn: &mut Connection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        "update change_counter set revision = greatest(revision + 1, \
             (extract(epoch from rampart_now()) * 1000)::bigint) \
         where scope = 'catalogue' returning revision"
    )
    .fetch_one(conn)
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(timeline: Option<u32>, revision: i64) -> Position {
        Position { revision, timeline }
    }

    #[test]
    fn another_timeline_counts_as_a_lower_revision() {
        let here = at(Some(1), 10);
        for (seen, missing) in [
            (at(Some(1), 10), Missing::Nothing),
            (at(Some(1), 11), Missing::Newer),
            (at(Some(1), 9), Missing::Everything),
            (at(Some(2), 9), Missing::Everything),
            (at(Some(2), 10), Missing::Everything),
            (at(Some(2), 11), Missing::Everything),
            // A standby, before it takes over.
            (at(None, 10), Missing::Nothing),
            (at(None, 11), Missing::Newer),
            (at(None, 9), Missing::Everything),
        ] {
            assert_eq!(here.missing(here.moved_to(seen)), missing, "{seen:?}");
        }
    }

    #[test]
    fn a_timeline_is_known_until_another_one_is_told() {
        let standby = at(Some(1), 10).moved_to(at(None, 11));
        assert_eq!(standby, at(Some(1), 11));
        assert_eq!(standby.missing(standby.moved_to(at(Some(1), 11))), Missing::Nothing);
        assert_eq!(standby.missing(standby.moved_to(at(Some(2), 11))), Missing::Everything);
        let unknown = Position::default().moved_to(at(None, 10));
        assert_eq!(unknown.missing(unknown.moved_to(at(Some(1), 10))), Missing::Everything);
    }

    #[test]
    fn a_file_of_the_log_names_its_timeline() {
        assert_eq!(timeline_of("0000001A000000020000009F"), Some(26));
        assert_eq!(timeline_of("0000001"), None);
        assert_eq!(timeline_of("timeline"), None);
    }
}
