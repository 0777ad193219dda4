//! Identity checks at a provider.

use rampart_tests::user::registration;
use rampart_tests::wallet::Wallet;
use uuid::Uuid;

use super::*;

/// The note above a check that was refused.
const REFUSED: &str = "Dit is afgewezen. Probeer het opnieuw";

pub(super) fn completed(id: &str, command: &Value, outcome: &str) -> Value {
    json!({"id": id, "kind": "identity.completed", "occurredAt": "2026-03-01T12:00:00Z",
        "commandId": command["id"], "outcome": outcome})
}

/// A shop whose user's identity is to be checked.
async fn unverified() -> Shop {
    let shop = Shop::open().await;
    shop.change(json!({"verification": {"identity": "pending"}})).await;
    shop
}

/// Such a shop with a paid order, and the page of the check that it waits for.
async fn waiting() -> (Shop, i64, String) {
    let shop = unverified().await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    let page = path(&shop.reasons(order).await.remove(0));
    (shop, order, page)
}

#[tokio::test]
async fn the_first_visit_starts_the_check_and_its_end_frees_the_coins() {
    let (shop, order, page) = waiting().await;
    let lease = async || shop.connector.lease(10).await;
    assert!(lease().await.is_empty(), "nobody has visited the page");
    let (first, second) = futures::join!(visit(&shop.partner, &page), visit(&shop.partner, &page));
    assert_eq!((first.header("refresh"), second.header("refresh")), (Some("2"), Some("2")));
    let mut started = lease().await;
    assert_eq!(started.len(), 1, "one check for both visits");
    let start = started.remove(0);
    assert_eq!(start["kind"], "identity.start");
    assert!(start["body"]["returnUrl"].as_str().unwrap().ends_with(&page));
    let url = json!({"url": "https://id.example/check?a=1"});
    shop.connector.report(&start, "done", url).await.assert_status(200);
    assert!(
        visit(&shop.partner, &page).await.text().contains("href=\"https://id.example/check?a=1\"")
    );

    shop.connector.event(completed("e-1", &start, "rejected")).await.assert_status(200);
    assert_eq!(shop.payouts(order).await, 0);
    assert_eq!(visit(&shop.partner, &page).await.header("refresh"), Some("2"));
    let again = lease().await.remove(0);
    assert!(again["kind"] == "identity.start" && again["id"] != start["id"]);
    shop.connector.report(&again, "done", json!({})).await.assert_status(200);
    shop.connector.event(completed("e-2", &again, "verified")).await.assert_status(200);
    assert_eq!((shop.payouts(order).await, shop.reasons(order).await.len()), (1, 0));
    shop.connector.event(completed("e-3", &again, "rejected")).await.assert_status(200);
    assert!(shop.reasons(order).await.is_empty(), "a verified identity stays so");
}

#[tokio::test]
async fn an_identity_that_an_operator_has_blocked_stays_so() {
    let (shop, order, page) = waiting().await;
    visit(&shop.partner, &page).await.assert_status(200);
    let start = shop.connector.lease(10).await.remove(0);
    shop.connector.report(&start, "done", json!({})).await.assert_status(200);
    shop.change(json!({"verification": {"identity": "blocked"}})).await;
    shop.connector.event(completed("e", &start, "verified")).await.assert_status(200);
    assert_eq!((shop.payouts(order).await, shop.codes(order).await), (0, vec!["011".to_owned()]));
}

/// The state of the user's identity check.
async fn identity_of(shop: &Shop) -> Value {
    let profile = shop.ada.get("/api/v1/user/info").await.assert_status(200).json();
    profile["status"]["details"]["identityVerificationStatus"].clone()
}

#[tokio::test]
async fn a_check_that_was_begun_for_another_name_verifies_nobody() {
    let (shop, order, page) = waiting().await;
    let rename = async |name: &str| {
        shop.ada.patch("/api/v2/user", &json!({"lastName": name})).await.assert_status(200);
    };
    let begin = async || {
        assert_eq!(visit(&shop.partner, &page).await.header("refresh"), Some("2"));
        let start = shop.connector.lease(10).await.remove(0);
        assert_eq!(start["kind"], "identity.start");
        start
    };
    let tell = async |id: &str, start: &Value, outcome: &str| {
        shop.connector.event(completed(id, start, outcome)).await.assert_status(200);
    };
    let url = json!({"url": "https://id.example/check"});
    let of_lovelace = begin().await;
    shop.connector.report(&of_lovelace, "done", url.clone()).await.assert_status(200);
    rename("King").await;
    tell("e-1", &of_lovelace, "verified").await;
    assert_eq!((shop.payouts(order).await, shop.codes(order).await), (0, vec!["011".to_owned()]));

    let unanswered = begin().await;
    assert_ne!(unanswered["id"], of_lovelace["id"]);
    rename("Byron").await;
    shop.connector.report(&unanswered, "done", url.clone()).await.assert_status(409);

    let failed = begin().await;
    shop.connector.report(&failed, "done", url.clone()).await.assert_status(200);
    tell("e-2", &failed, "rejected").await;
    tell("e-3", &failed, "verified").await;
    assert_eq!(identity_of(&shop).await, "failed", "a check has one end");

    let of_byron = begin().await;
    shop.connector.report(&of_byron, "done", url).await.assert_status(200);
    tell("e-4", &of_byron, "verified").await;
    assert_eq!((shop.payouts(order).await, shop.reasons(order).await.len()), (1, 0));
    rename("King").await;
    tell("e-5", &of_byron, "verified").await;
    assert_eq!(identity_of(&shop).await, "pending");
}

#[tokio::test]
async fn an_identity_that_an_operator_takes_back_is_checked_anew() {
    let (shop, order, page) = waiting().await;
    visit(&shop.partner, &page).await.assert_status(200);
    let start = shop.connector.lease(10).await.remove(0);
    let url = json!({"url": "https://id.example/check"});
    shop.connector.report(&start, "done", url).await.assert_status(200);
    shop.change(json!({"verification": {"identity": "failed"}})).await;
    shop.connector.event(completed("e-1", &start, "verified")).await.assert_status(200);
    assert_eq!((shop.payouts(order).await, identity_of(&shop).await), (0, json!("failed")));
    assert_eq!(visit(&shop.partner, &page).await.header("refresh"), Some("2"));
    let again = shop.connector.lease(10).await.remove(0);
    assert!(again["kind"] == "identity.start" && again["id"] != start["id"]);
}

/// The order that a user makes of a checkout with a share token.
async fn bought(context: &TestContext, user: &User) -> i64 {
    let checkout = json!({"baseCurrency": "ETH", "quoteCurrency": "EUR",
        "paymentMethod": "creditCard", "quoteCurrencyAmount": 100,
        "returnUrl": "https://shop.example/back", "kycShareToken": "share-token-1"});
    user.partner.post("/api/v2/buy/checkout", checkout).await.assert_status(200);
    let offer: Uuid =
        sqlx::query_scalar("select offer_id from checkout").fetch_one(context.db()).await.unwrap();
    let asked =
        json!({"currencyPair": "ETH-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let quote = user.post("/api/v1/buy/quote", &asked).await.assert_status(200).json();
    let confirm = json!({"quote": quote["quote"], "offerId": offer.to_string(),
        "walletAddress": Wallet::new(7).address()});
    let confirmed = user.post("/api/v2/buy/confirm", &confirm).await.assert_status(200).json();
    confirmed["orderId"].as_i64().unwrap()
}

#[tokio::test]
async fn the_share_token_of_a_checkout_is_given_to_the_first_check_and_erased() {
    let shop = unverified().await;
    let order = bought(&shop.context, &shop.ada).await;
    shop.pay(order, 100).await;
    let count = async |query: &'static str| {
        sqlx::query_scalar::<_, i64>(query).fetch_one(shop.context.db()).await.unwrap()
    };
    let kept = "select count(*) from checkout where sealed_share_token is not null";
    assert_eq!(count(kept).await, 1);
    let page = path(&shop.reasons(order).await.remove(0));
    let opened = futures::join!(visit(&shop.partner, &page), visit(&shop.partner, &page));
    assert!(!opened.0.text().contains("share-token-1") && !opened.1.text().contains("share-token"));
    assert_eq!(count(kept).await, 0);
    let mut started = shop.connector.lease(10).await;
    assert_eq!(started.len(), 1);
    let start = started.remove(0);
    assert_eq!(start["body"]["shareToken"], "share-token-1");
    shop.connector.report(&start, "done", json!({})).await.assert_status(200);
    let bodies = "select count(*) from command \
         where kind = 'identity.start' and sealed_body is not null";
    assert_eq!(count(bodies).await, 0);
    shop.connector.event(completed("e", &start, "rejected")).await.assert_status(200);
    visit(&shop.partner, &page).await.assert_status(200);
    let again = shop.connector.lease(10).await.remove(0);
    assert_eq!((&again["kind"], &again["body"]["shareToken"]), (&start["kind"], &Value::Null));
}

#[tokio::test]
async fn the_share_token_of_a_nameless_checkout_goes_with_its_buyer() {
    let shop = unverified().await;
    bought(&shop.context, &shop.ada).await;
    shop.change(json!({"deleted": true})).await;
    let kept = "select count(*) from checkout where sealed_share_token is not null";
    let kept: i64 = sqlx::query_scalar(kept).fetch_one(shop.context.db()).await.unwrap();
    assert_eq!(kept, 0);
}

/// The check that a visit of this page begins, and its share token.
async fn share_token(shop: &Shop, page: &str) -> (Value, Value) {
    visit(&shop.partner, page).await.assert_status(200);
    let start = shop.connector.lease(10).await.remove(0);
    assert_eq!(start["kind"], "identity.start");
    let token = start["body"]["shareToken"].clone();
    (start, token)
}

#[tokio::test]
async fn the_share_token_of_a_checkout_for_another_identifier_is_not_given() {
    let shop = unverified().await;
    let order = bought(&shop.context, &shop.ada).await;
    shop.partner.user("bob").await;
    // As of bob's link, opened without the identifier that it carries.
    let named = "update checkout c set identifier_digest = i.identifier_digest \
                 from buy_order b join user_identifier i on i.user_id <> b.user_id \
                 where b.offer_id = c.offer_id";
    let named = sqlx::query(named).execute(shop.context.db()).await.unwrap();
    assert_eq!(named.rows_affected(), 1);
    shop.pay(order, 100).await;
    let page = path(&shop.reasons(order).await.remove(0));
    assert_eq!(share_token(&shop, &page).await.1, Value::Null);
    let kept = "select count(*) from checkout where sealed_share_token is not null";
    let kept: i64 = sqlx::query_scalar(kept).fetch_one(shop.context.db()).await.unwrap();
    assert_eq!(kept, 1);
}

#[tokio::test]
async fn the_share_token_of_a_user_is_given_to_the_check_and_erased() {
    let shop = unverified().await;
    let token = json!({"shareToken": "share-token-2"});
    shop.ada.patch("/api/v2/user", &token).await.assert_status(200);
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    let page = path(&shop.reasons(order).await.remove(0));
    let (start, given) = share_token(&shop, &page).await;
    assert_eq!(given, "share-token-2");
    let user = shop.context.admin(Method::GET, &shop.user, Value::Null).await.json();
    assert_eq!(user["personal"]["shareToken"], Value::Null);
    assert_eq!(user["personal"]["lastName"], "Lovelace", "the rest stays");
    shop.connector.report(&start, "done", json!({})).await.assert_status(200);
    shop.connector.event(completed("e", &start, "rejected")).await.assert_status(200);
    assert_eq!(share_token(&shop, &page).await.1, Value::Null);
}

#[tokio::test]
async fn the_share_token_of_an_onboarding_url_is_given_to_the_first_check_alone() {
    let shop = unverified().await;
    let body = json!({"returnUrl": "https://shop.example/back", "kycShareToken": "share-token-3"});
    let made = shop.partner.post("/api/v2/sell/onboarding", body).await.assert_status(200).json();
    let url = made["onboardingUrl"].as_str().unwrap();
    let url = url.strip_prefix("https://pay.example.com").unwrap();
    let (email, password) = (&*shop.ada.email, &*shop.ada.password);
    let form = [("action", "log-in"), ("email", email), ("password", password)];
    send(&shop.partner, url, &form).await.assert_status(200);
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    let page = path(&shop.reasons(order).await.remove(0));
    let (start, given) = share_token(&shop, &page).await;
    assert_eq!(given, "share-token-3");
    shop.connector.report(&start, "done", json!({})).await.assert_status(200);
    send(&shop.partner, url, &form).await.assert_status(200);
    shop.connector.event(completed("e", &start, "rejected")).await.assert_status(200);
    send(&shop.partner, url, &form).await.assert_status(200);
    assert_eq!(share_token(&shop, &page).await.1, Value::Null, "it was given already");
}

#[tokio::test]
async fn the_share_token_of_a_registration_is_given_to_the_check() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut body = registration("ada");
    body["shareToken"] = json!("share-token-4");
    acme.post("/api/v2/user", body.clone()).await.assert_status(200);
    let text = |member: &str| body[member].as_str().unwrap().to_owned();
    let ada = User {
        partner: acme.clone(),
        identifier: text("identifier"),
        email: text("email"),
        password: text("password"),
    };
    let order = order_of(&ada, 100, &Wallet::new(7).address()).await;
    let reasons = reasons_of(&ada, order).await;
    let page = path(reasons.iter().find(|reason| reason["code"] == "011").unwrap());
    let shown = visit(&acme, &page).await;
    let given = "De winkel heeft de share token";
    assert!(shown.assert_status(200).text().contains(given), "{}", shown.text());
}

#[tokio::test]
async fn the_sandbox_shows_that_a_share_token_was_given() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (ada, bob) = (acme.user("ada").await, acme.user("bob").await);
    let page_of = async |user: &User, order: i64| {
        let reasons = reasons_of(user, order).await;
        path(reasons.iter().find(|reason| reason["code"] == "011").unwrap())
    };
    let order = bought(&context, &ada).await;
    let other = order_of(&bob, 100, &Wallet::new(8).address()).await;
    let given = "De winkel heeft de share token";
    let without = visit(&acme, &page_of(&bob, other).await).await;
    assert!(!without.assert_status(200).text().contains(given), "{}", without.text());
    let page = page_of(&ada, order).await;
    for _ in 0..2 {
        let shown = visit(&acme, &page).await;
        let text = shown.assert_status(200).text();
        assert!(text.contains(given) && !text.contains(REFUSED), "{text}");
    }
    send(&acme, &page, &[("outcome", "failed")]).await.assert_status(200);
    let again = visit(&acme, &page).await;
    let text = again.assert_status(200).text();
    assert!(!text.contains(given) && text.contains(REFUSED), "{text}");
}
