//! Reports in any order, doubled, contradictory, partial and excessive, between operators' acts:
//! after each the books balance and fit the order, and no payment is lost.

use std::collections::BTreeSet;

use http::Method;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{pay, problems};
use crate::orders::count;

/// An act on an order.
#[derive(Clone, Debug)]
enum Act {
    /// A report: kind, reference, and hundredths of the order's amount.
    Report(&'static str, u8, i64),
    /// An operator's event.
    Event(&'static str),
}

fn act() -> impl Strategy<Value = Act> {
    let kind = prop::sample::select(vec![
        "received",
        "received",
        "received",
        "refunded",
        "payout-sent",
        "payout-sent",
        "payout-confirmed",
        "payout-failed",
        "disputed",
    ]);
    let hundredths = prop::sample::select(vec![100_i64, 100, 100, 50, 130]);
    let report =
        (kind, 0_u8..3, hundredths).prop_map(|(kind, name, part)| Act::Report(kind, name, part));
    let event = prop::sample::select(vec![
        "payment-received",
        "coins-sent",
        "confirmed-on-chain",
        "hold",
        "release",
        "refund",
        "cancel",
    ])
    .prop_map(Act::Event);
    prop_oneof![3 => report, 2 => event]
}

/// Reads the amount that the order pays out: another amount may have been released.
async fn payout(context: &TestContext, order: &OrderFixture) -> Value {
    let path = format!("/admin/v1/orders/{}", order.id);
    let read = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    read["cryptoAmount"].clone()
}

/// Lets all of it happen to a new order, and checks after each.
async fn play(context: &TestContext, order: &OrderFixture, acts: &[Act]) {
    let mut reported = BTreeSet::new();
    for (index, act) in acts.iter().enumerate() {
        match act {
            Act::Report(kind, name, part) => {
                let reference = format!("{}-{name}", order.id);
                let coins = kind.starts_with("payout");
                let (amount, currency) = match coins {
                    true => (payout(context, order).await, "BTC"),
                    false => (json!(part), "EUR"),
                };
                let members = json!({"orderId": order.id, "kind": kind, "amount": amount,
                    "currency": currency});
                let answer = pay(context, &reference, members).await;
                match reported.insert((*kind, reference)) {
                    true => answer.assert_status(201),
                    // The same again, or another amount under its name.
                    false => {
                        assert!([200, 409].contains(&answer.status()), "{acts:?} at {index}");
                        &answer
                    }
                };
            }
            Act::Event(event) => {
                let answer = order.event(context, event).await;
                assert!([200, 409, 422].contains(&answer.status()), "{acts:?} at {index}");
            }
        }
        let found = problems(context).await;
        assert!(found.is_empty(), "{found:?} after {:?}", &acts[..=index]);
    }
    let stored: i64 = sqlx::query_scalar(
        "select count(*) from payment where order_id = $1 and provider_reference like $2",
    )
    .bind(order.id)
    .bind(format!("{}-%", order.id))
    .fetch_one(context.db())
    .await
    .unwrap();
    assert_eq!(stored, i64::try_from(reported.len()).unwrap(), "{acts:?}");
}

#[tokio::test]
async fn the_books_fit_after_every_report_in_any_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut runner = TestRunner::new(Config::default());
    let acts = prop::collection::vec(act(), 4..16);
    for _ in 0..24 {
        let acts = acts.new_tree(&mut runner).unwrap().current();
        let order = OrderFixture::order(&context, &acme, None, None).await;
        Box::pin(play(&context, &order, &acts)).await;
    }
    let twice = "select count(*) from (select order_id from ledger_entry where kind = 'execution' \
                 group by client_id, order_id having count(*) > 1 + (select count(*) \
                 from ledger_entry r where r.order_id = ledger_entry.order_id \
                 and r.kind = 'execution-reversed')) twice";
    assert_eq!(count(&context, twice).await, 0);
}
