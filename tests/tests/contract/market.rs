//! What can be traded, at which price, and how it is paid.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use chrono::TimeDelta;
use http::Method;
use rampart_core::secrets::Purpose;
use rampart_core::settings::{HttpPrice, PriceSource};
use rampart_tests::partner::Partner;
use rampart_tests::world::World;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

const PAIRS: &str = "/api/v1/system/currency-pairs";
const METHODS: &str = "/api/v2/buy/payment-methods";
const READS: [&str; 6] = [
    PAIRS,
    METHODS,
    "/api/v1/system/info",
    "/api/v1/prices",
    "/api/v2/prices",
    "/api/v2/client/info",
];

async fn change(world: &World, method: Method, path: &str, body: Value) {
    world.admin(method, path, body).await.assert_status(200);
}

/// A price set by the operator, without a spread around it.
async fn set_price(world: &World, pair: &str, price: Value) {
    change(world, Method::PUT, &format!("/admin/v1/prices/{pair}"), json!({"price": price})).await;
    let path = format!("/admin/v1/pairs/{pair}");
    change(world, Method::PATCH, &path, json!({"spreadPercentage": 0})).await;
}

fn codes(methods: &Value) -> Vec<&str> {
    let methods = methods["paymentMethods"].as_array().unwrap();
    methods.iter().map(|method| method["code"].as_str().unwrap()).collect()
}

fn pair<'a>(pairs: &'a Value, code: &str) -> &'a Value {
    pairs.as_array().unwrap().iter().find(|pair| pair["currencyPair"] == code).unwrap()
}

#[tokio::test]
async fn pairs_are_listed_in_their_literal_shape() {
    let world = World::start().await;
    let pairs = world.partner("acme").await.get(PAIRS).await.json();
    assert_eq!(pairs.as_array().unwrap().len(), 9);
    let bitcoin = json!({
        "currencyPair": "BTC-EUR",
        "baseCurrency": {
            "code": "BTC", "ticker": "BTC", "name": "Bitcoin", "chain": null, "decimals": 8,
            "supportsTag": false, "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0",
        },
        "quoteCurrency": {
            "code": "EUR", "name": "Euro", "decimals": 2, "caip19": "swift:0/iso4217:EUR",
        },
        "buy": {
            "status": "enabled",
            "min": {"amount": 30, "currencyCode": "EUR"},
            "max": {"amount": 101000, "currencyCode": "EUR"},
        },
        "sell": {
            "status": "enabled",
            "min": {"amount": 0.0005, "currencyCode": "BTC"},
            "max": {"amount": 2, "currencyCode": "BTC"},
        },
    });
    assert_eq!(*pair(&pairs, "BTC-EUR"), bitcoin);
    assert_eq!(pair(&pairs, "USDC-EUR")["baseCurrency"]["chain"], "Ethereum");
    assert_eq!(pair(&pairs, "XRP-EUR")["baseCurrency"]["supportsTag"], true);
}

#[tokio::test]
async fn the_system_and_the_client_are_shown_in_their_literal_shape() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    let info = acme.get("/api/v1/system/info").await.json();
    assert_eq!(info["supportedRegions"][1], "nl-be");
    let page = |kind: &str, name: &str| info[kind][name]["nl-be"].as_str().unwrap().to_owned();
    assert_eq!(page("urls", "support"), "https://pay.example.com/nl-be/support");
    for (kind, name) in [
        ("urls", "faq"),
        ("urls", "forgotPassword"),
        ("privateUrls", "verifyBankAccount"),
        ("privateUrls", "dca"),
    ] {
        assert!(page(kind, name).starts_with("https://pay.example.com/nl-be/"), "{name}");
    }
    let nationalities = info["nationalities"].as_array().unwrap();
    let germany = json!({"name": "Germany", "code": "DE", "idSelfieRequired": false});
    assert!(nationalities.contains(&germany), "{nationalities:?}");

    let settings = json!({"defaultFeePercentage": 1.5, "allowedCountries": ["NL", "DE"]});
    change(&world, Method::PATCH, "/admin/v1/partners/acme", settings).await;
    let expected = json!({
        "slug": "acme", "name": "acme", "mode": "test", "allowedCountries": ["NL", "DE"],
        "defaultFeePercentage": 1.5,
    });
    assert_eq!(acme.get("/api/v2/client/info").await.json(), expected);
}

#[tokio::test]
async fn prices_fold_in_the_spread_and_the_fee() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    set_price(&world, "BTC-EUR", json!(90000)).await;
    let prices = acme.get("/api/v1/prices").await.json();
    assert_eq!(
        (&prices["buy"]["BTC-EUR"], &prices["sell"]["BTC-EUR"]),
        (&json!(90000), &json!(90000))
    );
    // 90000 / 0.98 and 90000 * 0.98.
    let with_fee = acme.get("/api/v1/prices?fee=2").await.text().to_owned();
    assert!(with_fee.contains(r#""BTC-EUR":91836.73"#), "{with_fee}");
    assert!(with_fee.contains(r#""BTC-EUR":88200"#), "{with_fee}");

    let second = acme.get("/api/v2/prices?fee=2").await.json();
    let expected = json!({
        "sourceCurrency":
            {"code": "EUR", "ticker": "EUR", "name": "Euro", "caip19": "swift:0/iso4217:EUR"},
        "targetCurrency": {
            "code": "BTC", "ticker": "BTC", "name": "Bitcoin",
            "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0",
        },
        "buy": 91836.73,
        "sell": 88200,
    });
    assert_eq!(second["BTC-EUR"].to_string(), expected.to_string());

    let spread = json!({"spreadPercentage": 1});
    change(&world, Method::PATCH, "/admin/v1/pairs/BTC-EUR", spread).await;
    assert_eq!(acme.get("/api/v2/prices?fee=1").await.json()["BTC-EUR"]["buy"], expected["buy"]);
    let default = json!({"defaultFeePercentage": 1});
    change(&world, Method::PATCH, "/admin/v1/partners/acme", default).await;
    assert_eq!(acme.get("/api/v2/prices").await.json()["BTC-EUR"]["buy"], expected["buy"]);
}

#[tokio::test]
async fn a_fee_out_of_bounds_is_er050() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    change(&world, Method::PATCH, "/admin/v1/partners/acme", json!({"feeCapPercentage": 3})).await;
    for path in ["/api/v1/prices", "/api/v2/prices"] {
        for fee in ["", "-1", "3.01", "5", "abc", "1,5", "%2B1", "1e9"] {
            let answer = acme.get(&format!("{path}?fee={fee}")).await;
            answer.assert_status(400).assert_codes(&["ER050"]);
        }
        for fee in ["0", "3", "1.25", "1e0"] {
            acme.get(&format!("{path}?fee={fee}")).await.assert_status(200);
        }
    }
}

#[tokio::test]
async fn a_side_that_cannot_be_quoted_has_no_price() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    let path = "/admin/v1/pairs/ETH-EUR";
    change(&world, Method::PATCH, path, json!({"sell": {"status": "maintenance"}})).await;
    let prices = acme.get("/api/v1/prices").await.json();
    assert!(prices["buy"]["ETH-EUR"].is_number() && prices["sell"].get("ETH-EUR").is_none());
    assert_eq!(acme.get("/api/v2/prices").await.json()["ETH-EUR"]["sell"], Value::Null);
    let pairs = acme.get(PAIRS).await.json();
    assert_eq!(pair(&pairs, "ETH-EUR")["buy"]["status"], "enabled");
    assert_eq!(pair(&pairs, "ETH-EUR")["sell"]["status"], "maintenance");

    change(&world, Method::PATCH, path, json!({"buy": {"status": "disabled"}})).await;
    assert!(acme.get("/api/v2/prices").await.json().get("ETH-EUR").is_none());
    assert_eq!(pair(&acme.get(PAIRS).await.json(), "ETH-EUR")["buy"]["status"], "disabled");
}

#[tokio::test]
async fn a_price_that_is_too_old_puts_its_pair_in_maintenance() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    set_price(&world, "BTC-EUR", json!(90000)).await;
    let age = json!({"priceMaxAgeSeconds": 60});
    change(&world, Method::PATCH, "/admin/v1/pairs/BTC-EUR", age).await;
    let fresh = acme.get(PAIRS).await;
    assert_eq!(pair(&fresh.json(), "BTC-EUR")["buy"]["status"], "enabled");
    world.clock().advance(TimeDelta::seconds(61));
    let stale = acme.get(PAIRS).await;
    for side in ["buy", "sell"] {
        assert_eq!(pair(&stale.json(), "BTC-EUR")[side]["status"], "maintenance");
    }
    assert_ne!(fresh.header("etag"), stale.header("etag"));
    let prices = acme.get("/api/v1/prices").await.json();
    assert!(prices["buy"].get("BTC-EUR").is_none() && prices["buy"]["ETH-EUR"].is_number());
}

#[tokio::test]
async fn methods_are_listed_in_their_literal_shape_and_order() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
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
    change(&world, Method::PATCH, path, json!({"enabled": false})).await;
    let methods = acme.get(METHODS).await.json();
    assert!(!codes(&methods).contains(&"creditCard"));
}

/// A user of the partner, and the identifier that proves it.
async fn user(world: &World, partner: &Partner, country: &str) -> (Uuid, String) {
    let (user, identifier) = (world.clock().uuid().unwrap(), "a".repeat(36));
    let client: Uuid = partner.id.parse().unwrap();
    sqlx::query(
        "insert into end_user (client_id, user_id, country, created_at) values ($1, $2, $3, now())",
    )
    .bind(client)
    .bind(user)
    .bind(country)
    .execute(world.db())
    .await
    .unwrap();
    let text = format!("identifier/{}/{identifier}", partner.id);
    let digest = world.core().keys.mac(Purpose::BlindIndex, text.as_bytes()).unwrap();
    sqlx::query(
        "insert into user_identifier (client_id, identifier_digest, user_id, created_at) \
         values ($1, $2, $3, now())",
    )
    .bind(client)
    .bind(digest.as_ref())
    .bind(user)
    .execute(world.db())
    .await
    .unwrap();
    (user, identifier)
}

#[tokio::test]
async fn a_user_decides_the_order_and_the_country_code_does_not() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    let (user, identifier) = user(&world, &acme, "DE").await;
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
        .execute(world.db())
        .await
        .unwrap();
    }
    assert_eq!(codes(&list().await)[..3], ["walletpay", "bankredirect2", "bankredirect3"]);
}

#[tokio::test]
async fn what_has_not_changed_is_answered_by_304() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    for path in READS {
        let first = acme.get(path).await;
        first.assert_status(200);
        assert_eq!(first.header("cache-control"), Some("private, no-cache"), "{path}");
        let tag = first.header("etag").unwrap();
        let again = acme.request(Method::GET, path).header("if-none-match", tag).send().await;
        again.assert_status(304);
        assert_eq!((again.text(), again.header("etag")), ("", Some(tag)), "{path}");
        let other = acme.request(Method::GET, path).header("if-none-match", "\"x\"").send().await;
        other.assert_status(200);
    }
}

#[tokio::test]
async fn every_catalogue_read_names_the_same_version_on_every_edge() {
    let world = World::start().await;
    let other = world.second_edge().await;
    let acme = world.partner("acme").await;
    other.core().refresh().await.unwrap();
    let version = |partner: Partner| async move {
        let mut versions = Vec::new();
        for path in READS {
            let answer = partner.get(path).await;
            versions.push(answer.header("x-catalog-version").unwrap().parse::<i64>().unwrap());
        }
        versions.dedup();
        assert_eq!(versions.len(), 1, "{versions:?}");
        versions[0]
    };
    let before = version(acme.clone()).await;
    assert_eq!(version(acme.at(&other)).await, before);
    set_price(&world, "BTC-EUR", json!(1)).await;
    let after = version(acme.clone()).await;
    assert!(after > before);
    other.core().refresh().await.unwrap();
    assert_eq!(version(acme.at(&other)).await, after);
    assert_eq!(acme.at(&other).get("/api/v1/prices").await.json()["buy"]["BTC-EUR"], 1);
}

/// A source that answers every request with this price, and how often it was asked.
async fn source(price: &'static str) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/ticker", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 2048];
            let _ = stream.read(&mut request).await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let body = format!(r#"{{"last":{price}}}"#);
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        }
    });
    (url, asked)
}

#[tokio::test]
async fn several_edges_read_a_source_about_once_an_interval() {
    let (url, asked) = source("12345.67").await;
    let world = World::with(|settings| {
        settings.prices.source = PriceSource::Http;
        let price = HttpPrice { url, pointer: "/last".to_owned() };
        settings.prices.sources.insert("BTC-EUR".to_owned(), price);
    })
    .await;
    let other = world.second_edge().await;
    let acme = world.partner("acme").await;
    change(&world, Method::PATCH, "/admin/v1/pairs/BTC-EUR", json!({"spreadPercentage": 0})).await;
    let read = async |edge: &World| {
        let core = edge.core();
        core.price_feed.as_ref().unwrap().refresh(core).await.unwrap();
        for edge in [&world, &other] {
            edge.core().refresh().await.unwrap();
        }
        asked.load(Ordering::Relaxed)
    };
    assert_eq!((read(&world).await, read(&other).await, read(&world).await), (1, 1, 1));
    let price = acme.get("/api/v1/prices").await.json()["buy"]["BTC-EUR"].to_string();
    assert_eq!(price, "12345.67");
    world.clock().advance(TimeDelta::seconds(10));
    assert_eq!((read(&other).await, read(&world).await), (2, 2));
    // Nothing reads any more: what came from a source ages.
    world.clock().advance(TimeDelta::seconds(121));
    assert!(acme.get("/api/v1/prices").await.json()["buy"].get("BTC-EUR").is_none());
    assert!(acme.get("/api/v1/prices").await.json()["buy"]["ETH-EUR"].is_number());
}
