//! The roles of edges: what they may do is granted with every migration.
//!
//! `rampart_edge` is for partners' requests: it reads and writes rows of the tenant that a
//! transaction names, and sees none of others. `rampart_worker` is for workers, operators and
//! connectors: it sees every tenant's when a transaction says so. Neither owns anything, so neither
//! changes the schema. They cannot log in by themselves: who may is made a member.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use crate::platform::error::sqlstate::has_code;

/// The roles, in the order in which they are made.
const ROLES: [&str; 2] = ["rampart_edge", "rampart_worker"];

/// Tables whose rows are never changed.
const APPEND_ONLY: [&str; 10] = [
    "payment",
    "payment_alias",
    "payment_match",
    "payment_refund",
    "payment_refund_withdrawal",
    "refund_confirmation",
    "refund_reference",
    "ledger_account",
    "ledger_entry",
    "ledger_posting",
];

/// Makes the roles that are missing and grants them what they need. `false` if a role is missing and
/// this one may not make roles.
pub(super) async fn grant(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    for role in ROLES {
        if !exists(connection, role).await? && !create(connection, role).await? {
            return Ok(false);
        }
    }
    let grants = grants(connection).await?;
    connection.execute(AssertSqlSafe(format!("begin; {grants}; commit"))).await?;
    Ok(true)
}

/// Grants the roles what they need in the transaction of a migration, if they exist.
pub(super) async fn grant_again(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    for role in ROLES {
        if !exists(connection, role).await? {
            return Ok(());
        }
    }
    let grants = grants(connection).await?;
    connection.execute(AssertSqlSafe(grants)).await?;
    Ok(())
}

/// The statements that grant the roles what they need.
async fn grants(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
    let schema: String = sqlx::query_scalar("select quote_ident(current_schema())")
        .fetch_one(&mut *connection)
        .await?;
    // A later migration may make some of them.
    let append_only: Vec<String> = sqlx::query_scalar(
        "select name from unnest($1) name where to_regclass(quote_ident(name)) is not null",
    )
    .bind(APPEND_ONLY)
    .fetch_all(connection)
    .await?;
    let (roles, append_only) = (ROLES.join(", "), append_only.join(", "));
    Ok(format!(
        "grant usage on schema {schema} to {roles}; \
         grant select, insert, update, delete on all tables in schema {schema} to {roles}; \
         revoke insert, update, delete on _sqlx_migrations from {roles}; \
         revoke update, delete on {append_only} from {roles}"
    ))
}

/// True if nothing is left that this role may make or grant: the roles, and their use of every table
/// that it owns. A partition is used by its table.
pub(super) async fn are_granted(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "select ((select count(*) = $2 from pg_roles where rolname = any ($1)) or not \
                 (select rolsuper or rolcreaterole from pg_roles where rolname = current_user)) \
             and not exists (select from pg_roles r, pg_class t where r.rolname = any ($1) \
                 and t.relnamespace = current_schema()::regnamespace and t.relkind in ('r', 'p') \
                 and not t.relispartition and pg_has_role(current_user, t.relowner, 'usage') \
                 and not has_table_privilege(r.oid, t.oid, 'select'))",
    )
    .bind(ROLES)
    .bind(i64::try_from(ROLES.len()).unwrap_or(i64::MAX))
    .fetch_one(connection)
    .await
}

async fn exists(connection: &mut PgConnection, role: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("select exists (select from pg_roles where rolname = $1)")
        .bind(role)
        .fetch_one(connection)
        .await
}

/// Makes a role; `false` if this one may not. Another process may make it at the same time.
async fn create(connection: &mut PgConnection, role: &str) -> Result<bool, sqlx::Error> {
    let statement = format!("create role {role} nologin");
    match connection.execute(AssertSqlSafe(statement)).await {
        Ok(_) => Ok(true),
        // Exists already, as the catalogue or its index says.
        Err(error) if has_code(&error, &["42710", "23505"]) => Ok(true),
        Err(error) if has_code(&error, &["42501"]) => Ok(false),
        Err(error) if error.as_database_error().is_none() => Err(error),
        Err(_) => exists(connection, role).await,
    }
}
