//! Deposits that were booked by hand, and that their bank tells of at the same time or afterwards: the
//! money is booked once.

use std::pin::pin;

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::cluster::{until_a_lock_is_awaited, until_locks_are_awaited};
use rampart_tests::connector::Connector;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::Saver;
use super::deposits::deposit;
use crate::orders::count;
use crate::payments::problems;

/// An event of a bank about so many euros without an order.
fn told(kind: &str, reference: &str, partner: Option<&str>, amount: u32) -> Value {
    json!({"id": format!("{kind}/{reference}"), "kind": kind, "partner": partner,
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": reference, "amount": amount,
        "currency": "EUR"})
}

fn received(reference: &str, partner: Option<&str>) -> Value {
    told("payment.received", reference, partner, 100)
}

/// Balances of providers and of suspense, of all partners, that are not zero.
async fn balances(context: &TestContext) -> Vec<String> {
    sqlx::query_scalar(
        "select concat_ws(' ', a.kind, nullif(a.holder, ''), trim_scale(sum(p.amount))) \
         from ledger_posting p \
         join ledger_account a on a.client_id = p.client_id and a.account_id = p.account_id \
         where a.kind in ('provider', 'suspense') \
         group by a.kind, a.holder having sum(p.amount) <> 0 order by a.kind, a.holder",
    )
    .fetch_all(context.db())
    .await
    .unwrap()
}

/// The states of the payments that came in for an order.
async fn states(context: &TestContext, order: &Value) -> Vec<Value> {
    let path = format!("/admin/v1/payments?order={}", order["id"]);
    let payments = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    payments.as_array().unwrap().iter().map(|payment| payment["state"].clone()).collect()
}

/// Lets `first` wait for a table that it writes to until `second` waits, too, or is answered.
async fn at_once(
    context: &TestContext,
    lock: &'static str,
    first: impl Future<Output = Answer>,
    second: impl Future<Output = Answer>,
) -> [Answer; 2] {
    let mut held = context.db().begin().await.unwrap();
    sqlx::query(lock).execute(&mut *held).await.unwrap();
    let meanwhile = async {
        until_a_lock_is_awaited(context.db()).await;
        let mut second = pin!(second);
        let answer = tokio::select! {
            answer = &mut second => Some(answer),
            () = until_locks_are_awaited(context.db(), 2) => None,
        };
        held.rollback().await.unwrap();
        match answer {
            Some(answer) => answer,
            None => second.await,
        }
    };
    let (first, second) = tokio::join!(first, meanwhile);
    [first, second]
}

#[tokio::test]
async fn a_payment_that_is_told_after_its_deposit_is_the_deposit() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    let bank = Connector::new(&context, "bank", &["payment.create"]).await;
    for (reference, partner) in [("bank-1", None), ("bank-2", Some("acme"))] {
        let made = deposit(&context, &code, &json!(100), reference).await.assert_status(201).json();
        let mut event = received(reference, partner);
        for (id, is_known) in [("first", false), ("first", true), ("second", true)] {
            event["id"] = json!(format!("{id}/{reference}"));
            let answer = bank.event(event.clone()).await.assert_status(200).json();
            assert_eq!(answer["duplicate"], is_known, "{reference} {id}");
        }
        assert_eq!(states(&context, &made).await, ["matched", "matched"], "{reference}");
    }
    let made = deposit(&context, &code, &json!(100), "bank-3").await.assert_status(201).json();
    let statement = "date,amount,currency,reference,providerReference\n\
                     2026-03-01,100.00,EUR,savings,bank-1\n\
                     2026-03-01,100.00,EUR,savings,bank-2\n\
                     2026-03-01,100.00,EUR,savings,bank-3\n";
    let path = "/admin/v1/reconciliations?connector=bank";
    for recorded in [1, 0] {
        let answer = context.admin_bytes(Method::POST, path, statement.into()).await;
        assert_eq!(answer.assert_status(201).json()["recorded"], recorded);
    }
    assert_eq!(states(&context, &made).await, ["matched", "matched"]);

    assert_eq!(balances(&context).await, ["provider bank 300"]);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 3);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    // What is told of the payment afterwards is its order's.
    let disputed = told("payment.disputed", "bank-1", None, 100);
    bank.event(disputed).await.assert_status(200);
    assert_eq!(balances(&context).await, ["provider bank 200"]);
    let blocked = "select count(*) from buy_order where status = 'blocked'";
    assert_eq!(count(&context, blocked).await, 1);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn other_money_than_the_deposit_waits_in_suspense() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    context.partner("rival").await;
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    let amount = json!(100);
    let mut banks = Vec::new();
    for name in ["bank", "other", "third"] {
        banks.push(Connector::new(&context, name, &["payment.create"]).await);
    }
    // Of another amount, then the deposit, then the same again at another bank.
    deposit(&context, &code, &amount, "bank-1").await.assert_status(201);
    banks[0].event(told("payment.received", "bank-1", None, 101)).await.assert_status(200);
    for bank in &banks[1..] {
        bank.event(received("bank-1", None)).await.assert_status(200);
    }
    let expected =
        ["provider bank 101", "provider other 100", "provider third 100", "suspense -201"];
    assert_eq!(balances(&context).await, expected);
    // Of another partner.
    deposit(&context, &code, &amount, "bank-2").await.assert_status(201);
    banks[0].event(received("bank-2", Some("rival"))).await.assert_status(200);
    // Of a deposit that was given back by hand.
    let made = deposit(&context, &code, &amount, "bank-3").await.assert_status(201).json();
    let refund = json!({"partner": "acme", "kind": "refunded", "amount": 100, "currency": "EUR",
        "providerReference": "bank-3", "orderId": made["id"], "reason": "wired"});
    context.admin(Method::POST, "/admin/v1/payments", refund).await.assert_status(201);
    banks[0].event(received("bank-3", None)).await.assert_status(200);
    let expected = [
        "provider bank 301",
        "provider manual 100",
        "provider other 100",
        "provider third 100",
        "suspense -401",
    ];
    assert_eq!(balances(&context).await, expected);
    assert_eq!(count(&context, "select count(*) from payment_match").await, 1);
    // Where it was the same money after all, what was booked by hand is taken off.
    let same = json!({"partner": "rival", "kind": "refunded", "amount": 100, "currency": "EUR",
        "providerReference": "bank-2", "reason": "booked by hand as well"});
    context.admin(Method::POST, "/admin/v1/payments", same).await.assert_status(201);
    let expected =
        ["provider bank 301", "provider other 100", "provider third 100", "suspense -301"];
    assert_eq!(balances(&context).await, expected);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_deposit_whose_refund_was_told_before_it_waits_once_its_payment_is_told() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    let bank = Connector::new(&context, "bank", &["payment.create"]).await;
    let refunded = told("payment.refunded", "bank-1", Some("acme"), 100);
    bank.event(refunded).await.assert_status(200);
    let made = deposit(&context, &code, &json!(100), "bank-1").await.assert_status(201).json();
    assert_eq!(made["status"], "in progress");
    bank.event(received("bank-1", Some("acme"))).await.assert_status(200);
    let blocked = "select count(*) from buy_order where status = 'blocked'";
    assert_eq!(count(&context, blocked).await, 1);
    assert_eq!(balances(&context).await, [""; 0]);
    let events = acme.get("/api/v2/events").await.assert_status(200).json();
    let mut events = events.as_array().unwrap().iter();
    let event = events.find(|event| event["type"] == "order.blocked").unwrap();
    assert_eq!(event["data"]["received"], json!([{"amount": 100, "currencyCode": "EUR"}]));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_payment_that_is_told_while_its_deposit_is_booked_is_the_deposit() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    let bank = Connector::new(&context, "bank", &["payment.create"]).await;
    let amount = json!(100);
    // The deposit has looked for a payment of its reference.
    let by_hand = deposit(&context, &code, &amount, "bank-1");
    let by_bank = bank.event(received("bank-1", None));
    let lock = "lock table dca_deposit in share mode";
    let [made, known] = at_once(&context, lock, by_hand, by_bank).await;
    made.assert_status(201);
    known.assert_status(200);
    assert_eq!(balances(&context).await, ["provider bank 100"]);
    // The bank's payment is stored, and no deposit was there.
    let by_bank = bank.event(received("bank-2", None));
    let by_hand = deposit(&context, &code, &amount, "bank-2");
    let lock = "lock table payment_report in share mode";
    let [known, made] = at_once(&context, lock, by_bank, by_hand).await;
    made.assert_status(201);
    known.assert_status(200);
    assert_eq!(balances(&context).await, ["provider bank 200"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn deposits_and_reports_of_one_payment_at_once_are_booked_once() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    let second = context.second_edge().await;
    let bank = Connector::new(&second, "bank", &["payment.create"]).await;
    let amount = json!(100);
    for round in 1..=12 {
        let reference = format!("bank-{round}");
        let (one, known, other) = tokio::join!(
            deposit(&context, &code, &amount, &reference),
            bank.event(received(&reference, None)),
            deposit(&second, &code, &amount, &reference),
        );
        known.assert_status(200);
        let mut made = [one.status(), other.status()];
        made.sort_unstable();
        assert_eq!(made, [200, 201], "{reference}: {} {}", one.text(), other.text());
        let expected = format!("provider bank {}", 100 * round);
        assert_eq!(balances(&context).await, [expected], "{reference}");
    }
    assert_eq!(count(&context, "select count(*) from buy_order").await, 12);
    assert_eq!(count(&context, "select count(*) from payment_match").await, 12);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn of_two_banks_that_tell_of_one_deposit_at_once_one_is_matched() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let code = Saver::of(&context, &acme, "ann").await.code(&context).await;
    let one = Connector::new(&context, "one", &["payment.create"]).await;
    let other = Connector::new(&context, "other", &["payment.create"]).await;
    for round in 1..=8 {
        let reference = format!("bank-{round}");
        deposit(&context, &code, &json!(100), &reference).await.assert_status(201);
        let event = received(&reference, None);
        let (first, second) = tokio::join!(one.event(event.clone()), other.event(event));
        first.assert_status(200);
        second.assert_status(200);
        let total = 100 * round;
        let expected = [
            format!("provider one {total}"),
            format!("provider other {total}"),
            format!("suspense -{total}"),
        ];
        assert_eq!(balances(&context).await, expected, "{reference}");
        assert_eq!(count(&context, "select count(*) from payment_match").await, round);
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
