//! Transfers of ours that come back, on a statement before their connector has told of them.

use rampart_tests::connector::Connector;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::statements::{camt, credit, reconcile_at};
use super::{list, problems, status};

const PATH: &str = "/admin/v1/reconciliations?connector=bank";

/// An entry of 100 EUR that came back under this id.
fn returned(id: &str) -> String {
    let reason = "<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf></TxDtls>";
    credit("bank-2", &format!("<EndToEndId>{id}</EndToEndId>")).replace("</TxDtls>", reason)
}

#[tokio::test]
async fn a_transfer_whose_return_is_on_a_statement_first_comes_back_once() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let bank = Connector::new(&context, "bank", &["transfer.send"]).await;
    let sent = credit("bank-1", "<EndToEndId>T1</EndToEndId>").replace("CRDT", "DBIT");
    let statement = camt(&[sent, returned("T1")]);
    let made = reconcile_at(&context, PATH, &statement).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(0), &json!(0)));
    let told = made["differences"].as_array().unwrap().iter();
    let told: Vec<_> = told.map(|one| (&one["side"], &one["providerReference"])).collect();
    let side = json!("statement");
    assert_eq!(told, [(&side, &json!("bank-1")), (&side, &json!("bank-2"))]);

    for kind in ["transfer.completed", "transfer.returned"] {
        let event = json!({"id": kind, "kind": kind, "partner": "acme", "amount": 100,
            "currency": "EUR", "occurredAt": "2026-03-01T00:00:00Z", "providerReference": "T1"});
        bank.event(event).await.assert_status(200);
    }
    assert_eq!(problems(&context).await, [Value::Null; 0], "its connector has told of both");
    let made = reconcile_at(&context, PATH, &statement).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(2), &json!(0)));
    assert_eq!(made["differences"], json!([]));
    let recorded = "select count(*) from payment where connector = 'bank'";
    assert_eq!(crate::orders::count(&context, recorded).await, 2);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn returns_of_one_transfer_are_known_by_references_of_their_own() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let bank = Connector::new(&context, "bank", &["transfer.send"]).await;
    // The bank gives them no other name than that of the transfer.
    let back = |amount: &str| returned("T1").replace("bank-2", "T1").replace(">100<", amount);
    let made = reconcile_at(&context, PATH, &camt(&[back(">60<"), back(">40<")])).await;
    assert_eq!(made["differences"].as_array().unwrap().len(), 2);
    assert_eq!(made["differences"][0]["otherReferences"], Value::Null, "it is told to nobody");
    assert_eq!(problems(&context).await.len(), 2);
    for (reference, amount) in [("T1/2026-03-01/60", 60), ("T1/2026-03-01/40", 40)] {
        let event = json!({"id": reference, "kind": "transfer.returned", "partner": "acme",
            "amount": amount, "currency": "EUR", "occurredAt": "2026-03-01T00:00:00Z",
            "providerReference": reference, "originalReference": "T1"});
        bank.event(event).await.assert_status(200);
    }
    assert_eq!(problems(&context).await, [Value::Null; 0], "its connector has told of both");
    let made = reconcile_at(&context, PATH, &camt(&[back(">60<"), back(">40<")])).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(2), &json!(0)));
    assert_eq!(made["differences"], json!([]));
}

#[tokio::test]
async fn a_return_that_its_connector_tells_as_a_payment_is_in_the_books_under_the_banks_name() {
    let context = TestContext::start().await;
    let bank = Connector::new(&context, "bank", &["transfer.send"]).await;
    let statement = camt(&[returned("rent")]);
    assert_eq!(reconcile_at(&context, PATH, &statement).await["recorded"], 0);
    let event = json!({"id": "r", "kind": "payment.received", "amount": 100, "currency": "EUR",
        "occurredAt": "2026-03-01T00:00:00Z", "providerReference": "bank-2"});
    bank.event(event).await.assert_status(200);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    let made = reconcile_at(&context, PATH, &statement).await;
    assert_eq!((&made["matched"], &made["differences"]), (&json!(1), &json!([])));
}

#[tokio::test]
async fn a_return_in_columns_is_none_of_the_payments_that_came_in() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    Connector::new(&context, "bank", &["transfer.send"]).await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let before = status(&context, &order).await;
    let statement = format!(
        "date,amount,currency,reference,providerReference,endToEndId,returnReason\n\
         2026-03-01,100,EUR,,bank-1,T1,AC04\n2026-03-01,100,EUR,{},bank-2,,AC04\n",
        order.id
    );
    let made = reconcile_at(&context, PATH, &statement).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(0), &json!(1)));
    let difference = &made["differences"][0];
    let told = (&difference["side"], &difference["providerReference"]);
    assert_eq!(told, (&json!("statement"), &json!("bank-1")));
    assert_eq!(status(&context, &order).await, before, "what came back pays no order");
    let unmatched = list(&context, "?state=unmatched&partner=house").await;
    assert_eq!(unmatched[0]["providerReference"], "bank-2");
}
