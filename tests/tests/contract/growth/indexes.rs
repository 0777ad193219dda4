//! Statements about one user, one offer or a few days among many rows of others.

use chrono::TimeDelta;
use http::Method;
use rampart_api::operate::key_rotation::rotate_keys;
use rampart_tests::connector::Connector;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::plans::end_others;
use crate::orders::{Shop, confirm_of};

/// Rows of each table, all of one partner.
const ROWS: i64 = 50_000;
/// Reports of connectors, and commands: 50 pages of a rotation each.
const REPORTS: i64 = 10_000;
/// Most rows of a table that may be read: each report once, with room.
const READ_MAX: i64 = 3 * REPORTS;

const GENERATED: [&str; 5] = [
    "insert into offer (client_id, offer_id, base_currency, quote_currency, fixed_amount, \
         fixed_currency, fixed_payment_method, show_wallet_address, expires_at, created_at) \
     select client_id, gen_random_uuid(), 'BTC', 'EUR', false, false, false, false, \
         now() + interval '1 hour', now() \
     from client, generate_series(1, $1) where slug = 'acme'",
    "insert into refresh_family (client_id, family_id, user_id, device, revoked_at, expires_at, \
         created_at) \
     select client_id, gen_random_uuid(), gen_random_uuid(), 'Firefox on Linux', now(), \
         now() + interval '1 hour', now() \
     from client, generate_series(1, $1) where slug = 'acme'",
    "insert into payment (client_id, payment_id, connector, provider_reference, kind, amount, \
         currency, suspense, actor, occurred_at) \
     select client_id, gen_random_uuid(), 'manual', 'bank-' || n, 'received', 100, 'EUR', true, \
         'operator', timestamptz '2020-01-01' + n * interval '1 minute' \
     from client, generate_series(1, $1) n where slug = 'acme'",
    "insert into connector_event (connector, event_id, report_id, kind, digest, occurred_at, \
         recorded_at) \
     select 'bank', 'event-' || n, gen_random_uuid(), 'payment.received', '', now(), now() \
     from generate_series(1, $2) n",
    "insert into command (client_id, command_id, kind, idempotency_key, state, due_at, created_at) \
     select client_id, gen_random_uuid(), 'payment.create', 'command-' || n, 'done', now(), now() \
     from client, generate_series(1, $2) n where slug = 'acme'",
];

/// Savings plans of every user, each a minute after the one before.
const PLANS: &str = "insert into dca_plan (client_id, code, user_id, through_partner, \
         crypto_currency, wallet_address, bank_name, bank_iban, bank_bic, created_at) \
     select client_id, lpad(n::text, 12, '0'), user_id, false, 'BTC', 'wallet', 'Bank', \
         'NL02REAL0123456789', 'REALNL2A', timestamptz '2020-01-01' + n * interval '1 minute' \
     from end_user, generate_series(1, $1) n";

/// Partners without rows, by whose number the planner expects few rows of each.
const PARTNERS: &str = "insert into client (client_id, slug, name, mode, username, revision, \
         created_at) \
     select gen_random_uuid(), 'shop-' || n, 'Shop', 'test', 'shop-' || n, 1, now() \
     from generate_series(1, 2000) n";

/// Routes of those, before the ones for every live partner.
const ROUTES: [&str; 2] = [
    "update route set position = position + 100000",
    "insert into route (position, partner, payment_method, direction, connector) \
     select n, 'shop-' || 1 + n % 2000, 'bankTransfer', 'in', 'everything' \
     from generate_series(1, $1) n",
];

/// Users with screenings, events and deliveries, all of one partner.
const OF_ACME: [&str; 4] = [
    "insert into end_user (client_id, user_id, created_at) \
     select client_id, gen_random_uuid(), now() from client, generate_series(1, $1) \
     where slug = 'acme'",
    "insert into screening (client_id, screening_id, user_id, state, created_at) \
     select client_id, gen_random_uuid(), user_id, 'clear', now() from end_user \
     on conflict do nothing",
    "insert into event (client_id, event_id, type, payload, created_at) \
     select client_id, (lpad(to_hex((extract(epoch from now() - n * interval '1 second') * 1000) \
             ::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 19))::uuid, \
         'order.completed', '{}', now() \
     from client, generate_series(1, $1) n where slug = 'acme'",
    "insert into delivery (client_id, delivery_id, event_id, url, state, next_attempt_at, \
         created_at, ready) \
     select client_id, event_id, event_id, 'https://shop.example.com', 'delivered', created_at, \
         created_at, false \
     from event",
];

/// Commands that have ended, all of one partner.
const ENDED: &str = "insert into command (client_id, command_id, kind, idempotency_key, connector, \
         state, attempt, due_at, created_at, finished_at) \
     select client_id, gen_random_uuid(), 'payment.create', 'command-' || n, 'bank', 'done', 1, \
         now(), now(), now() \
     from client, generate_series(1, $1) n where slug = 'acme'";

/// Commands that have filled a pool of addresses, and open ones of its connector, all of one partner.
const OF_POOL: [&str; 2] = [
    "insert into command (client_id, command_id, kind, idempotency_key, connector, asset, state, \
         attempt, due_at, created_at, finished_at) \
     select client_id, gen_random_uuid(), 'deposit.address', 'pool-' || n, 'everything', 'ETH', \
         'done', 1, now(), now() - interval '1 day', now() \
     from client, generate_series(1, $1) n where slug = 'acme'",
    "insert into command (client_id, command_id, kind, idempotency_key, connector, asset, state, \
         due_at, created_at) \
     select client_id, gen_random_uuid(), 'payout.send', 'payout-' || n, 'everything', 'ETH', \
         'open', now(), now() \
     from client, generate_series(1, $1) n where slug = 'acme'",
];

/// Statements after which the rows that were read until now do not count.
const SETTLING: [&str; 4] =
    ["analyze", "select pg_stat_force_next_flush()", "select", "select pg_stat_reset()"];

async fn execute(connection: &mut PgConnection, statement: &str) {
    let statement = statement.replace("$1", &ROWS.to_string()).replace("$2", &REPORTS.to_string());
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.unwrap();
}

/// Rows of a table that were read, by any connection; the others are ended.
async fn rows_read(connection: &mut PgConnection, table: &str) -> i64 {
    end_others(connection).await;
    let read = sqlx::query_scalar(
        "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables \
         where relname = $1",
    );
    read.bind(table).fetch_one(connection).await.unwrap()
}

/// Rotates the key from the results of commands on, which are before the connectors' reports.
async fn rotate(context: &TestContext) {
    // Tenants' keys are in use by then.
    context.clock().advance(TimeDelta::hours(1));
    let nil = uuid::Uuid::nil();
    sqlx::query(
        "insert into key_rotation (key_id, requested_by, requested_at, stage, after_client, \
             after_row, resealed) \
         values ($1, 'operator', now(), 7, $2, $3, 0)",
    )
    .bind(context.core().keys.id().to_string())
    .bind(nil)
    .bind(nil.to_string())
    .execute(context.db())
    .await
    .unwrap();
    for _ in 0..2 {
        rotate_keys(context.core()).await.unwrap();
    }
    let stage: i32 =
        sqlx::query_scalar("select stage from key_rotation").fetch_one(context.db()).await.unwrap();
    assert!(stage > 8, "{stage}");
}

#[tokio::test]
async fn statements_read_little_more_than_they_are_about() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await.log_in().await;
    Connector::new(&context, "bank", &["payment.create"]).await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    for statement in GENERATED {
        execute(&mut connection, statement).await;
    }
    let offer: uuid::Uuid = sqlx::query_scalar("select offer_id from offer limit 1")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    for statement in SETTLING {
        execute(&mut connection, statement).await;
    }

    let path = format!("/admin/v1/offers/{offer}/expire");
    context.admin(Method::POST, &path, json!({})).await.assert_status(204);
    let statement = "date,amount,currency,reference,providerReference\n\
                     2026-03-02,-20.00,EUR,rent,rent-6\n";
    let path = "/admin/v1/reconciliations?connector=manual";
    context.admin_bytes(Method::POST, path, statement.into()).await.assert_status(201);
    let path = format!("/admin/v1/users/{}", ada["uuid"].as_str().unwrap());
    context.admin(Method::PATCH, &path, json!({"deleted": true})).await.assert_status(200);
    rotate(&context).await;

    end_others(&mut connection).await;
    let read: Vec<(String, i64)> = sqlx::query_as(
        "select relname::text, seq_tup_read + coalesce(idx_tup_fetch, 0) \
         from pg_stat_user_tables \
         where relname in ('offer', 'refresh_family', 'payment', 'connector_event', 'command') \
             and seq_tup_read + coalesce(idx_tup_fetch, 0) > $1",
    )
    .bind(READ_MAX)
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(read, [], "these rows were read");
}

#[tokio::test]
async fn a_page_of_savings_plans_reads_few_others() {
    let context = TestContext::start().await;
    context.partner("acme").await.user("ada").await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    for statement in [PLANS].into_iter().chain(SETTLING) {
        execute(&mut connection, statement).await;
    }
    for (after, first) in [("", ROWS), ("&after=000000030000", 29_999)] {
        let path = format!("/admin/v1/dca-codes?limit=20{after}");
        let page = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
        assert_eq!(page[0]["code"], format!("{first:012}"));
    }
    let read = rows_read(&mut connection, "dca_plan").await;
    assert!(read < ROWS / 10, "{read} rows were read");
}

#[tokio::test]
async fn a_page_of_one_partner_reads_few_of_its_rows() {
    let context = TestContext::start().await;
    context.partner("acme").await.user("ada").await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    for statement in [PARTNERS, PLANS].into_iter().chain(OF_ACME).chain(SETTLING) {
        execute(&mut connection, statement).await;
    }
    for list in ["dca-codes", "deliveries", "screenings", "users"] {
        let path = format!("/admin/v1/{list}?partner=acme&limit=20");
        let page = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
        assert_eq!(page.as_array().unwrap().len(), 20, "{list}");
    }
    // The oldest of all partners are on one, too.
    let path = "/admin/v1/screenings?limit=20";
    context.admin(Method::GET, path, json!({})).await.assert_status(200);
    end_others(&mut connection).await;
    let read: Vec<(String, i64)> = sqlx::query_as(
        "select relname::text, seq_tup_read + coalesce(idx_tup_fetch, 0) \
         from pg_stat_user_tables \
         where relname in ('dca_plan', 'delivery', 'end_user', 'screening') \
             and seq_tup_read + coalesce(idx_tup_fetch, 0) > $1",
    )
    .bind(ROWS / 10)
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(read, [], "these rows were read");
}

#[tokio::test]
async fn what_connectors_have_to_do_is_found_among_commands_that_have_ended() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let bank = Connector::new(&context, "bank", &["payment.create"]).await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    for statement in [ENDED].into_iter().chain(SETTLING) {
        execute(&mut connection, statement).await;
    }
    assert!(bank.lease(10).await.is_empty());
    for path in ["/admin/v1/connectors", "/admin/v1/connectors/bank", "/admin/v1/dependents"] {
        context.admin(Method::GET, path, json!(null)).await.assert_status(200);
    }
    assert!(!context.core().follow_routes().await.unwrap());
    assert_eq!(context.core().settle_sandbox_orders().await.unwrap(), 0);
    let read = rows_read(&mut connection, "command").await;
    assert!(read < ROWS / 100, "{read} rows were read");
}

#[tokio::test]
async fn a_look_at_a_pool_reads_few_commands_of_its_connector() {
    let context = TestContext::with(|all| all.connectors.deposit_addresses_min = 1).await;
    Connector::of_live(&context).await;
    context.partner("acme").await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    for statement in OF_POOL.into_iter().chain(SETTLING) {
        execute(&mut connection, statement).await;
    }
    context.core().fill_deposit_pools().await.unwrap();
    let read = rows_read(&mut connection, "command").await;
    assert!(read < ROWS / 100, "{read} rows were read");
    let wanted: i64 = sqlx::query_scalar(
        "select count(*) from command \
         where kind = 'deposit.address' and state = 'open' and asset = 'ETH'",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!(wanted, 1);
}

#[tokio::test]
async fn the_answer_of_a_users_confirm_needs_no_new_entries_of_indexes() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let quote = shop.quote(&context, |_| ());
    let request = shop.request(Method::POST, "/api/v1/buy/confirm").header("idempotency-key", "k");
    request.json(&confirm_of(&quote)).send().await.assert_status(200);
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    end_others(&mut connection).await;
    let (updated, within_pages): (i64, i64) = sqlx::query_as(
        "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables \
         where relname = 'idempotency_key'",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert!(updated > 0);
    assert_eq!(updated, within_pages);
}

#[tokio::test]
async fn a_confirm_reads_few_routes_of_other_partners() {
    let context = TestContext::start().await;
    Connector::of_live(&context).await;
    let body = json!({"slug": "acme", "name": "Acme", "mode": "live"});
    let acme = context.partner_of(body).await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    for statement in [PARTNERS].into_iter().chain(ROUTES).chain(SETTLING) {
        execute(&mut connection, statement).await;
    }
    let token = acme.token().await;
    OrderFixture::confirmed(&acme, &token, json!(100), json!({})).await;
    let routed: Option<String> = sqlx::query_scalar("select connector from command")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(routed.as_deref(), Some("everything"));
    let read = rows_read(&mut connection, "route").await;
    assert!(read < ROWS / 100, "{read} rows were read");
}

#[tokio::test]
async fn the_result_of_a_screening_reads_few_of_its_partner() {
    let context = TestContext::start().await;
    Connector::of_live(&context).await;
    let screener = Connector::new(&context, "screener", &["screening.check"]).await;
    let acme = context.partner_of(json!({"slug": "acme", "name": "Acme", "mode": "live"})).await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    for statement in OF_ACME.into_iter().take(2).chain(SETTLING) {
        execute(&mut connection, statement).await;
    }
    let token = acme.token().await;
    let order = OrderFixture::confirmed(&acme, &token, json!(100), json!({})).await;
    screener.answer_next("done", json!({"decision": "block", "reasons": []})).await;
    let read = rows_read(&mut connection, "screening").await;
    assert!(read < ROWS / 100, "{read} rows were read");
    let blocked: Vec<i64> =
        sqlx::query_scalar("select order_id from screening where state = 'block'")
            .fetch_all(&mut connection)
            .await
            .unwrap();
    assert_eq!(blocked, [order.id]);
}
