//! A sale of a live partner: its address comes from the pool, its money goes out by a command.

use rust_decimal::Decimal;

use super::purchase::live;
use super::*;
use crate::payments::problems;

/// Valid, and nobody's.
pub(super) const ADDRESSES: [&str; 2] =
    ["0x52908400098527886E0F7030069857D2E4169EE7", "0x8617E340B3D01FA5F11F306F4090FD50E238070D"];

pub(super) async fn sell(partner: &Partner) -> rampart_tests::answer::Answer {
    sell_of(partner, "ETH-EUR", 0.1).await
}

pub(super) async fn sell_of(
    partner: &Partner,
    pair: &str,
    amount: f64,
) -> rampart_tests::answer::Answer {
    let token = format!("Bearer {}", partner.token().await);
    sell_by(partner, &token, pair, amount).await
}

/// Sells with this `Authorization`.
pub(super) async fn sell_by(
    partner: &Partner,
    token: &str,
    pair: &str,
    amount: f64,
) -> rampart_tests::answer::Answer {
    let post = async |path: &str, body: Value| {
        let request = partner.anonymous(Method::POST, path).header("authorization", token);
        request.json(&body).send().await
    };
    let asked = json!({"currencyPair": pair, "cryptoAmount": amount});
    let quote = post("/api/v1/sell/quote", asked).await.assert_status(200).json();
    post("/api/v1/sell/confirm", json!({"quote": quote["quote"]})).await
}

#[tokio::test]
async fn a_sale_takes_an_address_of_the_pool_and_its_money_goes_out() {
    let context = TestContext::with(|settings| settings.connectors.deposit_addresses_min = 2).await;
    let (acme, connector) = live(&context).await;
    sell(&acme).await.assert_codes(&["ER016"]);
    context.core().fill_deposit_pools().await.unwrap();
    context.core().fill_deposit_pools().await.unwrap();
    let wanted = connector.lease(100).await;
    let of_eth: Vec<_> = wanted.iter().filter(|c| c["body"]["asset"] == "ETH").collect();
    assert_eq!(of_eth.len(), 1, "{wanted:?}");
    assert_eq!(
        (&of_eth[0]["kind"], &of_eth[0]["body"]["count"]),
        (&json!("deposit.address"), &json!(2))
    );
    let made =
        json!([{"address": ADDRESSES[0]}, {"address": ADDRESSES[1]}, {"address": "nonsense"}]);
    connector.report(of_eth[0], "done", made).await.assert_status(200);

    let (one, two) = tokio::join!(sell(&acme), sell(&acme));
    let (one, two) = (one.assert_status(200).json(), two.assert_status(200).json());
    assert_ne!(one["walletAddress"], two["walletAddress"], "one address for each sale");
    sell(&acme).await.assert_codes(&["ER016"]);

    let deposit = json!({"id": "d-1", "kind": "deposit.received", "asset": "ETH", "amount": 0.1,
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "0xdead",
        "address": one["walletAddress"], "transactionId": "0xdead", "confirmations": 12});
    connector.event(deposit).await.assert_status(200);
    context.core().command_transfers().await.unwrap();
    context.core().command_transfers().await.unwrap();
    let only = json!({"kinds": ["transfer.send"], "max": 10});
    let path = "/connectors/v1/commands/lease";
    let transfers = connector.call(Method::POST, path, only).await.json();
    assert_eq!(transfers.as_array().unwrap().len(), 1, "{transfers}");
    let body = &transfers[0]["body"];
    assert_eq!((&body["orderId"], &body["currency"]), (&one["orderId"], &json!("EUR")));
    let sent = json!({"providerReference": "sepa-1"});
    connector.report(&transfers[0], "done", sent).await.assert_status(200);
    let completed = json!({"id": "t-1", "kind": "transfer.completed", "partner": "acme",
        "occurredAt": "2026-03-01T13:00:00Z", "orderId": one["orderId"],
        "providerReference": "sepa-1", "amount": body["amount"], "currency": "EUR"});
    connector.event(completed).await.assert_status(200);
    let path = format!("/admin/v1/orders/{}", one["orderId"]);
    let seen = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    assert_eq!(seen["status"], "completed");
    // Nobody needs the recipient's name and IBAN any more.
    assert_eq!(named_recipients(&context).await, 0);
}

/// The transfers that still say who gets the money.
async fn named_recipients(context: &TestContext) -> i64 {
    let kept = "select count(*) from command where kind = 'transfer.send' \
                and sealed_body is not null";
    sqlx::query_scalar(kept).fetch_one(context.db()).await.unwrap()
}

/// A live partner's sale whose coins have arrived.
pub(super) async fn deposited(context: &TestContext) -> (Connector, Value) {
    let (acme, connector) = live(context).await;
    let made = json!([{"address": ADDRESSES[0]}, {"address": ADDRESSES[1]}]);
    connector.fill_pool(context, "ETH", made).await;
    let sale = sell(&acme).await.assert_status(200).json();
    deposit(&connector, &sale, "0xdead").await;
    (connector, sale)
}

/// The same, once a bank has taken its transfer: the command, too.
async fn transferred(context: &TestContext) -> (Connector, Value, Value) {
    let (connector, sale) = deposited(context).await;
    let transfer = transfers(context, &connector).await.remove(0);
    let sent = json!({"providerReference": "sepa-1"});
    connector.report(&transfer, "done", sent).await.assert_status(200);
    (connector, sale, transfer)
}

/// The coins of a sale arrive by this transaction.
async fn deposit(connector: &Connector, sale: &Value, transaction: &str) {
    let deposit = json!({"id": format!("deposit {transaction}"), "kind": "deposit.received",
        "asset": "ETH", "amount": 0.1, "occurredAt": "2026-03-01T12:00:00Z",
        "providerReference": transaction, "address": sale["walletAddress"],
        "transactionId": transaction, "confirmations": 12});
    connector.event(deposit).await.assert_status(200);
}

/// The transfers that are commanded, leased.
pub(super) async fn transfers(context: &TestContext, connector: &Connector) -> Vec<Value> {
    context.core().command_transfers().await.unwrap();
    let only = json!({"kinds": ["transfer.send"], "max": 10});
    let path = "/connectors/v1/commands/lease";
    connector.call(Method::POST, path, only).await.json().as_array().unwrap().clone()
}

async fn proceeds(context: &TestContext) -> Decimal {
    sqlx::query_scalar("select fiat_amount from sell_order").fetch_one(context.db()).await.unwrap()
}

/// A transfer that an operator has made.
async fn by_hand(context: &TestContext, sale: &Value, kind: &str) {
    let amount: Value = serde_json::from_str(&proceeds(context).await.to_string()).unwrap();
    let body = json!({"partner": "acme", "kind": kind, "amount": amount, "currency": "EUR",
        "providerReference": "by-hand", "orderId": sale["orderId"], "reason": "by hand"});
    context.admin(Method::POST, "/admin/v1/payments", body).await.assert_status(201);
}

#[tokio::test]
async fn money_that_was_sent_by_hand_is_not_sent_by_command() {
    let context = TestContext::start().await;
    let (connector, sale) = deposited(&context).await;
    by_hand(&context, &sale, "transfer-sent").await;
    assert!(transfers(&context, &connector).await.is_empty());
    by_hand(&context, &sale, "transfer-returned").await;
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let release = json!({"event": "release"});
    context.admin(Method::POST, &path, release).await.assert_status(200);
    assert_eq!(transfers(&context, &connector).await.len(), 1, "it came back");
}

#[tokio::test]
async fn a_commanded_transfer_is_taken_back_once_it_is_made_by_hand() {
    let context = TestContext::start().await;
    let (connector, sale) = deposited(&context).await;
    context.core().command_transfers().await.unwrap();
    assert_eq!(named_recipients(&context).await, 1);
    by_hand(&context, &sale, "transfer-sent").await;
    assert_eq!(named_recipients(&context).await, 0);
    assert!(transfers(&context, &connector).await.is_empty());
}

#[tokio::test]
async fn a_sale_whose_money_arrives_while_it_waits_is_completed_by_its_release() {
    let context = TestContext::start().await;
    let (connector, sale, transfer) = transferred(&context).await;
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let hold = json!({"event": "hold", "reason": "looked at"});
    context.admin(Method::POST, &path, hold).await.assert_status(200);
    let completed = json!({"id": "t-1", "kind": "transfer.completed", "commandId": transfer["id"],
        "occurredAt": "2026-03-01T13:00:00Z", "providerReference": "sepa-1"});
    connector.event(completed).await.assert_status(200);
    let release = json!({"event": "release"});
    let released = context.admin(Method::POST, &path, release).await.assert_status(200).json();
    assert_eq!(released["status"], "completed");
}

#[tokio::test]
async fn money_whose_arrival_an_operator_tells_of_before_its_bank_has_left_once() {
    let context = TestContext::start().await;
    let (connector, sale, transfer) = transferred(&context).await;
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let paid_out = json!({"event": "paid-out"});
    let told = context.admin(Method::POST, &path, paid_out).await.assert_status(200).json();
    assert_eq!(told["status"], "completed");
    let completed = json!({"id": "t-1", "kind": "transfer.completed", "commandId": transfer["id"],
        "occurredAt": "2026-03-01T13:00:00Z", "providerReference": "sepa-1"});
    connector.event(completed).await.assert_status(200);
    assert_eq!(queue(&context).await, [Value::Null; 0], "nothing has left beyond what was owed");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

/// The review queue with its reasons.
pub(super) async fn queue(context: &TestContext) -> Vec<Value> {
    let queue = context.admin(Method::GET, "/admin/v1/reviews", Value::Null).await;
    let rows = queue.assert_status(200).json();
    let rows = rows.as_array().unwrap().iter().map(|row| json!([row["id"], row["reasons"]]));
    rows.collect()
}

/// An amount as JSON has it.
pub(super) fn number(amount: Decimal) -> Value {
    serde_json::from_str(&amount.normalize().to_string()).unwrap()
}

/// A sale whose money came back without five euros, which the bank has kept as its fee; and the part.
pub(super) async fn returned_in_part(context: &TestContext) -> (Connector, Value, Decimal) {
    let (connector, sale, transfer) = transferred(context).await;
    let part = proceeds(context).await - Decimal::from(5);
    let returned = json!({"id": "t-1", "kind": "transfer.returned", "commandId": transfer["id"],
        "occurredAt": "2026-03-01T13:00:00Z", "providerReference": "sepa-1",
        "amount": number(part), "currency": "EUR"});
    connector.event(returned).await.assert_status(200);
    (connector, sale, part)
}

#[tokio::test]
async fn a_part_that_comes_back_without_a_currency_is_that_part_of_what_was_sent() {
    let context = TestContext::start().await;
    let (connector, _sale, transfer) = transferred(&context).await;
    let part = proceeds(&context).await - Decimal::from(5);
    let returned = json!({"id": "t-1", "kind": "transfer.returned", "commandId": transfer["id"],
        "occurredAt": "2026-03-01T13:00:00Z", "providerReference": "sepa-1",
        "amount": number(part)});
    connector.event(returned).await.assert_status(200);
    let told = "select amount, currency from payment where kind = 'transfer-returned'";
    let told: (Decimal, String) = sqlx::query_as(told).fetch_one(context.db()).await.unwrap();
    assert_eq!(told, (part, "EUR".to_owned()));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn money_of_which_a_part_comes_back_is_sent_again_as_that_part() {
    let context = TestContext::start().await;
    let (connector, sale, part) = returned_in_part(&context).await;
    assert!(transfers(&context, &connector).await.is_empty(), "an operator looks at it");
    assert_eq!(queue(&context).await, [json!([sale["orderId"].to_string(), ["blocked"]])]);

    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let release = json!({"event": "release"});
    context.admin(Method::POST, &path, release).await.assert_status(200);
    let again = transfers(&context, &connector).await.remove(0);
    assert_eq!(again["body"]["amount"], number(part));
    let sent = json!({"providerReference": "sepa-2"});
    connector.report(&again, "done", sent).await.assert_status(200);
    let completed = json!({"id": "t-2", "kind": "transfer.completed", "commandId": again["id"],
        "occurredAt": "2026-03-02T13:00:00Z", "providerReference": "sepa-2"});
    connector.event(completed).await.assert_status(200);
    let path = format!("/admin/v1/orders/{}", sale["orderId"]);
    let seen = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    assert_eq!(seen["status"], "completed");
    assert_eq!(queue(&context).await, [Value::Null; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    let told = "select amount from payment where kind = 'transfer-completed'";
    let told: Decimal = sqlx::query_scalar(told).fetch_one(context.db()).await.unwrap();
    assert_eq!(told, part, "no more has left");
}

#[tokio::test]
async fn a_returned_part_of_which_some_is_sent_by_hand_waits_until_the_rest_is() {
    let context = TestContext::start().await;
    let (connector, sale, part) = returned_in_part(&context).await;
    let send = async |reference: &str, amount: Decimal| {
        let body = json!({"partner": "acme", "kind": "transfer-sent", "amount": number(amount),
            "currency": "EUR", "providerReference": reference, "orderId": sale["orderId"],
            "reason": "by hand"});
        context.admin(Method::POST, "/admin/v1/payments", body).await.assert_status(201);
    };
    send("by-hand-1", Decimal::ONE).await;
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let release = json!({"event": "release"});
    context.admin(Method::POST, &path, release).await.assert_status(200);
    assert!(transfers(&context, &connector).await.is_empty(), "an operator sends it");
    let waits = json!([sale["orderId"].to_string(), ["shortfall"]]);
    assert_eq!(queue(&context).await, [waits]);
    send("by-hand-2", part - Decimal::ONE).await;
    assert_eq!(queue(&context).await, [Value::Null; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn money_that_was_sent_under_an_empty_name_has_its_commands_id() {
    let context = TestContext::start().await;
    let (connector, _sale) = deposited(&context).await;
    let transfer = transfers(&context, &connector).await.remove(0);
    let sent = json!({"providerReference": ""});
    connector.report(&transfer, "done", sent).await.assert_status(200);
    let named = "select provider_reference from payment where kind = 'transfer-sent'";
    let named: String = sqlx::query_scalar(named).fetch_one(context.db()).await.unwrap();
    assert_eq!(named, transfer["id"].as_str().unwrap());
}

#[tokio::test]
async fn transfers_whose_long_names_begin_alike_are_two_payments() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let made = json!([{"address": ADDRESSES[0]}, {"address": ADDRESSES[1]}]);
    connector.fill_pool(&context, "ETH", made).await;
    for transaction in ["0xdead", "0xbeef"] {
        let sale = sell(&acme).await.assert_status(200).json();
        deposit(&connector, &sale, transaction).await;
    }
    let transfers = transfers(&context, &connector).await;
    assert_eq!(transfers.len(), 2, "{transfers:?}");
    for (transfer, end) in transfers.iter().zip(["1", "2"]) {
        // The second time it is the same result.
        for _ in 0..2 {
            let sent = json!({ "providerReference": "x".repeat(255) + end });
            connector.report(transfer, "done", sent).await.assert_status(200);
        }
    }
    let sent = "select count(*) from payment where kind = 'transfer-sent'";
    let sent: i64 = sqlx::query_scalar(sent).fetch_one(context.db()).await.unwrap();
    assert_eq!(sent, 2);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn money_that_comes_back_of_a_completed_sale_waits_until_it_is_sent_again() {
    let context = TestContext::start().await;
    let (connector, sale, transfer) = transferred(&context).await;
    for (id, kind) in [("t-1", "transfer.completed"), ("t-2", "transfer.returned")] {
        assert_eq!(queue(&context).await, [Value::Null; 0]);
        let event = json!({"id": id, "kind": kind, "commandId": transfer["id"],
            "occurredAt": "2026-03-01T13:00:00Z", "providerReference": "sepa-1"});
        connector.event(event).await.assert_status(200);
    }
    let path = format!("/admin/v1/orders/{}", sale["orderId"]);
    let seen = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    assert_eq!(seen["status"], "completed");
    let returned = json!([sale["orderId"].to_string(), ["returned"]]);
    assert_eq!(queue(&context).await, [returned]);
    by_hand(&context, &sale, "transfer-sent").await;
    assert_eq!(queue(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_instant_transfer_that_comes_back_is_of_the_sale_whose_reference_it_names() {
    let context = TestContext::start().await;
    let (connector, sale) = deposited(&context).await;
    let transfer = transfers(&context, &connector).await.remove(0);
    let arrived = json!({"providerReference": "sepa-1", "completed": true});
    connector.report(&transfer, "done", arrived).await.assert_status(200);
    assert_eq!(queue(&context).await, [Value::Null; 0]);
    let returned = json!({"id": "t-1", "kind": "transfer.returned",
        "occurredAt": "2026-03-01T13:00:00Z", "providerReference": "sepa-1",
        "amount": transfer["body"]["amount"], "currency": "EUR"});
    connector.event(returned).await.assert_status(200);
    let returned = json!([sale["orderId"].to_string(), ["returned"]]);
    assert_eq!(queue(&context).await, [returned]);
}

#[tokio::test]
async fn money_that_is_not_owed_any_more_or_waits_is_not_tried_again() {
    let context = TestContext::start().await;
    let (connector, sale) = deposited(&context).await;
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let event = async |event: &str| {
        context.admin(Method::POST, &path, json!({ "event": event })).await.assert_status(200);
    };
    let retry = async |transfer: &Value| {
        let told = connector.report(transfer, "retry", Value::Null).await;
        assert_eq!(told.assert_status(200).json()["state"], "rejected");
        sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
    };
    let first = transfers(&context, &connector).await.remove(0);
    event("hold").await;
    retry(&first).await;
    assert!(transfers(&context, &connector).await.is_empty());
    event("release").await;
    let second = transfers(&context, &connector).await.remove(0);
    assert_ne!(second["id"], first["id"]);
    by_hand(&context, &sale, "transfer-sent").await;
    retry(&second).await;
    assert!(transfers(&context, &connector).await.is_empty(), "it was sent by hand");
}

#[tokio::test]
async fn a_sale_whose_money_has_left_is_not_refunded_before_it_waits() {
    let context = TestContext::start().await;
    let (_connector, sale, _transfer) = transferred(&context).await;
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    for (event, status) in [("refund", 409), ("hold", 200), ("refund", 200)] {
        let body = json!({"event": event, "reason": "asked for"});
        context.admin(Method::POST, &path, body).await.assert_status(status);
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
