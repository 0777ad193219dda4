//! A purchase of a live partner: payment, checks and payout by connectors.

use rampart_tests::buyer::WALLET;
use rampart_tests::order_fixture::OrderFixture;

use super::*;

const CARD: &str = "https://psp.example/pay?session=1&order=2";

/// A live partner, and the connector that it is routed to.
pub(super) async fn live(context: &TestContext) -> (Partner, Connector) {
    let connector = Connector::of_live(context).await;
    let body = json!({"slug": "acme", "name": "Acme", "mode": "live"});
    (context.partner_of(body).await, connector)
}

/// A guest's order.
pub(super) async fn order(partner: &Partner, fiat: u32) -> OrderFixture {
    let token = partner.token().await;
    OrderFixture::confirmed(partner, &token, json!(fiat), json!({})).await
}

/// A guest's order whose connector can take its payment.
pub(super) async fn payable_order(
    partner: &Partner,
    connector: &Connector,
    fiat: u32,
) -> OrderFixture {
    let order = order(partner, fiat).await;
    connector.answer_next("done", json!({})).await;
    order
}

/// A report that the order was paid.
pub(super) fn paid(order: &OrderFixture, amount: u32) -> Value {
    json!({"id": format!("paid-{}", order.id), "kind": "payment.received",
        "occurredAt": "2026-03-01T12:00:00Z", "partner": "acme", "orderId": order.id,
        "providerReference": format!("pay-{}", order.id), "amount": amount, "currency": "EUR"})
}

/// A guest's order of 100 euros that was paid; its payout is commanded.
pub(super) async fn paid_order(partner: &Partner, connector: &Connector) -> OrderFixture {
    let order = payable_order(partner, connector, 100).await;
    connector.event(paid(&order, 100)).await.assert_status(200);
    order
}

pub(super) async fn status(context: &TestContext, order: &OrderFixture) -> String {
    order.seen(context).await["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn money_comes_in_and_coins_go_out_by_commands() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = order(&acme, 250).await;
    let page = async || acme.anonymous(Method::GET, &order.pay_path).send().await;
    let preparing = page().await;
    assert!(preparing.text().contains(r#"http-equiv="refresh" content="2""#));
    let create = connector.lease(10).await.remove(0);
    assert_eq!(create["kind"], "payment.create");
    let body = &create["body"];
    assert_eq!((&body["orderId"], &body["amount"]), (&json!(order.id), &json!(250)));
    assert_eq!((&body["currency"], &body["method"]), (&json!("EUR"), &json!("creditCard")));
    assert_eq!(body["paymentReference"], order.id.to_string());
    assert!(body["returnUrl"].as_str().unwrap().ends_with(&order.pay_path));
    assert!(body["expiresAt"].is_string());
    let created = json!({"redirectUrl": CARD, "providerReference": "pay"});
    connector.report(&create, "done", created).await.assert_status(200);
    let payable = page().await;
    let link = CARD.replace('&', "&amp;");
    assert!(!payable.text().contains("http-equiv") && payable.text().contains(&link));

    let told = connector.event(paid(&order, 250)).await;
    assert_eq!(told.assert_status(200).json(), json!({"duplicate": false}));
    let mut again = paid(&order, 250);
    again["id"] = json!("another-id");
    assert_eq!(connector.event(again).await.json(), json!({"duplicate": true}), "paid once");
    assert_eq!(status(&context, &order).await, "in progress");
    let payout = connector.lease(10).await.remove(0);
    assert_eq!(payout["kind"], "payout.send");
    let body = &payout["body"];
    assert_eq!((&body["asset"], &body["orderId"]), (&json!("BTC"), &json!(order.id)));
    assert_eq!(body["address"], WALLET);
    connector.report(&payout, "done", json!({"transactionId": "ab12"})).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
    let confirmed = json!({"id": "c-1", "kind": "payout.confirmed", "partner": "acme",
        "occurredAt": "2026-03-01T12:10:00Z", "commandId": payout["id"],
        "providerReference": "ab12", "transactionId": "ab12", "confirmations": 2,
        "networkFee": 0.000021, "networkFeeAsset": "ETH"});
    let mut unconfirmed = confirmed.clone();
    (unconfirmed["id"], unconfirmed["confirmations"]) = (json!("c-0"), json!(0));
    connector.event(unconfirmed).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
    connector.event(confirmed.clone()).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "completed");
    context.core().command_payouts().await.unwrap();
    assert!(connector.lease(10).await.is_empty(), "coins are sent once");
    let mut again = confirmed;
    again["id"] = json!("c-2");
    assert_eq!(connector.event(again).await.json(), json!({"duplicate": true}));
    assert_network_fee(&context, "0.000021").await;
}

/// Checks what the books say that the network has taken of the treasury, in ETH.
async fn assert_network_fee(context: &TestContext, amount: &str) {
    let balances =
        context.admin(Method::GET, "/admin/v1/ledger/balances?currency=ETH", Value::Null);
    let balances = balances.await.assert_status(200).json();
    let of = |kind: &str| {
        let mut lines = balances.as_array().unwrap().iter();
        lines.find(|line| line["kind"] == kind).map(|line| line["balance"].to_string())
    };
    assert_eq!(of("fee_network").as_deref(), Some(amount));
    assert_eq!(of("treasury"), Some(format!("-{amount}")));
}

#[tokio::test]
async fn a_payment_that_cannot_be_made_or_fails_cancels_the_order() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (one, two) = (order(&acme, 100).await, order(&acme, 120).await);
    for create in connector.lease(10).await {
        let outcome = if create["body"]["orderId"] == one.id { "rejected" } else { "done" };
        connector.report(&create, outcome, json!({})).await.assert_status(200);
    }
    assert_eq!(status(&context, &one).await, "cancelled");
    let failed = json!({"id": "f", "kind": "payment.failed", "partner": "acme", "orderId": two.id,
        "occurredAt": "2026-03-01T12:00:00Z", "reason": "declined"});
    connector.event(failed).await.assert_status(200);
    assert_eq!(status(&context, &two).await, "cancelled");
    connector.event(paid(&one, 100)).await.assert_status(200);
    assert_eq!(status(&context, &one).await, "cancelled", "late money waits for an operator");
}

#[tokio::test]
async fn a_rejected_payout_blocks_until_an_operator_releases_it() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let payout = connector.lease(1).await.remove(0);
    // Its transaction has failed, and the network keeps the fee of one that does.
    let cost = json!({"transactionId": "0xfa11", "networkFee": 0.00003, "networkFeeAsset": "ETH"});
    for _ in 0..2 {
        connector.report(&payout, "rejected", cost.clone()).await.assert_status(200);
    }
    assert_eq!(status(&context, &order).await, "blocked");
    assert_network_fee(&context, "0.00003").await;
    context.core().command_payouts().await.unwrap();
    assert!(connector.lease(1).await.is_empty());
    order.event(&context, "release").await.assert_status(200);
    let runs = (0..4).map(|_| context.core().command_payouts());
    for run in futures::future::join_all(runs).await {
        run.unwrap();
    }
    let again = connector.lease(10).await;
    assert_eq!(again.len(), 1, "{again:?}");
    assert!(again[0]["kind"] == "payout.send" && again[0]["id"] != payout["id"]);
}

#[tokio::test]
async fn an_unknown_order_or_another_partners_is_money_all_the_same() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    context.partner("other").await;
    let order = order(&acme, 100).await;
    let mut events = Vec::new();
    for (id, member, value) in [
        ("a", "orderId", json!(7)),
        ("b", "partner", json!("other")),
        ("c", "orderId", json!("nonsense")),
        ("d", "partner", json!("nobody")),
        ("e", "occurredAt", json!("2999-01-01T00:00:00Z")),
    ] {
        let mut event = paid(&order, 100);
        (event["id"], event["providerReference"]) = (json!(id), json!(id));
        event[member] = value;
        if id == "d" || id == "e" {
            event["orderId"] = json!(8);
        }
        events.push(event);
    }
    for event in events {
        let taken = connector.event(event).await;
        assert_eq!(taken.assert_status(200).json(), json!({"duplicate": false}));
    }
    assert_eq!(status(&context, &order).await, "pending");
    let recorded: i64 = sqlx::query_scalar("select count(*) from payment where connector = $1")
        .bind(rampart_tests::going_live::CONNECTOR)
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(recorded, 5);
}

#[tokio::test]
async fn a_paid_order_waits_for_its_users_checks() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let ada = acme.user("ada").await;
    let confirmed = ada.buy(200).await.assert_status(200).json();
    let order =
        OrderFixture { id: confirmed["orderId"].as_i64().unwrap(), pay_path: String::new() };
    connector.answer_next("done", json!({})).await;
    connector.event(paid(&order, 200)).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
    context.core().command_payouts().await.unwrap();
    assert!(connector.lease(1).await.is_empty(), "its user is not verified");
    sqlx::query(
        "update end_user set identity_status = 'verified', amld5_status = 'verified', \
         dac8_status = 'present'",
    )
    .execute(context.db())
    .await
    .unwrap();
    context.core().command_payouts().await.unwrap();
    assert_eq!(connector.lease(1).await[0]["kind"], "payout.send");

    let gate = json!({"complianceGate": "before-payment"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", gate).await.assert_status(200);
    let bob = acme.user("bob").await;
    bob.buy(100).await.assert_codes(&["ER011"]);
    ada.buy(100).await.assert_status(200);
    let by_method = async |gates: Value| {
        let body = json!({"complianceGates": gates});
        context.admin(Method::PATCH, "/admin/v1/partners/acme", body).await
    };
    let set = by_method(json!({"card": "before-payout"})).await.assert_status(200).json();
    assert_eq!(set["complianceGates"], json!({"card": "before-payout"}));
    bob.buy(100).await.assert_status(200);
    by_method(json!({"card": "none"})).await.assert_status(409);
    by_method(json!({"cards": "before-payout"})).await.assert_status(422);
    by_method(json!({"card": "sometimes"})).await.assert_status(422);
    let set = by_method(json!({"card": null})).await.assert_status(200).json();
    assert_eq!(set["complianceGates"], json!({}));
    bob.buy(100).await.assert_codes(&["ER011"]);
    let gate = async |gate: Value| {
        let body = json!({"complianceGate": gate});
        context.admin(Method::PATCH, "/admin/v1/partners/acme", body).await
    };
    gate(json!("none")).await.assert_status(409);
    let set = gate(Value::Null).await.assert_status(200).json();
    assert_eq!(set["complianceGate"], Value::Null);
}

#[tokio::test]
async fn guests_order_where_the_agreement_says_so() {
    let context = TestContext::start().await;
    let (acme, _) = live(&context).await;
    let token = format!("Bearer {}", acme.token().await);
    let post = async |path: &str, body: Value| {
        let request = acme.anonymous(Method::POST, path).header("authorization", &token);
        request.json(&body).send().await
    };
    let buy = async |fiat: u32| {
        let asked = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard",
            "fiatAmount": fiat});
        let quote = post("/api/v1/buy/quote", asked).await.assert_status(200).json();
        let confirm = json!({"quote": quote["quote"], "returnUrl": "https://shop.example/back",
            "walletAddress": WALLET});
        post("/api/v1/buy/confirm", confirm).await
    };
    let agree = async |guests: Value| {
        let body = json!({ "guestOrders": guests });
        context.admin(Method::PATCH, "/admin/v1/partners/acme", body).await.assert_status(200);
    };
    agree(json!({"allowed": true, "maxFiat": 150})).await;
    buy(100).await.assert_status(200);
    buy(200).await.assert_codes(&["ER011"]);
    agree(json!({"allowed": false})).await;
    buy(100).await.assert_codes(&["ER700"]);
}

#[tokio::test]
async fn what_is_missing_is_told_in_one_list() {
    let context = TestContext::with(|settings| {
        settings.mail.smtp_url = None;
        settings.documents.folder = None;
    })
    .await;
    context.partner("acme").await;
    let live = json!({"slug": "live", "name": "Live", "mode": "live"});
    let refused = context.admin(Method::POST, "/admin/v1/partners", live.clone()).await;
    let missing = refused.assert_status(409).json()["missing"].clone();
    let missing: Vec<_> = missing.as_array().unwrap().iter().map(|m| m.as_str().unwrap()).collect();
    assert_eq!(missing, ["route", "live price", "mail", "documents"]);
    let patch = json!({"mode": "live"});
    let refused = context.admin(Method::PATCH, "/admin/v1/partners/acme", patch.clone()).await;
    assert!(refused.assert_status(409).json()["missing"].is_array());

    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    Connector::of_live(&context).await;
    context.admin(Method::PATCH, "/admin/v1/partners/acme", patch).await.assert_status(200);
    acme.get("/api/v2/system/errors").await.assert_codes(&["ER805"]);
    let back = json!({"mode": "test"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", back).await.assert_status(409);
    context.admin(Method::POST, "/admin/v1/partners", live).await.assert_status(201);
}

#[tokio::test]
async fn route_and_live_price_are_of_one_pair() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let missing = async |slug: &str| {
        let path = format!("/admin/v1/partners/{slug}");
        let answer = context.admin(Method::PATCH, &path, json!({"mode": "live"})).await;
        (answer.status(), answer.json()["missing"].clone())
    };
    assert_eq!(missing("nobody").await.0, 404);
    Connector::new(&context, "own", &["payment.create", "payout.send"]).await;
    let route = |leg: &str, of: &str, direction: &str| {
        json!({"partner": null, leg: of, "direction": direction,
            "connector": "own"})
    };
    let routes =
        json!({"routes": [route("method", "creditCard", "in"), route("asset", "ETH", "out")]});
    context.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    let change = async |pair: &str, change: Value| {
        let path = format!("/admin/v1/pairs/{pair}");
        context.admin(Method::PATCH, &path, change).await.assert_status(200);
    };
    change("BTC-EUR", json!({"priceMaxAgeSeconds": 3_600})).await;
    assert_eq!(missing("acme").await, (409, json!(["live price"])));
    change("ETH-EUR", json!({"priceMaxAgeSeconds": 3_600, "buy": {"status": "disabled"}})).await;
    assert_eq!(missing("acme").await, (409, json!(["route"])));
    change("ETH-EUR", json!({"buy": {"status": "enabled"}})).await;
    assert_eq!(missing("acme").await, (200, json!([])));
}

#[tokio::test]
async fn a_live_client_is_offered_what_has_a_route() {
    let context = TestContext::start().await;
    let (acme, _) = live(&context).await;
    let route = |leg: &str, of: &str, direction: &str| {
        json!({"partner": "acme", leg: of, "direction": direction,
            "connector": rampart_tests::going_live::CONNECTOR})
    };
    let routes =
        json!({"routes": [route("method", "creditCard", "in"), route("asset", "ETH", "out")]});
    context.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    let methods = acme.get("/api/v2/buy/payment-methods").await.assert_status(200).json();
    let codes: Vec<_> =
        methods["paymentMethods"].as_array().unwrap().iter().map(|m| &m["code"]).collect();
    assert_eq!(codes, [&json!("creditCard")]);
    let quote = async |pair: &str, method: &str| {
        let body = json!({"currencyPair": pair, "paymentMethod": method, "fiatAmount": 100});
        acme.post("/api/v1/buy/quote", body).await
    };
    quote("ETH-EUR", "creditCard").await.assert_status(200);
    quote("ETH-EUR", "bankTransfer").await.assert_codes(&["ER055"]);
    quote("BTC-EUR", "creditCard").await.assert_codes(&["ER008"]);
    let pairs = acme.get("/api/v1/system/currency-pairs").await.json();
    let enabled = |pair: &&Value| pair["buy"]["status"] == "enabled";
    let bought: Vec<_> = pairs.as_array().unwrap().iter().filter(enabled).collect();
    assert_eq!(bought.len(), 1);
    assert_eq!(bought[0]["currencyPair"], "ETH-EUR");
    let other = context.partner("other").await;
    let all = other.get("/api/v2/buy/payment-methods").await.json();
    assert!(all["paymentMethods"].as_array().unwrap().len() > 1, "the sandbox serves test clients");
}

#[tokio::test]
async fn a_test_client_with_routes_of_its_own_is_settled_by_its_connector() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let own = Connector::new(&context, "own", &["payment.create", "payout.send"]).await;
    let route = |leg: &str, of: &str, direction: &str| json!({"partner": "acme", leg: of, "direction": direction, "connector": "own"});
    let routes =
        json!({"routes": [route("method", "creditCard", "in"), route("asset", "BTC", "out")]});
    context.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    let order = order(&acme, 100).await;
    let page = acme.anonymous(Method::GET, &order.pay_path).send().await;
    assert!(!page.text().contains("<form"), "no simulated payment");
    own.answer_next("done", json!({})).await;
    own.event(paid(&order, 100)).await.assert_status(200);
    context.clock().advance(chrono::TimeDelta::seconds(5));
    assert_eq!(context.core().settle_sandbox_orders().await.unwrap(), 0, "no simulated coins");
    assert_eq!(own.lease(1).await[0]["kind"], "payout.send");
}
