//! Rows that cannot be read cost their owner, and nobody else.

use http::Method;
use rampart_core::readiness::Status;
use rampart_tests::test_context::TestContext;
use serde_json::json;
use sqlx::{AssertSqlSafe, query};

const PRICES: &str = "/api/v1/prices";

/// Values that an edge cannot read: table and assignment, and whether the tenant is left out or one
/// of its secrets alone.
const BROKEN: [(&str, &str, bool); 11] = [
    ("client", r#"rate_limits = '{"client": "plenty"}'"#, true),
    ("client", "rate_limits = '[7]'", true),
    ("client", r#"compliance_gates = '{"card": "sometimes"}'"#, true),
    ("client", "allowed_addresses = '{10.0.0.0/33}'", true),
    ("client", "allowed_countries = '{NL, null}'", true),
    ("client", "fee_cap_percentage = 'NaN'", true),
    ("client", "tokens_valid_from = 'infinity'", true),
    ("api_key", "secret_digest = '\\x00'", true),
    ("api_key", "allowed_addresses = '{nowhere}'", true),
    ("tenant_key", "sealed = '\\x00'", true),
    ("client_secret", "sealed = '\\x00' where kind = 'signing'", false),
];

/// Assigns a value in a row of this client, as nobody but the database's owner can.
async fn set(context: &TestContext, table: &str, assignment: &str, slug: &str) {
    let word = if assignment.contains(" where ") { "and" } else { "where" };
    let own = "client_id = (select client_id from client where slug = $1)";
    let update = format!("update {table} set {assignment} {word} {own}");
    query(AssertSqlSafe(update)).bind(slug).execute(context.db()).await.unwrap();
    let next = "with next as ( \
        update change_counter set revision = revision + 1 where scope = 'clients' \
        returning revision) \
        update client set revision = next.revision from next where slug = $1";
    query(next).bind(slug).execute(context.db()).await.unwrap();
}

/// Assigns a value in the market.
async fn set_market(context: &TestContext, statement: &'static str) {
    query(statement).execute(context.db()).await.unwrap();
    let next = "update change_counter set revision = revision + 1 where scope = 'catalogue'";
    query(next).execute(context.db()).await.unwrap();
}

/// The edge is ready, and says that so many rows are left out.
async fn degraded(edge: &TestContext, rows: usize) {
    let readiness = edge.core().readiness().await;
    assert!(readiness.ready, "{readiness:?}");
    let check = readiness.checks.iter().find(|check| check.name == "rows").unwrap();
    let status = if rows == 0 { Status::Ok } else { Status::Degraded };
    assert_eq!(check.status, status, "{}", check.detail);
    assert!(rows == 0 || check.detail.contains(&format!("left out: {rows} (")), "{}", check.detail);
}

async fn suspend(context: &TestContext, slug: &str) {
    let path = format!("/admin/v1/partners/{slug}");
    let status = json!({"status": "suspended"});
    context.admin(Method::PATCH, &path, status).await.assert_status(200);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_costs_its_tenant_alone() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (number, (table, assignment, leaves_out)) in BROKEN.into_iter().enumerate() {
        let (slug, other) = (format!("broken{number}"), format!("other{number}"));
        let partner = context.partner(&slug).await;
        let suspended = context.partner(&other).await;
        set(&context, table, assignment, &slug).await;
        context.core().refresh().await.unwrap();
        let started = context.second_edge().await;
        suspend(&context, &other).await;
        started.core().refresh().await.unwrap();
        for edge in [&context, &started] {
            acme.at(edge).get(PRICES).await.assert_status(200);
            suspended.at(edge).get(PRICES).await.assert_status(400);
            let status = if leaves_out { 400 } else { 200 };
            partner.at(edge).get(PRICES).await.assert_status(status);
            degraded(edge, number + 1).await;
        }
    }
    let metrics = context.core().metrics_text();
    for (table, rows) in [("client", 7), ("api_key", 2), ("client_secret", 1), ("price", 0)] {
        let line = format!("rampart_broken_rows{{table=\"{table}\"}} {rows}\n");
        assert!(metrics.contains(&line), "{line}");
    }
}

#[tokio::test]
async fn a_row_that_was_mended_is_served_again() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    set(&context, "client", "rate_limits = '[]'", "acme").await;
    context.core().refresh().await.unwrap();
    acme.get(PRICES).await.assert_status(400);
    degraded(&context, 1).await;
    set(&context, "client", "rate_limits = '{}'", "acme").await;
    context.core().refresh().await.unwrap();
    acme.get(PRICES).await.assert_status(200);
    degraded(&context, 0).await;
}

#[tokio::test]
async fn a_broken_row_that_the_database_has_lost_is_forgotten() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let lost = "insert into client (client_id, slug, name, mode, username, revision, created_at) \
        values (gen_random_uuid(), 'lost', '', 'test', 'lost', 1, now())";
    query(lost).execute(context.db()).await.unwrap();
    set(&context, "client", "fee_cap_percentage = 'NaN'", "lost").await;
    context.core().refresh().await.unwrap();
    degraded(&context, 1).await;
    // As a standby has it that lacks the last changes.
    for earlier in [
        "delete from client where slug = 'lost'",
        "update change_counter set revision = 1 where scope = 'clients'",
    ] {
        query(earlier).execute(context.db()).await.unwrap();
    }
    context.core().refresh().await.unwrap();
    acme.get(PRICES).await.assert_status(200);
    degraded(&context, 0).await;
}

#[tokio::test]
async fn one_of_many_tenants_is_found_in_one_refresh() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let many = "insert into client (client_id, slug, name, mode, username, revision, created_at) \
        select gen_random_uuid(), 'many' || n, '', 'test', 'many' || n, 1000000, now() \
        from generate_series(1, 2000) n";
    query(many).execute(context.db()).await.unwrap();
    query("update change_counter set revision = 1000000 where scope = 'clients'")
        .execute(context.db())
        .await
        .unwrap();
    set(&context, "client", "fee_cap_percentage = 'NaN'", "many777").await;
    context.core().refresh().await.unwrap();
    acme.get(PRICES).await.assert_status(200);
    // All but the broken one, and the house.
    assert_eq!(context.core().snapshots.current().tenants.len(), 2001);
    degraded(&context, 1).await;
}

#[tokio::test]
async fn a_row_of_the_market_costs_its_pair_alone() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let prices = async |edge: &TestContext| acme.at(edge).get(PRICES).await.json()["buy"].clone();
    let before = prices(&context).await;
    for pair in ["BTC-EUR", "ETH-EUR", "LTC-EUR", "XRP-EUR"] {
        assert!(before.get(pair).is_some(), "{before}");
    }
    set_market(&context, "update currency set caip19 = 'ether' where code = 'ETH'").await;
    set_market(&context, "update price set price = 'NaN' where pair = 'LTC-EUR'").await;
    set_market(&context, "update currency_pair set network_fee = 'NaN' where pair = 'XRP-EUR'")
        .await;
    set_market(&context, "insert into payment_method_preference values ('XX', '{null}')").await;
    suspend(&context, "rival").await;
    let started = context.second_edge().await;
    for edge in [&context, &started] {
        let prices = prices(edge).await;
        assert!(prices.get("BTC-EUR").is_some(), "{prices}");
        for pair in ["ETH-EUR", "LTC-EUR", "XRP-EUR"] {
            assert!(prices.get(pair).is_none(), "{pair}");
        }
        rival.at(edge).get(PRICES).await.assert_status(400);
        degraded(edge, 4).await;
    }
}

#[tokio::test]
async fn tenants_are_published_when_the_market_cannot_be_read() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    // Not a broken row, but a statement that fails.
    set_market(&context, "alter table currency rename to currency_of_old").await;
    set(&context, "client", "status = 'suspended'", "acme").await;
    assert!(context.core().refresh().await.is_err());
    acme.get(PRICES).await.assert_status(400);
}

#[tokio::test]
async fn credentials_that_were_committed_are_shown_when_the_market_cannot_be_read() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    set_market(&context, "alter table currency rename to currency_of_old").await;
    for (path, body, status, member) in [
        ("/acme/secrets/rotate", json!({"kind": "webhook", "overlapSeconds": 0}), 200, "secret"),
        ("/acme/api-keys", json!({"name": "office"}), 201, "apiKey"),
        ("", json!({"slug": "rival", "name": "Rival", "mode": "test"}), 201, "password"),
    ] {
        let path = format!("/admin/v1/partners{path}");
        let answer = context.admin(Method::POST, &path, body).await;
        assert!(answer.assert_status(status).json()[member].is_string(), "{path}");
    }
}

#[tokio::test]
async fn the_market_is_published_when_tenants_cannot_be_read() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    query("alter table client_secret rename to client_secret_of_old")
        .execute(context.db())
        .await
        .unwrap();
    set(&context, "client", "name = 'Acme'", "acme").await;
    set_market(&context, "update currency_pair set buy_status = 'disabled' where pair = 'BTC-EUR'")
        .await;
    assert!(context.core().refresh().await.is_err());
    assert!(acme.get(PRICES).await.json()["buy"].get("BTC-EUR").is_none());
}
