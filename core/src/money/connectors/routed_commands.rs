//! Commands that follow the routes until a connector leases them.

use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Most commands of one batch.
const MOVED_MAX: u16 = 1_000;
/// Most batches of a replacement of the routes; the rest follows with the worker's next run.
const BATCHES_MAX: u32 = 100;

impl Core {
    /// Moves commands that nobody has leased to the connectors of the routes: a replacement of the routes
    /// does not see those that are written meanwhile, and passes over those that somebody holds. Several
    /// edges may run it at once. True if there may be more.
    ///
    /// # Errors
    /// When the database cannot be used; the next run continues.
    pub async fn follow_routes(&self) -> Result<bool> {
        let mut conn = self.db.acquire().await?;
        Ok(move_batch(&mut conn).await? == u64::from(MOVED_MAX))
    }
}

/// Moves commands that nobody has leased, in the transaction that replaces the routes. It waits for none
/// that somebody holds, and no statement of it takes longer the more commands wait.
///
/// # Errors
/// The database's.
pub async fn move_all(conn: &mut Connection) -> Result<(), sqlx::Error> {
    for _ in 0..BATCHES_MAX {
        if move_batch(conn).await? < u64::from(MOVED_MAX) {
            break;
        }
    }
    Ok(())
}

/// Moves commands to the connectors of their routes; the number of them.
async fn move_batch(conn: &mut Connection) -> Result<u64, sqlx::Error> {
    // The route is looked up once for each leg, of which there are few.
    let moved = sqlx::query!(
        r#"
        with leg as materialized (
            select distinct client_id, direction, payment_method, asset, connector from command
            where state = 'open' and attempt = 0 and direction is not null
        ), strayed as materialized (
            select leg.*, route.connector as routed
            from leg left join lateral leg_route(client_id, direction, payment_method, asset) route
                on true
            where leg.connector is distinct from route.connector
        ), due as (
            select c.client_id, c.command_id, s.routed from strayed s join command c
                on c.client_id = s.client_id and c.direction = s.direction
                    and c.payment_method is not distinct from s.payment_method
                    and c.asset is not distinct from s.asset
                    and c.connector is not distinct from s.connector
            where c.state = 'open' and c.attempt = 0
            order by c.created_at, c.command_id limit $1
            for update of c skip locked
        )
        update command c set connector = due.routed from due
        where c.client_id = due.client_id and c.command_id = due.command_id
            and c.state = 'open' and c.attempt = 0
        "#,
        i64::from(MOVED_MAX),
    )
    .execute(conn)
    .await?;
    Ok(moved.rows_affected())
}
