//! Payment methods, and who decides their order.

use http::Method;
use rampart_core::platform::crypto::Purpose;
use rampart_tests::guests::component;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{METHODS, change};

fn codes(methods: &Value) -> Vec<&str> {
    let methods = methods["paymentMethods"].as_array().unwrap();
    methods.iter().map(|method| method["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn methods_are_listed_in_their_literal_shape_and_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let default = acme.get(METHODS).await.json();
    let card = json!({
        "code": "creditCard", "label": "Credit card", "psp": "cardprocessor", "limit": 5000,
        "fees": {"fixed": 0.25, "percentage": 2.5}, "expirationPeriod": 900, "openInNewTab": false,
        "context": [{"type": "acceptedCards", "value": ["visa", "mastercard"]}],
        "usesEstimatedQuote": false,
    });
    assert_eq!(default["paymentMethods"][0], card);
    assert_eq!(codes(&default).len(), 11);
    for country in ["be", "BE", "Be"] {
        let methods = acme.get(&format!("{METHODS}?countryCode={country}")).await.json();
        let first = &codes(&methods)[..4];
        assert_eq!(first, ["localcard", "bankTransfer", "creditCard", "bankredirect1"]);
    }
    for unknown in ["si", "xx", "", "belgium"] {
        let methods = acme.get(&format!("{METHODS}?countryCode={unknown}")).await.json();
        assert_eq!(codes(&methods), codes(&default), "{unknown}");
    }
    let path = "/admin/v1/payment-methods/creditCard";
    change(&context, Method::PATCH, path, json!({"enabled": false})).await;
    let methods = acme.get(METHODS).await.json();
    assert!(!codes(&methods).contains(&"creditCard"));
}

/// A user of the partner, and the identifier that proves it.
async fn user(context: &TestContext, partner: &Partner, country: &str) -> (Uuid, String) {
    let (user, identifier) = (context.clock().uuid().unwrap(), "a".repeat(36));
    let client: Uuid = partner.id.parse().unwrap();
    sqlx::query(
        "insert into end_user (client_id, user_id, country, created_at) values ($1, $2, $3, now())",
    )
    .bind(client)
    .bind(user)
    .bind(country)
    .execute(context.db())
    .await
    .unwrap();
    let text = format!("identifier/{}/{identifier}", partner.id);
    let digest = context.core().keys.mac(Purpose::BlindIndex, text.as_bytes()).unwrap();
    sqlx::query(
        "insert into user_identifier (client_id, identifier_digest, user_id, created_at) \
         values ($1, $2, $3, now())",
    )
    .bind(client)
    .bind(digest.as_ref())
    .bind(user)
    .execute(context.db())
    .await
    .unwrap();
    (user, identifier)
}

#[tokio::test]
async fn a_user_decides_the_order_and_the_country_code_does_not() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (user, identifier) = user(&context, &acme, "DE").await;
    let list = || async {
        let request = acme.request(Method::GET, &format!("{METHODS}?countryCode=nl"));
        request.header("user-identifier", &identifier).send().await.json()
    };
    assert_eq!(codes(&list().await)[..2], ["bankredirect2", "bankredirect3"]);
    for (number, status, method) in
        [(1_i64, "completed", "walletpay"), (2, "cancelled", "creditCard")]
    {
        sqlx::query(
            "insert into buy_order (client_id, order_id, quote_id, user_id, status, pair, \
             payment_method, wallet_address, wallet_type, fiat_amount, fiat_currency, \
             crypto_amount, crypto_currency, price, partner_fee, provider_fee, \
             payment_method_fee, network_fee, spread_fee, affiliate_fee, is_estimated_quote, \
             terms_digest, created_at, updated_at) \
             values ($1, $2, gen_random_uuid(), $3, $4, 'BTC-EUR', $5, 'x', 'unhosted', 1, 'EUR', \
             1, 'BTC', 1, 0, 0, 0, 0, 0, 0, false, '', now(), now())",
        )
        .bind(acme.id.parse::<Uuid>().unwrap())
        .bind(number)
        .bind(user)
        .bind(status)
        .bind(method)
        .execute(context.db())
        .await
        .unwrap();
    }
    assert_eq!(codes(&list().await)[..3], ["walletpay", "bankredirect2", "bankredirect3"]);
}

#[tokio::test]
async fn the_partners_policy_has_the_last_word_on_the_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let config = "%7B%22countries%22:[%22NL=wallet,card%22,%22*=payByBank%22],\
                  %22hide%22:[%22walletpay%22]%7D";
    let path = format!("/admin/v1/partners/acme/policies/method-order?config={config}");
    context.admin_bytes(Method::PUT, &path, component("country-order")).await.assert_status(200);
    let list = async |query: &str| acme.get(&format!("{METHODS}{query}")).await.json();
    let anywhere = list("").await;
    assert_eq!((codes(&anywhere)[0], codes(&anywhere).len()), ("payByBank", 10));
    let netherlands = list("?countryCode=nl").await;
    assert_eq!(codes(&netherlands)[..3], ["mobilepay1", "mobilepay2", "localcard"]);
    assert!(!codes(&netherlands).contains(&"walletpay"), "it is hidden");
}

/// Makes this partner's policy hide some of the methods.
async fn hide(context: &TestContext, slug: &str, hidden: &[&str]) {
    let hidden: Vec<_> = hidden.iter().map(|code| format!("%22{code}%22")).collect();
    let config =
        format!("%7B%22countries%22:[%22*=wallet%22],%22hide%22:[{}]%7D", hidden.join(","));
    let path = format!("/admin/v1/partners/{slug}/policies/method-order?config={config}");
    context.admin_bytes(Method::PUT, &path, component("country-order")).await.assert_status(200);
}

#[tokio::test]
async fn a_policy_sees_what_its_live_partner_is_offered() {
    let context = TestContext::start().await;
    let live = json!({"slug": "live", "name": "L", "mode": "live"});
    let live = context.partner_of(live).await;
    let list = async |query: &str| live.get(&format!("{METHODS}{query}")).await.json();
    let routed = list("").await;
    assert_eq!(codes(&routed), ["creditCard", "walletpay", "bankTransfer"]);
    hide(&context, "live", &["creditCard"]).await;
    assert_eq!(codes(&list("").await), ["walletpay", "bankTransfer"]);
    // Others of the catalogue would stay, but this partner is offered none of them.
    hide(&context, "live", &["creditCard", "walletpay", "bankTransfer"]).await;
    for query in ["", "?countryCode=nl", "?channel=ios"] {
        assert_eq!(codes(&list(query).await).len(), 3, "hiding everything is ignored: {query}");
    }
    let test = context.partner("acme").await;
    hide(&context, "acme", &["creditCard", "walletpay", "bankTransfer"]).await;
    let shown = test.get(METHODS).await.json();
    assert_eq!(codes(&shown).len(), 8);
}

#[tokio::test]
async fn a_policy_ranks_the_first_methods_of_a_large_catalogue() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    sqlx::query(
        "insert into payment_method (code, label, psp, kind, amount_limit, \
             expiration_period_seconds, position) \
         select 'more' || n, 'More', 'bank', 'other', 100, 900, 1000 + n \
         from generate_series(1, 60) n",
    )
    .execute(context.db())
    .await
    .unwrap();
    let path = "/admin/v1/payment-methods/creditCard";
    change(&context, Method::PATCH, path, json!({"enabled": true})).await;
    assert_eq!(codes(&acme.get(METHODS).await.json()).len(), 71);
    hide(&context, "acme", &["walletpay", "more1"]).await;
    let shown = acme.get(METHODS).await.json();
    let shown = codes(&shown);
    assert_eq!(shown.len(), 69);
    assert!(!shown.contains(&"walletpay") && !shown.contains(&"more1"));
    assert_eq!(shown.last(), Some(&"more60"), "those beyond 64 follow");
}
