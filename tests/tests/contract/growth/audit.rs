//! Months of the audit: released by an edge, archived by the owner of the schema, and the chain of
//! what is left.

use std::path::Path;

use http::Method;
use rampart_tests::answer::Answer;
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::plans::end_others;
use super::*;

/// Rows over three months.
const ROWS: i64 = 50_000;

async fn set_price(context: &TestContext, price: i32) {
    let body = json!({ "price": price });
    context.admin(Method::PUT, "/admin/v1/prices/BTC-EUR", body).await.assert_status(200);
}

/// A context whose audit has three rows of a month whose retention is over, and two of a later one.
async fn aged() -> TestContext {
    let context =
        TestContext::with(|settings: &mut Settings| settings.retention.audit_days = Some(365))
            .await;
    set_price(&context, 1).await;
    // The last id of an edge of the version before whose clock is ahead, which others do not look at.
    let ahead = "(left(audit_id::text, 8) || '-ffff-7fff-bfff-fffffffffffe')::uuid";
    for (last_id, price) in [(ahead, 2), ("null", 3)] {
        execute(context.db(), &format!("update audit_head set audit_id = {last_id}")).await;
        set_price(&context, price).await;
    }
    let next = month(context.db(), 1).await;
    let old = format!("alter table audit_before_{next} rename to audit_before_2020_01");
    execute(context.db(), &old).await;
    context.clock().advance(TimeDelta::days(35));
    for price in 4..=5 {
        set_price(&context, price).await;
    }
    context
}

async fn verify(context: &TestContext, query: &str) -> Answer {
    let path = format!("/admin/v1/audit/verification{query}");
    context.admin(Method::GET, &path, Value::Null).await
}

/// Verifies the chain and releases months, as the workers of an edge do.
async fn release(context: &TestContext) {
    execute(context.db(), "update audit_check set due_at = now()").await;
    context.core().check_audit().await.unwrap();
    context.core().maintain_partitions().await.unwrap();
}

/// Archives months under the role of the owner; gives their partitions.
async fn archive(context: &TestContext, folder: &Path) -> Vec<String> {
    let retention = Retention {
        audit_days: Some(365),
        archive_folder: Some(folder.to_owned()),
        ..Retention::default()
    };
    let mut archived = Vec::new();
    let report = |partition: &str| archived.push(partition.to_owned());
    schema::maintain_partitions(&owner(context), &retention, report).await.unwrap().unwrap();
    archived
}

#[tokio::test]
async fn the_chain_goes_on_behind_an_archived_month() {
    let (context, folder) = (aged().await, folder("audit"));
    let db = context.db();
    let whole = verify(&context, "").await.json();
    assert_eq!((&whole["rows"], &whole["archived"]), (&json!(5), &json!(0)));
    let macs: Vec<String> =
        sqlx::query_scalar("select encode(mac, 'hex') from audit order by position")
            .fetch_all(db)
            .await
            .unwrap();
    let (second, third) = (&macs[1], &macs[2]);
    assert_eq!(archive(&context, &folder).await, [""; 0], "no edge has released it");
    release(&context).await;
    release(&context).await;
    let released = "audit where action = 'audit.archive' and target = 'audit_before_2020_01' \
        and detail ->> 'position' = '3'";
    assert_eq!(count(db, released).await, 1);
    assert_eq!(verify(&context, "").await.json()["rows"], 6);
    assert_eq!(archive(&context, &folder).await, ["audit_before_2020_01"]);

    let file = std::fs::read_to_string(folder.join("audit_before_2020_01.csv")).unwrap();
    assert!(file.starts_with("audit_id,at,actor,action,target,detail,position,mac\n"), "{file}");
    assert!(file.contains(third) && file.lines().count() == 4, "{file}");
    let left = verify(&context, "").await.json();
    assert_eq!((&left["intact"], &left["complete"]), (&json!(true), &json!(true)), "{left}");
    assert_eq!((&left["archived"], &left["rows"]), (&json!(3), &json!(3)), "{left}");
    let end = verify(&context, &format!("?after=3&mac={third}")).await.json();
    assert_eq!((&end["intact"], &end["rows"]), (&json!(true), &json!(3)), "{end}");
    let other = verify(&context, &format!("?after=3&mac={second}")).await.json();
    assert_eq!(other["broken"]["position"], 3, "{other}");
    verify(&context, &format!("?after=2&mac={second}")).await.assert_status(422);
    // The worker's round begins behind it, too, and the next month is released in its time.
    release(&context).await;
    assert_eq!(count(db, "audit_check where broken_position is null").await, 1);
    assert_eq!(archive(&context, &folder).await, [""; 0]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn months_that_edges_of_other_clocks_wrote_by_turns_are_archived_together() {
    for (ends_in, rows) in [("before", 3), ("month", 4)] {
        let context =
            TestContext::with(|settings: &mut Settings| settings.retention.audit_days = Some(365))
                .await;
        let (db, next) = (context.db(), month(context.db(), 1).await);
        let next_id: Uuid = sqlx::query_scalar(
            "select substring(pg_get_expr(relpartbound, oid) from '[0-9a-f-]{36}')::uuid \
             from pg_class where relname = $1",
        )
        .bind(format!("audit_{next}"))
        .fetch_one(db)
        .await
        .unwrap();
        // The last millisecond of this month is a month of its own.
        let month_id = Uuid::from_u128(next_id.as_u128() - (1_u128 << 80));
        for statement in [
            format!("drop table audit_before_{next}"),
            format!(
                "create table audit_before_2020_01 partition of audit \
                 for values from (minvalue) to ('{month_id}')"
            ),
            format!(
                "create table audit_2020_01 partition of audit \
                 for values from ('{month_id}') to ('{next_id}')"
            ),
        ] {
            execute(db, &statement).await;
        }
        // Edges of the version before give an id by their own clock.
        let id = |id: u128| format!("'{}'", Uuid::from_u128(id));
        let (ahead, now) = (id(month_id.as_u128()), "null".to_owned());
        let mut last_ids = vec![now.clone(), ahead, now];
        if ends_in == "month" {
            last_ids.push(id(month_id.as_u128() + 16));
        }
        last_ids.push(id(next_id.as_u128()));
        for (price, last_id) in (1..).zip(last_ids) {
            execute(db, &format!("update audit_head set audit_id = {last_id}")).await;
            set_price(&context, price).await;
        }
        release(&context).await;
        let folder = folder(&format!("audit-together-{ends_in}"));
        let archived = archive(&context, &folder).await;
        assert_eq!(archived, ["audit_before_2020_01", "audit_2020_01"], "{ends_in}");
        let left = verify(&context, "").await.json();
        assert_eq!((&left["intact"], &left["archived"]), (&json!(true), &json!(rows)), "{left}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[tokio::test]
async fn a_month_that_no_edge_has_released_is_missed() {
    // As somebody does who has the database and not the key.
    let forged = "jsonb_build_object('position', 3, \
        'mac', (select encode(mac, 'hex') from audit where position = 3))";
    let changed =
        format!("update audit set action = 'audit.archive', detail = {forged} where position = 5");
    let unchained = format!(
        "with head as (update audit_head set unchained = unchained + 1) \
         insert into audit (audit_id, at, actor, action, target, detail) \
         select 'ffffffff-ffff-7fff-bfff-ffffffffffff'::uuid, now(), 'edge', 'audit.archive', '', \
             {forged}"
    );
    for (statement, position) in [("select", 1), (&*changed, 5), (&*unchained, 1)] {
        let context = aged().await;
        execute(context.db(), statement).await;
        execute(context.db(), "delete from audit where position <= 3").await;
        let found = verify(&context, "").await.json();
        assert_eq!(found["broken"]["position"], position, "{statement} {found}");
    }
}

#[tokio::test]
async fn a_month_is_not_archived_while_the_chain_is_broken() {
    let (context, folder) = (aged().await, folder("audit-broken"));
    execute(context.db(), "update audit set actor = 'eve' where position = 2").await;
    release(&context).await;
    assert_eq!(archive(&context, &folder).await, [""; 0]);
    assert_eq!(verify(&context, "").await.json()["broken"]["position"], 2);
}

#[tokio::test]
async fn rows_from_before_the_chain_are_archived_with_their_month() {
    let (context, folder) = (aged().await, folder("audit-unchained"));
    for statement in [
        "insert into audit (audit_id, at, actor, action, target, detail) \
         values ('0199a000-0000-7000-8000-000000000001', now(), 'ada', 'price.set', 'BTC-EUR', \
             '{}')",
        "update audit_head set unchained = 1",
    ] {
        assert_eq!(execute(context.db(), statement).await, 1);
    }
    release(&context).await;
    assert_eq!(archive(&context, &folder).await, ["audit_before_2020_01"]);
    let left = verify(&context, "").await.json();
    assert_eq!((&left["intact"], &left["archived"]), (&json!(true), &json!(3)), "{left}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn edges_add_to_the_audit_from_its_first_moment_with_months() {
    // Which makes the roles.
    cluster::database().await;
    let url = cluster::empty_database().await;
    let pool = cluster::pool(&url).await;
    MIGRATIONS.run_to(359, &pool).await.unwrap();
    // Its month cannot begin, so that whatever comes after the migrations does not.
    let late = "insert into audit (audit_id, at, actor, action, target, detail) \
        values ('ffffffff-ffff-7fff-bfff-ffffffffffff', now(), 'ada', 'price.set', 'BTC-EUR', \
            '{}')";
    execute(&pool, late).await;
    let settings = Database { url: Some(Secret::new(url)), ..Database::default() };
    schema::migrate(&settings, |_| ()).await.unwrap_err();
    assert_eq!(partitions(&pool, "audit").await, ["audit_default"]);
    for role in ["rampart_edge", "rampart_worker"] {
        let may = format!("select has_table_privilege('{role}', 'audit', 'insert')");
        let may = sqlx::query_scalar::<_, bool>(AssertSqlSafe(may)).fetch_one(&pool).await;
        assert!(may.unwrap(), "{role}");
    }
}

#[tokio::test]
async fn a_page_of_the_audit_reads_few_rows_of_each_month() {
    let context = TestContext::start().await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    let generated = format!(
        "insert into audit (audit_id, at, actor, action, target, detail) \
         select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' \
             || substr(md5(n::text), 1, 19))::uuid, at, 'ada', 'price.set', 'BTC-EUR', '{{}}' \
         from (select n, now() + n * interval '2 minutes' as at \
             from generate_series(1, {ROWS}) n) moment"
    );
    let settling =
        ["analyze", "select pg_stat_force_next_flush()", "select", "select pg_stat_reset()"];
    for statement in [&*generated].into_iter().chain(settling) {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
    }
    for criterion in ["", "&actor=ada", "&action=price.set", "&target=BTC-EUR"] {
        let path = format!("/admin/v1/audit?limit=20{criterion}");
        let page = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
        let path = format!("{path}&after={}", page[19]["id"].as_str().unwrap());
        let page = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
        assert_eq!(page.as_array().unwrap().len(), 20);
    }
    end_others(&mut connection).await;
    let read: i64 = sqlx::query_scalar(
        "select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_user_tables \
         where relid in (select relid from pg_partition_tree('audit'))",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert!(read < ROWS / 10, "{read} rows were read");
}
