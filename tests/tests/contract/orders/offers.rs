//! An offer is confirmed once, in its own terms.

use chrono::TimeDelta;
use futures::future::join_all;
use rampart_tests::answer::Answer;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{BTC, OTHER_BTC, Shop, confirm_under, count};

/// The answers to confirms that race at two edges: one wins, the others are refused with this code.
async fn race(shop: &Shop, elsewhere: &Shop, bodies: &[Value], refusal: &str) -> Vec<Answer> {
    let tries = bodies.iter().enumerate().map(|(n, body)| {
        let shop = if n % 2 == 0 { shop } else { elsewhere };
        shop.v2(body)
    });
    let answers = join_all(tries).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status() == 200);
    assert_eq!(won.len(), 1);
    for answer in lost {
        answer.assert_status(400).assert_codes(&[refusal]);
    }
    answers
}

#[tokio::test]
async fn of_racing_confirms_of_one_offer_one_wins() {
    let context = TestContext::start().await;
    let second = context.second_edge().await;
    let shop = Shop::of(&context, "acme").await;
    second.core().refresh().await.unwrap();
    let elsewhere = shop.at(&second);
    let offer = shop.offer(&context, "").await;
    let bodies: Vec<_> =
        (0..32).map(|_| confirm_under(offer, &shop.quote(&context, |_| ()))).collect();
    let answers = race(&shop, &elsewhere, &bodies, "ER131").await;
    assert_eq!(count(&context, "select count(*) from buy_order").await, 1);
    assert_eq!(count(&context, "select count(*) from event").await, 1);

    // The winner may ask again; a quote that lost is still good for another offer.
    for (body, answer) in bodies.iter().zip(&answers) {
        if answer.status() == 200 {
            assert_eq!(shop.v2(body).await.text(), answer.text());
        } else {
            let mut other = body.clone();
            other["offerId"] = json!(shop.offer(&context, "").await);
            shop.v2(&other).await.assert_status(200);
            break;
        }
    }
}

#[tokio::test]
async fn a_quote_that_races_under_many_offers_takes_one_of_them() {
    let context = TestContext::start().await;
    let second = context.second_edge().await;
    let shop = Shop::of(&context, "acme").await;
    second.core().refresh().await.unwrap();
    let elsewhere = shop.at(&second);
    let quote = shop.quote(&context, |_| ());
    let mut bodies = Vec::new();
    for _ in 0..16 {
        bodies.push(confirm_under(shop.offer(&context, "").await, &quote));
    }
    race(&shop, &elsewhere, &bodies, "ER007").await;
    let taken = "select count(*) from offer where confirmed_at is not null";
    assert_eq!(count(&context, taken).await, 1, "the others are still there to be confirmed");
    assert_eq!(count(&context, "select count(*) from buy_order").await, 1);
}

#[tokio::test]
async fn an_order_takes_over_what_its_offer_says() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let offer = shop.offer(&context, "").await;
    let answer = shop.v2(&confirm_under(offer, &shop.quote(&context, |_| ()))).await;
    answer.assert_status(200);
    let own = shop.get("/api/v2/buy/orders/offer-ref").await;
    assert_eq!(own.json()["id"], answer.json()["orderId"]);
    let urls: (String, String) =
        sqlx::query_as("select return_url, callback_url from buy_order where offer_id = $1")
            .bind(offer)
            .fetch_one(context.db())
            .await
            .unwrap();
    assert_eq!(urls.0, "https://shop.example/back");
    assert_eq!(urls.1, "https://shop.example/cb?a=b");

    let mut named = confirm_under(shop.offer(&context, "").await, &shop.quote(&context, |_| ()));
    named["partnerOrderIdentifier"] = json!("mine");
    named["callbackUrl"] = json!("https://elsewhere.example");
    let named = shop.v2(&named).await;
    assert_eq!(shop.get("/api/v2/buy/orders/mine").await.json()["id"], named.json()["orderId"]);
    let elsewhere = "select count(*) from buy_order where callback_url like '%elsewhere%'";
    assert_eq!(count(&context, elsewhere).await, 0, "what the partner signed stands");
}

#[tokio::test]
async fn an_offer_that_is_not_there_or_over_is_refused() {
    let context = TestContext::start().await;
    let (shop, rival) = (Shop::of(&context, "acme").await, Shop::of(&context, "rival").await);
    let quote = shop.quote(&context, |_| ());
    let unknown = shop.v2(&confirm_under(uuid::Uuid::nil(), &quote)).await;
    unknown.assert_status(400).assert_codes(&["ER132"]);
    let others = rival.offer(&context, "").await;
    let others = shop.v2(&confirm_under(others, &quote)).await;
    assert_eq!(others.text(), unknown.text());
    let ended = shop.offer(&context, "expires_at = created_at").await;
    let answer = shop.v2(&confirm_under(ended, &quote)).await;
    answer.assert_status(400).assert_codes(&["ER133"]);
    assert_eq!(answer.json()["errors"]["ER133"]["field"], "offerId");
    shop.v2(&json!({"quote": quote, "walletAddress": BTC})).await.assert_codes(&["ER132"]);
    let no_id = json!({"quote": quote, "walletAddress": BTC, "offerId": "7"});
    shop.v2(&no_id).await.assert_codes(&["ER132"]);
}

#[tokio::test]
async fn an_offer_that_is_over_for_the_database_alone_has_expired() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let offer = shop.offer(&context, "expires_at = created_at + interval '1 minute'").await;
    let quote = shop.quote(&context, |_| ());
    context.clock().advance(TimeDelta::minutes(2));
    context.clock().misset(-TimeDelta::minutes(2));
    let answer = shop.v2(&confirm_under(offer, &quote)).await;
    answer.assert_status(400).assert_codes(&["ER133"]);
    assert_eq!(answer.json()["errors"]["ER133"]["field"], "offerId");
}

#[tokio::test]
async fn what_an_offer_fixes_stays() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let address = format!("wallet_address = '{OTHER_BTC}'");
    for (changes, code) in [
        ("fixed_amount = true, quote_amount = 99", "ER134"),
        ("fixed_amount = true, quote_amount = null, base_amount = 0.002", "ER134"),
        ("fixed_currency = true, base_currency = 'ETH'", "ER135"),
        ("fixed_payment_method = true, payment_method = 'walletpay'", "ER136"),
        ("fee_percentage = 2", "ER137"),
        (address.as_str(), "ER014"),
    ] {
        let offer = shop.offer(&context, changes).await;
        let quote = shop.quote(&context, |_| ());
        let answer = shop.v2(&confirm_under(offer, &quote)).await;
        answer.assert_status(400).assert_codes(&[code]);
        let name = if code == "ER014" { "walletAddress" } else { "quote" };
        assert_eq!(answer.json()["errors"][code]["field"], name);
    }
    for changes in ["quote_amount = 99", "base_currency = 'ETH'", "payment_method = 'walletpay'"] {
        let offer = shop.offer(&context, changes).await;
        let body = confirm_under(offer, &shop.quote(&context, |_| ()));
        shop.v2(&body).await.assert_status(200);
    }
}

#[tokio::test]
async fn an_offer_is_created_quoted_and_confirmed() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let offered = json!({
        "baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
        "quoteCurrencyAmount": 250, "fixedAmount": true, "partnerOrderIdentifier": "o-1",
    });
    let offer = shop.partner.post("/api/v2/buy/offer", offered).await;
    let offer = offer.assert_status(200).json()["offerUuid"].clone();
    let confirm = async |fiat: i32| {
        let asked =
            json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": fiat});
        let quote = shop.partner.post("/api/v1/buy/quote", asked).await;
        let quote = quote.assert_status(200).json()["quote"].clone();
        shop.v2(&json!({"quote": quote, "walletAddress": BTC, "offerId": offer})).await
    };
    confirm(251).await.assert_codes(&["ER134"]);
    let order = confirm(250).await.assert_status(200).json()["orderId"].clone();
    assert_eq!(shop.get("/api/v2/buy/orders/o-1").await.json()["id"], order);
    confirm(250).await.assert_codes(&["ER131"]);
}
