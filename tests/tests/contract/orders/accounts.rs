//! The account that a purchase is paid from or a sale is paid out to, where the confirm names one.

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

use super::{BTC, count};
use crate::verification::{changed, disabled_beside, opened};

const CARD: &str = "555555******4444";

/// A quote over 100 EUR by credit card.
async fn quoted(user: &User) -> Value {
    quoted_of_side(user, "buy").await
}

async fn quoted_of_side(user: &User, side: &str) -> Value {
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let quote = user.post(&format!("/api/v1/{side}/quote"), &asked).await;
    quote.assert_status(200).json()["quote"].clone()
}

/// Sells for 100 EUR, paid out to the account.
async fn sell(user: &User, account: &str) -> Answer {
    confirm_sale(user, &quoted_of_side(user, "sell").await, account).await
}

async fn confirm_sale(user: &User, quote: &Value, account: &str) -> Answer {
    let body = json!({"quote": quote, "accountIdentifier": account});
    user.post("/api/v1/sell/confirm", &body).await
}

/// The order that was made of two confirms that raced; the other one was beyond a limit.
fn only_one(answers: [Answer; 2]) -> Value {
    let (made, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status() == 200);
    assert_eq!((made.len(), refused.len()), (1, 1));
    refused[0].assert_status(400).assert_codes(&["ER011"]);
    made[0].json()["orderId"].clone()
}

async fn buy(user: &User, account: &Value) -> Answer {
    confirm(user, &quoted(user).await, account).await
}

async fn confirm(user: &User, quote: &Value, account: &Value) -> Answer {
    let body = json!({"quote": quote, "returnUrl": "https://shop.example/", "walletAddress": BTC,
        "accountIdentifier": account});
    user.post("/api/v1/buy/confirm", &body).await
}

fn card(verified: bool) -> Value {
    json!({"type": "creditCard", "identifier": CARD, "name": "Ada", "verified": verified})
}

#[tokio::test]
async fn an_account_that_is_named_must_be_one_that_can_pay() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ada, bob, eve) = (acme.user("ada").await, acme.user("bob").await, rival.user("eve").await);
    for other in [&bob, &eve] {
        opened(&context, other, card(true)).await;
        buy(&ada, &json!(CARD)).await.assert_status(400).assert_codes(&["ER396"]);
    }
    for malformed in [json!(""), json!(7), json!("7".repeat(256))] {
        buy(&ada, &malformed).await.assert_codes(&["ER380"]);
    }
    opened(&context, &ada, card(false)).await;
    buy(&ada, &json!(CARD)).await.assert_codes(&["ER139"]);
    changed(&context, &ada, CARD, json!({"disabled": true})).await;
    buy(&ada, &json!(CARD)).await.assert_codes(&["ER139", "ER397"]);
    let bank = json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300", "name": "Ada",
        "verified": true});
    opened(&context, &ada, bank).await;
    buy(&ada, &json!("NL91ABNA0417164300")).await.assert_codes(&["ER138"]);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 0);
    buy(&ada, &Value::Null).await.assert_status(200);
    changed(&context, &ada, CARD, json!({"disabled": false, "verified": true})).await;
    buy(&ada, &json!(CARD)).await.assert_status(200);
    let named = "select count(*) from buy_order o join payment_account a \
                 using (client_id, user_id, account_id)";
    assert_eq!(count(&context, named).await, 1);
    // What it has paid counts for the card.
    let limits = ada.get("/api/v2/user/limit").await.json();
    assert_eq!(limits["accounts"][CARD]["totalSpent"]["amount"], "20000");
}

#[tokio::test]
async fn a_repeated_confirm_must_name_the_same_account() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    opened(&context, &ada, card(true)).await;
    let quote = quoted(&ada).await;
    let first = confirm(&ada, &quote, &json!(CARD)).await;
    let again = confirm(&ada, &quote, &json!(CARD)).await;
    assert_eq!(first.assert_status(200).text(), again.text());
    for other in [Value::Null, json!("411111******0000")] {
        confirm(&ada, &quote, &other).await.assert_status(400).assert_codes(&["ER007"]);
    }
    // The account may have been disabled since: the order stands.
    changed(&context, &ada, CARD, json!({"disabled": true})).await;
    assert_eq!(confirm(&ada, &quote, &json!(CARD)).await.text(), first.text());
}

#[tokio::test]
async fn an_account_that_is_disabled_beside_a_confirm_is_refused_as_disabled() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    opened(&context, &ada, card(true)).await;
    let quote = quoted(&ada).await;
    let named = json!(CARD);
    let refused = disabled_beside(&context, confirm(&ada, &quote, &named)).await;
    refused.assert_status(400).assert_codes(&["ER397"]);
}

#[tokio::test]
async fn an_account_pays_for_no_more_a_day_than_its_limit() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    opened(&context, &ada, card(true)).await;
    changed(&context, &ada, CARD, json!({"limit": 150})).await;
    // Of two that race, one is made.
    let (one, other) = (quoted(&ada).await, quoted(&ada).await);
    let named = json!(CARD);
    let answers = tokio::join!(confirm(&ada, &one, &named), confirm(&ada, &other, &named));
    let order = only_one(answers.into());
    let limit = ada.get("/api/v2/user/limit").await.json()["accounts"][CARD]["limit"].clone();
    assert_eq!((&limit["blockType"], &limit["subType"]), (&json!("hard"), &json!("account_limit")));
    assert_eq!(limit["remainingLimit"]["amount"], "5000");
    // The limit is the account's: without it, or with more room, the same amount is taken.
    buy(&ada, &Value::Null).await.assert_status(200);
    buy(&ada, &named).await.assert_codes(&["ER011"]);
    changed(&context, &ada, CARD, json!({"limit": 200})).await;
    buy(&ada, &named).await.assert_status(200);
    buy(&ada, &named).await.assert_codes(&["ER011"]);
    // An order that is called off gives back what it took.
    let path = format!("/admin/v1/orders/{order}/events");
    context.admin(Method::POST, &path, json!({"event": "cancel"})).await.assert_status(200);
    buy(&ada, &named).await.assert_status(200);
}

#[tokio::test]
async fn an_account_is_sold_to_for_no_more_a_day_than_its_limit() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    opened(&context, &ada, card(true)).await;
    changed(&context, &ada, CARD, json!({"limit": 150})).await;
    // Of two that race, one is made.
    let (one, other) = (quoted_of_side(&ada, "sell").await, quoted_of_side(&ada, "sell").await);
    let answers = tokio::join!(confirm_sale(&ada, &one, CARD), confirm_sale(&ada, &other, CARD));
    let sale = only_one(answers.into());
    let shown = ada.get("/api/v2/user/limit").await.json()["accounts"][CARD].clone();
    assert_eq!(shown["limit"]["remainingLimit"]["amount"], "5000");
    assert_eq!(shown["totalSpent"]["amount"], "0", "a payout is no payment");
    buy(&ada, &json!(CARD)).await.assert_codes(&["ER011"]);
    sell(&ada, CARD).await.assert_codes(&["ER011"]);
    // So is one of a purchase and a sale.
    changed(&context, &ada, CARD, json!({"limit": 250})).await;
    let (bought, sold) = (quoted(&ada).await, quoted_of_side(&ada, "sell").await);
    let named = json!(CARD);
    let answers = tokio::join!(confirm(&ada, &bought, &named), confirm_sale(&ada, &sold, CARD));
    only_one(answers.into());
    sell(&ada, CARD).await.assert_codes(&["ER011"]);
    // A sale that is called off gives back what it took.
    let path = format!("/admin/v1/orders/{sale}/events");
    context.admin(Method::POST, &path, json!({"event": "cancel"})).await.assert_status(200);
    sell(&ada, CARD).await.assert_status(200);
}

#[tokio::test]
async fn a_sale_of_more_coins_is_released_within_the_limit_of_its_account() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let price = json!({"price": 50000});
    context.admin(Method::PUT, "/admin/v1/prices/BTC-EUR", price).await.assert_status(200);
    context.core().refresh().await.unwrap();
    opened(&context, &ada, card(true)).await;
    changed(&context, &ada, CARD, json!({"limit": 120})).await;
    let asked = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard",
        "cryptoAmount": 0.002});
    let quote = ada.post("/api/v1/sell/quote", &asked).await.assert_status(200).json();
    let sale = confirm_sale(&ada, &quote["quote"], CARD).await.assert_status(200).json();
    let deposit = json!({"partner": "acme", "connector": "manual", "providerReference": "d-1",
        "kind": "deposit-received", "amount": 0.003, "currency": "BTC", "reason": "seen",
        "orderId": sale["orderId"]});
    context.admin(Method::POST, "/admin/v1/payments", deposit).await.assert_status(201);
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let release = async || context.admin(Method::POST, &path, json!({"event": "release"})).await;
    release().await.assert_status(409);
    changed(&context, &ada, CARD, json!({"limit": 200})).await;
    release().await.assert_status(200);
}
