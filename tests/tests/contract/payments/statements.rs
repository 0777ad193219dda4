//! Statements of accounts beside the books.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{list, pay, problems, status};

const PATH: &str = "/admin/v1/reconciliations?connector=manual";

async fn reconcile(context: &TestContext, statement: &str) -> Value {
    reconcile_at(context, PATH, statement).await
}

pub(super) async fn reconcile_at(context: &TestContext, path: &str, statement: &str) -> Value {
    let body = Bytes::from(statement.to_owned());
    context.admin_bytes(Method::POST, path, body).await.assert_status(201).json()
}

#[tokio::test]
async fn a_statement_of_a_connector_that_does_not_exist_is_refused() {
    let context = TestContext::start().await;
    let path = "/admin/v1/reconciliations?connector=bnak";
    let statement = "date,amount,currency,reference,providerReference\n\
                     2026-03-01,100.00,EUR,,bank-1\n";
    let refused = context.admin_bytes(Method::POST, path, Bytes::from(statement)).await;
    assert_eq!(refused.assert_status(404).json()["error"], "no such connector");
    assert_eq!(list(&context, "").await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_line_of_a_day_to_come_is_booked_now() {
    let context = TestContext::start().await;
    let statement = "date,amount,currency,reference,providerReference\n\
                     2999-12-31,100.00,EUR,,bank-1\n";
    assert_eq!(reconcile(&context, statement).await["recorded"], 1);
    let booked = &list(&context, "").await[0];
    assert_eq!((&booked["providerReference"], &booked["amount"]), (&json!("bank-1"), &json!(100)));
    assert!(booked["occurredAt"].as_str().unwrap() < "2999", "{booked}");
    assert_eq!(reconcile(&context, statement).await["matched"], 1);
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
    assert_eq!(made["hasMore"], false);
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
    let open = async || {
        let found = problems(&context).await;
        assert!(found.iter().all(|found| found["subject"] == "account manual"), "{found:?}");
        found.iter().map(|found| found["problem"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (amount, books) = (
        "bank-2 moved 101 EUR, by the books another sum".to_owned(),
        "bank-3 of 100 EUR is in the books alone".to_owned(),
    );
    let rent = "bank-6 moved -20 EUR, not in the books".to_owned();
    assert_eq!(open().await, [amount.clone(), books.clone(), rent]);
    let given_back = json!({"kind": "refunded", "amount": 20, "orderId": null});
    pay(&context, "bank-6", given_back).await.assert_status(201);
    assert_eq!(open().await, [amount, books], "what is recorded since is not open any more");
    let whole = "date,amount,currency,providerReference\n2026-03-01,100,EUR,bank-1\n\
                 2026-03-01,100,EUR,bank-2\n2026-03-01,100,EUR,bank-3\n\
                 2026-03-02,100,EUR,bank-4\n2026-03-02,7,EUR,bank-5\n";
    assert_eq!(reconcile(&context, whole).await["differences"], json!([]));
    assert_eq!(open().await, [""; 0], "the last statement counts");
}

#[tokio::test]
async fn a_line_that_moves_nothing_is_no_difference() {
    let context = TestContext::start().await;
    let statement = "date,amount,currency,providerReference\n2026-03-01,0.00,EUR,notice-1\n";
    let made = reconcile(&context, statement).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(0), &json!(0)));
    assert_eq!(made["differences"], json!([]));
    assert_eq!(problems(&context).await, [Value::Null; 0], "the books are not off by it");
}

#[tokio::test]
async fn differences_that_are_not_listed_are_told() {
    let context = TestContext::start().await;
    let line = |number| format!("2026-03-01,-1,EUR,bank-{number}\n");
    let lines: String = (0..1_001).map(line).collect();
    let statement = format!("date,amount,currency,providerReference\n{lines}");
    let made = reconcile(&context, &statement).await;
    assert_eq!(made["differences"].as_array().unwrap().len(), 1_000);
    assert_eq!(made["hasMore"], true);
    let path = format!("/admin/v1/reconciliations/{}", made["id"].as_str().unwrap());
    let read = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    assert_eq!(read, made);
    let path = "/admin/v1/reconciliations";
    let listed = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    assert_eq!((&listed[0]["differences"], &listed[0]["hasMore"]), (&json!(1_000), &json!(true)));
}

#[tokio::test]
async fn what_is_no_statement_is_refused() {
    let context = TestContext::start().await;
    // One that is not booked makes no line, however many transactions it has.
    let pending = camt(&[format!(
        "<Ntry><Amt Ccy=\"EUR\">1</Amt><Sts>PDNG</Sts><NtryDtls>{}</NtryDtls></Ntry>",
        "<TxDtls/>".repeat(10_001)
    )]);
    let [of_nothing, of_euros] = ["<Amt>", "<Amt Ccy=\"euro\">"]
        .map(|amount| camt(&[credit("bank-1", "").replace("<Amt Ccy=\"EUR\">", amount)]));
    for body in [
        "<!DOCTYPE a [<!ENTITY b \"c\">]><Document/>",
        "<Document></Document>",
        "date,amount\n2026-03-01,1\n",
        "date,amount,currency\n+262142-12-31,-1,EUR\n",
        "{}",
        &pending,
        &of_nothing,
        &of_euros,
    ] {
        let body = Bytes::from(body.to_owned());
        context.admin_bytes(Method::POST, PATH, body).await.assert_status(422);
    }
    assert_eq!(list(&context, "").await, [Value::Null; 0]);
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

#[tokio::test]
async fn what_was_sent_at_once_taken_and_returned_is_of_the_books_too() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let told = [("T1", "transfer-completed"), ("D1", "disputed"), ("W1", "dispute-won")];
    for (reference, kind) in told {
        let payment = json!({"kind": kind, "occurredAt": "2026-03-01T09:00:00Z"});
        pay(&context, reference, payment).await.assert_status(201);
    }
    let head = "date,amount,currency,providerReference\n2026-03-01,1,EUR,other\n";
    let made = reconcile(&context, head).await;
    let differences = made["differences"].as_array().unwrap();
    let seen: Vec<_> = differences.iter().map(|d| (&d["side"], &d["providerReference"])).collect();
    let books = json!("books");
    let references = told.map(|(reference, _)| json!(reference));
    assert_eq!(seen, references.each_ref().map(|reference| (&books, reference)));
    let lines = "2026-03-01,-100,EUR,T1\n2026-03-01,-100,EUR,D1\n2026-03-01,100,EUR,W1\n";
    let made = reconcile(&context, &format!("{head}{lines}")).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(4), &json!(0)));
    assert_eq!(made["differences"], json!([]));
}

#[tokio::test]
async fn a_transfer_that_came_back_pays_no_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let before = status(&context, &order).await;
    let details = "<RmtInf><Ustrd>order</Ustrd></RmtInf><RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>";
    let details = details.replace("order", &order.id.to_string());
    let returned = credit("bank-1", "").replace("</TxDtls>", &format!("{details}</TxDtls>"));
    let made = reconcile(&context, &camt(&[returned])).await;
    assert_eq!(made["recorded"], 1);
    assert_eq!(status(&context, &order).await, before);
    let unmatched = list(&context, "?state=unmatched&partner=house").await;
    assert_eq!(unmatched[0]["providerReference"], "bank-1");
}

/// An incoming entry of 100 EUR on one day, with the bank's own name and other references.
pub(super) fn credit(own: &str, refs: &str) -> String {
    format!(
        "<Ntry><Amt Ccy=\"EUR\">100</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts>\
         <BookgDt><Dt>2026-03-01</Dt></BookgDt><AcctSvcrRef>{own}</AcctSvcrRef><NtryDtls><TxDtls>\
         <Refs>{refs}</Refs></TxDtls></NtryDtls></Ntry>"
    )
}

pub(super) fn camt(entries: &[String]) -> String {
    let entries = entries.concat();
    format!("<Document><BkToCstmrStmt><Stmt>{entries}</Stmt></BkToCstmrStmt></Document>")
}

#[tokio::test]
async fn payments_that_nobody_has_named_are_as_many_as_their_lines() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let none = "<InstrId>NOTPROVIDED</InstrId>";
    let statement = camt(&[credit("bank-1", none), credit("bank-2", none)]);
    let made = reconcile(&context, &statement).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(0), &json!(2)));
    let made = reconcile(&context, &statement).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(2), &json!(0)));
}

#[tokio::test]
async fn what_was_recorded_under_an_earlier_name_is_not_recorded_again() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let at = json!({"orderId": null, "occurredAt": "2026-03-01T00:00:00Z"});
    for reference in ["NOTPROVIDED", "tx-1"] {
        pay(&context, reference, at.clone()).await.assert_status(201);
    }
    let none = "<InstrId>NOTPROVIDED</InstrId>";
    let lines =
        [credit("bank-1", none), credit("bank-2", none), credit("bank-3", "<TxId>tx-1</TxId>")];
    let made = reconcile(&context, &camt(&lines)).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(2), &json!(1)));
    assert_eq!(made["differences"], json!([]));
}

#[tokio::test]
async fn a_line_is_its_own_payment_before_one_of_an_earlier_name() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let at = json!({"orderId": null, "occurredAt": "2026-03-01T00:00:00Z"});
    pay(&context, "NOTPROVIDED", at).await.assert_status(201);
    let none = "<InstrId>NOTPROVIDED</InstrId>";
    let [one, other] = ["bank-1", "bank-2"].map(|own| credit(own, none));
    let made = reconcile(&context, &camt(&[one.clone(), other.clone()])).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(1), &json!(1)));
    let made = reconcile(&context, &camt(&[other, one])).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(2), &json!(0)));
}

#[tokio::test]
async fn a_payment_is_one_line_of_a_statement() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let line = credit("bank-1", "");
    let made = reconcile(&context, &camt(&[line.clone(), line])).await;
    assert_eq!((&made["matched"], &made["recorded"]), (&json!(0), &json!(1)));
    let difference = &made["differences"][0];
    let seen = (&difference["side"], &difference["bookedAmount"]);
    assert_eq!(seen, (&json!("statement"), &json!(100)));
    let found = problems(&context).await;
    assert_eq!(found[0]["problem"], "bank-1 moved 100 EUR, not in the books");
}

#[tokio::test]
async fn what_left_by_the_books_alone_is_negative() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for (reference, kind) in [("in-1", "received"), ("out-1", "transfer-completed")] {
        let payment = json!({"kind": kind, "orderId": null, "occurredAt": "2026-03-01T09:00:00Z"});
        pay(&context, reference, payment).await.assert_status(201);
    }
    let line = "date,amount,currency,providerReference\n2026-03-01,1,EUR,other\n";
    let made = reconcile(&context, line).await;
    let seen = made["differences"].as_array().unwrap().iter();
    let amounts: Vec<_> = seen.map(|d| (&d["providerReference"], &d["amount"])).collect();
    assert_eq!(amounts, [(&json!("in-1"), &json!(100)), (&json!("out-1"), &json!(-100))]);
}

#[tokio::test]
async fn coins_by_the_books_alone_are_told_where_the_statement_has_their_asset() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for (reference, kind) in [("0xin", "deposit-received"), ("0xout", "payout-sent")] {
        let coins = json!({"kind": kind, "amount": 2, "currency": "BTC",
            "occurredAt": "2026-03-01T09:00:00Z"});
        pay(&context, reference, coins).await.assert_status(201);
    }
    let money = "date,amount,currency,providerReference\n2026-03-01,1,EUR,other\n";
    assert_eq!(reconcile(&context, money).await["differences"], json!([]));
    let both = format!("{money}2026-03-01,1,BTC,0xother\n");
    let made = reconcile(&context, &both).await;
    let told = made["differences"].as_array().unwrap().iter();
    let told: Vec<_> = told.map(|d| (&d["side"], &d["providerReference"], &d["amount"])).collect();
    let books = json!("books");
    let (deposit, payout) = ((json!("0xin"), json!(2)), (json!("0xout"), json!(-2)));
    assert_eq!(told, [(&books, &deposit.0, &deposit.1), (&books, &payout.0, &payout.1)]);
}

#[tokio::test]
async fn coins_are_named_by_their_code_or_by_their_caip19_id() {
    let context = TestContext::start().await;
    let reconcile = async |asset: &str| {
        let head = "date,amount,currency,providerReference";
        let lines = format!("2026-03-01,25,{asset},0xin\n2026-03-01,7,{asset},\n");
        reconcile(&context, &format!("{head}\n{lines}")).await
    };
    assert_eq!(reconcile("USDC").await["recorded"], 2);
    let id = "eip155:1/erc20:0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48";
    assert_eq!(reconcile(id).await["matched"], 2, "with a name of its own and without");
    let booked = &list(&context, "").await[0];
    let names = [&booked["kind"], &booked["currency"]];
    assert_eq!(names, [&json!("deposit-received"), &json!("USDC")]);
    let unknown = "date,amount,currency\n2026-03-01,25,EURO\n";
    context.admin_bytes(Method::POST, PATH, unknown.into()).await.assert_status(422);
}

/// Attributes of one element.
const ATTRIBUTES: usize = 200_000;
/// Longest time for the refusal of a hostile statement, however busy the machine: a small part of what
/// so many attributes take that are compared each with every other.
const REFUSAL_MAX: Duration = Duration::from_secs(30);

#[tokio::test]
async fn hostile_statements_are_refused_at_once() {
    let context = TestContext::start().await;
    let camt = |inside: &str, version: &str| {
        format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:{version}\"><BkToCstmrStmt><Stmt>\
             {inside}</Stmt></BkToCstmrStmt></Document>"
        )
    };
    let lol: String = (1..10)
        .map(|n| format!("<!ENTITY lol{n} \"{}\">", format!("&lol{};", n - 1).repeat(10)))
        .collect();
    let bomb = format!(
        "<!DOCTYPE lolz [<!ENTITY lol0 \"lol\">{lol}]>{}",
        camt("<Id>&lol9;</Id>", "camt.053.001.08")
    );
    let entry = "<Ntry><Amt Ccy=\"EUR\">1</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts></Ntry>";
    // Each of another name, and the one that is looked for is last or missing.
    let many: String = (0..ATTRIBUTES).map(|n| format!("a{n:06}=\"\" ")).collect();
    let rooted = camt(entry, "pain.001.001.09").replacen("xmlns", &format!("{many} xmlns"), 1);
    let amount = format!("<Ntry><Amt {many}>one</Amt></Ntry>");
    for (name, body) in [
        ("bomb", bomb),
        ("external", "<!DOCTYPE d SYSTEM \"file:///etc/passwd\"><Document/>".to_owned()),
        ("deep", camt(&"<a>".repeat(100_000), "camt.053.001.08")),
        ("long text", camt(&format!("<Id>{}</Id>", "a".repeat(900_000)), "camt.053.001.08")),
        ("namespace", camt(entry, "pain.001.001.09")),
        ("second root", camt(entry, "camt.053.001.08") + "<x/>"),
        ("text beside the root", camt(entry, "camt.053.001.08") + "text"),
        ("attributes of the root", rooted),
        ("attributes of an amount", camt(&amount, "camt.053.001.08")),
    ] {
        let began = context.clock().monotonic_ns();
        let sent = context.admin_bytes(Method::POST, PATH, Bytes::from(body)).await;
        let took = Duration::from_nanos(context.clock().monotonic_ns() - began);
        assert!([413, 422].contains(&sent.status()), "{name}: {}", sent.text());
        assert!(took <= REFUSAL_MAX, "{name}: {} ms", took.as_millis());
    }
    let payments = "select count(*) from payment";
    assert_eq!(crate::orders::count(&context, payments).await, 0);
}
