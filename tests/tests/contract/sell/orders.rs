//! The status changes of a sale, and the access to it.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{ORDERS, Seller};
use crate::orders::count;
use crate::payments::problems;

async fn texts(context: &TestContext, statement: &'static str) -> Vec<String> {
    sqlx::query_scalar(statement).fetch_all(context.db()).await.unwrap()
}

#[tokio::test]
async fn coins_that_arrive_are_paid_out_and_the_partner_is_told() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let sale = ann.sale(|body| body["callbackUrl"] = json!("https://shop.example/cb?a=b")).await;
    assert_eq!(context.core().settle_sales().await.unwrap(), 0);
    let moved = ann.happen(&sale, "deposit-received").await.assert_status(200).json();
    assert_eq!(moved["status"], "in progress");
    assert_eq!(moved["receivedAmount"], json!({"amount": 0.01, "currencyCode": "BTC"}));
    let transaction = moved["blockchainInfo"]["transactionId"].as_str().unwrap();
    assert_eq!(transaction.len(), 64);
    assert_eq!(ann.read(&sale).await, moved);
    ann.happen(&sale, "deposit-received").await.assert_status(409).assert_codes(&["ER999"]);
    assert_eq!(texts(&context, "select url from delivery").await, Vec::<String>::new());

    context.clock().advance(TimeDelta::seconds(1));
    assert_eq!(context.core().settle_sales().await.unwrap(), 1);
    assert_eq!(context.core().settle_sales().await.unwrap(), 0);
    assert_eq!(ann.read(&sale).await["status"], "completed");
    let told = texts(&context, "select type from event order by created_at").await;
    assert_eq!(told, ["order.created", "order.paid", "order.completed"]);
    let called = format!("https://shop.example/cb?a=b&orderId={}&status=success", sale["orderId"]);
    assert_eq!(texts(&context, "select url from delivery").await, [called]);
    let steps = texts(&context, "select cause from sell_order_transition order by at").await;
    assert_eq!(steps, ["confirmed", "payment-received", "paid-out"]);
}

#[tokio::test]
async fn every_state_can_be_reached() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    for (events, status) in [
        (&["expire"][..], "cancelled"),
        (&["deposit-received", "paid-out"], "completed"),
        (&["deposit-amount-wrong"], "blocked"),
        (&["deposit-late"], "blocked"),
        (&["deposit-amount-wrong", "release"], "in progress"),
        (&["deposit-amount-wrong", "refund"], "refunded"),
    ] {
        let sale = ann.sale(|_| ()).await;
        for event in events {
            ann.happen(&sale, event).await.assert_status(200);
        }
        let shown = ann.read(&sale).await;
        assert_eq!(shown["status"], status, "{events:?}");
        let reasons = shown["orderNotCompletedReasons"].as_array().unwrap();
        match status {
            "blocked" if events == ["deposit-late"] => assert_eq!(reasons[0]["code"], "031"),
            "blocked" => assert_eq!(reasons[0]["code"], "032"),
            _ => assert!(reasons.is_empty(), "{reasons:?}"),
        }
    }
    let sale = ann.sale(|_| ()).await;
    for event in ["paid-out", "release", "refund"] {
        ann.happen(&sale, event).await.assert_status(409);
    }
    ann.happen(&sale, "explode").await.assert_status(404).assert_codes(&["ER998"]);
}

#[tokio::test]
async fn what_a_sale_waits_for_is_passed_on_its_pages() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let sale = ann.sale(|_| ()).await;
    sqlx::query(
        "update end_user set identity_status = 'pending', amld5_status = 'pending', \
         dac8_status = 'missing', region = 'de-at'",
    )
    .execute(context.db())
    .await
    .unwrap();
    let left = async || {
        let reasons = ann.read(&sale).await["orderNotCompletedReasons"].clone();
        let url = |reason: &Value| {
            let url = reason["url"].as_str().unwrap();
            url.strip_prefix("https://pay.example.com").unwrap().to_owned()
        };
        reasons.as_array().unwrap().iter().map(url).collect::<Vec<_>>()
    };
    let pages = left().await;
    let checks: Vec<_> = pages.iter().map(|page| page.rsplit('/').next().unwrap()).collect();
    assert_eq!(checks, ["identity", "amld5", "tax"]);
    for page in &pages {
        let shown = acme.anonymous(Method::GET, page).send().await;
        let text = shown.assert_status(200).text();
        assert!(text.contains("<html lang=\"de\">") && text.contains("<form"), "{text}");
    }
    let send = async |page: &str, form: &'static str| {
        let sent = acme.anonymous(Method::POST, page).body(form).send().await;
        let next = sent.assert_status(303).header("location").unwrap().to_owned();
        let shown = acme.anonymous(Method::GET, &next).send().await;
        shown.assert_status(200).text().to_owned()
    };
    let next = send(&pages[0], "outcome=verified").await;
    assert!(next.contains(&pages[1]) && next.contains(&pages[2]), "{next}");
    assert!(!next.contains("/pay/"), "a sale has no page to pay on: {next}");
    send(&pages[2], "country=AT&number=123456789").await;
    assert_eq!(left().await, pages[1..2]);
    // The link is good for the sale alone, and for no check that a sale does not have.
    let wallet = pages[0].replace("/identity", "/wallet");
    let passed = acme.anonymous(Method::GET, &wallet).send().await;
    assert!(!passed.assert_status(200).text().contains("<form"));
    ann.happen(&sale, "expire").await.assert_status(200);
    let ended = acme.anonymous(Method::GET, &pages[1]).send().await;
    assert!(!ended.assert_status(200).text().contains("<form"));
}

#[tokio::test]
async fn the_reference_of_a_sale_names_the_end_of_its_deposit() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    for (reference, status, end) in [
        ("sandbox-held", "blocked", "completed"),
        ("sandbox-returned-7", "refunded", "refunded"),
        ("sandbox-unheard-of", "completed", "completed"),
    ] {
        let sale = ann.sale(|body| body["partnerOrderIdentifier"] = json!(reference)).await;
        ann.happen(&sale, "deposit-received").await.assert_status(200);
        context.clock().advance(TimeDelta::seconds(1));
        assert_eq!(context.core().settle_sales().await.unwrap(), 1);
        assert_eq!(ann.read(&sale).await["status"], status, "{reference}");
        if status == "blocked" {
            // Released, it is not held again.
            ann.happen(&sale, "release").await.assert_status(200);
            context.clock().advance(TimeDelta::seconds(1));
            assert_eq!(context.core().settle_sales().await.unwrap(), 1);
        }
        assert_eq!(ann.read(&sale).await["status"], end, "{reference}");
    }
}

#[tokio::test]
async fn a_sale_without_a_deposit_ends() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let (ended, late) = (ann.sale(|_| ()).await, ann.sale(|_| ()).await);
    context.clock().advance(TimeDelta::minutes(31));
    ann.happen(&late, "deposit-received").await.assert_status(200);
    assert_eq!(ann.read(&late).await["orderNotCompletedReasons"][0]["code"], "031");
    assert_eq!(context.core().settle_sales().await.unwrap(), 1);
    assert_eq!(ann.read(&ended).await["status"], "cancelled");
    ann.happen(&ended, "deposit-received").await.assert_status(409);
}

#[tokio::test]
async fn a_sale_is_seen_by_its_user_alone() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ann, bob) =
        (Seller::of(&context, &acme, "ann").await, Seller::of(&context, &acme, "bob").await);
    let eve = Seller::of(&context, &rival, "eve").await;
    let sale = ann.sale(|body| body["partnerOrderIdentifier"] = json!("mine")).await;
    let path = format!("{ORDERS}/{}", sale["orderId"]);
    let absent = bob.get(&format!("{ORDERS}/7")).await;
    absent.assert_status(404).assert_codes(&["ER035"]);
    for other in [&bob, &eve] {
        for path in [&path, &format!("{ORDERS}/mine")] {
            assert_eq!(other.get(path).await.text(), absent.text());
        }
        assert_eq!(other.get(ORDERS).await.assert_status(200).json(), json!([]));
    }
    assert_eq!(ann.get(&format!("{ORDERS}/mine")).await.json()["id"], sale["orderId"]);
    for path in [path.as_str(), ORDERS] {
        acme.get(path).await.assert_status(400).assert_codes(&["ER700"]);
    }
    ann.get(&format!("{ORDERS}/")).await.assert_codes(&["ER033"]);
    ann.get(&format!("{ORDERS}/%00")).await.assert_codes(&["ER034"]);
    // Orders that are bought are others.
    let bought = format!("/api/v1/user/buy/orders/{}", sale["orderId"]);
    ann.get(&bought).await.assert_status(404).assert_codes(&["ER035"]);
    let moved = format!("/api/v2/sandbox/sell/orders/{}/expire", sale["orderId"]);
    rival.post(&moved, json!({})).await.assert_status(404).assert_codes(&["ER035"]);
}

#[tokio::test]
async fn the_list_goes_page_by_page_and_can_be_narrowed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let mut made = Vec::new();
    for n in 0..3 {
        let name = json!(format!("sale-{n}"));
        made.push(ann.sale(|body| body["partnerOrderIdentifier"] = name).await["orderId"].clone());
        context.clock().advance(TimeDelta::seconds(1));
    }
    let ids = |answer: &Value| -> Vec<Value> {
        answer.as_array().unwrap().iter().map(|order| order["id"].clone()).collect()
    };
    let newest_first: Vec<_> = made.iter().rev().cloned().collect();
    assert_eq!(ids(&ann.get(ORDERS).await.json()), newest_first);
    let first = ann.get(&format!("{ORDERS}?limit=2")).await;
    assert_eq!(ids(&first.json()), newest_first[..2]);
    let link = first.header("link").unwrap();
    let next = link.trim_start_matches('<').split_once('>').unwrap().0;
    assert!(next.starts_with("/api/v1/user/sell/orders?limit=2&cursor="), "{link}");
    let rest = ann.get(next).await;
    assert_eq!(ids(&rest.json()), newest_first[2..]);
    assert_eq!(rest.header("link"), None);
    ann.happen(&json!({"orderId": made[1]}), "expire").await.assert_status(200);
    for query in ["status=cancelled", "partnerOrderIdentifier=sale-1"] {
        assert_eq!(ids(&ann.get(&format!("{ORDERS}?{query}")).await.json()), [made[1].clone()]);
    }
    let wrong = ann.request(Method::GET, &format!("{ORDERS}?limit=0&status=gone")).send().await;
    wrong.assert_status(400).assert_codes(&["ER048"]);
}

#[tokio::test]
async fn a_sale_is_deposited_at_an_address_of_its_own_and_transferred_by_command() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Seller::of(&context, &acme, "ann").await;
    let sale = ann.sale(|_| ()).await;
    let taken = "select count(*) from deposit_address where connector = 'sandbox' \
        and taken_for is not null";
    assert_eq!(count(&context, taken).await, 1);
    ann.happen(&sale, "deposit-received").await.assert_status(200);
    let open = "select count(*) from command where kind = 'transfer.send' and state = 'open' \
        and connector = 'sandbox'";
    assert_eq!(count(&context, open).await, 1);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    context.clock().advance(TimeDelta::seconds(1));
    assert_eq!(context.core().settle_sales().await.unwrap(), 1);
    assert_eq!(ann.read(&sale).await["status"], "completed");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
