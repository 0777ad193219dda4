//! Settled sums of accounts: a balance is the sum of its postings, whatever of it is settled.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures::future::join_all;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// Rounds of the race.
const ROUNDS: usize = 12;
/// Payments at once.
const PAYMENTS_AT_ONCE: usize = 4;

/// An act on the books.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A payment of this amount.
    Pay(i64),
    /// So many minutes without one.
    Wait(i64),
    /// A round of the check.
    Settle,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1_i64..1_000).prop_map(Act::Pay),
        3 => (1_i64..20).prop_map(Act::Wait),
        2 => Just(Act::Settle),
    ]
}

/// A round of the check, which begins with settling.
async fn settle(edge: &TestContext) {
    let due = "update ledger_check set due_at = now(), claimed_until = now()";
    sqlx::query(due).execute(edge.db()).await.unwrap();
    edge.core().check_books().await.unwrap();
}

/// All accounts as `id balance`, as of this time, or as of now.
async fn read(context: &TestContext, at: Option<DateTime<Utc>>) -> Vec<String> {
    let at = at.map(|at| format!("?at={}", at.to_rfc3339_opts(SecondsFormat::Micros, true)));
    let path = format!("/admin/v1/ledger/balances{}", at.unwrap_or_default());
    let answer = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    let text = |account: &Value| {
        format!("{} {}", account["accountId"].as_str().unwrap(), account["balance"])
    };
    let mut balances: Vec<String> = answer.as_array().unwrap().iter().map(text).collect();
    balances.sort_unstable();
    balances
}

/// The same as plain sums of all postings.
async fn summed(context: &TestContext, at: Option<DateTime<Utc>>) -> Vec<String> {
    let sums = "select p.account_id::text || ' ' || trim_scale(coalesce( \
            sum(p.amount) filter (where $1 is null or e.occurred_at <= $1::timestamptz), 0))::text \
        from ledger_posting p join ledger_entry e using (client_id, entry_id) \
        group by p.account_id";
    let at = at.map(|at| at.to_rfc3339_opts(SecondsFormat::Micros, true));
    let mut sums: Vec<String> =
        sqlx::query_scalar(sums).bind(at).fetch_all(context.db()).await.unwrap();
    sums.sort_unstable();
    sums
}

/// Entries that are settled.
const SETTLED: &str =
    "select count(*) from ledger_entry where entry_id <= (select settled_place from ledger_check)";

#[tokio::test]
async fn balances_are_the_sums_of_all_postings_whatever_is_settled() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let mut runner = TestRunner::new(Config::default());
    let acts = prop::collection::vec(act(), 40).new_tree(&mut runner).unwrap().current();
    // The last of them settle something, whatever the others do.
    let acts: Vec<_> = acts.into_iter().chain([Act::Pay(7), Act::Wait(11), Act::Settle]).collect();
    for (index, act) in acts.iter().enumerate() {
        match *act {
            Act::Pay(amount) => {
                let paid = json!({ "amount": amount });
                pay(&context, &format!("bank-{index}"), paid).await.assert_status(201);
            }
            Act::Wait(minutes) => context.clock().advance(TimeDelta::minutes(minutes)),
            Act::Settle => settle(&context).await,
        }
        for at in [None, Some(context.clock().now() - TimeDelta::minutes(15))] {
            let (read, summed) = (read(&context, at).await, summed(&context, at).await);
            assert_eq!(read, summed, "{at:?} after {:?}", &acts[..=index]);
        }
    }
    assert!(count(&context, SETTLED).await > 0);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_two_edges_settle_while_money_comes_counts_once() {
    let context = TestContext::start().await;
    let second = context.second_edge().await;
    context.partner("acme").await;
    for round in 0..ROUNDS {
        context.clock().advance(TimeDelta::minutes(4));
        let payments = (0..PAYMENTS_AT_ONCE).map(async |number| {
            let paid = json!({ "amount": number + 1 });
            pay(&context, &format!("bank-{round}-{number}"), paid).await.assert_status(201);
        });
        let (_, (), (), read) = tokio::join!(
            join_all(payments),
            settle(&context),
            settle(&second),
            read(&context, None)
        );
        let amounts = read.iter().map(|line| line.rsplit(' ').next().unwrap());
        let sum: i64 = amounts.map(|amount| amount.parse::<i64>().unwrap()).sum();
        assert_eq!(sum, 0, "a part of an entry: {read:?}");
    }
    assert_eq!(read(&context, None).await, summed(&context, None).await);
    assert!(count(&context, SETTLED).await > 0);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_entry_behind_what_is_settled_is_refused() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    pay(&context, "bank-1", json!({})).await.assert_status(201);
    context.clock().advance(TimeDelta::minutes(11));
    settle(&context).await;
    let late = "insert into ledger_entry (client_id, entry_id, kind, occurred_at) \
        select client_id, settled_place, 'received', now() from client, ledger_check \
        where slug = 'house'";
    let error = sqlx::query(late).execute(context.db()).await.unwrap_err();
    let code = error.as_database_error().and_then(|error| error.code());
    assert_eq!(code.as_deref(), Some("40001"));
    pay(&context, "bank-2", json!({})).await.assert_status(201);
}

#[tokio::test]
async fn a_settled_sum_that_is_not_that_of_its_postings_is_found() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    pay(&context, "bank-1", json!({})).await.assert_status(201);
    context.clock().advance(TimeDelta::minutes(11));
    settle(&context).await;
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    let one = "update ledger_settled set amount = amount + 1 where amount > 0 returning account_id";
    let one: uuid::Uuid = sqlx::query_scalar(one).fetch_one(context.db()).await.unwrap();
    let found = problems(&context).await;
    let subjects: Vec<_> = found.iter().map(|found| found["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, [format!("account {one}"), "book acme EUR".to_owned()]);
}

#[tokio::test]
async fn what_is_left_of_money_without_an_order_is_the_same_once_it_is_settled() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let refund = async |payment: &Value, amount: i64| {
        let path = format!("{PAYMENTS}/{}/refund", payment["id"].as_str().unwrap());
        let body = json!({"amount": amount, "reason": "nobody's"});
        context.admin(Method::POST, &path, body).await.status()
    };
    let first = pay(&context, "bank-1", json!({})).await.assert_status(201).json();
    let back = json!({"kind": "refunded", "amount": 60});
    pay(&context, "bank-back", back).await.assert_status(201);
    context.clock().advance(TimeDelta::minutes(11));
    settle(&context).await;
    let settled = "select count(*) from ledger_settled_no_order where amount <> 0";
    assert_eq!(count(&context, settled).await, 2, "suspense, and the provider's");
    assert_eq!(refund(&first, 100).await, 409, "somebody has given back a part of it");
    assert_eq!(refund(&first, 30).await, 200);
    context.clock().advance(TimeDelta::minutes(11));
    settle(&context).await;
    assert_eq!(refund(&first, 20).await, 409);
    assert_eq!(refund(&first, 10).await, 200);
    let second = pay(&context, "bank-2", json!({})).await.assert_status(201).json();
    assert_eq!(refund(&second, 100).await, 200, "it is not settled yet");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_settled_sum_without_an_order_that_is_not_that_of_its_postings_is_found() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    pay(&context, "bank-1", json!({})).await.assert_status(201);
    pay(&context, "bank-2", json!({"orderId": order.id})).await.assert_status(201);
    context.clock().advance(TimeDelta::minutes(11));
    settle(&context).await;
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    let one = "update ledger_settled_no_order set amount = amount + 1 where amount > 0 \
        returning account_id";
    let one: uuid::Uuid = sqlx::query_scalar(one).fetch_one(context.db()).await.unwrap();
    let found = problems(&context).await;
    let subjects: Vec<_> = found.iter().map(|found| found["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, [format!("account {one}"), "book acme EUR".to_owned()]);
}
