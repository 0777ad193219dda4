//! What a statement or the books have alone.

use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::pay;
use super::statements::reconcile_at;

/// Lays these lines of a statement beside the books of what operators have booked.
async fn reconcile(context: &TestContext, lines: &str) -> Value {
    let statement = format!("date,amount,currency,providerReference\n{lines}");
    reconcile_at(context, "/admin/v1/reconciliations?connector=manual", &statement).await
}

/// The differences of a reconciliation, as `side reference amount`.
fn differences(made: &Value) -> Vec<String> {
    let text = |difference: &Value| {
        let name = |name: &str| difference[name].as_str().unwrap();
        format!("{} {} {}", name("side"), name("providerReference"), difference["amount"])
    };
    made["differences"].as_array().unwrap().iter().map(text).collect()
}

#[tokio::test]
async fn money_by_the_books_alone_is_told_where_the_statement_has_its_currency() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for (reference, currency) in [("in-eur", "EUR"), ("in-usd", "USD")] {
        let paid = json!({"currency": currency, "occurredAt": "2026-03-01T09:00:00Z"});
        pay(&context, reference, paid).await.assert_status(201);
    }
    let euros = "2026-03-01,1,EUR,other-eur\n";
    let made = reconcile(&context, euros).await;
    assert_eq!(differences(&made), ["books in-eur 100"], "dollars have an account of their own");
    let made = reconcile(&context, &format!("{euros}2026-03-01,1,USD,other-usd\n")).await;
    assert_eq!(differences(&made), ["books in-eur 100", "books in-usd 100"]);
}

#[tokio::test]
async fn a_payment_that_was_given_back_or_taken_before_it_is_recorded_by_its_own_line() {
    for kind in ["refunded", "disputed"] {
        let context = TestContext::start().await;
        context.partner("acme").await;
        let told = json!({"kind": kind, "occurredAt": "2026-03-02T09:00:00Z"});
        pay(&context, kind, told).await.assert_status(201);
        let lines = format!("2026-03-01,100,EUR,{kind}\n2026-03-02,-100,EUR,{kind}\n");
        for (matched, recorded) in [(1, 1), (2, 0)] {
            let made = reconcile(&context, &lines).await;
            let seen = (&made["matched"], &made["recorded"]);
            assert_eq!(seen, (&json!(matched), &json!(recorded)), "{kind}");
            assert_eq!(made["differences"], json!([]), "{kind}");
        }
    }
}
