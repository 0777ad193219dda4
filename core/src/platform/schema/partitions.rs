//! Partitions by month of events and timelines, which grow with every order. Deliveries have none: a
//! claim of the queue would look at every month for every lane.
//!
//! They are made by the role that owns the schema, since no edge's role may change it. Rows of a month
//! without a partition go to the default one, so that a month that was forgotten loses nothing.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgExecutor, Row as _};

/// Months that have a partition before they begin.
pub(super) const MONTHS_AHEAD: i32 = 3;

/// The tables and the column of each whose UUID of version 7 tells the month.
pub(super) const TABLES: [(&str, &str); 2] =
    [("event", "event_id"), ("order_transition", "transition_id")];

/// A month, and the first ids of it and of the next one.
struct Month {
    /// As in `2027_01`.
    name: String,
    from: String,
    to: String,
}

/// The first UUID of version 7 of the month `m`, in SQL.
macro_rules! first_id {
    ($month:literal) => {
        concat!(
            "(lpad(to_hex((extract(epoch from ",
            $month,
            ") * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid::text"
        )
    };
}

/// Makes the partitions of the months to come that are missing. `false` if this role does not own the
/// tables.
///
/// # Errors
/// The database's. Partitions before the one that failed stay.
pub(super) async fn create(
    connection: &mut PgConnection,
    lock_timeout_ms: u64,
) -> Result<bool, sqlx::Error> {
    if !is_owner(&mut *connection).await? {
        return Ok(false);
    }
    for (table, id) in TABLES {
        for month in missing(&mut *connection, table).await? {
            if month_count(connection, table).await? == 0 {
                begin_months(connection, table, id, &month, lock_timeout_ms).await?;
            }
            let mut tx = connection.begin().await?;
            run(&mut tx, &format!("set local lock_timeout = {lock_timeout_ms}")).await?;
            let partition = format!("{table}_{}", month.name);
            let bounds = format!("for values from ('{}') to ('{}')", month.from, month.to);
            add(&mut tx, table, &partition, &bounds).await?;
            tx.commit().await?;
        }
    }
    Ok(true)
}

/// The number of months to come that the table has a partition for, at most [`MONTHS_AHEAD`].
pub(super) async fn ahead(executor: impl PgExecutor<'_>, table: &str) -> Result<i32, sqlx::Error> {
    let missing = missing(executor, table).await?.len();
    Ok(MONTHS_AHEAD.saturating_sub(i32::try_from(missing).unwrap_or(i32::MAX)))
}

/// True if no month to come lacks a partition, or this role may not make one.
pub(super) async fn are_made(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    if !is_owner(&mut *connection).await? {
        return Ok(true);
    }
    for (table, _) in TABLES {
        if ahead(&mut *connection, table).await? < MONTHS_AHEAD {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if this role may make partitions.
pub(super) async fn is_owner(executor: impl PgExecutor<'_>) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "select coalesce((select pg_has_role(current_user, relowner, 'usage') and relkind = 'p' \
         from pg_class where oid = to_regclass('event')), false)",
    )
    .fetch_one(executor)
    .await
}

/// The months to come that have no partition of this table, in their order.
async fn missing(executor: impl PgExecutor<'_>, table: &str) -> Result<Vec<Month>, sqlx::Error> {
    let months = concat!(
        "select to_char(m, 'YYYY_MM'), ",
        first_id!("m"),
        ", ",
        first_id!("m + interval '1 month'"),
        " from generate_series(date_trunc('month', now() at time zone 'utc') + interval '1 month', \
             date_trunc('month', now() at time zone 'utc') + make_interval(months => $2), \
             interval '1 month') m \
         where to_regclass(quote_ident($1 || '_' || to_char(m, 'YYYY_MM'))) is null order by m"
    );
    let rows = sqlx::query(months).bind(table).bind(MONTHS_AHEAD).fetch_all(executor).await?;
    let month = |row: sqlx::postgres::PgRow| {
        Ok(Month { name: row.try_get(0)?, from: row.try_get(1)?, to: row.try_get(2)? })
    };
    rows.into_iter().map(month).collect()
}

/// Partitions of the table besides the default one.
async fn month_count(connection: &mut PgConnection, table: &str) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "select count(*) from pg_inherits join pg_class c on c.oid = inhrelid \
         where inhparent = to_regclass($1) and c.relname <> $1 || '_default'",
    )
    .bind(table)
    .fetch_one(connection)
    .await
}

/// Makes the default partition, which holds every row until the first month begins, the partition of
/// what was before that month, and makes an empty default one.
///
/// That no row of it belongs to the month is proven by a constraint, so that nobody waits while the
/// rows are read.
async fn begin_months(
    connection: &mut PgConnection,
    table: &str,
    id: &str,
    first: &Month,
    lock_timeout_ms: u64,
) -> Result<(), sqlx::Error> {
    let (default, before) = (format!("{table}_default"), format!("{table}_before_{}", first.name));
    let proof = format!("{default}_is_before");
    let wait = format!("set local lock_timeout = {lock_timeout_ms}");
    let proven = format!(
        "alter table {default} add constraint {proof} check ({id} < '{}') not valid",
        first.from
    );
    let mut tx = connection.begin().await?;
    run(&mut tx, &wait).await?;
    run(&mut tx, &format!("alter table {default} drop constraint if exists {proof}")).await?;
    run(&mut tx, &proven).await?;
    tx.commit().await?;
    let mut tx = connection.begin().await?;
    run(&mut tx, &wait).await?;
    run(&mut tx, "set local statement_timeout = 0").await?;
    run(&mut tx, &format!("alter table {default} validate constraint {proof}")).await?;
    tx.commit().await?;
    let mut tx = connection.begin().await?;
    run(&mut tx, &wait).await?;
    run(&mut tx, &format!("alter table {table} detach partition {default}")).await?;
    run(&mut tx, &format!("alter table {default} rename to {before}")).await?;
    for policy in policies(&mut tx, &before).await? {
        if let Some(rest) = policy.strip_prefix(&default) {
            let rename = format!("alter policy {policy} on {before} rename to {before}{rest}");
            run(&mut tx, &rename).await?;
        }
    }
    let attach = format!(
        "alter table {table} attach partition {before} for values from (minvalue) to ('{}')",
        first.from
    );
    run(&mut tx, &attach).await?;
    run(&mut tx, &format!("alter table {before} drop constraint {proof}")).await?;
    add(&mut tx, table, &default, "default").await?;
    tx.commit().await
}

async fn policies(connection: &mut PgConnection, table: &str) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar("select polname::text from pg_policy where polrelid = to_regclass($1)")
        .bind(table)
        .fetch_all(connection)
        .await
}

/// Adds a partition, with row-level security of its own for whoever names it.
async fn add(
    connection: &mut PgConnection,
    table: &str,
    partition: &str,
    bounds: &str,
) -> Result<(), sqlx::Error> {
    for statement in [
        format!("create table {partition} partition of {table} {bounds}"),
        format!("alter table {partition} enable row level security"),
        format!("alter table {partition} force row level security"),
        format!(
            "create policy {partition}_isolation on {partition} using (client_id = \
             nullif(current_setting('rampart.client_id', true), '')::uuid)"
        ),
        format!(
            "create policy {partition}_all_tenants on {partition} \
             using ((select sees_all_tenants()))"
        ),
    ] {
        run(connection, &statement).await?;
    }
    Ok(())
}

/// Runs a statement of names and ids that are our own.
pub(super) async fn run(connection: &mut PgConnection, statement: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(connection).await?;
    Ok(())
}
