//! Offers and checkouts for one user, whom a login token names.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

use super::{ADDRESS, OFFER, offer};

const CHECKOUT: &str = "/api/v2/buy/checkout";
const CONFIRM: &str = "/api/v2/buy/confirm";

async fn token(user: &User) -> Value {
    let answer = user.get("/api/v1/user/login-token").await;
    answer.assert_status(200).json()["token"].clone()
}

/// A confirm of a new quote under the offer, by this user.
async fn confirm(user: &User, offer: &Value) -> Answer {
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let quote = user.post("/api/v1/buy/quote", &asked).await.assert_status(200).json();
    let body = json!({"quote": quote["quote"], "offerId": offer, "walletAddress": ADDRESS,
        "returnUrl": "app:x"});
    user.post(CONFIRM, &body).await
}

#[tokio::test]
async fn an_offer_for_a_user_is_confirmed_by_that_user_alone() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (ann, bob) = (acme.user("ann").await, acme.user("bob").await);
    let made = acme.post(OFFER, offer(json!({"loginToken": token(&ann).await}))).await;
    let made = made.assert_status(200).json()["offerUuid"].clone();
    let unknown = json!("019c1f5e-7c0a-7d52-9d3f-2b8a4e6f1c70");
    let refused = confirm(&bob, &made).await;
    assert_eq!(refused.text(), confirm(&bob, &unknown).await.text());
    refused.assert_status(400).assert_codes(&["ER132"]);
    let order = confirm(&ann, &made).await.assert_status(200).json()["orderId"].clone();
    ann.get(&format!("/api/v1/user/buy/orders/{order}")).await.assert_status(200);
    confirm(&ann, &made).await.assert_codes(&["ER131"]);
}

#[tokio::test]
async fn a_client_that_names_no_user_makes_the_offers_users_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (ann, bob) = (acme.user("ann").await, acme.user("bob").await);
    let made = acme.post(OFFER, offer(json!({"loginToken": token(&ann).await}))).await;
    let made = made.assert_status(200).json()["offerUuid"].clone();
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let quote = acme.post("/api/v1/buy/quote", asked).await.json()["quote"].clone();
    let body = json!({"quote": quote, "offerId": made, "walletAddress": ADDRESS,
        "returnUrl": "app:x"});
    let bearer = format!("Bearer {}", acme.token().await);
    let send = async || {
        let request = acme.anonymous(Method::POST, CONFIRM).header("authorization", &bearer);
        request.json(&body).send().await.assert_status(200).json()
    };
    let confirmed = send().await;
    assert_eq!(send().await, confirmed, "a lost answer can be asked for again");
    let path = format!("/api/v1/user/buy/orders/{}", confirmed["orderId"]);
    ann.get(&path).await.assert_status(200);
    bob.get(&path).await.assert_status(404).assert_codes(&["ER035"]);
}

#[tokio::test]
async fn a_login_token_is_good_once_for_a_while_and_for_its_client() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ann, eve) = (acme.user("ann").await, rival.user("eve").await);
    for path in [OFFER, CHECKOUT] {
        let post = async |token: Value| acme.post(path, offer(json!({"loginToken": token}))).await;
        for unknown in [json!(""), json!(7), json!("x"), token(&eve).await] {
            let answer = post(unknown).await;
            answer.assert_status(400).assert_codes(&["ER333"]);
            assert_eq!(answer.json()["errors"]["ER333"]["field"], "loginToken");
        }
        post(Value::Null).await.assert_status(200);
        let good = token(&ann).await;
        // What is refused uses nothing up.
        let refused = json!({"loginToken": good, "paymentMethod": "cash"});
        acme.post(path, offer(refused)).await.assert_codes(&["ER327"]);
        let (one, two) = tokio::join!(post(good.clone()), post(good.clone()));
        let mut statuses = [one.status(), two.status()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 400]);
        post(good).await.assert_codes(&["ER333"]);
        let late = token(&ann).await;
        context.clock().advance(TimeDelta::seconds(301));
        post(late.clone()).await.assert_status(400).assert_codes(&["ER334"]);
        context.core().delete_expired_codes().await.unwrap();
        post(late).await.assert_codes(&["ER334"]);
    }
}

#[tokio::test]
async fn a_token_of_somebody_who_is_gone_says_so_and_opens_nothing() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = acme.user("ann").await;
    let orphan = token(&ann).await;
    let uuid = ann.log_in().await["uuid"].as_str().unwrap().to_owned();
    let text = orphan.as_str().unwrap();
    let page = format!("/nl-nl/account/verify-bank-account?token={text}&uuid={uuid}");
    let other = token(&ann).await;
    let opened = page.replace(text, other.as_str().unwrap());
    let opened = acme.anonymous(Method::GET, &opened).send().await;
    let (_, form) = opened.assert_status(200).text().split_once("name=\"token\" value=\"").unwrap();
    let form = form.split('"').next().unwrap();
    let path = format!("/admin/v1/users/{uuid}");
    context.admin(Method::PATCH, &path, json!({"deleted": true})).await.assert_status(200);
    acme.anonymous(Method::GET, &page).send().await.assert_status(404);
    let form = format!("token={form}&iban=NL91ABNA0417164300&holder=Ada");
    acme.anonymous(Method::POST, &page).body(form).send().await.assert_status(404);
    for _ in 0..2 {
        let answer = acme.post(OFFER, offer(json!({"loginToken": orphan}))).await;
        answer.assert_status(400).assert_codes(&["ER335"]);
    }
    context.clock().advance(TimeDelta::seconds(301));
    let answer = acme.post(OFFER, offer(json!({"loginToken": orphan}))).await;
    answer.assert_codes(&["ER334"]);
}
