//! Statements of accounts beside the books.

use bytes::Bytes;
use http::Method;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{list, pay, problems, status};

const PATH: &str = "/admin/v1/reconciliations?connector=manual";

async fn reconcile(context: &TestContext, statement: &str) -> Value {
    let body = Bytes::from(statement.to_owned());
    context.admin_bytes(Method::POST, PATH, body).await.assert_status(201).json()
}

#[tokio::test]
async fn lines_are_matched_recorded_and_told_apart() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let known = OrderFixture::order(&context, &acme, None, None).await;
    let at = |day: &str| json!({"orderId": known.id, "occurredAt": format!("{day}T09:00:00Z")});
    pay(&context, "bank-1", at("2026-03-01")).await.assert_status(201);
    let mut other = at("2026-03-01");
    other["orderId"] = Value::Null;
    pay(&context, "bank-2", other.clone()).await.assert_status(201);
    pay(&context, "bank-3", other).await.assert_status(201);
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let statement = format!(
        "date,amount,currency,reference,providerReference,name,iban\n\
         2026-03-01,100.00,EUR,,bank-1,Ada,NL58ABNA0000000001\n\
         2026-03-01,101.00,EUR,,bank-2,Ada,\n\
         2026-03-02,100.00,EUR,order {},bank-4,Ada,\n\
         2026-03-02,7.00,EUR,lunch,bank-5,Bob,\n\
         2026-03-02,-20.00,EUR,rent,bank-6,Eve,\n",
        order.id
    );
    let made = reconcile(&context, &statement).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(1), &json!(2)));
    let differences: Vec<_> = made["differences"].as_array().unwrap().iter().collect();
    let seen = |difference: &&Value| {
        let text = |name: &str| difference[name].as_str().unwrap().to_owned();
        format!("{} {}", text("side"), text("providerReference"))
    };
    let seen: Vec<String> = differences.iter().map(seen).collect();
    assert_eq!(seen, ["amount bank-2", "statement bank-6", "books bank-3"]);
    assert_eq!(status(&context, &order).await, "in progress");
    let unmatched = list(&context, "?state=unmatched&partner=house").await;
    assert_eq!(unmatched[0]["providerReference"], "bank-5");

    let again = reconcile(&context, &statement).await;
    assert_eq!((&again["matched"], &again["recorded"]), (&json!(3), &json!(0)));
    let path = format!("/admin/v1/reconciliations/{}", made["id"].as_str().unwrap());
    let read = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    assert_eq!(read, made);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_is_no_statement_is_refused() {
    let context = TestContext::start().await;
    for body in [
        "<!DOCTYPE a [<!ENTITY b \"c\">]><Document/>",
        "<Document></Document>",
        "date,amount\n2026-03-01,1\n",
        "{}",
    ] {
        let body = Bytes::from_static(body.as_bytes());
        context.admin_bytes(Method::POST, PATH, body).await.assert_status(422);
    }
}

#[tokio::test]
async fn transfers_are_known_by_the_id_that_we_gave_them() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let sent =
        json!({"kind": "transfer-sent", "amount": 100, "occurredAt": "2026-03-01T09:00:00Z"});
    pay(&context, "T1", sent).await.assert_status(201);
    let entry = |side: &str, reference: &str, returned: &str| {
        format!(
            "<Ntry><Amt Ccy=\"EUR\">100</Amt><CdtDbtInd>{side}</CdtDbtInd><Sts>BOOK</Sts>\
             <BookgDt><Dt>2026-03-01</Dt></BookgDt><AcctSvcrRef>{reference}</AcctSvcrRef><NtryDtls>\
             <TxDtls><Refs><EndToEndId>T1</EndToEndId></Refs>{returned}</TxDtls></NtryDtls></Ntry>"
        )
    };
    let statement = |entries: &str| {
        format!("<Document><BkToCstmrStmt><Stmt>{entries}</Stmt></BkToCstmrStmt></Document>")
    };
    let debit = entry("DBIT", "bank-1", "");
    let made = reconcile(&context, &statement(&debit)).await;
    assert_eq!((&made["matched"], &made["differences"]), (&json!(1), &json!([])));
    // Only its connector knows what it is that comes back.
    let returned = entry("CRDT", "bank-2", "<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>");
    let made = reconcile(&context, &statement(&format!("{debit}{returned}"))).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(1), &json!(0)));
    assert_eq!(made["differences"][0]["side"], "amount");
    // A payer may write what it likes.
    let paid = entry("CRDT", "bank-3", "");
    let made = reconcile(&context, &statement(&paid)).await;
    assert_eq!(made["recorded"], 1);
}
