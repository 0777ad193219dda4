//! The books themselves: nothing is changed, nothing is off, and another program agrees.

use std::collections::HashSet;
use std::process::Command;

use http::Method;
use rampart_tests::connector::Connector;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::{pay, problems};

#[tokio::test]
async fn the_largest_amounts_have_a_sum() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let of = |amount: i64| json!({"orderId": null, "amount": amount});
    for reference in ["bank-1", "bank-2"] {
        pay(&context, reference, of(1_000_000_000_000_000)).await.assert_status(201);
    }
    let refused = pay(&context, "bank-3", of(1_000_000_000_000_001)).await;
    assert_eq!(refused.assert_status(422).json()["error"], "amount: at most 1000000000000000");
    let beyond = json!({"orderId": null, "amount": 7e28});
    pay(&context, "bank-4", beyond).await.assert_status(422);
    let statement = "date,amount,currency\n2026-03-01,1000000000000001,EUR\n";
    let path = "/admin/v1/reconciliations?connector=manual";
    context.admin_bytes(Method::POST, path, statement.into()).await.assert_status(422);
    let path = "/admin/v1/ledger/balances";
    context.admin(Method::GET, path, Value::Null).await.assert_status(200);
}

#[tokio::test]
async fn nobody_changes_what_is_booked_or_books_what_does_not_balance() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    pay(&context, "bank-1", json!({"orderId": order.id})).await.assert_status(201);
    for table in ["payment", "ledger_account", "ledger_entry", "ledger_posting"] {
        for statement in [
            format!("update {table} set client_id = client_id"),
            format!("delete from {table}"),
            format!("truncate {table} cascade"),
        ] {
            let error = sqlx::query(AssertSqlSafe(statement.clone())).execute(context.db()).await;
            let error = error.unwrap_err();
            let code = error.as_database_error().and_then(|e| e.code());
            assert_eq!(code.as_deref(), Some("42501"), "{statement}");
        }
    }
    let alone = "insert into ledger_posting (client_id, entry_id, line, account_id, amount) \
                 select client_id, entry_id, 99, account_id, 1 from ledger_posting limit 1";
    let error = sqlx::query(alone).execute(context.db()).await.unwrap_err();
    let constraint = error.as_database_error().and_then(|e| e.constraint()).map(str::to_owned);
    assert_eq!(constraint.as_deref(), Some("ledger_posting_balance_check"));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn amounts_of_orders_obey_the_fee_identity_in_the_database_too() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    OrderFixture::order(&context, &acme, None, None).await;
    for (change, constraint) in [
        ("fiat_amount = 100.01", "buy_order_identity_check"),
        ("spread_fee = 0.01", "buy_order_identity_check"),
        ("fiat_amount = 0, crypto_amount = 0", "buy_order_amounts_check"),
    ] {
        let statement = format!("update buy_order set {change}");
        let error = sqlx::query(AssertSqlSafe(statement)).execute(context.db()).await.unwrap_err();
        let broken = error.as_database_error().and_then(|e| e.constraint()).map(str::to_owned);
        assert_eq!(broken.as_deref(), Some(constraint), "{change}");
    }
}

#[tokio::test]
async fn an_order_whose_postings_do_not_fit_its_state_is_found() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    sqlx::query("update buy_order set status = 'completed'").execute(context.db()).await.unwrap();
    let found = problems(&context).await;
    assert_eq!(found[0]["subject"], format!("order {}", order.id));
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn an_order_whose_fees_are_not_those_of_its_postings_is_found() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    pay(&context, "bank-1", json!({"orderId": order.id})).await.assert_status(201);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    // The fee identity holds, and its coins are the same.
    let changed = "update buy_order set fiat_amount = fiat_amount + 1, spread_fee = spread_fee + 1";
    sqlx::query(changed).execute(context.db()).await.unwrap();
    let found = problems(&context).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["subject"], format!("order {}", order.id));
    assert_eq!(found[0]["problem"], "other fees were charged than the order's");
}

#[tokio::test]
async fn orders_of_one_number_are_checked_where_a_page_ends_between_them() {
    let context = TestContext::start().await;
    for slug in ["acme", "other"] {
        let partner = context.partner(slug).await;
        OrderFixture::order(&context, &partner, None, None).await;
    }
    for change in [
        "update buy_order set order_id = 2000",
        // As many before them as leave the page of 2000 one place.
        "insert into buy_order (client_id, order_id, quote_id, status, pair, payment_method, \
             wallet_address, wallet_type, fiat_amount, fiat_currency, crypto_amount, \
             crypto_currency, price, partner_fee, provider_fee, payment_method_fee, network_fee, \
             spread_fee, affiliate_fee, is_estimated_quote, terms_digest, expires_at, created_at, \
             updated_at) \
         select o.client_id, n, gen_random_uuid(), o.status, o.pair, o.payment_method, \
             o.wallet_address, o.wallet_type, o.fiat_amount, o.fiat_currency, o.crypto_amount, \
             o.crypto_currency, o.price, o.partner_fee, o.provider_fee, o.payment_method_fee, \
             o.network_fee, o.spread_fee, o.affiliate_fee, o.is_estimated_quote, o.terms_digest, \
             o.expires_at, o.created_at, o.updated_at \
         from buy_order o join client c on c.client_id = o.client_id, generate_series(1, 1999) n \
         where c.slug = 'acme'",
        "update buy_order set status = 'completed' where order_id = 2000",
    ] {
        sqlx::query(change).execute(context.db()).await.unwrap();
    }
    let found = problems(&context).await;
    assert_eq!(found.len(), 2, "{found:?}");
}

#[tokio::test]
async fn beancount_agrees_with_the_books() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    for event in ["payment-received", "hold", "refund"] {
        order.event(&context, event).await.assert_status(200);
    }
    let order = OrderFixture::order(&context, &acme, None, None).await;
    pay(&context, "bank-1", json!({"orderId": order.id})).await.assert_status(201);
    for chain in [1, 137] {
        let token = json!({"amount": 3, "kind": "deposit-received", "currency":
            format!("eip155:{chain}/erc20:0x6b175474e89094c44da98b954eedeac495271d0f")});
        pay(&context, &format!("tx-{chain}"), token).await.assert_status(201);
    }
    // A connector's word for a currency may be any.
    let own = Connector::new(&context, "own", &["payment.create"]).await;
    for currency in ["=cmd|'/c calc'!A1", "€", "TRUE", "X"] {
        let told = json!({"id": currency, "kind": "payment.received", "amount": 3,
            "occurredAt": "2026-03-01T12:00:00Z", "providerReference": currency,
            "currency": currency});
        own.event(told).await.assert_status(200);
    }
    let export = async |format: &str| {
        let path = format!("/admin/v1/ledger/export?format={format}");
        context.admin(Method::GET, &path, Value::Null).await.assert_status(200).text().to_owned()
    };
    let rows = export("csv").await;
    assert!(!rows.contains(",=cmd") && rows.contains(",'=cmd"), "a spreadsheet calculates it");
    let rows = rows.lines().count();
    let postings: i64 = sqlx::query_scalar("select count(*) from ledger_posting")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(i64::try_from(rows).unwrap(), postings + 1);

    let journal = export("beancount").await;
    let check = |journal: &str| {
        let file =
            std::env::temp_dir().join(format!("{}.beancount", context.clock().uuid().unwrap()));
        std::fs::write(&file, journal).unwrap();
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/bean-check");
        let output = Command::new(program).arg(&file).output().unwrap();
        std::fs::remove_file(&file).unwrap();
        output.status.success()
    };
    assert!(check(&journal), "{journal}");
    let tokens = journal.split_whitespace().filter(|word| word.ends_with("-DEAC495271D0F"));
    assert_eq!(tokens.collect::<HashSet<_>>().len(), 2, "of two chains: {journal}");
    assert!(!check(&journal.replacen(" 100 EUR", " 101 EUR", 1)), "it checks nothing");
}
