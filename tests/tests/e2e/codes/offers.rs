//! Offers, checkouts and onboarding.

use http::Method;
use rampart_tests::caller::Caller;
use rampart_tests::cluster;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::guests::component;
use rampart_tests::keys::ed25519;
use serde_json::{Value, json};

use super::Row;
use super::fixtures::{Fixtures, with};

pub(super) const OFFER: &str = "/api/v2/buy/offer";
const CHECKOUT: &str = "/api/v2/buy/checkout";
const ONBOARDING: &str = "/api/v2/sell/onboarding";
const VERIFY: &str = "/api/v2/sell/onboarding/verify";
/// More than a signature policy takes, within what a body may be.
const LARGE: usize = 200_000;

/// An offer that can be made, changed.
pub(super) fn offer(changes: Value) -> Value {
    let valid =
        json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"});
    with(valid, changes)
}

pub(super) async fn rows(fixtures: &Fixtures) -> Vec<Row> {
    let mut rows = terms(fixtures);
    rows.extend(covered(fixtures));
    rows.extend(signatures(fixtures));
    rows.extend(checkouts(fixtures));
    rows.extend(onboarding(fixtures));
    rows.extend(logins(fixtures).await);
    rows.extend(partners(fixtures).await);
    rows
}

fn terms(fixtures: &Fixtures) -> Vec<Row> {
    let fixed = |name: &str, changes| with(json!({ name: true }), changes);
    let by_id =
        |source: &str, target: &str| json!({"sourceCurrency": source, "targetCurrency": target});
    let eur = "swift:0/iso4217:EUR";
    let btc = "bip122:000000000019d6689c085ae165831e93/slip44:0";
    let two = json!({"baseCurrencyAmount": 1, "quoteCurrencyAmount": 100});
    let wrong = [
        ("ER300", "no currency to fix", fixed("fixedCurrency", json!({"baseCurrency": ""}))),
        ("ER301", "a number for a currency", json!({"baseCurrency": 7})),
        ("ER302", "a blank quote currency", json!({"quoteCurrency": ""})),
        ("ER303", "a number for a quote currency", json!({"quoteCurrency": 7})),
        ("ER304", "text for an amount", json!({"baseCurrencyAmount": "1"})),
        ("ER305", "text for a quote amount", json!({"quoteCurrencyAmount": "100"})),
        ("ER306", "no method to fix", fixed("fixedPaymentMethod", json!({"paymentMethod": ""}))),
        ("ER307", "a number for a method", json!({"paymentMethod": 7})),
        ("ER311", "a number for a reference", json!({"partnerOrderIdentifier": 7})),
        ("ER313", "a number for a tag", json!({"walletAddressTag": 7})),
        ("ER314", "a time in words", json!({"expireTime": "soon"})),
        ("ER316", "fixed in words", json!({"fixedAmount": "yes"})),
        ("ER317", "a fixed currency in words", json!({"fixedCurrency": "yes"})),
        ("ER318", "a fixed method in words", json!({"fixedPaymentMethod": "yes"})),
        ("ER319", "shown in words", json!({"showWalletAddress": "yes"})),
        ("ER320", "two amounts", two),
        ("ER322", "a blank time", json!({"expireTime": ""})),
        ("ER326", "a pair that there is not", json!({"quoteCurrency": "JPY"})),
        ("ER327", "a method that there is not", json!({"paymentMethod": "cash"})),
        ("ER329", "a minute", json!({"expireTime": 60})),
        ("ER330", "no amount to fix", fixed("fixedAmount", json!({}))),
        ("ER332", "no method", json!({"paymentMethod": null})),
        ("ER337", "a blank currency", json!({"baseCurrency": ""})),
        ("ER402", "an unknown target", by_id(eur, "bip122:0/slip44:0")),
        ("ER403", "an unknown source", by_id("swift:0/iso4217:XXX", btc)),
    ];
    let row = |(code, wrong, changes)| Row::new(code, wrong, fixtures.post(OFFER, &offer(changes)));
    wrong.into_iter().map(row).collect()
}

/// Members that must be signed. Their form is looked at first, so that any signature does.
fn covered(fixtures: &Fixtures) -> Vec<Row> {
    let wrong = [
        ("ER047", "a return URL that is none", json!({"returnUrl": "shop"})),
        ("ER308", "a blank return URL", json!({"returnUrl": " "})),
        ("ER309", "a number for a return URL", json!({"returnUrl": 7})),
        ("ER310", "a number for a callback URL", json!({"callbackUrl": 7})),
        ("ER312", "a number for an address", json!({"walletAddress": 7})),
        ("ER315", "text for a fee", json!({"fee": "1"})),
        ("ER321", "a blank callback URL", json!({"callbackUrl": ""})),
        ("ER323", "a blank fee", json!({"fee": ""})),
    ];
    let row = |(code, wrong, changes)| {
        let signed = with(changes, json!({"signature": "00"}));
        Row::new(code, wrong, fixtures.post(OFFER, &offer(signed)))
    };
    wrong.into_iter().map(row).collect()
}

fn signatures(fixtures: &Fixtures) -> Vec<Row> {
    let signed = |signature: Value| {
        let members = json!({"returnUrl": "app:back", "signature": signature});
        fixtures.post(OFFER, &offer(members))
    };
    let other = fixtures.shop.sign("returnUrl=app%3Aelsewhere");
    vec![
        Row::new("ER336", "a signature of another URL", signed(other.into())),
        Row::new("ER338", "a number for a signature", signed(7.into())),
        Row::new("ER339", "no signature", signed(Value::Null)),
    ]
}

fn checkouts(fixtures: &Fixtures) -> Vec<Row> {
    let wrong = [
        ("ER102", "a short identifier", json!({"identifier": "short"})),
        ("ER326", "a blank quote currency", json!({"quoteCurrency": ""})),
        ("ER359", "an address of nowhere", json!({"walletAddress": "bc1q"})),
        ("ER366", "a number for a share token", json!({"kycShareToken": 7})),
        ("ER367", "a blank share token", json!({"kycShareToken": ""})),
    ];
    let row =
        |(code, wrong, changes)| Row::new(code, wrong, fixtures.post(CHECKOUT, &offer(changes)));
    wrong.into_iter().map(row).collect()
}

/// Offers for a user whom a login token names.
async fn logins(fixtures: &Fixtures) -> Vec<Row> {
    const LOGIN_TOKEN: &str = "/api/v1/user/login-token";
    let earlier = fixtures.earlier().await;
    let earlier = earlier.request(Method::GET, LOGIN_TOKEN);
    let earlier = earlier.header("user-identifier", &fixtures.ada.identifier).send().await;
    let expired = earlier.assert_status(200).json()["token"].clone();
    let lost = fixtures.person("lost").await;
    let token = fixtures.key.request(Method::GET, LOGIN_TOKEN);
    let token = token.header("user-identifier", &lost.identifier).send().await;
    let orphan = token.assert_status(200).json()["token"].clone();
    let path = format!("/admin/v1/users/{}", lost.uuid);
    fixtures.operator(Method::PATCH, &path, json!({"deleted": true})).await;
    let wrong = [
        ("ER333", "a login token that is none", json!("dW5rbm93bg")),
        ("ER334", "a login token of a time that is over", expired),
        ("ER335", "a login token of somebody who is gone", orphan),
    ];
    let row = |(code, wrong, token): (_, _, Value)| {
        let body = offer(json!({ "loginToken": token }));
        Row::new(code, wrong, fixtures.post(CHECKOUT, &body))
    };
    wrong.into_iter().map(row).collect()
}

fn onboarding(fixtures: &Fixtures) -> Vec<Row> {
    let wrong = [
        ("ER047", "a return URL that is none", json!({"returnUrl": "shop"})),
        ("ER053", "an empty identifier", json!({"identifier": ""})),
        ("ER099", "a language of no page", json!({"locale": "it"})),
        ("ER102", "a short identifier", json!({"identifier": "short"})),
        ("ER308", "no return URL", json!({"returnUrl": null})),
        ("ER367", "a blank share token", json!({"kycShareToken": ""})),
        ("ER417", "no payout method", json!({"payoutMethods": []})),
    ];
    let row = |(code, wrong, changes)| {
        let body = with(json!({"returnUrl": "app:back"}), changes);
        Row::new(code, wrong, fixtures.post(ONBOARDING, &body))
    };
    let mut rows: Vec<_> = wrong.into_iter().map(row).collect();
    let forged = json!({"returnUrl": "app:back", "signature": "00".repeat(32)});
    rows.push(Row::new("ER336", "a URL that is none of ours", fixtures.post(VERIFY, &forged)));
    rows
}

/// Partners that are set up in a way that stands against every offer of theirs.
async fn partners(fixtures: &Fixtures) -> Vec<Row> {
    let strict = fixtures.partner("strict").await;
    let change = json!({"walletAddressRequired": true});
    fixtures.operator(Method::PATCH, "/admin/v1/partners/strict", change).await;
    let strict = strict.request(Method::POST, OFFER).json(&offer(json!({})));

    let keyless = fixtures.partner("keyless").await.authenticated().await;
    let shown = fixtures.operator(Method::GET, "/admin/v1/partners/keyless", json!({})).await;
    let key = shown["apiKeys"][0]["id"].as_str().unwrap();
    let path = format!("/admin/v1/partners/keyless/api-keys/{key}");
    fixtures.operator(Method::DELETE, &path, json!({})).await;
    let keyless = keyless.request(Method::POST, ONBOARDING).json(&json!({"returnUrl": "app:x"}));

    let guarded = fixtures.partner("guarded").await;
    let key = "/admin/v1/partners/guarded/verification-keys/partner-ed25519";
    let body = json!({"algorithm": "ed25519", "key": ed25519(7).1});
    fixtures.operator(Method::PUT, key, body).await;
    let path = "/admin/v1/partners/guarded/policies/signature";
    let pushed = fixtures.edge.admin_bytes(Method::PUT, path, component("ed25519-offer")).await;
    pushed.assert_status(200);
    let large = offer(json!({"unknown": "x".repeat(LARGE)}));
    let guarded = guarded.request(Method::POST, OFFER).json(&large);

    let secretless = secretless(fixtures).await;
    let signed = json!({"returnUrl": "app:x", "signature": "00".repeat(32)});
    let secretless = secretless.request(Method::POST, OFFER).json(&offer(signed));
    vec![
        Row::new("ER324", "a policy that breaks", guarded),
        Row::new("ER325", "no address where one is wanted", strict),
        Row::new("ER331", "a client without a secret", secretless),
        Row::new("ER340", "a client without a key", keyless),
    ]
}

/// A partner whose signing secret is lost, once the edge has seen it.
async fn secretless(fixtures: &Fixtures) -> Caller {
    let partner = fixtures.partner("secretless").await;
    let db = cluster::pool(fixtures.edge.setup().database()).await;
    for statement in [
        "delete from client_secret where kind = 'signing' \
         and client_id = (select client_id from client where slug = 'secretless')",
        "update client set revision = (select max(revision) + 1 from client) \
         where slug = 'secretless'",
        "update change_counter set revision = revision + 1 where scope = 'clients'",
    ] {
        sqlx::query(statement).execute(&db).await.unwrap();
    }
    let claim = json!({"returnUrl": "app:x", "signature": "00".repeat(32)});
    until("the secret is gone", SOON, async || {
        (partner.post(VERIFY, claim.clone()).await.codes() == ["ER331"]).then_some(())
    })
    .await;
    partner
}
