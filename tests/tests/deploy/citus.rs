//! The statements of the core on Citus, held against the list in `migrations/CITUS.md`. Citus is
//! in no distribution of Debian: where it is not installed beside Postgres, there is nothing to try.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use rampart_core::platform::db::MIGRATIONS;
use rampart_tests::postgres_server::PostgresServer;
use rampart_tests::repository::root;
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Row as _};

/// A statement that reads or writes rows of one client alone, or a table that is on every node.
const ONE_SHARD: &str = "one shard";
/// A statement of an operator or a worker, over all clients.
const EVERY_SHARD: &str = "every shard";
const TASKS: &str = "Task Count: ";

#[tokio::test]
async fn statements_are_planned_as_the_list_says() {
    if !is_installed() {
        eprintln!("Citus is not installed beside Postgres");
        return;
    }
    let server = PostgresServer::start().await;
    let pool = distributed(&server).await;
    let mut connection = pool.acquire().await.unwrap();
    let listed = listed();
    let mut planned = BTreeSet::new();
    for query in queries() {
        let plan = plan(&mut connection, &query).await;
        let class = class(&listed, plan).unwrap_or_else(|reason| panic!("{reason}: {query}"));
        planned.insert(class);
    }
    let listed: BTreeSet<_> = listed.into_iter().collect();
    assert_eq!(planned, listed, "planned on Citus, and listed in migrations/CITUS.md");
}

/// True if this machine's Postgres can load Citus.
fn is_installed() -> bool {
    let folder = Command::new(root().join("deploy/find-postgres")).output().unwrap();
    let programs = String::from_utf8(folder.stdout).unwrap();
    let asked = Command::new(format!("{}/pg_config", programs.trim())).arg("--pkglibdir").output();
    asked.is_ok_and(|output| {
        let library = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        fs::exists(format!("{library}/citus.so")).unwrap()
    })
}

/// A database whose tables are distributed over one node.
async fn distributed(server: &PostgresServer) -> PgPool {
    let postgres = server.pool("postgres").await;
    run(&postgres, "alter system set shared_preload_libraries = 'citus'").await;
    postgres.close().await;
    server.restart().await;
    let postgres = server.pool("postgres").await;
    run(&postgres, "create database distributed").await;
    run(&postgres, "alter database distributed set citus.enable_unsafe_triggers = on").await;
    let pool = server.pool("distributed").await;
    run(&pool, "create extension citus").await;
    // Over its socket, which asks for no password.
    let node = "current_setting('unix_socket_directories'), current_setting('port')::integer";
    run(&pool, &format!("select citus_set_coordinator_host({node})")).await;
    run(&pool, &format!("select citus_set_node_property({node}, 'shouldhaveshards', true)")).await;
    MIGRATIONS.run(&pool).await.unwrap();
    let script = fs::read_to_string(root().join("tests/fixtures/citus/distribute.sql")).unwrap();
    run(&pool, &script).await;
    pool
}

async fn run(pool: &PgPool, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(pool).await.unwrap();
}

/// The checked statements of the core, as sqlx keeps them.
fn queries() -> Vec<String> {
    let entries = fs::read_dir(root().join(".sqlx")).unwrap();
    let files = entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let queries = files.map(|file| serde_json::from_str::<Value>(&file).unwrap());
    queries.map(|query| query["query"].as_str().unwrap().to_owned()).collect()
}

/// The plan of a statement with some value for each parameter, or the reason why there is none.
async fn plan(connection: &mut PgConnection, query: &str) -> Result<String, String> {
    simple(connection, &format!("prepare statement as {query}")).await?;
    let types: Vec<String> = sqlx::query_scalar(
        "select unnest(parameter_types)::text from pg_prepared_statements where name = 'statement'",
    )
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    let values: Vec<_> = types.iter().map(|of_type| value(of_type)).collect();
    let values = if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) };
    let plan = simple(connection, &format!("explain execute statement{values}")).await;
    simple(connection, "deallocate statement").await.unwrap();
    plan
}

/// The rows of a statement that is sent as text, in lines.
async fn simple(connection: &mut PgConnection, statement: &str) -> Result<String, String> {
    let rows = sqlx::raw_sql(AssertSqlSafe(statement)).fetch_all(connection).await;
    let rows = rows.map_err(|error| error.to_string())?;
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    Ok(lines.join("\n"))
}

/// Some value of a type, as an expression; no null, which is on no shard.
fn value(of_type: &str) -> String {
    if let Some(element) = of_type.strip_suffix("[]") {
        return format!("array[{}]::{of_type}", value(element));
    }
    match of_type {
        "uuid" => "'00000000-0000-7000-8000-000000000001'::uuid".to_owned(),
        "jsonb" => "'{}'::jsonb".to_owned(),
        "boolean" => "true".to_owned(),
        "date" | "timestamp with time zone" => format!("now()::{of_type}"),
        "interval" => "'1 second'::interval".to_owned(),
        "text" | "bytea" => format!("'1'::{of_type}"),
        "bigint" | "integer" | "smallint" | "numeric" | "double precision" => {
            format!("1::{of_type}")
        }
        composite => format!("null::{composite}"),
    }
}

/// The line of the list that a plan, or the reason of a refusal, belongs to.
fn class(listed: &[String], plan: Result<String, String>) -> Result<String, String> {
    let reason = match plan {
        Ok(plan) => {
            let tasks = plan.lines().filter_map(|line| line.trim().strip_prefix(TASKS));
            let is_of_one = tasks.into_iter().all(|tasks| tasks == "1");
            return Ok(if is_of_one { ONE_SHARD } else { EVERY_SHARD }.to_owned());
        }
        Err(reason) => reason,
    };
    let found = listed.iter().find(|text| reason.contains(*text));
    found.cloned().ok_or(reason)
}

/// The table of `migrations/CITUS.md`: the ways in which statements are planned.
fn listed() -> Vec<String> {
    let page = fs::read_to_string(root().join("migrations/CITUS.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap().to_owned()).collect()
}
