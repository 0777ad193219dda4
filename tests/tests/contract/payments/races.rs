//! Decisions on one payment in suspense that are made at the same time, on two edges: each of them is
//! carried out whole or refused, and the money goes one way.

use rampart_core::platform::settings::Unexpected;
use rampart_tests::partner::Partner;

use super::*;

/// Rounds of each race.
const ROUNDS: usize = 8;
/// An order that nobody has.
const UNKNOWN: i64 = 1_000_000_000_000_007;

/// A payment that waits: of no order, or of one that does not want it.
async fn waiting(context: &TestContext, acme: &Partner, round: usize) -> Value {
    let reference = format!("waits-{round}");
    let named = match round % 2 {
        0 => json!({"orderId": UNKNOWN}),
        _ => {
            let order = OrderFixture::order(context, acme, None, None).await;
            order.event(context, "cancel").await.assert_status(200);
            json!({"orderId": order.id})
        }
    };
    let paid = pay(context, &reference, named).await.assert_status(201).json();
    assert!(["unmatched", "suspense"].contains(&paid["state"].as_str().unwrap()), "{paid}");
    paid
}

async fn matched(edge: &TestContext, payment: &Value, order: &OrderFixture) -> Answer {
    let path = format!("{PAYMENTS}/{}/match", payment["id"].as_str().unwrap());
    edge.admin(Method::POST, &path, json!({"orderId": order.id})).await
}

async fn given_back(edge: &TestContext, payment: &Value) -> Answer {
    let path = format!("{PAYMENTS}/{}/refund", payment["id"].as_str().unwrap());
    edge.admin(Method::POST, &path, json!({"reason": "nobody's"})).await
}

/// Nothing that is unexpected is given back by itself.
async fn started() -> (TestContext, TestContext) {
    let context =
        TestContext::with(|settings| settings.payments.unexpected = Unexpected::Hold).await;
    let second = context.second_edge().await;
    (context, second)
}

#[tokio::test]
async fn of_two_orders_that_one_payment_is_matched_to_one_gets_it() {
    let (context, second) = started().await;
    let (acme, globex) = (context.partner("acme").await, context.partner("globex").await);
    second.core().refresh().await.unwrap();
    for round in 0..ROUNDS {
        let payment = waiting(&context, &acme, round).await;
        let one = OrderFixture::order(&context, &acme, None, None).await;
        // The other one may be in another book.
        let of = if round < ROUNDS / 2 { &acme } else { &globex };
        let other = OrderFixture::order(&context, of, None, None).await;
        let (first, then) =
            tokio::join!(matched(&context, &payment, &one), matched(&second, &payment, &other));
        let mut statuses = [first.status(), then.status()];
        let (winner, loser) = if statuses[0] == 200 { (&one, &other) } else { (&other, &one) };
        assert_eq!(status(&context, winner).await, "in progress", "{round}");
        assert_eq!(status(&context, loser).await, "pending", "{round}");
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{round}");
        assert_eq!(problems(&context).await, [Value::Null; 0], "{round}");
    }
    let matches = "select count(*) from payment_match";
    assert_eq!(count(&context, matches).await, i64::try_from(ROUNDS).unwrap());
}

#[tokio::test]
async fn of_two_payments_that_are_matched_to_one_order_it_takes_one() {
    let (context, second) = started().await;
    let acme = context.partner("acme").await;
    second.core().refresh().await.unwrap();
    for round in 0..ROUNDS {
        let one = waiting(&context, &acme, 2 * round).await;
        let other = waiting(&context, &acme, 2 * round + 1).await;
        let order = OrderFixture::order(&context, &acme, None, None).await;
        let (first, then) =
            tokio::join!(matched(&context, &one, &order), matched(&second, &other, &order));
        let mut statuses = [first.status(), then.status()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{round}");
        assert_eq!(status(&context, &order).await, "in progress", "{round}");
        assert_eq!(problems(&context).await, [Value::Null; 0], "{round}");
        let path = format!("?order={}", order.id);
        assert_eq!(list(&context, &path).await.len(), 1, "{round}");
    }
}

#[tokio::test]
async fn money_that_is_matched_and_given_back_at_once_goes_back_once() {
    let (context, second) = started().await;
    let acme = context.partner("acme").await;
    second.core().refresh().await.unwrap();
    for round in 0..ROUNDS {
        let payment = waiting(&context, &acme, round).await;
        let order = OrderFixture::order(&context, &acme, None, None).await;
        let (to_order, back, again) = tokio::join!(
            matched(&context, &payment, &order),
            given_back(&second, &payment),
            given_back(&context, &payment),
        );
        let mut refunds = [back.status(), again.status()];
        refunds.sort_unstable();
        assert_eq!(refunds, [200, 409], "{round}");
        // Given back first, it is not matched; matched first, its order waits for the refund.
        let expected = match to_order.status() {
            200 => "blocked",
            409 => "pending",
            other => panic!("{other} in {round}"),
        };
        assert_eq!(status(&context, &order).await, expected, "{round}");
        assert_eq!(balances(&context).await, ["provider EUR: 100", "refund_payable EUR: -100"]);
        assert_eq!(problems(&context).await, [Value::Null; 0], "{round}");
        // The refund is carried out, for the next round to begin with nothing.
        let of = if expected == "blocked" { json!(order.id) } else { payment["orderId"].clone() };
        let told = json!({"kind": "refunded", "orderId": of});
        pay(&context, &format!("back-{round}"), told).await.assert_status(201);
        assert_eq!(balances(&context).await, [""; 0], "{round}");
        assert_eq!(problems(&context).await, [Value::Null; 0], "{round}");
    }
    let refunds = "select count(*) from payment_refund";
    assert_eq!(count(&context, refunds).await, i64::try_from(ROUNDS).unwrap());
}
