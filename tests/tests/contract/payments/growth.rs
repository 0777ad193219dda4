//! Books with many entries, and many payments: each call reads what it is about, and no more.

use http::Method;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::{PAYMENTS, balances, list, pay, problems, status};
use crate::growth::plans::end_others;

/// Old entries of orders, and as many of none.
const ENTRIES: i64 = 6_000;
/// Entries of orders of a newer partner, and as many of none: few enough that each may be read.
const NEWER_ENTRIES: i64 = 1_000;
/// Most rows of the books that a payment of the newer partner may read: each a few times, not each for
/// each other.
const NEWER_ROWS_MAX: i64 = 40 * NEWER_ENTRIES;
/// Most rows of the books that one payment may read.
const PAYMENT_ROWS_MAX: i64 = 500;

/// Most payments that a search for at most 20 may read.
const SEARCH_ROWS_MAX: i64 = 200;
/// Times that each search runs: often enough that the server tries a plan for every value.
const SEARCHES: i64 = 7;

/// Payments of orders that are not known.
const PAYMENTS_MADE: &str = "
    insert into payment (client_id, payment_id, connector, provider_reference, kind, amount,
        currency, order_id, suspense, actor, occurred_at, recorded_at)
    select client_id, lpad(to_hex(n), 32, '0')::uuid, 'bank', 'old-' || n, 'received', 1, 'EUR', n,
        true, 'bank', now(), now() - n * interval '1 second'
    from client, generate_series(1, $1) n where slug = 'acme'";

/// Entries that move a cent between two accounts, every second one of an order.
const ENTRIES_MADE: &str = "
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

/// Settles all of them, of whatever id.
const SETTLED: &str = "
    insert into ledger_settled (client_id, account_id, amount)
    select client_id, account_id, sum(amount) from ledger_posting group by client_id, account_id;
    update ledger_check set settled_place =
        (select entry_id from ledger_entry order by entry_id desc limit 1)";

/// Settles, of entries without an order, what there is.
const STRAYS_SETTLED: &str = "
    insert into ledger_settled_no_order (client_id, account_id, amount)
    select client_id, account_id, sum(amount) from ledger_posting group by client_id, account_id;
    update ledger_check set no_order_place =
        (select entry_id from ledger_entry order by entry_id desc limit 1)";

/// Partners without books, by whose number the planner expects few entries of each.
const PARTNERS_MADE: &str = "
    insert into client (client_id, slug, name, mode, username, revision, created_at)
    select gen_random_uuid(), 'shop-' || n, 'Shop', 'test', 'shop-' || n, 1, now()
    from generate_series(1, 2000) n;";

/// Newer payments, some of each of these partners.
const NEWER_PAYMENTS_MADE: &str = "
    insert into payment (client_id, payment_id, connector, provider_reference, kind, amount,
        currency, suspense, actor, occurred_at)
    select client_id, gen_random_uuid(), 'bank', slug || '/' || n, 'received', 1, 'EUR', true,
        'bank', now()
    from client, generate_series(1, 20) n where slug like 'shop-%';";

/// A partner with what a statement generates, and a connection that will count what is read of it.
async fn books(generated: &str) -> (TestContext, Partner, PgConnection) {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    let generated = generated.replace("$1", &ENTRIES.to_string());
    for statement in [&generated, "analyze"] {
        let statement = AssertSqlSafe(statement.to_owned());
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    }
    count_anew(&mut connection).await;
    (context, acme, connection)
}

/// Leaves out what was read until now.
async fn count_anew(connection: &mut PgConnection) {
    for statement in ["select pg_stat_force_next_flush()", "select", "select pg_stat_reset()"] {
        sqlx::raw_sql(statement).execute(&mut *connection).await.unwrap();
    }
}

/// Rows that were read of a table, one by one or in a scan. Ends every other connection.
async fn rows_read(connection: &mut PgConnection, table: &str) -> i64 {
    end_others(connection).await;
    let read = "select (seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint \
        from pg_stat_user_tables where relname = $1";
    sqlx::query_scalar(read).bind(table).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn a_payment_reads_the_entries_of_its_order() {
    let (context, acme, mut connection) = books(ENTRIES_MADE).await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    pay(&context, "of an order", json!({"orderId": order.id})).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "in progress");
    pay(&context, "of none", json!({})).await.assert_status(201);
    let rows = rows_read(&mut connection, "ledger_entry").await;
    assert!(rows <= PAYMENT_ROWS_MAX, "two payments read {rows} entries");
}

#[tokio::test]
async fn a_payment_of_a_partner_newer_than_statistics_does_not_join_its_books() {
    let (context, _acme, mut connection) = books(ENTRIES_MADE).await;
    // The planner has not seen these: it expects next to no row of the partner.
    let newer = context.partner("newer").await;
    let generated = ENTRIES_MADE.replace("'acme'", "'newer'");
    assert_ne!(generated, ENTRIES_MADE);
    let generated = generated.replace("$1", &NEWER_ENTRIES.to_string());
    sqlx::raw_sql(AssertSqlSafe(generated)).execute(&mut connection).await.unwrap();
    count_anew(&mut connection).await;
    let order = OrderFixture::order(&context, &newer, None, None).await;
    let paid = json!({"partner": "newer", "orderId": order.id});
    pay(&context, "of an order", paid).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "in progress");
    let rows = rows_read(&mut connection, "ledger_entry").await;
    assert!(rows <= NEWER_ROWS_MAX, "a payment read {rows} entries");
}

#[tokio::test]
async fn money_without_an_order_reads_few_postings_of_other_such_money() {
    let of_some = "gen_random_uuid(), 'received', case when n % 2 = 0 then n end";
    let of_none = "lpad(to_hex(n), 32, '0')::uuid, 'received', null::bigint";
    let generated = ENTRIES_MADE.replace(of_some, of_none);
    assert_ne!(generated, ENTRIES_MADE);
    let (context, _acme, mut connection) = books(&format!("{generated};{STRAYS_SETTLED}")).await;
    let stray = pay(&context, "stray", json!({})).await.assert_status(201).json();
    let path = format!("{PAYMENTS}/{}/refund", stray["id"].as_str().unwrap());
    let refund = json!({"reason": "nobody's"});
    context.admin(Method::POST, &path, refund).await.assert_status(200);
    let rows = rows_read(&mut connection, "ledger_posting").await;
    assert!(rows <= PAYMENT_ROWS_MAX, "{rows} postings");
}

#[tokio::test]
async fn money_without_an_order_that_is_given_back_reads_few_other_payments() {
    let (context, _acme, mut connection) = books(PAYMENTS_MADE).await;
    for reference in ["first", "second"] {
        let given_back = json!({"kind": "refunded"});
        pay(&context, reference, given_back).await.assert_status(201);
    }
    let rows = rows_read(&mut connection, "payment").await;
    assert!(rows <= PAYMENT_ROWS_MAX, "{rows} payments");
}

#[tokio::test]
async fn what_waits_reads_the_entries_of_what_was_refunded() {
    let (context, acme, mut connection) = books(ENTRIES_MADE).await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    for reference in ["first", "second"] {
        pay(&context, reference, json!({"orderId": order.id})).await.assert_status(201);
    }
    for _ in 0..SEARCHES {
        context.core().measure_money().await.unwrap();
    }
    let waiting = context.core().metrics.payments_waiting.with_label_values(&["suspense"]).get();
    assert_eq!(waiting, 1);
    let rows = rows_read(&mut connection, "ledger_entry").await;
    assert!(rows <= PAYMENT_ROWS_MAX, "{rows} entries");
}

#[tokio::test]
async fn a_check_reads_each_entry_once() {
    let (context, _acme, mut connection) = books(ENTRIES_MADE).await;
    let wrong = problems(&context).await;
    assert!(wrong.is_empty(), "{wrong:?}");
    let rows = rows_read(&mut connection, "ledger_entry").await;
    // The planner looks at both ends of an index, too.
    assert!((2 * ENTRIES..=2 * ENTRIES + 16).contains(&rows), "{rows}");
}

#[tokio::test]
async fn a_page_of_one_partners_entries_reads_few_others() {
    let generated = format!("{PARTNERS_MADE}{ENTRIES_MADE}");
    let (context, _acme, mut connection) = books(&generated).await;
    let path = "/admin/v1/ledger/entries?partner=acme&limit=20";
    let page = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    assert_eq!(page.as_array().unwrap().len(), 20);
    let rows = rows_read(&mut connection, "ledger_entry").await;
    assert!(rows <= SEARCH_ROWS_MAX, "{rows} entries");
}

#[tokio::test]
async fn balances_of_now_read_nothing_that_is_settled() {
    let (context, _acme, mut connection) = books(ENTRIES_MADE).await;
    sqlx::raw_sql(SETTLED).execute(&mut connection).await.unwrap();
    count_anew(&mut connection).await;
    assert_eq!(balances(&context).await, ["provider EUR: 120", "treasury EUR: -120"]);
    for table in ["ledger_entry", "ledger_posting"] {
        let rows = rows_read(&mut connection, table).await;
        assert!(rows <= SEARCH_ROWS_MAX, "{rows} of {table}");
    }
}

#[tokio::test]
async fn balances_of_a_time_leave_out_what_came_later() {
    let (context, _acme, _connection) = books(ENTRIES_MADE).await;
    let path = "/admin/v1/ledger/balances?partner=acme&at=2020-01-01T00:00:00Z";
    let found = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    assert_eq!((found.as_array().unwrap().len(), &found[1]["balance"]), (2, &json!(0)));
}

#[tokio::test]
async fn a_search_for_payments_reads_what_it_finds() {
    for search in
        ["?order=7", "/00000000-0000-0000-0000-000000000007/suggestions", "", "?partner=acme"]
    {
        let (context, _acme, mut connection) = books(PAYMENTS_MADE).await;
        let after = "after=00000000-0000-0000-0000-000000000007";
        for path in [search.to_owned(), format!("?limit=20&{after}")] {
            for _ in 0..SEARCHES {
                let path = format!("{PAYMENTS}{path}");
                context.admin(Method::GET, &path, Value::Null).await.assert_status(200);
            }
        }
        let rows = rows_read(&mut connection, "payment").await;
        assert!(rows <= 2 * SEARCHES * SEARCH_ROWS_MAX, "{search:?} read {rows} payments");
    }
}

#[tokio::test]
async fn a_page_of_one_partners_payments_reads_few_others() {
    // More than a page takes, and few among all.
    let of_acme = PAYMENTS_MADE.replace("$1", "300");
    let generated = format!("{PARTNERS_MADE}{NEWER_PAYMENTS_MADE}{of_acme}");
    let (context, _acme, mut connection) = books(&generated).await;
    let behind = "&after=00000000-0000-0000-0000-000000000007";
    for (after, first) in [("", "old-1"), (behind, "old-8")] {
        let page = list(&context, &format!("?partner=acme&limit=20{after}")).await;
        assert_eq!((page.len(), &page[0]["providerReference"]), (20, &json!(first)));
    }
    let rows = rows_read(&mut connection, "payment").await;
    assert!(rows <= SEARCH_ROWS_MAX, "{rows} payments");
}

#[tokio::test]
async fn a_check_goes_on_from_a_place_of_an_earlier_version() {
    let context = TestContext::start().await;
    let from = async |place: &str| {
        let path = format!("/admin/v1/ledger/check?after={place}");
        context.admin(Method::GET, &path, Value::Null).await
    };
    for place in ["entries/0199a000-0000-7000-8000-000000000021", "orders/7", "accounts/"] {
        from(place).await.assert_status(200);
    }
    for place in [
        "entries/7",
        "entries/7/7",
        "entries",
        "orders/",
        "accounts/7",
        "settled/7/7",
        "settled/",
        "7",
    ] {
        from(place).await.assert_status(422);
    }
}
