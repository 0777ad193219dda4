//! Partitions by month of events, timelines and the audit, which grow with every order. Deliveries have
//! none: a claim of the queue would look at every month for every lane.
//!
//! They are made by the role that owns the schema, since no edge's role may change it. Rows of a month
//! without a partition go to the default one, so that a month that was forgotten loses nothing.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgExecutor, Row as _};
use uuid::Uuid;

/// Months that have a partition before they begin.
pub(super) const MONTHS_AHEAD: i32 = 3;

/// A table that is partitioned by month.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The column whose UUID of version 7 tells the month.
    id: &'static str,
    /// Row-level security of each partition, for whoever names it: the end of a policy's name, and the
    /// policy.
    policies: [(&'static str, &'static str); 2],
    /// The column that is unique within each partition, besides the key.
    unique: Option<&'static str>,
}

/// The policies of a tenant's table.
const OF_TENANT: [(&str, &str); 2] = [
    (
        "isolation",
        "using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid)",
    ),
    ("all_tenants", "using ((select sees_all_tenants()))"),
];

/// Rows are read and added: there is no policy for update and delete, so that they find no row.
const APPEND_ONLY: [(&str, &str); 2] =
    [("read", "for select using (true)"), ("append", "for insert with check (true)")];

/// The tables that have partitions.
pub(super) const TABLES: [Table; 3] = [
    Table { name: "event", id: "event_id", policies: OF_TENANT, unique: None },
    Table { name: "order_transition", id: "transition_id", policies: OF_TENANT, unique: None },
    Table { name: "audit", id: "audit_id", policies: APPEND_ONLY, unique: Some("position") },
];

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
    for table in &TABLES {
        for month in missing(&mut *connection, table.name).await? {
            if month_count(connection, table.name).await? == 0 {
                begin_months(connection, table, &month, lock_timeout_ms).await?;
            }
            let mut tx = connection.begin().await?;
            run(&mut tx, &format!("set local lock_timeout = {lock_timeout_ms}")).await?;
            let partition = format!("{}_{}", table.name, month.name);
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
    for table in &TABLES {
        if ahead(&mut *connection, table.name).await? < MONTHS_AHEAD {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if this role may make partitions.
pub(super) async fn is_owner(executor: impl PgExecutor<'_>) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "select count(*) = cardinality($1) from pg_class \
         where oid in (select to_regclass(name) from unnest($1) name) and relkind = 'p' \
             and pg_has_role(current_user, relowner, 'usage')",
    )
    .bind(TABLES.map(|table| table.name))
    .fetch_one(executor)
    .await
}

/// The partitions whose last month has ended this many days ago, oldest first, each with the id that
/// its own are below. That of before the first month ends where that begins.
pub(crate) async fn ended(
    executor: impl PgExecutor<'_>,
    table: &str,
    days: u32,
) -> Result<Vec<(String, Uuid)>, sqlx::Error> {
    sqlx::query_as(
        r"
        select name, next_id from (
            select c.relname::text as name,
                case when c.relname ~ '_before_\d{4}_\d{2}$' then interval '0'
                    else interval '1 month' end
                + to_date(right(c.relname, 7), 'YYYY_MM') as ends_at,
                substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \(''([^'']+)''\)$')::uuid
                    as next_id
            from pg_inherits join pg_class c on c.oid = inhrelid
            where inhparent = to_regclass($1) and c.relname ~ '_\d{4}_\d{2}$'
        ) month
        where ends_at <= now() at time zone 'utc' - make_interval(days => $2)
        order by ends_at
        ",
    )
    .bind(table)
    .bind(i32::try_from(days).unwrap_or(i32::MAX))
    .fetch_all(executor)
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
    partitioned: &Table,
    first: &Month,
    lock_timeout_ms: u64,
) -> Result<(), sqlx::Error> {
    let Table { name: table, id, .. } = partitioned;
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
    add(&mut tx, partitioned, &default, "default").await?;
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
    table: &Table,
    partition: &str,
    bounds: &str,
) -> Result<(), sqlx::Error> {
    let name = table.name;
    run(connection, &format!("create table {partition} partition of {name} {bounds}")).await?;
    run(connection, &format!("alter table {partition} enable row level security")).await?;
    run(connection, &format!("alter table {partition} force row level security")).await?;
    for (end, policy) in table.policies {
        let policy = format!("create policy {partition}_{end} on {partition} {policy}");
        run(connection, &policy).await?;
    }
    if let Some(column) = table.unique {
        // Without a name, which that of an earlier partition may have.
        run(connection, &format!("create unique index on {partition} ({column})")).await?;
    }
    Ok(())
}

/// Runs a statement of names and ids that are our own.
pub(super) async fn run(connection: &mut PgConnection, statement: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(connection).await?;
    Ok(())
}
