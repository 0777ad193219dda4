//! The schema: who migrates it, beside which versions an edge serves, and what `doctor` may do.

use std::process::Command;

use http::Method;
use rampart_core::platform::db::MIGRATIONS;
use rampart_tests::cluster;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::process::binary;
use serde_json::Value;
use sqlx::migrate::Migration;
use sqlx::{AssertSqlSafe, PgPool};

/// Notes a migration of a later version.
pub(crate) const LATER: &str = "\
    insert into _sqlx_migrations (version, description, success, checksum, execution_time) \
    values (9998, 'later', true, '', 0)";

/// `rampart <command>` over this database, to its end: exit status, output, errors.
async fn run(command: &str, setup: &Setup) -> (Option<i32>, Vec<String>, String) {
    let process = setup.run(command);
    let status = process.ended().await.code();
    (status, process.out(), process.err().join("\n"))
}

pub(crate) async fn execute(pool: &PgPool, statement: &str) {
    sqlx::query(AssertSqlSafe(statement)).execute(pool).await.unwrap();
}

/// Tables of the database, and rows of all of them, as text.
async fn contents(pool: &PgPool) -> String {
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.tables \
         where table_schema = 'public' and table_type = 'BASE TABLE' order by 1",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    let mut contents = String::new();
    for table in tables {
        let rows = format!(
            "select coalesce(string_agg(t::text, ',' order by t::text), '') from {table} t"
        );
        let rows: String = sqlx::query_scalar(AssertSqlSafe(rows)).fetch_one(pool).await.unwrap();
        contents += &format!("{table}: {rows}\n");
    }
    contents
}

#[tokio::test]
async fn serve_never_migrates_unless_told_to() {
    let database = cluster::empty_database().await;
    let pool = cluster::pool(&database).await;
    let mut setup = Setup::over(&database);
    let (status, _, error) = run("serve", &setup).await;
    assert_eq!(status, Some(2));
    assert_eq!(error, "rampart: the database has no schema: run `rampart migrate`");
    assert_eq!(contents(&pool).await, "");

    MIGRATIONS.run_to(17, &pool).await.unwrap();
    let before = contents(&pool).await;
    let (status, _, error) = run("serve", &setup).await;
    assert_eq!(status, Some(2));
    assert!(error.contains("the schema lacks migration"), "{error}");
    assert_eq!(contents(&pool).await, before);

    setup.set("database.migrate_on_start", "true");
    Edge::of(setup).await.ops("/readyz").await.assert_status(200);
}

#[tokio::test]
async fn processes_that_migrate_at_once_take_turns() {
    let database = cluster::empty_database().await;
    let setup = Setup::over(&database);
    let (one, two) = tokio::join!(run("migrate", &setup), run("migrate", &setup));
    let mut applied = 0;
    for (status, out, error) in [one, two] {
        assert_eq!((status, &*error), (Some(0), ""), "{out:?}");
        assert!(out.last().unwrap().starts_with("the schema is at 0"), "{out:?}");
        applied += out.len() - 1;
    }
    assert_eq!(applied, MIGRATIONS.iter().count());
    Edge::of(setup).await.ops("/readyz").await.assert_status(200);
}

#[tokio::test]
async fn a_process_waits_for_its_turn_outside_of_transactions() {
    let database = cluster::empty_database().await;
    let pool = cluster::pool(&database).await;
    let setup = Setup::over(&database);
    let mut other = pool.begin().await.unwrap();
    let take = "select pg_advisory_xact_lock(x'72616d70617274'::bigint)";
    sqlx::query(take).execute(&mut *other).await.unwrap();
    let pid = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *other).await;
    let pid: i32 = pid.unwrap();
    let waiting = "with own as (select * from pg_stat_activity \
             where datname = current_database() and pid <> $1) \
         select exists (select from own where state = 'idle' and query = 'rollback') \
             and not exists (select from own where state like 'idle in transaction%')";
    let look = async || {
        let waits = sqlx::query_scalar(waiting).bind(pid).fetch_one(&pool).await.unwrap();
        Some(()).filter(|()| waits)
    };
    let begin = async {
        until("it waits without a transaction", SOON, look).await;
        other.rollback().await.unwrap();
    };
    let ((status, _, error), ()) = tokio::join!(run("migrate", &setup), begin);
    assert_eq!((status, &*error), (Some(0), ""));
}

#[tokio::test]
async fn a_migration_that_finds_a_lock_gives_up_and_is_undone() {
    let database = cluster::empty_database().await;
    let pool = cluster::pool(&database).await;
    MIGRATIONS.run_to(17, &pool).await.unwrap();
    let mut setup = Setup::over(&database);
    setup.set("database.lock_timeout_ms", "200");
    let mut holder = pool.begin().await.unwrap();
    sqlx::query("lock table _sqlx_migrations in share mode").execute(&mut *holder).await.unwrap();
    let (status, out, error) = run("migrate", &setup).await;
    assert_eq!((status, out.len()), (Some(2), 0), "{out:?}");
    assert!(error.contains("a lock was not free within 200 ms"), "{error}");
    holder.rollback().await.unwrap();
    let (status, _, error) = run("migrate", &setup).await;
    assert_eq!((status, &*error), (Some(0), ""));
}

#[tokio::test]
async fn what_an_interrupted_migrate_has_not_granted_is_granted_by_the_next_one() {
    let database = cluster::database().await;
    let pool = cluster::pool(&database).await;
    // As its last migration would have made it.
    execute(&pool, "create table made_last (id int)").await;
    let (status, _, error) = run("migrate", &Setup::over(&database)).await;
    assert_eq!((status, &*error), (Some(0), ""));
    let may = "select has_table_privilege('rampart_edge', 'made_last', 'insert')";
    assert!(sqlx::query_scalar::<_, bool>(may).fetch_one(&pool).await.unwrap());
}

#[tokio::test]
async fn migrate_leaves_what_a_later_version_has_granted() {
    let database = cluster::database().await;
    let pool = cluster::pool(&database).await;
    execute(&pool, LATER).await;
    execute(&pool, "create table made_later (id int)").await;
    execute(&pool, "grant select, insert on made_later to rampart_edge, rampart_worker").await;
    // Something is left to grant.
    execute(&pool, "create table made_last (id int)").await;
    let (status, _, error) = run("migrate", &Setup::over(&database)).await;
    assert_eq!((status, &*error), (Some(0), ""));
    let may = "select has_table_privilege('rampart_edge', 'made_later', 'delete')";
    assert!(!sqlx::query_scalar::<_, bool>(may).fetch_one(&pool).await.unwrap());
}

#[tokio::test]
async fn an_edge_serves_beside_a_later_schema_until_that_says_no() {
    let database = cluster::database().await;
    let pool = cluster::pool(&database).await;
    execute(&pool, LATER).await;
    let setup = Setup::over(&database);
    Edge::of(setup.clone()).await.ops("/readyz").await.assert_status(200);
    execute(
        &pool,
        "create or replace function edge_migration_min() returns bigint language sql immutable \
         return 9998",
    )
    .await;
    for command in ["serve", "migrate"] {
        let (status, _, error) = run(command, &setup).await;
        assert_eq!(status, Some(2), "{command}");
        assert!(error.contains("it needs an edge that knows migration 9998"), "{error}");
    }
}

#[tokio::test]
async fn a_migration_of_another_text_is_told_where_none_is_missing_too() {
    let database = cluster::database().await;
    let pool = cluster::pool(&database).await;
    execute(&pool, "update _sqlx_migrations set checksum = '' where version = 17").await;
    let setup = Setup::over(&database);
    for command in ["serve", "migrate"] {
        let (status, _, error) = run(command, &setup).await;
        assert_eq!(status, Some(2), "{command}");
        let sentence = "migration 0017 was applied with another text than this version knows";
        assert_eq!(error, format!("rampart: {sentence}"));
    }
}

/// Undoes the migration if it is an optional one that makes an index; true if it is.
async fn undo(pool: &PgPool, migration: &Migration) -> bool {
    let (sql, version) = (migration.sql.as_str(), migration.version);
    let made = sql.split_once("create index concurrently if not exists ");
    let Some((_, index)) = made.filter(|_| sql.contains("-- optional: edges serve without it"))
    else {
        return false;
    };
    let index = index.split_whitespace().next().unwrap();
    execute(pool, &format!("drop index if exists {index}")).await;
    execute(pool, &format!("delete from _sqlx_migrations where version = {version}")).await;
    true
}

/// Undoes the newest optional migration.
pub(crate) async fn undo_newest(pool: &PgPool) {
    for migration in MIGRATIONS.iter().rev() {
        if undo(pool, migration).await {
            return;
        }
    }
    panic!("no migration is optional");
}

/// Undoes the optional migrations that make an index; gives their numbers.
async fn without_optional(pool: &PgPool) -> Vec<String> {
    let mut missing = Vec::new();
    for migration in MIGRATIONS.iter() {
        if undo(pool, migration).await {
            missing.push(format!("{:04}", migration.version));
        }
    }
    missing
}

#[tokio::test]
async fn an_edge_serves_without_optional_migrations_and_names_them() {
    let database = cluster::database().await;
    let missing = without_optional(&cluster::pool(&database).await).await;
    assert!(missing.len() > 1, "{missing:?}");
    let named = format!("migrations {}", missing.join(", "));
    let setup = Setup::over(&database);
    let edge = Edge::of(setup.clone()).await;
    edge.ops("/readyz").await.assert_status(200);
    edge.partner("early").await.get("/api/v2/events").await.assert_status(200);
    edge.admin(Method::GET, "/admin/v1/orders", Value::Null).await.assert_status(200);
    until("the log names them", SOON, async || {
        edge.process.err().iter().any(|line| line.contains(&named)).then_some(())
    })
    .await;
    let (_, out, _) = run("doctor", &setup).await;
    let hint = format!("schema: {named} missing: run `rampart migrate`");
    assert!(out.iter().any(|line| line.ends_with(&hint)), "{out:?}");
}

#[tokio::test]
async fn doctor_changes_nothing_and_names_what_is_missing() {
    let database = cluster::empty_database().await;
    let pool = cluster::pool(&database).await;
    let mut setup = Setup::over(&database);
    // Without a configured key an edge makes one and keeps it in the database.
    setup.unset("keys.master");
    let (status, out, _) = run("doctor", &setup).await;
    assert_eq!(status, Some(2));
    let refused = "broken  schema: the database has no schema: run `rampart migrate`";
    assert!(out.iter().any(|line| line == refused), "{out:?}");
    assert_eq!(contents(&pool).await, "");

    MIGRATIONS.run_to(17, &pool).await.unwrap();
    let before = contents(&pool).await;
    let (_, out, _) = run("doctor", &setup).await;
    let named = "broken  schema: the schema lacks migration";
    assert!(out.iter().any(|line| line.starts_with(named)), "{out:?}");
    assert_eq!(contents(&pool).await, before);

    let database = cluster::database().await;
    let pool = cluster::pool(&database).await;
    let mut setup = Setup::over(&database);
    setup.unset("keys.master");
    let before = contents(&pool).await;
    let (_, out, _) = run("doctor", &setup).await;
    assert!(out.iter().any(|line| line.starts_with("ok      schema: at 0")), "{out:?}");
    assert_eq!(contents(&pool).await, before);
}

#[tokio::test]
async fn a_reader_that_has_gone_away_is_no_error() {
    let setup = Setup::over(&cluster::empty_database().await);
    for command in ["migrate", "archive"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut process = Command::new(binary());
        process.env_clear().arg(command).envs(setup.environment()).stdout(writer);
        let ended = tokio::task::spawn_blocking(move || process.output().unwrap()).await.unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && errors.is_empty(), "{command}: {errors}");
    }
}
