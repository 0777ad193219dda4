//! Sweeps of background workers: a row that cannot be settled is passed over and counted, and one
//! that somebody holds is nobody's wait.

use std::fs;
use std::sync::Arc;

use chrono::TimeDelta;
use rampart_api::workers;
use rampart_core::trading::orders::expiry::expire_due;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use sqlx::{AssertSqlSafe, query, query_scalar};
use uuid::Uuid;

use crate::orders::count;

/// Runs a statement as the database's owner.
async fn run(context: &TestContext, statement: String) {
    query(AssertSqlSafe(statement)).execute(context.db()).await.unwrap();
}

/// Rows that this worker has passed over.
fn passed_over(context: &TestContext, worker: &str) -> u64 {
    let name = format!("rampart_worker_rows_failed_total{{worker=\"{worker}\"}} ");
    let metrics = context.core().metrics_text();
    let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
    count.map_or(0, |count| count.parse().unwrap())
}

/// Statements that workers have run.
fn statements(context: &TestContext) -> u64 {
    let name = "rampart_db_statement_duration_seconds_count{pool=\"workers\"} ";
    let metrics = context.core().metrics_text();
    let count = metrics.lines().find_map(|line| line.strip_prefix(name));
    count.map_or(0, |count| count.parse().unwrap())
}

/// Adds so many orders in a state that are otherwise like the one that there is, numbered from 1.
pub(crate) async fn copy_order(context: &TestContext, status: &str, count: u32) {
    let statement = format!(
        "insert into buy_order (client_id, order_id, quote_id, status, pair, payment_method, \
             wallet_address, wallet_type, fiat_amount, fiat_currency, crypto_amount, \
             crypto_currency, price, partner_fee, provider_fee, payment_method_fee, network_fee, \
             spread_fee, affiliate_fee, is_estimated_quote, terms_digest, expires_at, created_at, \
             updated_at) \
         select client_id, n, gen_random_uuid(), '{status}', pair, payment_method, \
             wallet_address, wallet_type, fiat_amount, fiat_currency, crypto_amount, \
             crypto_currency, price, partner_fee, provider_fee, payment_method_fee, network_fee, \
             spread_fee, affiliate_fee, is_estimated_quote, terms_digest, expires_at, created_at, \
             updated_at \
         from buy_order, generate_series(1, {count}) n"
    );
    run(context, statement).await;
}

/// Three orders, one after the other.
async fn orders(context: &TestContext) -> [OrderFixture; 3] {
    let acme = context.partner("acme").await;
    let mut orders = Vec::new();
    for _ in 0..3 {
        orders.push(OrderFixture::order(context, &acme, None, None).await);
        context.clock().advance(TimeDelta::seconds(1));
    }
    orders.try_into().unwrap()
}

/// Lets nothing change the state of this row any more.
async fn freeze(context: &TestContext, table: &str, order: i64) {
    let check = format!("order_id <> {order} or status = 'pending'");
    run(context, format!("alter table {table} add constraint frozen check ({check})")).await;
}

#[tokio::test]
async fn an_order_that_cannot_be_cancelled_holds_up_none_behind_it() {
    let context = TestContext::start().await;
    let [first, frozen, last] = orders(&context).await;
    freeze(&context, "buy_order", frozen.id).await;
    context.clock().advance(TimeDelta::hours(2));
    assert_eq!(expire_due(context.core()).await.unwrap(), 2);
    for (order, status) in [(first, "cancelled"), (frozen, "pending"), (last, "cancelled")] {
        assert_eq!(order.seen(&context).await["status"], status);
    }
    assert_eq!(passed_over(&context, "order expiry"), 1);
}

#[tokio::test]
async fn an_order_whose_statement_takes_too_long_holds_up_none_behind_it() {
    let context = TestContext::start().await;
    let [_, slow, _] = orders(&context).await;
    // As the server ends a statement at its timeout.
    let end = "create function time_out() returns trigger language plpgsql as \
        $$ begin raise exception using errcode = 'query_canceled'; end $$";
    run(&context, end.to_owned()).await;
    let trigger = format!(
        "create trigger time_out before update on buy_order for each row \
         when (old.order_id = {}) execute function time_out()",
        slow.id
    );
    run(&context, trigger).await;
    context.clock().advance(TimeDelta::hours(2));
    assert_eq!(expire_due(context.core()).await.unwrap(), 2);
    assert_eq!(passed_over(&context, "order expiry"), 1);
}

#[tokio::test]
async fn an_order_that_somebody_holds_is_cancelled_later() {
    let context = TestContext::start().await;
    let [_, held, _] = orders(&context).await;
    context.clock().advance(TimeDelta::hours(2));
    let mut somebody = context.db().begin().await.unwrap();
    let hold = "select from buy_order where order_id = $1 for update";
    query(hold).bind(held.id).execute(&mut *somebody).await.unwrap();
    assert_eq!(expire_due(context.core()).await.unwrap(), 2);
    somebody.rollback().await.unwrap();
    assert_eq!(expire_due(context.core()).await.unwrap(), 1);
    assert_eq!(passed_over(&context, "order expiry"), 0);
}

#[tokio::test]
async fn an_order_that_somebody_holds_ends_no_sweep() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    OrderFixture::order(&context, &acme, None, None).await;
    copy_order(&context, "pending", 120).await;
    context.clock().advance(TimeDelta::hours(2));
    let mut somebody = context.db().begin().await.unwrap();
    query("select from buy_order where order_id = 1 for update")
        .execute(&mut *somebody)
        .await
        .unwrap();
    assert_eq!(expire_due(context.core()).await.unwrap(), 120, "those behind the first batch, too");
}

/// So many sales whose coins can no longer come, numbered from 1, the longest overdue first.
async fn overdue_sales(context: &TestContext, sales: i64) {
    context.partner("acme").await;
    let insert = format!(
        "insert into sell_order (client_id, order_id, quote_id, status, status_cause, pair, \
            payment_method, wallet_address, fiat_amount, fiat_currency, crypto_amount, \
            crypto_currency, price, partner_fee, partner_fee_percentage, provider_fee, \
            payment_method_fee, network_fee, spread_fee, affiliate_fee, terms_digest, \
            policy_decisions, expires_at, created_at, updated_at) \
         select client_id, n, gen_random_uuid(), 'pending', 'confirmed', 'BTC-EUR', \
            'bankTransfer', 'a', 100, 'EUR', 0.002, 'BTC', 50000, 0, 0, 0, 0, 0, 0, 0, '', '[]', \
            now() - interval '1 hour' + n * interval '1 second', now(), now() \
         from client, generate_series(1, {sales}) n where slug = 'acme'"
    );
    run(context, insert).await;
}

/// The sales that still wait for their coins.
async fn pending_sales(context: &TestContext) -> Vec<i64> {
    let pending = "select order_id from sell_order where status = 'pending' order by order_id";
    query_scalar(pending).fetch_all(context.db()).await.unwrap()
}

#[tokio::test]
async fn a_sale_that_cannot_be_settled_holds_up_none_behind_it() {
    let context = TestContext::start().await;
    overdue_sales(&context, 3).await;
    freeze(&context, "sell_order", 2).await;
    assert_eq!(context.core().settle_sales().await.unwrap(), 2);
    assert_eq!(pending_sales(&context).await, [2]);
    assert_eq!(passed_over(&context, "sales"), 1);
}

#[tokio::test]
async fn sales_that_cannot_be_settled_hide_none_behind_them() {
    let context = TestContext::start().await;
    overdue_sales(&context, 1_001).await;
    let check = "check (order_id > 1000 or status = 'pending')";
    run(&context, format!("alter table sell_order add constraint frozen {check}")).await;
    assert_eq!(context.core().settle_sales().await.unwrap(), 1);
    assert_eq!(pending_sales(&context).await, (1..=1_000).collect::<Vec<i64>>());
    assert_eq!(passed_over(&context, "sales"), 1_000);
}

#[tokio::test]
async fn a_step_of_the_sandbox_that_fails_holds_up_none_behind_it() {
    let context = TestContext::start().await;
    let [first, frozen, last] = orders(&context).await;
    run(
        &context,
        "update buy_order set partner_reference = 'sandbox-completed-' || order_id".to_owned(),
    )
    .await;
    // As the version before scheduled it.
    run(
        &context,
        "insert into sandbox_step (client_id, order_id, event, due_at) \
         select client_id, order_id, 'payment-received', created_at from buy_order"
            .to_owned(),
    )
    .await;
    freeze(&context, "buy_order", frozen.id).await;
    assert_eq!(context.core().settle_sandbox_orders().await.unwrap(), 3);
    for (order, status) in [(first, "in progress"), (frozen, "pending"), (last, "in progress")] {
        assert_eq!(order.seen(&context).await["status"], status);
    }
    assert_eq!(passed_over(&context, "sandbox"), 1);
}

#[tokio::test]
async fn a_document_that_cannot_be_removed_goes_behind_the_others() {
    let folder = std::env::temp_dir().join(format!("rampart-sweep-{}", std::process::id()));
    let context =
        TestContext::with(|settings| settings.documents.folder = Some(folder.clone())).await;
    context.partner("acme").await;
    let add = "insert into document_removal (client_id, document_id, created_at) \
        select client_id, gen_random_uuid(), '2020-01-01'::timestamptz + n * interval '1 day' \
        from client, generate_series(1, 3) n returning document_id";
    let documents: Vec<Uuid> = query_scalar(add).fetch_all(context.db()).await.unwrap();
    // A folder is no file that could be removed.
    fs::create_dir_all(folder.join(documents[1].to_string())).unwrap();
    context.core().remove_documents().await.unwrap();
    fs::remove_dir_all(folder).unwrap();
    let left = "select document_id from document_removal where created_at > '2024-01-01'";
    let left: Vec<Uuid> = query_scalar(left).fetch_all(context.db()).await.unwrap();
    assert_eq!(left, [documents[1]]);
    assert_eq!(count(&context, "select count(*) from document_removal").await, 1);
    assert_eq!(passed_over(&context, "documents"), 1);
}

#[tokio::test]
async fn documents_beyond_one_batch_are_removed_soon() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let add = "insert into document_removal (client_id, document_id, created_at) \
        select client_id, gen_random_uuid(), now() from client, generate_series(1, 150) \
        where slug = 'acme'";
    run(&context, add.to_owned()).await;
    for (more, left) in [(true, 50), (false, 0)] {
        assert_eq!(context.core().remove_documents().await.unwrap(), more);
        assert_eq!(count(&context, "select count(*) from document_removal").await, left);
    }
}

#[tokio::test]
async fn codes_and_tokens_of_one_tenant_that_cannot_be_deleted_hold_up_no_others() {
    let context = TestContext::start().await;
    for slug in ["acme", "frozen", "rival"] {
        context.partner(slug).await;
    }
    for statement in [
        "insert into email_code (client_id, email_index, code_digest, expires_at) \
         select client_id, '\\x01', '\\x02', now() - interval '1 day' from client",
        "insert into refresh_family (client_id, family_id, expires_at, created_at) \
         select client_id, gen_random_uuid(), now() - interval '1 day', now() from client",
        // What is referred to cannot be deleted.
        "create table code_in_use (client_id uuid, email_index bytea, \
         foreign key (client_id, email_index) references email_code (client_id, email_index))",
        "create table family_in_use (client_id uuid, family_id uuid, \
         foreign key (client_id, family_id) references refresh_family (client_id, family_id))",
        "insert into code_in_use select client_id, email_index \
         from email_code join client using (client_id) where slug = 'frozen'",
        "insert into family_in_use select client_id, family_id \
         from refresh_family join client using (client_id) where slug = 'frozen'",
    ] {
        run(&context, statement.to_owned()).await;
    }
    context.core().delete_expired_codes().await.unwrap();
    context.core().delete_expired_refresh_tokens().await.unwrap();
    for left in ["email_code", "refresh_family"] {
        let slugs = format!("select slug from {left} join client using (client_id)");
        let slugs: Vec<String> =
            query_scalar(AssertSqlSafe(slugs)).fetch_all(context.db()).await.unwrap();
        assert_eq!(slugs, ["frozen"], "{left}");
    }
    assert_eq!(passed_over(&context, "expired tokens"), 2);
}

/// More rows than two runs of any sweep delete.
const MANY: i64 = 22_000;

#[tokio::test]
async fn a_sweep_that_finds_more_than_a_run_deletes_goes_on_at_once() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for insert in [
        "insert into idempotency_key (client_id, route, key, body_digest, claimed_at, expires_at) \
         select client_id, '/', n, '', now(), now() - interval '1 day'",
        "insert into attempt_bucket (bucket_digest, full_at) \
         select sha256(n::text::bytea), now() - interval '1 day'",
        "insert into refresh_family (client_id, family_id, expires_at, created_at) \
         select client_id, gen_random_uuid(), now() - interval '1 day', now()",
        "insert into email_code (client_id, email_index, code_digest, expires_at) \
         select client_id, sha256(n::text::bytea), '', now() - interval '1 day'",
    ] {
        let rows =
            format!("{insert} from client, generate_series(1, {MANY}) n where slug = 'acme'");
        run(&context, rows).await;
    }
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let working = tokio::spawn(workers::work(Arc::clone(context.core()), stopped));
    for left in [
        "select count(*) from idempotency_key",
        "select count(*) from attempt_bucket",
        "select count(*) from refresh_family",
        "select count(*) from email_code",
    ] {
        until(left, SOON, async || (count(&context, left).await == 0).then_some(())).await;
    }
    stop.send(true).unwrap();
    working.await.unwrap();
}

#[tokio::test]
async fn tenants_with_nothing_to_delete_cost_no_statement() {
    let context = TestContext::start().await;
    let core = context.core();
    let sweep = async || {
        let before = statements(&context);
        core.delete_expired_codes().await.unwrap();
        core.delete_expired_refresh_tokens().await.unwrap();
        core.delete_expired_sessions_of_staff().await.unwrap();
        statements(&context) - before
    };
    let empty = sweep().await;
    assert!(empty > 0);
    for slug in ["acme", "rival", "third"] {
        context.partner(slug).await;
    }
    assert_eq!(sweep().await, empty);
}

#[tokio::test]
async fn the_use_of_a_key_that_somebody_holds_costs_the_others_nothing() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    for partner in [&acme, &rival] {
        partner.get("/api/v1/prices").await.assert_status(200);
    }
    let mut somebody = context.db().begin().await.unwrap();
    let hold = "select from api_key join client using (client_id) where slug = 'acme' \
        for update of api_key";
    query(hold).execute(&mut *somebody).await.unwrap();
    context.core().write_api_key_uses().await.unwrap();
    somebody.rollback().await.unwrap();
    let used = "select slug from api_key join client using (client_id) \
        where last_used_at is not null";
    let used: Vec<String> = query_scalar(used).fetch_all(context.db()).await.unwrap();
    assert_eq!(used, ["rival"]);
}

#[tokio::test]
async fn orders_that_are_never_commanded_delay_no_other_partners_payout() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    OrderFixture::order(&context, &acme, None, None).await;
    // More than one run looks at, and nothing is owed for them by the books.
    copy_order(&context, "in progress", 2_100).await;
    context.clock().advance(TimeDelta::seconds(1));
    let order = OrderFixture::order(&context, &rival, None, None).await;
    order.event(&context, "payment-received").await.assert_status(200);
    run(&context, "delete from command where kind = 'payout.send'".to_owned()).await;
    context.core().command_payouts().await.unwrap();
    let commanded = "select order_id from command where kind = 'payout.send'";
    let commanded: Vec<i64> = query_scalar(commanded).fetch_all(context.db()).await.unwrap();
    assert_eq!(commanded, [order.id]);
}
