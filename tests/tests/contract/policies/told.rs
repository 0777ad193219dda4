//! The input of policies, by policies that name their rule after what they were told: as the shadow
//! of an active one, whose differences operators read.

use chrono::TimeDelta;
use rampart_tests::order_fixture::OrderFixture;

use super::*;

/// The version that follows the active one runs in its shadow from now on.
async fn shadow(context: &TestContext, path: &str, active: &str, told: &str) {
    push(context, path, active).await.assert_status(200);
    stage(context, path, told, json!({"config": {}})).await.assert_status(201);
    start(context, path).await;
}

/// Starts the shadow anew, without differences.
async fn start(context: &TestContext, path: &str) {
    let path = format!("{path}/versions/2/shadow");
    context.admin(Method::POST, &path, json!({})).await.assert_status(200);
}

/// The rule of the shadow in the first call since the start, and its input.
async fn told(context: &TestContext, path: &str) -> (String, Value) {
    context.core().run_policy_shadows().await.unwrap();
    let trial = context.admin(Method::GET, &format!("{path}/trial"), json!({})).await.json();
    let difference = &trial["differences"][0];
    let rule = difference["candidate"]["rule"].as_str();
    let rule = rule.unwrap_or_else(|| panic!("{trial}")).to_owned();
    start(context, path).await;
    (rule, difference["input"].clone())
}

#[tokio::test]
async fn a_fee_policy_is_told_of_the_user_its_volume_and_the_promotion() {
    let (context, acme) = with_acme().await;
    shadow(&context, FEE, "tiered-fee", "told-fee").await;
    let asked = |members: Value| {
        let mut body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer",
            "fiatAmount": 100});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        body
    };
    acme.post("/api/v1/buy/quote", asked(json!({}))).await.assert_status(200);
    assert_eq!(told(&context, FEE).await.0, "quote-guest-zz-none-none");
    let stated = json!({"promoCode": "WELCOME", "channel": "ios", "countryCode": "DE", "fee": 1.5});
    acme.post("/api/v1/buy/quote", asked(stated)).await.assert_status(200);
    let (rule, input) = told(&context, FEE).await;
    assert_eq!(rule, "quote-guest-de-none-welcome-ios-1-5");
    let attributes = json!({"channel": "ios", "requested-fee-percentage": "1.5"});
    assert_eq!(input["attributes"], attributes);
    // The input of a call is that of a dry run.
    let again = json!({"input": input, "version": 2});
    let again = context.admin(Method::POST, &format!("{FEE}/dry-run"), again).await;
    assert_eq!(again.assert_status(200).json()["decision"]["rule"], rule);

    let ada = acme.user("ada").await;
    let uuid = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let change = json!({"level": "silver"});
    let path = format!("/admin/v1/users/{uuid}");
    context.admin(Method::PATCH, &path, change).await.assert_status(200);
    ada.post("/api/v1/buy/quote", &asked(json!({}))).await.assert_status(200);
    assert_eq!(told(&context, FEE).await.0, "quote-silver-nl-0-none");
    // One that is paid and one that is not.
    for event in ["payment-received", "cancel"] {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        sqlx::query("update buy_order set user_id = $1 where order_id = $2")
            .bind(uuid.parse::<uuid::Uuid>().unwrap())
            .bind(order.id)
            .execute(context.db())
            .await
            .unwrap();
        order.event(&context, event).await.assert_status(200);
    }
    ada.post("/api/v1/buy/quote", &asked(json!({}))).await.assert_status(200);
    assert_eq!(told(&context, FEE).await.0, "quote-silver-nl-100-none");
    let sale = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.01});
    ada.post("/api/v1/sell/quote", &sale).await.assert_status(200);
    // 100 EUR in BTC, at 90000.
    assert_eq!(told(&context, FEE).await.0, "quote-silver-nl-0-00111111-none");
    for member in ["promoCode", "channel"] {
        let refused = acme.post("/api/v1/buy/quote", asked(json!({member: "a b"}))).await;
        refused.assert_status(400).assert_codes(&["ER048"]);
    }
}

#[tokio::test]
async fn a_trade_counts_towards_the_volume_for_thirty_days_of_the_database() {
    let (context, acme) = with_acme().await;
    shadow(&context, FEE, "tiered-fee", "told-fee").await;
    let ada = acme.user("ada").await;
    let uuid = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let path = format!("/admin/v1/users/{uuid}");
    let change = json!({"level": "silver"});
    context.admin(Method::PATCH, &path, change).await.assert_status(200);
    let order = OrderFixture::order(&context, &acme, None, None).await;
    sqlx::query("update buy_order set user_id = (select user_id from end_user)")
        .execute(context.db())
        .await
        .unwrap();
    order.event(&context, "payment-received").await.assert_status(200);
    let asked = json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer",
        "fiatAmount": 100});
    for (days, volume) in [(0, "100"), (29, "100"), (2, "0")] {
        context.clock().advance(TimeDelta::days(days));
        start(&context, FEE).await;
        ada.post("/api/v1/buy/quote", &asked).await.assert_status(200);
        assert_eq!(told(&context, FEE).await.0, format!("quote-silver-nl-{volume}-none"));
    }
}

#[tokio::test]
async fn a_fee_policy_is_told_that_a_deposit_becomes_an_order() {
    let (context, acme) = with_acme().await;
    shadow(&context, FEE, "tiered-fee", "told-fee").await;
    let ada = acme.user("ada").await;
    let uuid = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let plan = json!({"cryptoCurrency": "BTC",
        "walletAddress": rampart_tests::buyer::WALLET});
    let path = format!("/admin/v1/users/{uuid}/dca-codes");
    let plan = context.admin(Method::POST, &path, plan).await;
    let code = plan.assert_status(201).json()["code"].as_str().unwrap().to_owned();
    let deposit = json!({"amount": 100, "currencyCode": "EUR", "reference": "bank-1"});
    let path = format!("/admin/v1/dca-codes/{code}/deposits");
    context.admin(Method::POST, &path, deposit).await.assert_status(201);
    assert_eq!(told(&context, FEE).await.0, "order-bronze-nl-0-none");
}

#[tokio::test]
async fn a_method_order_policy_is_told_how_methods_fare_in_the_country() {
    let (context, acme) = with_acme().await;
    shadow(&context, METHOD_ORDER, "country-order", "told-order").await;
    let methods = "/api/v2/buy/payment-methods";
    acme.get(methods).await.assert_status(200);
    // Nothing is known but the cost of 100 EUR: 0.25 and 2.5 %.
    assert_eq!(told(&context, METHOD_ORDER).await.0, "none-zz-guest--none-none-27500-none");
    // Ten completed and one cancelled: 10 of 11.
    for number in 0..11 {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        sqlx::query(
            "update buy_order set status = $1, country = 'NL', \
             updated_at = created_at + interval '90 seconds' where order_id = $2",
        )
        .bind(if number < 10 { "completed" } else { "cancelled" })
        .bind(order.id)
        .execute(context.db())
        .await
        .unwrap();
    }
    context.core().refresh_method_performance().await.unwrap();
    let query = "?countryCode=nl&channel=android&fiatAmount=250&fiatCurrency=EUR";
    acme.get(&format!("{methods}{query}")).await.assert_status(200);
    let rule = told(&context, METHOD_ORDER).await.0;
    assert_eq!(rule, "250-nl-guest-android-none-909090-26000-90");
    // What cannot be read counts as absent.
    let query = "?countryCode=de&channel=fax&fiatAmount=2.505&fiatCurrency=EUR";
    acme.get(&format!("{methods}{query}")).await.assert_status(200);
    let rule = told(&context, METHOD_ORDER).await.0;
    assert_eq!(rule, "none-de-guest--none-none-27500-90");
    let other = context.partner("other").await;
    let theirs = "/admin/v1/partners/other/policies/method-order";
    shadow(&context, theirs, "country-order", "told-order").await;
    other.get(methods).await.assert_status(200);
    context.core().refresh_method_performance().await.unwrap();
    start(&context, theirs).await;
    other.get(&format!("{methods}?countryCode=nl")).await.assert_status(200);
    let rule = told(&context, theirs).await.0;
    assert_eq!(rule, "none-nl-guest--none-none-27500-none", "another partner's traffic");
}

#[tokio::test]
async fn orders_that_cannot_be_read_do_not_stop_the_worker_that_reads_how_methods_fare() {
    let (context, acme) = with_acme().await;
    shadow(&context, METHOD_ORDER, "country-order", "told-order").await;
    acme.get("/api/v2/buy/payment-methods").await.assert_status(200);
    OrderFixture::order(&context, &acme, None, None).await;
    let endless = "update buy_order set status = 'completed', updated_at = 'infinity'";
    sqlx::query(endless).execute(context.db()).await.unwrap();
    context.core().refresh_method_performance().await.unwrap();
    let counted = "rampart_worker_rows_failed_total{worker=\"method performance\"} 1";
    assert!(context.core().metrics.render().contains(counted));
}

#[tokio::test]
async fn a_signature_policy_is_told_the_headers_that_the_operator_names() {
    let context = TestContext::with(|settings| {
        settings.policy.visible_headers.0.push("x-acme-timestamp".to_owned());
    })
    .await;
    let acme = context.partner("acme").await;
    push(&context, SIGNATURE, "told-signature").await.assert_status(200);
    let offer = async |partner: &Partner| {
        let body = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
            "paymentMethod": "bankTransfer", "quoteCurrencyAmount": 100, "fee": 1.5,
            "returnUrl": "https://acme.example/back", "signature": "none"});
        let request = partner.request(Method::POST, "/api/v2/buy/offer");
        request.header("x-acme-timestamp", "1767225600").json(&body).send().await
    };
    // The guest answers so where it sees the header.
    offer(&acme).await.assert_codes(&["ER339"]);
    let edge = context.edge_with(|settings| _ = settings.policy.visible_headers.0.pop()).await;
    offer(&acme.at(&edge)).await.assert_codes(&["ER336"]);
}

#[tokio::test]
async fn a_difference_beside_a_hidden_request_has_nothing_of_it() {
    let (context, acme) = with_acme().await;
    set_key(&context).await;
    shadow(&context, SIGNATURE, "ed25519-offer", "told-signature").await;
    replayed::offer(&context, &acme, "nonce-0001").await;
    context.core().run_policy_shadows().await.unwrap();
    let bounded = json!([{"input": null, "active": {"verdict": "authentic"},
        "candidate": {"verdict": "rejected", "reason": "bad-signature"}}]);
    let trial = context.admin(Method::GET, &format!("{SIGNATURE}/trial"), json!({})).await;
    assert_eq!(trial.assert_status(200).json()["differences"], bounded);
    assert_eq!(history(&context, SIGNATURE).await["trial"]["differences"], bounded);
}
