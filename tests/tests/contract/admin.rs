//! The operators' API.

pub(crate) mod table;

use chrono::{DateTime, TimeDelta, Utc};
use http::Method;
use rampart_api::operate::listener;
use rampart_tests::test_context::TestContext;
use serde_json::json;

#[tokio::test]
async fn without_the_token_nothing_is_told() {
    let context = TestContext::start().await;
    let head = rampart_tests::test_context::head(Method::GET, "/admin/v1/partners");
    let reply = listener::answer(context.core(), head, bytes::Bytes::new()).await;
    assert_eq!(reply.status, 401);
    assert!(std::str::from_utf8(&reply.body).unwrap().starts_with(r#"{"error":""#));
}

#[tokio::test]
async fn the_house_is_no_partner_to_be_changed() {
    let context = TestContext::start().await;
    for (method, path, body) in [
        (Method::GET, "", json!({})),
        (Method::PATCH, "", json!({"status": "active"})),
        (Method::POST, "/api-keys", json!({})),
        (Method::POST, "/secrets/rotate", json!({"kind": "password"})),
        (Method::POST, "/staff", json!({"email": "eve@mail.example.com", "role": "owner"})),
    ] {
        let path = format!("/admin/v1/partners/house{path}");
        context.admin(method, &path, body).await.assert_status(404);
    }
    let status = "select status from client where slug = 'house'";
    let status: String = sqlx::query_scalar(status).fetch_one(context.db()).await.unwrap();
    assert_eq!(status, "suspended");
}

#[tokio::test]
async fn a_partner_is_made_listed_and_changed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    assert!(acme.api_key.starts_with("rk_test_") && acme.webhook_secret.starts_with("whsec_"));
    let twice = json!({"slug": "acme", "name": "Again", "mode": "live"});
    context.admin(Method::POST, "/admin/v1/partners", twice).await.assert_status(409);
    let change = json!({
        "defaultFeePercentage": 1.5, "feeCapPercentage": 3, "walletAddressRequired": true,
        "allowedCountries": ["NL", "DE"], "rateLimits": {"quotes": "5/s burst 7"},
    });
    let changed = context.admin(Method::PATCH, "/admin/v1/partners/acme", change).await;
    changed.assert_status(200);
    let read = context.admin(Method::GET, "/admin/v1/partners/acme", json!({})).await.json();
    assert_eq!(read["defaultFeePercentage"].to_string(), "1.5");
    assert_eq!(read["rateLimits"]["quotes"], "5/s burst 7");
    assert_eq!(read["allowedCountries"], json!(["NL", "DE"]));
    // The name of the key may be told; an underscore may stand in the secret too.
    let secret = acme.api_key.splitn(4, '_').nth(3).unwrap();
    assert!(secret.len() > 20 && !read.to_string().contains(secret));
    let list = context.admin(Method::GET, "/admin/v1/partners", json!({})).await.json();
    assert_eq!(list[0]["slug"], "acme");
}

#[tokio::test]
async fn members_of_an_object_that_are_left_out_stay_as_they_are() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for (change, name, wanted) in [
        (
            json!({"rateLimits": {"client": "50/s burst 100", "quotes": "5/s burst 7"}}),
            "rateLimits",
            json!({"client": "50/s burst 100", "quotes": "5/s burst 7"}),
        ),
        (
            json!({"rateLimits": {}}),
            "rateLimits",
            json!({"client": "50/s burst 100", "quotes": "5/s burst 7"}),
        ),
        (
            json!({"rateLimits": {"client": "60/s burst 90"}}),
            "rateLimits",
            json!({"client": "60/s burst 90", "quotes": "5/s burst 7"}),
        ),
        (
            json!({"rateLimits": {"quotes": null, "login": "9/min burst 9"}}),
            "rateLimits",
            json!({"client": "60/s burst 90", "login": "9/min burst 9"}),
        ),
        (
            json!({"guestOrders": {"allowed": true, "maxFiat": 150}}),
            "guestOrders",
            json!({"allowed": true, "maxFiat": 150}),
        ),
        (
            json!({"guestOrders": {"allowed": false}}),
            "guestOrders",
            json!({"allowed": false, "maxFiat": 150}),
        ),
        (
            json!({"guestOrders": {"maxFiat": 90.5}}),
            "guestOrders",
            json!({"allowed": false, "maxFiat": 90.5}),
        ),
        (
            json!({"guestOrders": {"maxFiat": null}}),
            "guestOrders",
            json!({"allowed": false, "maxFiat": null}),
        ),
    ] {
        let path = "/admin/v1/partners/acme";
        let changed = context.admin(Method::PATCH, path, change.clone()).await;
        assert_eq!(changed.assert_status(200).json()[name], wanted, "{change}");
        let read = context.admin(Method::GET, path, json!({})).await.json();
        assert_eq!(read[name], wanted, "{change}");
    }
}

#[tokio::test]
async fn a_change_of_a_partner_that_does_not_exist_is_not_found() {
    let context = TestContext::start().await;
    for body in [
        json!({}),
        json!({"policySignatureRequired": true}),
        json!({"policySignatureRequired": false}),
        json!({"mode": "test"}),
        json!({"rateLimits": {"client": "5/s"}}),
    ] {
        let changed = context.admin(Method::PATCH, "/admin/v1/partners/nobody", body.clone()).await;
        assert_eq!(changed.status(), 404, "{body}: {}", changed.text());
    }
}

#[tokio::test]
async fn a_price_in_the_list_has_its_end() {
    let context = TestContext::start().await;
    let set = json!({"price": 50_000, "maxAgeSeconds": 600});
    context.admin(Method::PUT, "/admin/v1/prices/BTC-EUR", set).await.assert_status(200);
    let listed = context.admin(Method::GET, "/admin/v1/prices", json!({})).await.json();
    let pair = listed.as_array().unwrap().iter().find(|row| row["pair"] == "BTC-EUR").unwrap();
    let at = |name: &str| -> DateTime<Utc> { pair[name].as_str().unwrap().parse().unwrap() };
    assert_eq!(at("validUntil") - at("observedAt"), TimeDelta::seconds(600));
}

#[tokio::test]
async fn a_typing_error_is_seen_and_changes_nothing() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for body in [
        json!({"status": "paused"}),
        json!({"feeCap": 1}),
        json!({"feeCapPercentage": 21}),
        json!({"defaultFeePercentage": -1}),
        json!({"allowedCountries": ["XX"]}),
        json!({"rateLimits": {"client": "fast"}}),
        json!({"rateLimits": {"nobody": "1/s"}}),
    ] {
        let answer = context.admin(Method::PATCH, "/admin/v1/partners/acme", body.clone()).await;
        answer.assert_status(422);
        assert!(answer.json()["error"].is_string(), "{body}");
    }
    let broken = context.admin_bytes(Method::PATCH, "/admin/v1/partners/acme", "{".into()).await;
    broken.assert_status(400);
    let audit = context.admin(Method::GET, "/admin/v1/audit?target=acme", json!({})).await.json();
    assert_eq!(audit.as_array().unwrap().len(), 1, "only the creation: {audit}");
}

#[tokio::test]
async fn the_audit_is_searched_by_every_criterion() {
    let context = TestContext::start().await;
    for slug in ["acme", "beta"] {
        context.partner(slug).await;
        context.clock().advance(TimeDelta::hours(1));
    }
    let change = json!({"name": "Beta"});
    context.admin(Method::PATCH, "/admin/v1/partners/beta", change).await.assert_status(200);
    let found = async |query: &str| {
        let path = format!("/admin/v1/audit?{query}");
        let found = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
        found.as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>()
    };
    let all = found("limit=500").await;
    let changed = found("action=partner.change").await;
    assert_eq!(changed, all[..1]);
    assert_eq!(found("actor=admin").await, all);
    assert_eq!(found("actor=nobody").await.len(), 0);
    let entries = context.admin(Method::GET, "/admin/v1/audit", json!({})).await.json();
    let at = entries[0]["at"].as_str().unwrap();
    assert_eq!(found(&format!("from={at}")).await, changed);
    assert_eq!(found(&format!("before={at}")).await, all[1..]);
    assert_eq!(found(&format!("from={at}&target=acme")).await.len(), 0);
    let path = "/admin/v1/audit?from=yesterday";
    context.admin(Method::GET, path, json!({})).await.assert_status(422);
}

#[tokio::test]
async fn a_suspended_partner_is_refused_on_every_edge_at_the_next_poll() {
    let context = TestContext::start().await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    other.core().refresh().await.unwrap();
    acme.at(&other).get("/api/v2/system/errors").await.assert_status(200);
    let suspend = json!({"status": "suspended"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", suspend).await.assert_status(200);
    acme.get("/api/v2/system/errors").await.assert_codes(&["ER805"]);
    other.core().refresh().await.unwrap();
    acme.at(&other).get("/api/v2/system/errors").await.assert_codes(&["ER805"]);
}

#[tokio::test]
async fn a_database_that_has_lost_changes_is_served_as_it_is() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let suspend = json!({"status": "suspended"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", suspend).await.assert_status(200);
    acme.get("/api/v2/system/errors").await.assert_codes(&["ER805"]);
    // As a standby has it that lacks the last changes.
    let earlier = "update client set status = 'active', revision = 1; \
        update change_counter set revision = 1 where scope = 'clients'";
    sqlx::raw_sql(earlier).execute(context.db()).await.unwrap();
    context.core().refresh().await.unwrap();
    acme.get("/api/v2/system/errors").await.assert_status(200);
}

#[tokio::test]
async fn keys_are_issued_bound_and_revoked() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = "/admin/v1/partners/acme/api-keys";
    let bound = json!({"name": "office", "allowedAddresses": ["192.0.2.0/24"]});
    let issued = context.admin(Method::POST, path, bound).await;
    let key = issued.assert_status(201).json();
    let with = |key: &serde_json::Value| {
        let text = key["apiKey"].as_str().unwrap().to_owned();
        acme.anonymous(Method::GET, "/api/v2/system/errors").header("x-api-key", &text)
    };
    with(&key).send().await.assert_codes(&["ER805"]);
    with(&key).from("192.0.2.7".parse().unwrap()).send().await.assert_status(200);
    let id = key["id"].as_str().unwrap();
    context.admin(Method::DELETE, &format!("{path}/{id}"), json!({})).await.assert_status(204);
    let refused = with(&key).from("192.0.2.7".parse().unwrap()).send().await;
    refused.assert_codes(&["ER805"]);
    context.admin(Method::DELETE, &format!("{path}/{id}"), json!({})).await.assert_status(404);
    let expired = json!({"expiresAt": "2020-01-01T00:00:00Z"});
    let expired = context.admin(Method::POST, path, expired).await.json();
    with(&expired).send().await.assert_codes(&["ER805"]);
}

#[tokio::test]
async fn rotated_secrets_overlap() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let path = "/admin/v1/partners/acme/secrets/rotate";
    let rotated = context.admin(Method::POST, path, json!({"kind": "signing"})).await;
    rotated.assert_status(200);
    let snapshot = context.core().snapshots.current();
    let tenant = snapshot.tenants.values().find(|tenant| &*tenant.slug == "acme").unwrap();
    let secrets = &tenant.signing_secrets;
    assert_eq!(secrets.len(), 2);
    assert_eq!(secrets[0].secret.expose(), rotated.json()["secret"].as_str().unwrap());
    assert!(secrets[1].is_live(context.clock().now()));
    context.clock().advance(TimeDelta::seconds(86_401));
    assert!(
        !secrets[1].is_live(context.clock().now()) && secrets[0].is_live(context.clock().now())
    );
    context.admin(Method::POST, path, json!({"kind": "admin"})).await.assert_status(422);
}

#[tokio::test]
async fn a_rotation_without_overlap_ends_every_earlier_secret() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let path = "/admin/v1/partners/acme/secrets/rotate";
    for kind in ["signing", "webhook", "password"] {
        for overlap in [86_400, 3_600] {
            let body = json!({"kind": kind, "overlapSeconds": overlap});
            context.admin(Method::POST, path, body).await.assert_status(200);
        }
        context.clock().advance(TimeDelta::seconds(1));
        let body = json!({"kind": kind, "overlapSeconds": 0});
        context.admin(Method::POST, path, body).await.assert_status(200);
        context.clock().advance(TimeDelta::seconds(1));
        let live = "select count(*) from client_secret \
            where kind = $1 and (valid_until is null or valid_until > $2)";
        let live = sqlx::query_scalar::<_, i64>(live).bind(kind).bind(context.clock().now());
        assert_eq!(live.fetch_one(context.db()).await.unwrap(), 1, "{kind}");
    }
}

#[tokio::test]
async fn the_market_is_changed_within_its_bounds() {
    let context = TestContext::start().await;
    let set = context.admin(Method::PUT, "/admin/v1/prices/BTC-EUR", json!({"price": 51234.56}));
    assert_eq!(set.await.assert_status(200).json()["price"].to_string(), "51234.56");
    for (path, body, status) in [
        ("/admin/v1/prices/BTC-EUR", json!({"price": 0}), 422),
        ("/admin/v1/prices/BTC-EUR", json!({"price": "cheap"}), 422),
        ("/admin/v1/prices/BTC-JPY", json!({"price": 1}), 404),
        ("/admin/v1/prices/nonsense", json!({"price": 1}), 404),
    ] {
        context.admin(Method::PUT, path, body).await.assert_status(status);
    }
    for (path, body, status) in [
        ("/admin/v1/pairs/BTC-EUR", json!({"buy": {"status": "maintenance"}}), 200),
        ("/admin/v1/pairs/BTC-EUR", json!({"buy": {"status": "asleep"}}), 422),
        ("/admin/v1/pairs/BTC-EUR", json!({"buy": {"min": 10, "max": 5}}), 422),
        ("/admin/v1/pairs/BTC-EUR", json!({"spread": 1}), 422),
        ("/admin/v1/payment-methods/creditCard", json!({"fees": {"fixed": 0.5}}), 200),
        ("/admin/v1/payment-methods/creditCard", json!({"limit": -1}), 422),
        ("/admin/v1/payment-methods/cowries", json!({"enabled": false}), 404),
    ] {
        let answer = context.admin(Method::PATCH, path, body.clone()).await;
        assert_eq!(answer.status(), status, "{path} {body} {}", answer.text());
    }
}

#[tokio::test]
async fn a_text_that_cannot_be_stored_is_the_operators_error() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let name = json!({"slug": "other", "name": "a\u{0}b", "mode": "test"});
    context.admin(Method::POST, "/admin/v1/partners", name).await.assert_status(422);
    let key = json!({"name": "a\u{0}b"});
    context.admin(Method::POST, "/admin/v1/partners/acme/api-keys", key).await.assert_status(422);
}

#[tokio::test]
async fn a_time_that_cannot_be_stored_is_the_operators_error() {
    let context = TestContext::start().await;
    let at = "-9999-01-01T00:00:00Z";
    let price = json!({"price": 1, "quotesValidFrom": at});
    for (method, path, body) in [
        (Method::GET, format!("ledger/balances?at={at}"), json!({})),
        (Method::GET, format!("ledger/entries?from={at}"), json!({})),
        (Method::GET, format!("audit?from={at}"), json!({})),
        (Method::PUT, "prices/BTC-EUR".to_owned(), price),
    ] {
        let refused = context.admin(method, &format!("/admin/v1/{path}"), body).await;
        let refused = refused.assert_status(422).json();
        assert!(refused["error"].as_str().unwrap().contains("out of range"), "{path}: {refused}");
    }
}

#[tokio::test]
async fn lists_are_bounded_as_asked() {
    let context = TestContext::start().await;
    for list in ["orders", "deliveries", "audit"] {
        let get = async |limit: &str| {
            let path = format!("/admin/v1/{list}?limit={limit}");
            context.admin(Method::GET, &path, json!({})).await.status()
        };
        assert_eq!((get("1").await, get("0").await, get("x").await), (200, 422, 422), "{list}");
    }
}

#[tokio::test]
async fn what_is_out_of_bounds_is_named_as_operators_know_it() {
    let context = TestContext::start().await;
    let refuse = async |path: &str, change: serde_json::Value| {
        let answer = context.admin(Method::PATCH, &format!("/admin/v1/{path}"), change).await;
        answer.assert_status(422).json()["error"].as_str().unwrap().to_owned()
    };
    let pair = "pairs/BTC-EUR";
    let error = refuse(pair, json!({"buy": {"min": 9, "max": 8}})).await;
    assert_eq!(error, "out of bounds: min is above max");
    let error = refuse(pair, json!({"spreadPercentage": 500})).await;
    assert_eq!(error, "out of bounds: spread percentage");
    let error = refuse(pair, json!({"buy": {"status": "off"}})).await;
    assert_eq!(error, "buy.status: one of enabled, disabled, maintenance");
    let long = "x".repeat(256);
    let plain = "1 to 255 characters, none of control";
    for label in [" ", &long, &format!("x{}", " ".repeat(255)), "Card\u{1b}[31m"] {
        let error = refuse("payment-methods/creditCard", json!({ "label": label })).await;
        assert_eq!(error, format!("label: {plain}"));
    }
    context.partner("acme").await;
    for name in [" ", &long, "Acme\r\nBank"] {
        let error = refuse("partners/acme", json!({ "name": name })).await;
        assert_eq!(error, format!("name: {plain}"));
    }
    let error = refuse("partners/acme", json!({"allowedCountries": vec!["NL"; 301]})).await;
    assert_eq!(error, "allowedCountries: at most 300");
    let keys = "/admin/v1/partners/acme/api-keys";
    for (name, status) in [("x".repeat(255), 201), (long, 422)] {
        let issued = context.admin(Method::POST, keys, json!({ "name": name })).await;
        issued.assert_status(status);
    }
}
