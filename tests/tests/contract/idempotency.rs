//! `Idempotency-Key`: what is saved, and for whom.

mod erasures;
mod faults;
mod replays;

use futures::future::join_all;
use http::Method;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use crate::orders::{BTC, Shop, confirm_of, count};

const OFFER: &str = "/api/v2/buy/offer";

#[tokio::test]
async fn a_refusal_is_an_answer_and_is_saved() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
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
    let day = "update idempotency_key set expires_at = expires_at - interval '24 hours'";
    sqlx::query(day).execute(context.db()).await.unwrap();
    send(mended).await.assert_status(200);
}

#[tokio::test]
async fn a_body_is_kept_as_a_keyed_digest_and_known_by_a_plain_one_of_an_earlier_version() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let body = json!({"baseCurrency": "BTC", "paymentMethod": "creditCard"});
    let send = async || {
        let request = acme.request(Method::POST, OFFER).header("idempotency-key", "k");
        request.json(&body).send().await.assert_status(400).text().to_owned()
    };
    let first = send().await;
    let make_plain = "with plain as ( \
            select sha256(convert_to($1 || e'\\n\\n', 'UTF8') || sha256(convert_to($2, 'UTF8'))) as digest) \
        update idempotency_key set body_digest = digest from plain where body_digest <> digest";
    let made = sqlx::query(make_plain).bind(OFFER).bind(body.to_string());
    assert_eq!(made.execute(context.db()).await.unwrap().rows_affected(), 1);
    assert_eq!(send().await, first);
}

#[tokio::test]
async fn a_key_out_of_bounds_is_refused_before_the_members() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for key in ["", &"k".repeat(256)] {
        let request = acme.request(Method::POST, OFFER).header("idempotency-key", key);
        request.json(&json!({})).send().await.assert_status(400).assert_codes(&["ER048"]);
    }
}

#[tokio::test]
async fn a_key_shows_no_user_the_answer_of_another() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let other = shop.with_another_user(&context).await;
    let body = json!({"quote": shop.quote(&context, |_| ()), "walletAddress": BTC,
        "returnUrl": "https://shop.example/done"});
    let send = async |shop: &Shop| {
        let request = shop.request(Method::POST, "/api/v1/buy/confirm");
        request.header("idempotency-key", "k").json(&body).send().await
    };
    send(&shop).await.assert_status(200);
    send(&other).await.assert_status(422).assert_codes(&["ER999"]);
    send(&shop).await.assert_status(200);
}

#[tokio::test]
async fn a_key_that_races_with_two_bodies_makes_one_order() {
    let context = TestContext::start().await;
    let second = context.second_edge().await;
    let shop = Shop::of(&context, "acme").await;
    second.core().refresh().await.unwrap();
    let elsewhere = shop.at(&second);
    let body = || confirm_of(&shop.quote(&context, |_| ()));
    let bodies = [body(), body()];
    let send = async |n: usize| {
        let shop = if n.is_multiple_of(3) { &elsewhere } else { &shop };
        let request = shop.request(Method::POST, "/api/v1/buy/confirm");
        request.header("idempotency-key", "race").json(&bodies[n % 2]).send().await
    };
    let answers = join_all((0..16).map(send)).await;
    let done: Vec<_> = (0..16).filter(|n| answers[*n].status() == 200).collect();
    for (n, answer) in answers.iter().enumerate() {
        match answer.status() {
            200 => assert_eq!(answer.text(), answers[done[0]].text()),
            // Of the other body, or while the first one runs.
            409 | 422 => drop(answer.assert_codes(&["ER999"])),
            other => panic!("request {n}: {other}"),
        }
    }
    let (first, other) = (done[0] % 2, 1 - done[0] % 2);
    assert!(done.iter().all(|n| n % 2 == first), "another body got the answer");
    let again = send(first).await;
    assert_eq!(again.assert_status(200).text(), answers[done[0]].text());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    send(other).await.assert_status(422).assert_codes(&["ER999"]);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 1);
}

#[tokio::test]
async fn a_confirms_answer_is_saved_by_the_transaction_that_makes_its_order() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let send = async |key: &str, body: &Value| {
        let request = shop.request(Method::POST, "/api/v1/buy/confirm");
        request.header("idempotency-key", key).json(body).send().await
    };
    let body = confirm_of(&shop.quote(&context, |_| ()));
    let first = send("one", &body).await;
    first.assert_status(200);
    let together = "select count(*) from buy_order b join idempotency_key k using (client_id) \
                    where b.xmin = k.xmin and k.status = 200 and k.body is not null";
    assert_eq!(count(&context, together).await, 1);
    // Another key for the same quote is answered with the same order.
    let second = send("two", &body).await;
    assert_eq!(second.assert_status(200).text(), first.text());
    assert_eq!(second.header("idempotency-replayed"), None);
    for key in ["one", "two"] {
        let again = send(key, &body).await;
        assert_eq!(again.assert_status(200).text(), first.text());
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
    }
}

#[tokio::test]
async fn an_erasure_of_its_own_user_leaves_a_request_its_key() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let event = shop.request(Method::POST, "/api/v2/sandbox/user/events");
    let event = event.header("idempotency-key", "k").json(&json!({"event": "delete"}));
    event.send().await.assert_status(204);
    let saved = "select count(*) from idempotency_key where status = 204 and user_id is null";
    assert_eq!(count(&context, saved).await, 1);
}

#[tokio::test]
async fn a_saved_answer_of_a_confirm_goes_with_the_user() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let bearer = format!("Bearer {}", shop.partner().token().await);
    let buy = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let sell = json!({"currencyPair": "BTC-EUR", "cryptoAmount": "0.01"});
    for (side, asked) in [("buy", buy), ("sell", sell)] {
        let quoted = shop.request(Method::POST, &format!("/api/v1/{side}/quote")).json(&asked);
        let quoted = quoted.send().await.assert_status(200).json();
        let quote = quoted["quote"].as_str().unwrap();
        let body = if side == "buy" { confirm_of(quote) } else { json!({"quote": quote}) };
        let path = format!("/api/v1/{side}/confirm");
        // Again with the client's token alone: the quote names the user.
        let by_user = shop.request(Method::POST, &path);
        let by_quote = shop.partner().anonymous(Method::POST, &path);
        let by_quote = by_quote.header("authorization", &bearer);
        for (key, request) in [("user", by_user), ("quote", by_quote)] {
            let request = request.header("idempotency-key", key);
            request.json(&body).send().await.assert_status(200);
        }
    }
    let saved = "select count(*) from idempotency_key where status is not null";
    assert_eq!(count(&context, saved).await, 4);
    let user: String = sqlx::query_scalar("select user_id::text from end_user")
        .fetch_one(context.db())
        .await
        .unwrap();
    let user = format!("/admin/v1/users/{user}");
    context.admin(Method::PATCH, &user, json!({"deleted": true})).await.assert_status(200);
    assert_eq!(count(&context, saved).await, 0);
}
