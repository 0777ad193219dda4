//! The second lock: what the database itself keeps one tenant from seeing of another, whatever a
//! statement forgets to say (`migrations/README.md`).

use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use sqlx::{AssertSqlSafe, PgConnection, PgPool, query, query_scalar};
use uuid::Uuid;

/// Tables whose rows belong to a tenant, and views of them where `kinds` names those.
async fn tenants_tables(db: &PgPool, kinds: &[&str]) -> Vec<String> {
    let tables: Vec<String> = query_scalar(
        "select table_name::text from information_schema.columns \
         join information_schema.tables using (table_schema, table_name) \
         where table_schema = 'public' and column_name = 'client_id' and table_type = any ($1) \
         order by 1",
    )
    .bind(kinds)
    .fetch_all(db)
    .await
    .unwrap();
    assert!(tables.len() > 20, "{tables:?}");
    tables
}

#[tokio::test]
async fn every_table_of_a_tenant_has_the_second_lock() {
    let context = TestContext::start().await;
    let locked: Vec<String> = query_scalar(
        "select c.relname::text from pg_class c join pg_policies p on p.tablename = c.relname \
         where c.relrowsecurity and c.relforcerowsecurity and p.cmd = 'ALL' \
             and p.permissive = 'PERMISSIVE' \
             and exists (select from pg_policies a where a.tablename = p.tablename \
                 and a.policyname = p.tablename || '_all_tenants') \
             and p.qual ~ '^\\(client_id = .*rampart\\.client_id' order by 1",
    )
    .fetch_all(context.db())
    .await
    .unwrap();
    assert_eq!(locked, tenants_tables(context.db(), &["BASE TABLE"]).await);
}

#[tokio::test]
async fn the_tenant_leads_every_key_of_its_tables() {
    let context = TestContext::start().await;
    let keys: Vec<String> = query_scalar(
        "select i.indexrelid::regclass::text from pg_index i \
         join pg_attribute a on a.attrelid = i.indrelid and a.attname = 'client_id' \
         where i.indisprimary and i.indkey[0] <> a.attnum order by 1",
    )
    .fetch_all(context.db())
    .await
    .unwrap();
    assert_eq!(keys, [""; 0]);
}

/// A partner with rows in many tables.
async fn busy(context: &TestContext, slug: &str) -> Partner {
    let partner = context.partner(slug).await;
    partner.user("ada").await;
    OrderFixture::order(context, &partner, None, None).await;
    partner
}

async fn count(connection: &mut PgConnection, table: &str) -> i64 {
    let statement = format!("select count(*) from {table}");
    query_scalar(AssertSqlSafe(statement)).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn a_role_that_is_not_the_owner_sees_one_tenant() {
    let context = TestContext::start().await;
    let (_, _) = (busy(&context, "acme").await, busy(&context, "other").await);
    let clients: Vec<Uuid> =
        query_scalar("select client_id from client").fetch_all(context.db()).await.unwrap();
    let database: String =
        query_scalar("select current_database()::text").fetch_one(context.db()).await.unwrap();
    // Roles belong to the whole cluster, which other tests share.
    let role = format!("reader_of_{database}");
    let mut connection = context.db().acquire().await.unwrap();
    for statement in [
        format!("create role {role}"),
        format!("grant select on all tables in schema public to {role}"),
        format!("set role {role}"),
    ] {
        query(AssertSqlSafe(statement)).execute(&mut *connection).await.unwrap();
    }
    let mut with_rows = 0;
    for table in tenants_tables(context.db(), &["BASE TABLE", "VIEW"]).await {
        let of_nobody = "select set_config('rampart.client_id', '', false)";
        query(of_nobody).execute(&mut *connection).await.unwrap();
        assert_eq!(count(&mut connection, &table).await, 0, "{table} without a tenant");
        let mut seen = 0;
        for client in &clients {
            let of_client = query("select set_config('rampart.client_id', $1, false)");
            of_client.bind(client.to_string()).execute(&mut *connection).await.unwrap();
            let others = format!("select count(*) from {table} where client_id <> $1");
            let others: i64 = query_scalar(AssertSqlSafe(others))
                .bind(client)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
            assert_eq!(others, 0, "{table} shows another tenant");
            seen += count(&mut connection, &table).await;
        }
        let mut owner = context.db().acquire().await.unwrap();
        assert_eq!(seen, count(&mut owner, &table).await, "{table}");
        with_rows += i32::from(seen > 1);
    }
    assert!(with_rows >= 8, "rows of both tenants in {with_rows} tables only");
    query("reset role").execute(&mut *connection).await.unwrap();
}

/// Runs statements, and returns the error of the last one.
async fn last_error(connection: &mut PgConnection, statements: &[&str]) -> Option<String> {
    let (last, first) = statements.split_last().unwrap();
    for statement in first {
        query(AssertSqlSafe(*statement)).execute(&mut *connection).await.unwrap();
    }
    let result = query(AssertSqlSafe(*last)).execute(connection).await;
    result.err().and_then(|error| error.as_database_error()?.code().map(Into::into))
}

#[tokio::test]
async fn the_role_of_edges_changes_no_schema_and_sees_no_second_tenant() {
    const FORBIDDEN: &str = "42501";
    let context = TestContext::start().await;
    let (_, _) = (busy(&context, "acme").await, busy(&context, "other").await);
    for role in ["rampart_edge", "rampart_worker"] {
        let mut connection = context.db().acquire().await.unwrap();
        let powers: bool = query_scalar(
            "select rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication \
             from pg_roles where rolname = $1",
        )
        .bind(role)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
        assert!(!powers, "{role}");
        let become_it = format!("set local role {role}");
        for change in [
            "create table mine (id int)",
            "alter table client add column mine int",
            "alter table client disable row level security",
            "drop policy client_isolation on client",
            "create policy mine on client using (true)",
            "truncate delivery",
            "delete from _sqlx_migrations",
            "create or replace function sees_all_tenants() returns boolean language sql return true",
        ] {
            let refused = last_error(&mut connection, &["begin", &become_it, change]).await;
            assert_eq!(refused.as_deref(), Some(FORBIDDEN), "{role}: {change}");
            query("rollback").execute(&mut *connection).await.unwrap();
        }
        let all = ["begin", &become_it, "set local rampart.all_tenants = 'on'"];
        assert_eq!(last_error(&mut connection, &all).await, None);
        let seen = count(&mut connection, "client").await;
        // Both partners, and the house.
        assert_eq!(seen, if role == "rampart_worker" { 3 } else { 0 }, "{role}");
        query("rollback").execute(&mut *connection).await.unwrap();
    }
}
