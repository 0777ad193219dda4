//! Refunds and disputes that are recorded before their payment: by hand where an operator's event books
//! it, or by an earlier version.

use rampart_core::platform::crypto::Secret;
use rampart_core::platform::db::MIGRATIONS;
use rampart_core::platform::schema;
use rampart_core::platform::settings::Database;
use rampart_tests::cluster;
use uuid::Uuid;

use super::*;

#[tokio::test]
async fn what_was_taken_back_of_a_payment_before_an_event_books_it_is_the_orders() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for kind in ["refunded", "disputed"] {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        let reference = format!("bank-{kind}");
        pay(&context, &reference, json!({ "kind": kind })).await.assert_status(201);
        let path = format!("/admin/v1/orders/{}/events", order.id);
        let received = json!({"event": "payment-received", "reference": reference});
        context.admin(Method::POST, &path, received).await.assert_status(200);
        assert_eq!(status(&context, &order).await, "blocked", "no coins are sent for it");
        let of_order = list(&context, &format!("?order={}", order.id)).await;
        let mut kinds: Vec<_> = of_order
            .iter()
            .filter(|payment| payment["state"] == "matched")
            .map(|payment| payment["kind"].as_str().unwrap())
            .collect();
        kinds.sort_unstable();
        let mut both = ["received", kind];
        both.sort_unstable();
        assert_eq!(kinds, both);
        let books = balances(&context).await;
        assert!(books.contains(&"dispute EUR: 100".to_owned()), "{books:?}");
        assert!(!books.iter().any(|line| line.starts_with("suspense")), "{books:?}");
        order.event(&context, "refund").await.assert_status(200);
        assert_eq!(balances(&context).await, [""; 0], "nothing is given back twice");
        assert_eq!(problems(&context).await, [Value::Null; 0]);
    }
}

#[tokio::test]
async fn a_part_that_was_given_back_before_an_event_books_its_payment_is_taken_off() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let part = json!({"kind": "refunded", "amount": 40});
    pay(&context, "bank-1", part).await.assert_status(201);
    let path = format!("/admin/v1/orders/{}/events", order.id);
    let received = json!({"event": "payment-received", "reference": "bank-1"});
    context.admin(Method::POST, &path, received).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "blocked");
    order.event(&context, "release").await.assert_status(200);
    let books = balances(&context).await;
    assert!(books.contains(&"payout_payable BTC: -0.0012".to_owned()), "{books:?}");
    assert!(!books.iter().any(|line| line.starts_with("dispute")), "{books:?}");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_migration_moves_earlier_reports_to_the_order_of_their_payment() {
    let url = cluster::empty_database().await;
    let pool = cluster::pool(&url).await;
    MIGRATIONS.run_to(269, &pool).await.unwrap();
    for statement in [
        "insert into client (client_id, slug, name, mode, username, revision, created_at) \
         values (gen_random_uuid(), 'acme', 'acme', 'test', 'acme', 1, now())",
        "insert into buy_order (client_id, order_id, quote_id, status, pair, payment_method, \
             wallet_address, wallet_type, fiat_amount, fiat_currency, crypto_amount, \
             crypto_currency, price, partner_fee, provider_fee, payment_method_fee, network_fee, \
             spread_fee, affiliate_fee, is_estimated_quote, terms_digest, created_at, updated_at) \
         select client_id, 7, gen_random_uuid(), 'blocked', 'BTC-EUR', 'bankTransfer', 'bc1q', \
             'unhosted', 100, 'EUR', 1, 'BTC', 100, 0, 0, 0, 0, 0, 0, false, '', now(), now() \
         from client where slug = 'acme'",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    // Its book, its order, its kind, its amount, and the account beside the provider's.
    for (slug, order, kind, amount, account) in [
        ("acme", None, "refunded", 40, "suspense"),
        ("house", None, "disputed", 60, "dispute"),
        ("acme", Some(7_i64), "received", -100, "customer"),
    ] {
        let payment = Uuid::from_u128(u128::from(i32::unsigned_abs(amount)));
        let store = "insert into payment (client_id, payment_id, connector, provider_reference, \
                 kind, amount, currency, order_id, suspense, actor, occurred_at, recorded_at, \
                 original_reference) \
             select client_id, $3, 'psp', case $4 when 'received' then 'pay' else $4 end, $4, \
                 abs($5::numeric), 'EUR', $2, false, 'psp', now(), \
                 now() - case $4 when 'received' then 0 else 1 end * interval '1 hour', \
                 case $4 when 'received' then null else 'pay' end \
             from client where slug = $1";
        let book = "with line as ( \
                 select c.client_id, known.number, known.kind, known.holder, known.amount \
                 from client c cross join (values (1, $6, '', $5::numeric), \
                     (2, 'provider', 'psp', -$5::numeric)) known (number, kind, holder, amount) \
                 where c.slug = $1 \
             ), opened as ( \
                 insert into ledger_account (client_id, account_id, kind, currency, holder) \
                 select client_id, ledger_account_id(client_id, kind, 'EUR', holder), kind, 'EUR', \
                     holder from line on conflict do nothing \
             ), entry as ( \
                 insert into ledger_entry \
                     (client_id, entry_id, kind, order_id, payment_id, occurred_at) \
                 select client_id, $3, $4, $2, $3, now() from client where slug = $1 \
             ) \
             insert into ledger_posting (client_id, entry_id, line, account_id, amount) \
             select client_id, $3, number, ledger_account_id(client_id, kind, 'EUR', holder), amount \
             from line";
        let store = sqlx::query(store).bind(slug).bind(order).bind(payment).bind(kind);
        store.bind(amount).execute(&pool).await.unwrap();
        let book = sqlx::query(book).bind(slug).bind(order).bind(payment).bind(kind);
        book.bind(amount).bind(account).execute(&pool).await.unwrap();
    }
    let settings = Database { url: Some(Secret::new(url)), ..Database::default() };
    schema::migrate(&settings, |_| ()).await.unwrap();
    let books = "select c.slug || ' ' || coalesce(e.order_id::text, 'none') || ' ' || a.kind || ' ' \
            || trim_scale(sum(l.amount))::text \
        from ledger_entry e join client c using (client_id) \
        join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id \
        join ledger_account a on a.client_id = l.client_id and a.account_id = l.account_id \
        group by c.slug, e.order_id, a.kind having sum(l.amount) <> 0 order by a.kind";
    let books: Vec<String> = sqlx::query_scalar(books).fetch_all(&pool).await.unwrap();
    assert_eq!(books, ["acme 7 customer -100", "acme 7 dispute 100"]);
    let matched = "select p.kind from payment_match m join payment p using (client_id, payment_id) \
        where m.order_id = 7 order by p.kind";
    let matched: Vec<String> = sqlx::query_scalar(matched).fetch_all(&pool).await.unwrap();
    assert_eq!(matched, ["disputed", "refunded"]);
}
