//! `Idempotency-Key`: what is saved, and for whom.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::world::World;
use serde_json::{Value, json};

use crate::orders::{BTC, Shop};

const OFFER: &str = "/api/v2/buy/offer";

#[tokio::test]
async fn a_refusal_is_an_answer_and_is_saved() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    let send = async |body: Value| {
        let request = acme.request(Method::POST, OFFER).header("idempotency-key", "k");
        request.json(&body).send().await
    };
    let bad = json!({"baseCurrency": "BTC", "paymentMethod": "creditCard"});
    let first = send(bad.clone()).await;
    first.assert_status(400).assert_codes(&["ER302"]);
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = send(bad).await;
    assert_eq!(again.assert_status(400).text(), first.text());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let mended =
        json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"});
    send(mended.clone()).await.assert_status(422).assert_codes(&["ER999"]);
    world.clock().advance(TimeDelta::hours(25));
    send(mended).await.assert_status(200);
}

#[tokio::test]
async fn a_key_out_of_bounds_is_refused_before_the_members() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    for key in ["", &"k".repeat(256)] {
        let request = acme.request(Method::POST, OFFER).header("idempotency-key", key);
        request.json(&json!({})).send().await.assert_status(400).assert_codes(&["ER048"]);
    }
}

#[tokio::test]
async fn a_key_shows_no_user_the_answer_of_another() {
    let world = World::start().await;
    let shop = Shop::of(&world, "acme").await;
    let other = shop.with_another_user(&world).await;
    let body = json!({"quote": shop.quote(&world, |_| ()), "walletAddress": BTC,
        "returnUrl": "https://shop.example/done"});
    let send = async |shop: &Shop| {
        let request = shop.request(Method::POST, "/api/v1/buy/confirm");
        request.header("idempotency-key", "k").json(&body).send().await
    };
    send(&shop).await.assert_status(200);
    send(&other).await.assert_status(422).assert_codes(&["ER999"]);
    send(&shop).await.assert_status(200);
}
