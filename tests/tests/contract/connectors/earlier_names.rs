//! Payments that a connector has reported before, when it named them otherwise.

use bytes::Bytes;
use futures::future::join;

use super::*;

/// A payment of this order on one day.
fn received(reference: &str, order: i64, earlier: &[&str]) -> Value {
    json!({"id": format!("payment.received/{reference}"), "kind": "payment.received",
        "occurredAt": "2026-03-01T00:00:00Z", "providerReference": reference, "orderId": order,
        "amount": 100, "currency": "EUR", "earlierReferences": earlier})
}

/// Reports it; true if it says nothing new.
async fn is_known(bank: &Connector, event: Value) -> bool {
    bank.event(event).await.assert_status(200).json()["duplicate"].as_bool().unwrap()
}

async fn payments(context: &TestContext) -> i64 {
    let count = "select count(*) from payment where connector = 'bank'";
    sqlx::query_scalar(count).fetch_one(context.db()).await.unwrap()
}

#[tokio::test]
async fn a_payment_of_an_earlier_name_is_that_of_one_event() {
    let context = TestContext::start().await;
    let bank = Connector::new(&context, "bank", &["transfer.send"]).await;
    assert!(!is_known(&bank, received("NOTPROVIDED", 7, &[])).await);
    let earlier = ["NOTPROVIDED"];
    for (reference, order, expected) in
        [("of-another-order", 8, false), ("a", 7, true), ("b", 7, false), ("a", 7, true)]
    {
        let told = is_known(&bank, received(reference, order, &earlier)).await;
        assert_eq!(told, expected, "{reference}");
    }
    assert_eq!(payments(&context).await, 3);
}

#[tokio::test]
async fn a_payment_of_another_partners_order_of_the_same_number_is_another_one() {
    let context = TestContext::start().await;
    for slug in ["acme", "globex"] {
        context.partner(slug).await;
    }
    let bank = Connector::new(&context, "bank", &["transfer.send"]).await;
    let of = |partner: &str, reference: &str, earlier: &[&str]| {
        let mut event = received(reference, 7, earlier);
        event["partner"] = json!(partner);
        event
    };
    assert!(!is_known(&bank, of("acme", "tx-1", &[])).await);
    for (partner, reference, expected) in [("globex", "a", false), ("acme", "b", true)] {
        let told = is_known(&bank, of(partner, reference, &["tx-1"])).await;
        assert_eq!(told, expected, "{partner}");
    }
    assert_eq!(payments(&context).await, 2);
}

#[tokio::test]
async fn a_payment_is_known_by_the_name_that_it_took() {
    let context = TestContext::start().await;
    let bank = Connector::new(&context, "bank", &["transfer.send"]).await;
    assert!(!is_known(&bank, received("tx-1", 7, &[])).await);
    assert!(is_known(&bank, received("a", 7, &["tx-1"])).await);
    for (id, earlier) in [("again", &["tx-1"][..]), ("without", &[])] {
        let mut again = received("a", 7, earlier);
        again["id"] = json!(id);
        assert!(is_known(&bank, again).await, "{id}");
    }
    let statement = "date,amount,currency,reference,providerReference,name,iban\n\
                     2026-03-01,100.00,EUR,,a,Ada,\n";
    let path = "/admin/v1/reconciliations?connector=bank";
    let made = context.admin_bytes(Method::POST, path, Bytes::from(statement)).await;
    let made = made.assert_status(201).json();
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(1), &json!(0)));
    assert_eq!(made["differences"], json!([]));
    assert_eq!(payments(&context).await, 1);
}

#[tokio::test]
async fn a_payment_of_its_own_name_takes_none_of_an_earlier_one() {
    let context = TestContext::start().await;
    let bank = Connector::new(&context, "bank", &["transfer.send"]).await;
    for reference in ["tx-1", "a"] {
        assert!(!is_known(&bank, received(reference, 7, &[])).await);
    }
    let mut again = received("a", 7, &["tx-1"]);
    again["id"] = json!("again");
    assert!(is_known(&bank, again).await);
    assert!(is_known(&bank, received("b", 7, &["tx-1"])).await, "the payment of tx-1");
    assert_eq!(payments(&context).await, 2);
}

#[tokio::test]
async fn of_two_events_at_once_one_is_of_the_payment() {
    let context = TestContext::start().await;
    let bank = Connector::new(&context, "bank", &["transfer.send"]).await;
    for number in 0..8 {
        let earlier = format!("tx-{number}");
        assert!(!is_known(&bank, received(&earlier, 7, &[])).await);
        let named = |name: &str| received(&format!("{name}-{number}"), 7, &[earlier.as_str()]);
        let (a, b) = (named("a"), named("b"));
        let (a, b) = join(is_known(&bank, a), is_known(&bank, b)).await;
        assert!(a != b, "{number}: {a} {b}");
    }
    assert_eq!(payments(&context).await, 16);
}
