//! Revision counters of tenants and the catalogue. A write raises one in its own transaction, and
//! edges that see a higher revision reload the changed rows (`snapshot.rs`).
//!
//! The counter's row is locked until the writer commits, so that revisions become visible in the
//! order of their changes: an edge that has revision N has everything up to N. A writer locks the rows
//! of the tenants that it changes before, so that no two of them wait for each other.

use crate::platform::db::Connection;
use rampart_types::ClientId;

/// Raises this tenant's revision after a change of its settings, secrets, keys or policies.
pub(crate) async fn client_changed(
    conn: &mut Connection,
    client: ClientId,
) -> Result<(), sqlx::Error> {
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
pub(crate) async fn next_revision_of(
    conn: &mut Connection,
    slug: &str,
) -> Result<i64, sqlx::Error> {
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
pub(crate) async fn catalogue_changed(conn: &mut Connection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        "update change_counter set revision = revision + 1 where scope = 'catalogue' \
         returning revision"
    )
    .fetch_one(conn)
    .await
}
