//! Tables that grow with every order: partitions by month, their archive, and reads that cost what
//! they find.

mod audit;
mod indexes;
pub(crate) mod plans;
mod sent_again;

use std::path::PathBuf;

use chrono::TimeDelta;
use rampart_core::platform::crypto::Secret;
use rampart_core::platform::db::MIGRATIONS;
use rampart_core::platform::schema;
use rampart_core::platform::settings::{Database, Retention, Settings};
use rampart_tests::cluster;
use rampart_tests::connector::Connector;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool};

const TABLES: [&str; 3] = ["audit", "event", "order_transition"];

async fn execute(pool: &PgPool, statement: &str) -> u64 {
    let statement = AssertSqlSafe(statement.to_owned());
    sqlx::query(statement).execute(pool).await.unwrap().rows_affected()
}

async fn count(pool: &PgPool, table: &str) -> i64 {
    let statement = AssertSqlSafe(format!("select count(*) from {table}"));
    sqlx::query_scalar(statement).fetch_one(pool).await.unwrap()
}

/// The partitions of a table, by name.
async fn partitions(pool: &PgPool, table: &str) -> Vec<String> {
    sqlx::query_scalar(
        "select relname::text from pg_inherits join pg_class c on c.oid = inhrelid \
         where inhparent = to_regclass($1) order by 1",
    )
    .bind(table)
    .fetch_all(pool)
    .await
    .unwrap()
}

/// The name of the month so many months from now.
async fn month(pool: &PgPool, ahead: i32) -> String {
    sqlx::query_scalar(
        "select to_char(now() at time zone 'utc' + make_interval(months => $1), 'YYYY_MM')",
    )
    .bind(ahead)
    .fetch_one(pool)
    .await
    .unwrap()
}

/// Makes the partition with the rows so far one of long ago, by its name. That is of the month in which
/// the template was made, which may be over.
async fn age(pool: &PgPool, table: &str) {
    let partitions = partitions(pool, table).await;
    let before = partitions.iter().find(|name| name.starts_with(&format!("{table}_before_")));
    let before = before.unwrap();
    execute(pool, &format!("alter table {before} rename to {table}_before_2020_01")).await;
}

/// The settings of the owner of a test's database.
fn owner(context: &TestContext) -> Database {
    Database { url: Some(Secret::new(context.database())), ..Database::default() }
}

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("rampart-archive-{name}-{}", std::process::id()))
}

/// A context with an order that has ended: an event, a transition and a delivery.
async fn traded() -> TestContext {
    traded_in(TestContext::start().await).await
}

async fn traded_in(context: TestContext) -> TestContext {
    let acme = context.partner("acme").await;
    OrderFixture::ended(&context, &acme, "https://shop.example.com/hook").await;
    context
}

#[tokio::test]
async fn months_are_made_ahead_and_keep_their_rows() {
    let context = traded().await;
    let db = context.db();
    let next = month(db, 1).await;
    for table in TABLES {
        let mut expected = vec![format!("{table}_before_{next}"), format!("{table}_default")];
        for ahead in 1..=3 {
            expected.push(format!("{table}_{}", month(db, ahead).await));
        }
        expected.sort();
        assert_eq!(partitions(db, table).await, expected);
        assert!(count(db, &format!("{table}_before_{next}")).await > 0, "{table}");
    }
    let in_month = "insert into event (client_id, event_id, type, payload, created_at) \
        select client_id, (lpad(to_hex((extract(epoch from now() + interval '1 month') * 1000) \
            ::bigint), 12, '0') || '7' || repeat('1', 19))::uuid, type, payload, created_at \
        from event limit 1";
    assert_eq!(execute(db, in_month).await, 1);
    assert_eq!(count(db, &format!("event_{next}")).await, 1);
    // An edge, whose roles own nothing, makes none and says how many there are.
    context.core().maintain_partitions().await.unwrap();
    let metrics = context.core().metrics_text();
    assert!(metrics.contains(r#"rampart_partitions_ahead_months{table="event"} 3"#), "{metrics}");
    let dropped = format!("drop table event_{}", month(db, 3).await);
    execute(db, &dropped).await;
    context.core().maintain_partitions().await.unwrap();
    let metrics = context.core().metrics_text();
    assert!(metrics.contains(r#"rampart_partitions_ahead_months{table="event"} 2"#), "{metrics}");
    let made = schema::maintain_partitions(&owner(&context), &Retention::default(), |_| ()).await;
    assert_eq!(made.unwrap(), Some(0));
    assert_eq!(partitions(db, "event").await.len(), 5);
}

#[tokio::test]
async fn rows_of_an_older_schema_are_carried_over() {
    let url = cluster::empty_database().await;
    let pool = cluster::pool(&url).await;
    MIGRATIONS.run_to(50, &pool).await.unwrap();
    for statement in [
        "insert into client (client_id, slug, name, mode, username, revision, created_at) \
         values (gen_random_uuid(), 'acme', 'Acme', 'test', 'acme', 1, now())",
        "insert into buy_order (client_id, order_id, quote_id, status, pair, payment_method, \
             wallet_address, wallet_type, fiat_amount, fiat_currency, crypto_amount, \
             crypto_currency, price, partner_fee, provider_fee, payment_method_fee, network_fee, \
             spread_fee, affiliate_fee, is_estimated_quote, terms_digest, created_at, updated_at) \
         select client_id, 7, gen_random_uuid(), 'pending', 'BTC-EUR', 'creditCard', 'bc1q', \
             'unhosted', 100, 'EUR', 1, 'BTC', 100, 0, 0, 0, 0, 0, 0, false, '', now(), now() \
         from client",
        "insert into event (client_id, event_id, type, order_id, payload, created_at) \
         select client_id, '0199a000-0000-7000-8000-000000000001', 'order.created', 7, '{}', now() \
         from client",
        "insert into delivery (client_id, delivery_id, event_id, order_id, url, next_attempt_at, \
             created_at) \
         select client_id, '0199a000-0000-7000-8000-000000000002', event_id, 7, 'https://a', now(), \
             now() from event",
        "insert into order_transition (client_id, order_id, transition_id, at, to_status, cause, \
             actor) \
         select client_id, 7, '0199a000-0000-7000-8000-000000000003', now(), 'pending', \
             'confirmed', 'edge' from client",
        "insert into audit (audit_id, at, actor, action, target, detail) \
         values ('0199a000-0000-7000-8000-000000000004', now(), 'ada', 'price.set', 'BTC-EUR', \
             '{}')",
    ] {
        assert_eq!(execute(&pool, statement).await, 1, "{statement}");
    }
    let settings = Database { url: Some(Secret::new(url)), ..Database::default() };
    schema::migrate(&settings, |_| ()).await.unwrap();
    for table in TABLES {
        assert_eq!((count(&pool, table).await, partitions(&pool, table).await.len()), (1, 5));
    }
    let unknown = "insert into order_transition select client_id, 8, gen_random_uuid(), at, \
        from_status, to_status, cause, reason, actor from order_transition";
    assert!(sqlx::query(unknown).execute(&pool).await.is_err(), "an order that does not exist");
}

#[tokio::test]
async fn a_month_is_archived_before_it_is_dropped() {
    let context = traded().await;
    let db = context.db();
    let (owner, folder) = (owner(&context), folder("event"));
    let event: String =
        sqlx::query_scalar("select min(event_id::text) from event").fetch_one(db).await.unwrap();
    // Its time has come.
    age(db, "event").await;
    let mut retention = Retention { event_days: Some(30), ..Retention::default() };
    let maintain = async |retention: &Retention| {
        let mut archived = Vec::new();
        let report = |partition: &str| archived.push(partition.to_owned());
        schema::maintain_partitions(&owner, retention, report).await.unwrap().unwrap();
        archived
    };
    assert_eq!(maintain(&retention).await, [""; 0], "without a folder it stays");
    retention.archive_folder = Some(folder.clone());
    retention.event_days = None;
    assert_eq!(maintain(&retention).await, [""; 0], "without a retention it stays");
    retention.event_days = Some(30);
    let events = count(db, "event").await;
    assert!(events > 0);
    // A run before was given up half way.
    let part = folder.join("event_before_2020_01.csv.part");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(&part, "x".repeat(1 << 20)).unwrap();
    assert_eq!(maintain(&retention).await, ["event_before_2020_01"]);
    let archived = std::fs::read_to_string(folder.join("event_before_2020_01.csv")).unwrap();
    let columns = "client_id,event_id,type,order_id,payload,created_at,traceparent,tracestate\n";
    assert!(archived.starts_with(columns), "{archived}");
    assert!(archived.contains(&event), "{archived}");
    assert_eq!(archived.lines().count(), 1 + usize::try_from(events).unwrap());
    assert!(!part.exists());
    assert_eq!((count(db, "event").await, partitions(db, "event").await.len()), (0, 4));
    assert!(count(db, "order_transition").await > 0, "each table has a retention of its own");
    // What comes then is kept, whatever its month.
    let acme = context.partner("later").await;
    OrderFixture::ended(&context, &acme, "https://shop.example.com/hook").await;
    assert!(count(db, "event_default").await > 0);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn what_cannot_be_written_is_not_dropped() {
    let context = traded().await;
    let db = context.db();
    age(db, "event").await;
    let file = folder("file");
    std::fs::write(&file, "in the way").unwrap();
    let retention = Retention {
        event_days: Some(30),
        archive_folder: Some(file.clone()),
        ..Retention::default()
    };
    let failed = schema::maintain_partitions(&owner(&context), &retention, |_| ()).await;
    let failed = failed.unwrap_err();
    assert!(failed.to_string().contains("the folder cannot be written"), "{failed}");
    assert!(count(db, "event").await > 0);
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn an_archive_that_fails_is_a_failed_run_and_what_is_ready_is_shown() {
    let context = traded().await;
    let db = context.db();
    age(db, "event").await;
    let file = folder("failed-run");
    std::fs::write(&file, "in the way").unwrap();
    let owner = Secret::new(context.database());
    let edge = context
        .edge_with(|settings| {
            settings.database.migrate_url = Some(owner);
            settings.retention.event_days = Some(30);
            settings.retention.archive_folder = Some(file.clone());
        })
        .await;
    let failed = edge.core().maintain_partitions().await.unwrap_err();
    assert!(failed.to_string().contains("the folder cannot be written"), "{failed}");
    let metrics = edge.core().metrics_text();
    assert!(metrics.contains(r#"rampart_partitions_ahead_months{table="event"} 3"#), "{metrics}");
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn a_file_that_cannot_be_finished_takes_no_room() {
    let context = traded().await;
    let (db, folder) = (context.db(), folder("unfinished"));
    age(db, "event").await;
    // In the way of the finished file.
    std::fs::create_dir_all(folder.join("event_before_2020_01.csv")).unwrap();
    let retention = Retention {
        event_days: Some(30),
        archive_folder: Some(folder.clone()),
        ..Retention::default()
    };
    let failed = schema::maintain_partitions(&owner(&context), &retention, |_| ()).await;
    let failed = failed.unwrap_err();
    assert!(failed.to_string().contains("the folder cannot be written"), "{failed}");
    assert!(!folder.join("event_before_2020_01.csv.part").exists());
    assert!(count(db, "event").await > 0);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_month_is_reported_although_a_later_one_fails() {
    let context = traded().await;
    let (db, folder) = (context.db(), folder("later"));
    for table in TABLES {
        age(db, table).await;
    }
    // In the way of the second month's file.
    let part = folder.join("order_transition_before_2020_01.csv.part");
    std::fs::create_dir_all(&part).unwrap();
    let retention = Retention {
        event_days: Some(30),
        order_transition_days: Some(30),
        archive_folder: Some(folder.clone()),
        ..Retention::default()
    };
    let mut archived = Vec::new();
    let report = |partition: &str| archived.push(partition.to_owned());
    let failed = schema::maintain_partitions(&owner(&context), &retention, report).await;
    assert!(failed.unwrap_err().to_string().starts_with("order_transition is not archived"));
    assert_eq!(archived, ["event_before_2020_01"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_month_that_another_process_is_archiving_is_left_to_it() {
    let context = traded().await;
    let (db, folder) = (context.db(), folder("twice"));
    age(db, "event").await;
    // As one does that has lost its turn with the connection that held it.
    let mut other = db.begin().await.unwrap();
    let hold = "lock table event_before_2020_01 in share mode";
    sqlx::query(hold).execute(&mut *other).await.unwrap();
    let settings = Database { lock_timeout_ms: 50, ..owner(&context) };
    let retention = Retention {
        event_days: Some(30),
        archive_folder: Some(folder.clone()),
        ..Retention::default()
    };
    schema::maintain_partitions(&settings, &retention, |_| ()).await.unwrap_err();
    assert!(!folder.exists(), "both would write one file");
    assert!(count(db, "event").await > 0);
}

#[tokio::test]
async fn deliveries_that_have_ended_are_deleted_when_their_retention_is_over() {
    let kept = |settings: &mut Settings| settings.retention.delivery_days = Some(30);
    let context = traded_in(TestContext::with(kept).await).await;
    let db = context.db();
    let left = async |advance: TimeDelta| {
        context.clock().advance(advance);
        context.core().delete_old_deliveries().await.unwrap();
        count(db, "delivery").await
    };
    assert_eq!(left(TimeDelta::days(31)).await, 1, "one that is still tried stays");
    execute(db, "update delivery set state = 'delivered'").await;
    let later = context.partner("later").await;
    OrderFixture::ended(&context, &later, "https://shop.example.com/hook").await;
    execute(db, "update delivery set state = 'failed' where state = 'pending'").await;
    assert_eq!(left(TimeDelta::zero()).await, 1, "the old one is deleted");
    assert_eq!(left(TimeDelta::days(29)).await, 1);
    assert_eq!(left(TimeDelta::days(2)).await, 0);
}

#[tokio::test]
async fn a_retention_from_before_the_first_delivery_deletes_none() {
    let kept = |settings: &mut Settings| settings.retention.delivery_days = Some(36_500);
    let context = traded_in(TestContext::with(kept).await).await;
    execute(context.db(), "update delivery set state = 'delivered'").await;
    context.core().delete_old_deliveries().await.unwrap();
    assert_eq!(count(context.db(), "delivery").await, 1);
}

#[tokio::test]
async fn offers_that_nobody_has_confirmed_are_deleted_when_their_retention_is_over() {
    let kept = |settings: &mut Settings| settings.retention.offer_days = Some(30);
    let context = TestContext::with(kept).await;
    let acme = context.partner("acme").await;
    let mut terms =
        json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"});
    acme.post("/api/v2/buy/offer", terms.clone()).await.assert_status(200);
    let db = context.db();
    execute(db, "update offer set confirmed_at = now()").await;
    terms["returnUrl"] = json!("https://shop.example/back");
    acme.post("/api/v2/buy/checkout", terms).await.assert_status(200);
    let left = async |advance: TimeDelta| {
        context.clock().advance(advance);
        assert!(!context.core().delete_old_offers().await.unwrap());
        (count(db, "offer").await, count(db, "checkout").await)
    };
    assert_eq!(left(TimeDelta::days(29)).await, (2, 1));
    assert_eq!(left(TimeDelta::days(60)).await, (1, 0));
}

#[tokio::test]
async fn a_report_whose_words_are_deleted_is_taken_once_all_the_same() {
    let kept = |settings: &mut Settings| settings.retention.report_days = Some(30);
    let context = TestContext::with(kept).await;
    let connector = Connector::of_live(&context).await;
    context.partner_of(json!({"slug": "acme", "name": "Acme", "mode": "live"})).await;
    let report = json!({"id": "event-1", "kind": "payment.received", "partner": "acme",
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "pay-1", "amount": 100,
        "currency": "EUR"});
    connector.event(report.clone()).await.assert_status(200);
    let db = context.db();
    let left = async |advance: TimeDelta| {
        context.clock().advance(advance);
        assert!(!context.core().delete_old_reports().await.unwrap());
        count(db, "connector_event where sealed_report is not null").await
    };
    assert_eq!(left(TimeDelta::days(29)).await, 1);
    assert_eq!(left(TimeDelta::days(2)).await, 0);
    let again = connector.event(report).await;
    assert_eq!(again.assert_status(200).json()["duplicate"], true);
}
