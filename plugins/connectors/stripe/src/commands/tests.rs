//! Commands between an edge and a provider that are both played by one server.

use std::sync::{Mutex, mpsc};

use serde_json::{Value, json};

use super::*;
use crate::fake::{Heard, connector};

fn command(kind: &str, attempt: u32) -> Command {
    let body = json!({"orderId": 7, "amount": 250, "currency": "EUR", "providerReference": "pi_1"});
    let command = json!({"id": "c-1", "kind": kind, "attempt": attempt, "leaseToken": "lease",
        "checkpoint": null, "body": body});
    serde_json::from_value(command).unwrap()
}

fn payment(status: &str) -> Value {
    json!({"id": "pi_1", "status": status, "amount": 25_000, "currency": "eur", "created": 1})
}

/// The outcome that a result tells.
fn outcome(heard: &Heard) -> String {
    let result: Value = serde_json::from_str(&heard.body).unwrap();
    result["outcome"].as_str().unwrap().to_owned()
}

/// The outcome of a refund at its `attempt`, where the provider answers one call with this status.
async fn refund(attempt: u32, call: &'static str, status: u16) -> Option<String> {
    let (tell, told) = mpsc::sync_channel(1);
    let connector = connector(move |heard| {
        let is = |line: &str| heard.line.starts_with(line);
        if is(call) {
            return (status, json!({"error": {"message": "no"}}));
        }
        if is("post /connectors/v1/commands/c-1/result") {
            tell.send(outcome(heard)).unwrap();
        }
        let refund = json!({"id": "re_1", "status": "succeeded", "amount": 25_000,
            "currency": "eur", "created": 1, "payment_intent": "pi_1"});
        let documents = [
            ("post /v1/refunds", refund),
            ("get /v1/refunds", json!({"data": []})),
            ("get /v1/payment_intents/pi_1", payment("succeeded")),
        ];
        let document = documents.into_iter().find(|(line, _)| is(line));
        (200, document.map_or(json!({}), |(_, document)| document))
    });
    connector.await.finish(&command("payment.refund", attempt)).await.unwrap();
    told.try_recv().ok()
}

#[tokio::test]
async fn a_refund_that_was_perhaps_made_has_no_result() {
    for (attempt, call, status, told) in [
        (1, "nothing", 200, Some("done")),
        (2, "nothing", 200, Some("done")),
        (1, "post /v1/refunds", 500, None),
        (1, "post /v1/refunds", 409, None),
        // It was made, and its answer lacks what every refund has.
        (1, "post /v1/refunds", 200, None),
        // It was made, and cannot be told of.
        (1, "get /v1/payment_intents/pi_1", 500, None),
        (1, "get /v1/payment_intents/pi_1", 429, None),
        // An earlier attempt has perhaps made it.
        (2, "get /v1/refunds", 500, None),
        (2, "get /v1/refunds", 429, None),
        (2, "get /v1/refunds", 403, None),
        (1, "post /v1/refunds", 429, Some("retry")),
        (1, "post /v1/refunds", 403, Some("retry")),
        (1, "post /v1/refunds", 400, Some("rejected")),
    ] {
        let outcome = refund(attempt, call, status).await;
        assert_eq!(outcome.as_deref(), told, "attempt {attempt}, {call}: {status}");
    }
}

/// The outcomes of two attempts at a cancellation. The first is refused, because the card is being
/// charged; the payment has `status` when it is read then, and the card is refused.
async fn cancellations(status: &'static str) -> [String; 2] {
    let (tell, told) = mpsc::sync_channel(1);
    // Keys of refused calls, under which the provider remembers its refusal.
    let refused = Mutex::new(Vec::<Option<String>>::new());
    let connector = connector(move |heard| {
        let mut refused = refused.lock().unwrap();
        let is = |line: &str| heard.line.starts_with(line);
        if is("post /v1/payment_intents/pi_1/cancel") {
            let key = &heard.idempotency_key;
            if !refused.is_empty() && (key.is_none() || !refused.contains(key)) {
                return (200, payment("canceled"));
            }
            refused.push(key.clone());
            return (400, json!({"error": {"message": "the card is being charged"}}));
        }
        if is("get /v1/payment_intents/pi_1") {
            let is_first = refused.len() == 1;
            return (200, payment(if is_first { status } else { "requires_payment_method" }));
        }
        tell.send(outcome(heard)).unwrap();
        (200, json!({}))
    })
    .await;
    let mut outcomes = [String::new(), String::new()];
    for (attempt, outcome) in (1..).zip(&mut outcomes) {
        connector.finish(&command("payment.cancel", attempt)).await.unwrap();
        *outcome = told.try_recv().unwrap();
    }
    outcomes
}

#[tokio::test]
async fn a_payment_that_was_being_charged_is_cancelled_by_the_next_attempt() {
    // The charge may have ended between the refusal and the look.
    for status in ["processing", "requires_payment_method", "requires_action"] {
        assert_eq!(cancellations(status).await, ["retry", "done"], "{status}");
    }
}
