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
    // Fuel decides on a busy machine, not the clock.
    let context = TestContext::with(|settings| settings.policy.deadline_ms = 5_000).await;
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
