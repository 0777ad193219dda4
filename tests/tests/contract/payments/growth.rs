//! Books with many entries: a payment and a check of all read what they are about, and no more.

use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::{pay, problems, status};
use crate::growth::plans::end_others;

/// Old entries of orders, and as many of none.
const ENTRIES: i64 = 6_000;
/// Most rows of the books that one payment may read.
const PAYMENT_ROWS_MAX: i64 = 500;

/// Entries that move a cent between two accounts, every second one of an order.
const GENERATED: &str = "
    with of_acme as (select client_id from client where slug = 'acme'),
    account as (
        insert into ledger_account (client_id, account_id, kind, currency, holder)
        select client_id, gen_random_uuid(), kind, 'EUR', 'old'
        from of_acme, unnest(array['provider', 'treasury']) kind
        returning client_id, account_id, kind
    ), entry as (
        insert into ledger_entry (client_id, entry_id, kind, order_id, occurred_at)
        select client_id, gen_random_uuid(), 'received', case when n % 2 = 0 then n end, now()
        from of_acme, generate_series(1, 2 * $1) n
        returning client_id, entry_id
    )
    insert into ledger_posting (client_id, entry_id, line, account_id, amount)
    select client_id, entry_id, case kind when 'provider' then 1 else 2 end, account_id,
        case kind when 'provider' then 0.01 else -0.01 end
    from entry join account using (client_id)";

/// A partner with old entries, and a connection that will count what is read of them.
async fn books() -> (TestContext, Partner, PgConnection) {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    let generated = GENERATED.replace("$1", &ENTRIES.to_string());
    for statement in [
        &generated,
        "analyze",
        "select pg_stat_force_next_flush()",
        "select",
        "select pg_stat_reset()",
    ] {
        let statement = AssertSqlSafe(statement.to_owned());
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    }
    (context, acme, connection)
}

/// Rows that were read of entries, one by one or in a scan. Ends every other connection.
async fn entries_read(connection: &mut PgConnection) -> i64 {
    end_others(connection).await;
    let read = "select (seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint \
        from pg_stat_user_tables where relname = 'ledger_entry'";
    sqlx::query_scalar(read).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn a_payment_reads_the_entries_of_its_order() {
    let (context, acme, mut connection) = books().await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    pay(&context, "of an order", json!({"orderId": order.id})).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "in progress");
    pay(&context, "of none", json!({})).await.assert_status(201);
    let rows = entries_read(&mut connection).await;
    assert!(rows <= PAYMENT_ROWS_MAX, "two payments read {rows} entries");
}

#[tokio::test]
async fn a_check_reads_each_entry_once() {
    let (context, _acme, mut connection) = books().await;
    let wrong = problems(&context).await;
    assert!(wrong.is_empty(), "{wrong:?}");
    let rows = entries_read(&mut connection).await;
    assert_eq!(rows, 2 * ENTRIES);
}
