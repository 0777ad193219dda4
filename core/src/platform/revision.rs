//! How a write reaches every edge: it raises a counter in its own transaction, and edges that see
//! a higher counter load what changed (`snapshot.rs`).
//!
//! The counter's row is locked until the writer commits, so that counters are seen in the order of
//! the changes they stand for: an edge that has revision N has everything up to N.

use sqlx::PgConnection;

use rampart_types::ClientId;

/// Says that something of this client's snapshot changed: settings, secrets, keys or policies.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn client_changed(
    conn: &mut PgConnection,
    client: ClientId,
) -> Result<(), sqlx::Error> {
    let revision = next_client_revision(conn).await?;
    sqlx::query!("update client set revision = $2 where client_id = $1", client.uuid(), revision,)
        .execute(conn)
        .await?;
    Ok(())
}

/// The revision that a client written now gets.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn next_client_revision(conn: &mut PgConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        "update change_counter set revision = revision + 1 where scope = 'clients' \
         returning revision"
    )
    .fetch_one(conn)
    .await
}

/// Says that the catalogue changed.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn catalogue_changed(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("update change_counter set revision = revision + 1 where scope = 'catalogue'")
        .execute(conn)
        .await?;
    Ok(())
}
