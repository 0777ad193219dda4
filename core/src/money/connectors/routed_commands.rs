//! Commands that follow the routes until a connector leases them.

use crate::Core;
use crate::platform::error::Result;

/// Most commands of one run.
const MOVED_MAX: u16 = 1_000;

impl Core {
    /// Moves commands that nobody has leased to the connectors of the routes: a replacement of the routes
    /// does not see those that are written meanwhile. Several edges may run it at once. True if there
    /// may be more.
    ///
    /// # Errors
    /// When the database cannot be used; the next run continues.
    pub async fn follow_routes(&self) -> Result<bool> {
        // The route is looked up once for each leg, of which there are few.
        let moved = sqlx::query!(
            r#"
            with leg as materialized (
                select distinct client_id, direction, payment_method, asset, connector from command
                where state = 'open' and attempt = 0 and direction is not null
            ), strayed as materialized (
                select client_id, direction, payment_method, asset, connector from leg
                where connector is distinct from
                    routed_connector(client_id, direction, payment_method, asset)
            ), due as (
                select c.client_id, c.command_id from strayed s join command c
                    on c.client_id = s.client_id and c.direction = s.direction
                        and c.payment_method is not distinct from s.payment_method
                        and c.asset is not distinct from s.asset
                        and c.connector is not distinct from s.connector
                where c.state = 'open' and c.attempt = 0
                order by c.created_at, c.command_id limit $1
                for update of c skip locked
            )
            update command c
            set connector = routed_connector(c.client_id, c.direction, c.payment_method, c.asset)
            from due
            where c.client_id = due.client_id and c.command_id = due.command_id
                and c.state = 'open' and c.attempt = 0
            "#,
            i64::from(MOVED_MAX),
        )
        .execute(&self.db)
        .await?;
        Ok(moved.rows_affected() == u64::from(MOVED_MAX))
    }
}
