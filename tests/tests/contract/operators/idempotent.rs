//! `Idempotency-Key` of a refund: made again after a lost answer, it gives money back once.

use futures::future::join_all;
use http::Method;

use super::approvals::{PAYMENTS, decide, received};
use super::*;
use crate::orders::count;

const REFUNDS: &str = "select count(*) from payment_refund";

impl Operator<'_> {
    /// Makes the call with this key.
    async fn call_once(&self, key: &str, path: &str, body: Value) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", &*bearer), ("idempotency-key", key)];
        self.context.admin_with(&headers, Method::POST, path, body.to_string().into()).await
    }
}

/// The path of the refund of a payment of 5000 EUR that is nobody's.
async fn refund_of_payment(context: &TestContext) -> String {
    context.partner("acme").await;
    let seen = context.admin(Method::POST, PAYMENTS, received("1", json!(5000), "EUR")).await;
    let seen = seen.assert_status(201).json();
    format!("{PAYMENTS}/{}/refund", seen["id"].as_str().unwrap())
}

fn part(amount: u32) -> Value {
    json!({"amount": amount, "reason": "nobody's"})
}

#[tokio::test]
async fn a_refund_made_again_under_its_key_is_one() {
    let context = TestContext::start().await;
    let refund = refund_of_payment(&context).await;
    let [ada, bob] = treasurers(&context).await;
    let first = ada.call_once("k", &refund, part(100)).await;
    first.assert_status(200);
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = ada.call_once("k", &refund, part(100)).await;
    assert_eq!(again.assert_status(200).bytes(), first.bytes());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.header("content-type"), first.header("content-type"));
    ada.call_once("k", &refund, part(50)).await.assert_status(422);
    bob.call_once("k", &refund, part(100)).await.assert_status(422);
    ada.call_once(&"k".repeat(256), &refund, part(100)).await.assert_status(422);
    assert_eq!(count(&context, REFUNDS).await, 1);
    assert_eq!(audited(&context, "payment.refund").await.len(), 1);
    let together = "select count(*) from payment_refund r join idempotency_key k \
                    on k.xmin = r.xmin where k.status = 200";
    assert_eq!(count(&context, together).await, 1);
    ada.call_once("other", &refund, part(100)).await.assert_status(200);
    assert_eq!(count(&context, REFUNDS).await, 2);
}

#[tokio::test]
async fn of_refunds_at_once_under_one_key_one_is_made() {
    let context = TestContext::start().await;
    let refund = refund_of_payment(&context).await;
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let calls = (0..8).map(|_| ada.call_once("k", &refund, part(100)));
    let answers = join_all(calls).await;
    let again = ada.call_once("k", &refund, part(100)).await;
    for answer in &answers {
        match answer.status() {
            200 => assert_eq!(answer.bytes(), again.assert_status(200).bytes()),
            // While the first one runs.
            other => assert_eq!(other, 409, "{}", answer.text()),
        }
    }
    assert!(answers.iter().any(|answer| answer.status() == 200));
    assert_eq!(count(&context, REFUNDS).await, 1);
}

#[tokio::test]
async fn a_refund_that_is_refused_or_waits_leaves_its_key_free() {
    let context = TestContext::start().await;
    let refund = refund_of_payment(&context).await;
    let [ada, bob] = treasurers(&context).await;
    let send = async |amount: u32| ada.call_once("k", &refund, part(amount)).await;
    send(0).await.assert_status(422);
    let waits = send(2000).await.assert_status(202).json();
    assert_eq!(send(2000).await.assert_status(202).json(), waits);
    let approval = waits["approval"].as_str().unwrap();
    assert_eq!(decide(&bob, approval, "grant").await, 204);
    let done = send(2000).await;
    let again = send(2000).await;
    assert_eq!(again.assert_status(200).bytes(), done.assert_status(200).bytes());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(count(&context, REFUNDS).await, 1);
}
