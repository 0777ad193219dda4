//! A quote becomes one order.

use std::time::Duration;

use futures::future::join_all;
use http::Method;
use rampart_core::trading::quotes::Side;
use rampart_tests::test_context::TestContext;
use rampart_types::{Chain, WalletAddress};
use serde_json::{Value, json};

use super::{BTC, OTHER_BTC, Shop, XRP, confirm_of, count};

#[tokio::test]
async fn a_quote_becomes_an_order_with_a_place_to_pay() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let answer = shop.v1(&confirm_of(&shop.quote(&context, |_| ()))).await;
    answer.assert_status(200);
    let confirmed = answer.json();
    let order = confirmed["orderId"].as_i64().unwrap();
    assert!((1_000_000_000_000_000..1 << 53).contains(&order));
    assert!(confirmed["paymentUrl"].as_str().unwrap().starts_with("https://pay.example.com/pay/"));
    assert!(confirmed["expiresAt"].as_str().unwrap().ends_with('Z'));

    let read = shop.get(&format!("/api/v2/buy/orders/{order}")).await.json();
    assert_eq!(read["status"], "pending");
    assert_eq!(read["expiresAt"], confirmed["expiresAt"]);
    let told = "select count(*) from event where type = 'order.created'";
    assert_eq!(count(&context, told).await, 1);
    let metrics = context.core().metrics.render();
    assert!(metrics.contains(r#"rampart_orders_total{event="confirmed"} 1"#));
}

#[tokio::test]
async fn what_was_quoted_is_what_is_ordered() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let asked = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 250, "fee": 1.5});
    let quote = shop.partner.post("/api/v1/buy/quote", asked).await;
    let quote = quote.assert_status(200).json();
    let answer = shop.v1(&confirm_of(quote["quote"].as_str().unwrap())).await;
    let id = answer.assert_status(200).json()["orderId"].clone();
    let order = shop.get(&format!("/api/v1/user/buy/orders/{id}")).await.json();
    for (quoted, ordered) in [
        ("fiatAmount", "/price/amount"),
        ("cryptoAmount", "/value/amount"),
        ("partnerFee", "/partnerFee/amount"),
        ("partnerFeePercentage", "/feePercentage"),
        ("providerFee", "/providerFee/amount"),
        ("paymentMethodCost", "/paymentMethodFee/amount"),
        ("networkFeeCost", "/networkFee/amount"),
        ("spreadFee", "/spreadFee/amount"),
    ] {
        assert_eq!(order.pointer(ordered), quote.get(quoted), "{quoted}");
        assert!(quote[quoted].is_number(), "{quoted}");
    }
}

#[tokio::test]
async fn a_bank_transfer_takes_as_long_as_it_takes() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let by_bank = || shop.quote(&context, |quote| quote.payment_method = "bankTransfer".to_owned());
    let v1 = shop.v1(&confirm_of(&by_bank())).await;
    v1.assert_status(200);
    assert_eq!(v1.json().get("expiresAt"), Some(&Value::Null));
    let offer = shop.offer(&context, "payment_method = 'bankTransfer'").await;
    let v2 = shop.v2(&super::confirm_under(offer, &by_bank())).await;
    v2.assert_status(200);
    assert_eq!(v2.json().get("expiresAt"), None);
}

#[tokio::test]
async fn all_violations_are_found_together() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    shop.v1(&json!({})).await.assert_status(400).assert_codes(&["ER014", "ER045", "ER047"]);
    shop.v2(&json!({})).await.assert_codes(&["ER014", "ER045", "ER132"]);
    let all_wrong = json!({
        "quote": 1, "returnUrl": "javascript:alert(1)", "walletAddress": "nowhere",
        "callbackUrl": "http://shop.example", "destinationTag": {}, "walletType": "hardware",
        "partnerOrderIdentifier": "a\u{0}b",
    });
    let codes = ["ER014", "ER015", "ER045", "ER046", "ER047", "ER048"];
    shop.v1(&all_wrong).await.assert_codes(&codes);
    shop.v1(&json!([])).await.assert_codes(&["ER048"]);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 0);
}

#[tokio::test]
async fn the_quotes_chain_decides_on_address_and_tag() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let xrp = || shop.quote(&context, |quote| quote.pair = "XRP-EUR".parse().unwrap());
    let with = |mut body: Value, member: &str, value: Value| {
        body[member] = value;
        body
    };
    let bitcoin = || confirm_of(&shop.quote(&context, |_| ()));
    let ripple = || with(confirm_of(&xrp()), "walletAddress", json!(XRP));
    let nowhere = |body| with(body, "walletAddress", json!("nowhere"));
    for (body, codes) in [
        (with(bitcoin(), "walletAddress", json!(XRP)), &["ER014"][..]),
        (with(bitcoin(), "destinationTag", json!(7)), &["ER044"]),
        (with(ripple(), "destinationTag", json!("memo")), &["ER015"]),
        (with(confirm_of(&xrp()), "destinationTag", json!("memo")), &["ER014", "ER015"]),
        (nowhere(bitcoin()), &["ER014"]),
        (nowhere(confirm_of("no quote")), &["ER014"]),
        (nowhere(with(bitcoin(), "destinationTag", json!(7))), &["ER014", "ER044"]),
        (nowhere(with(ripple(), "destinationTag", json!("memo"))), &["ER014", "ER015"]),
    ] {
        let answer = shop.v1(&body).await;
        answer.assert_status(400).assert_codes(codes);
        for code in codes {
            let name = if *code == "ER014" { "walletAddress" } else { "destinationTag" };
            assert_eq!(answer.json()["errors"][code]["field"], name);
        }
    }
    let long = json!("a".repeat(40));
    for tag in [json!(""), json!(" 1"), json!(1.5), json!(-1), long] {
        let of_bitcoin = with(bitcoin(), "destinationTag", tag.clone());
        shop.v1(&of_bitcoin).await.assert_status(400).assert_codes(&["ER044"]);
        shop.v1(&with(ripple(), "destinationTag", tag)).await.assert_codes(&["ER015"]);
    }
    for tag in [json!(true), json!([7]), json!("a".repeat(256))] {
        shop.v1(&with(bitcoin(), "destinationTag", tag)).await.assert_codes(&["ER015"]);
    }
    for tag in [json!(7), json!("7"), json!(0), Value::Null] {
        shop.v1(&with(ripple(), "destinationTag", tag)).await.assert_status(200);
    }
}

#[tokio::test]
async fn a_quote_is_of_its_client_user_side_and_wallet() {
    let context = TestContext::start().await;
    let (shop, other) = (Shop::of(&context, "acme").await, Shop::of(&context, "rival").await);
    let quote = shop.quote(&context, |_| ());
    other.v1(&confirm_of(&quote)).await.assert_codes(&["ER007"]);
    shop.v1(&confirm_of(&format!("{quote}x"))).await.assert_codes(&["ER007"]);
    let sell = shop.quote(&context, |quote| quote.side = Side::Sell);
    shop.v1(&confirm_of(&sell)).await.assert_codes(&["ER009"]);
    let bound = |wallet: &str| {
        let address = WalletAddress::parse(Chain::Bitcoin, wallet).unwrap();
        shop.quote(&context, |quote| quote.wallet_address = Some(address))
    };
    shop.v1(&confirm_of(&bound(OTHER_BTC))).await.assert_codes(&["ER007"]);
    shop.v1(&confirm_of(&bound(BTC))).await.assert_status(200);
    let of_a_user = |id| shop.quote(&context, |quote| quote.user = Some(id));
    let stranger = context.clock().uuid().unwrap().into();
    shop.v1(&confirm_of(&of_a_user(stranger))).await.assert_codes(&["ER007"]);
    shop.v1(&confirm_of(&of_a_user(shop.user.into()))).await.assert_status(200);
}

#[tokio::test]
async fn the_same_confirm_answers_the_same_order_and_another_one_none() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let mut body = confirm_of(&shop.quote(&context, |_| ()));
    body["partnerOrderIdentifier"] = json!("ref-1");
    let first = shop.v1(&body).await;
    first.assert_status(200);
    let again = shop.v1(&body).await;
    assert_eq!(again.assert_status(200).text(), first.text());
    for (member, value) in [
        ("walletAddress", json!(OTHER_BTC)),
        ("partnerOrderIdentifier", json!("ref-2")),
        ("partnerOrderIdentifier", Value::Null),
    ] {
        let mut other = body.clone();
        other[member] = value;
        shop.v1(&other).await.assert_status(400).assert_codes(&["ER007"]);
    }
    let offer = shop.offer(&context, "").await;
    let mut under_an_offer = body.clone();
    under_an_offer["offerId"] = json!(offer);
    shop.v2(&under_an_offer).await.assert_codes(&["ER007"]);
    let taken = "select count(*) from offer where confirmed_at is not null";
    assert_eq!(count(&context, taken).await, 0, "a refused confirm leaves the offer alone");
    assert_eq!(count(&context, "select count(*) from buy_order").await, 1);
    assert_eq!(count(&context, "select count(*) from event").await, 1);
}

#[tokio::test]
async fn a_lost_answer_is_found_again_after_the_quote_has_expired() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let (used, unused) = (shop.quote(&context, |_| ()), shop.quote(&context, |_| ()));
    let first = shop.v1(&confirm_of(&used)).await;
    context.clock().advance(chrono::TimeDelta::seconds(301));
    let again = shop.v1(&confirm_of(&used)).await;
    assert_eq!(again.assert_status(200).text(), first.text());
    let mut elsewhere = confirm_of(&used);
    elsewhere["walletAddress"] = json!(OTHER_BTC);
    shop.v1(&elsewhere).await.assert_codes(&["ER007"]);
    shop.v1(&confirm_of(&unused)).await.assert_codes(&["ER006"]);
}

#[tokio::test]
async fn a_quote_confirmed_at_once_on_two_edges_is_one_order() {
    let context = TestContext::start().await;
    let second = context.second_edge().await;
    let shop = Shop::of(&context, "acme").await;
    second.core().refresh().await.unwrap();
    let elsewhere = shop.at(&second);
    for _ in 0..8 {
        let body = confirm_of(&shop.quote(&context, |_| ()));
        let tries = (0..8).map(|n| if n % 2 == 0 { shop.v1(&body) } else { elsewhere.v1(&body) });
        let answers = join_all(tries).await;
        for answer in &answers {
            assert_eq!(answer.assert_status(200).text(), answers[0].text());
        }
    }
    assert_eq!(count(&context, "select count(*) from buy_order").await, 8);
    assert_eq!(count(&context, "select count(*) from order_transition").await, 8);
    assert_eq!(count(&context, "select count(*) from event").await, 8);
}

#[tokio::test]
async fn what_may_not_be_traded_now_is_not_confirmed() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let over = |fiat: &str, method: &str| {
        shop.quote(&context, |quote| {
            quote.fiat = fiat.parse().unwrap();
            quote.payment_method = method.to_owned();
        })
    };
    for (fiat, method) in
        [("5000.01", "creditCard"), ("29.99", "creditCard"), ("101000.01", "bankTransfer")]
    {
        shop.v1(&confirm_of(&over(fiat, method))).await.assert_codes(&["ER011"]);
    }
    for (fiat, method) in [("5000", "creditCard"), ("30", "creditCard"), ("100000", "bankTransfer")]
    {
        shop.v1(&confirm_of(&over(fiat, method))).await.assert_status(200);
    }
    shop.v1(&confirm_of(&over("100", "barter"))).await.assert_codes(&["ER055"]);

    let before = over("100", "creditCard");
    let first = shop.v1(&confirm_of(&before)).await;
    let maintenance = json!({"buy": {"status": "maintenance"}});
    context.admin(Method::PATCH, "/admin/v1/pairs/BTC-EUR", maintenance).await.assert_status(200);
    context.core().refresh().await.unwrap();
    shop.v1(&confirm_of(&over("100", "creditCard"))).await.assert_codes(&["ER008"]);
    let again = shop.v1(&confirm_of(&before)).await;
    assert_eq!(again.assert_status(200).text(), first.text());
}

#[tokio::test]
async fn a_disabled_user_confirms_nothing() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    sqlx::query("update end_user set disabled_at = now()").execute(context.db()).await.unwrap();
    let body = confirm_of(&shop.quote(&context, |_| ()));
    shop.v1(&body).await.assert_status(400).assert_codes(&["ER124"]);
}

#[tokio::test]
async fn an_api_key_names_its_user() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let body = confirm_of(&shop.quote(&context, |_| ()));
    for path in ["/api/v1/buy/confirm", "/api/v2/buy/confirm"] {
        shop.partner.post(path, body.clone()).await.assert_codes(&["ER700"]);
    }
}

#[tokio::test]
async fn an_idempotency_key_answers_the_saved_bytes() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let send = async |quote: String| {
        let request = shop.request(Method::POST, "/api/v1/buy/confirm");
        request.header("idempotency-key", "k-1").json(&confirm_of(&quote)).send().await
    };
    let quote = shop.quote(&context, |_| ());
    let first = send(quote.clone()).await;
    context.clock().advance(chrono::TimeDelta::from_std(Duration::from_secs(400)).unwrap());
    let again = send(quote).await;
    assert_eq!(again.assert_status(200).text(), first.text());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let other = send(shop.quote(&context, |_| ())).await;
    other.assert_status(422).assert_codes(&["ER999"]);
}
