//! Currency pairs, prices and payment methods.

mod feed;
mod maintenance;
mod methods;
mod migrated;

use chrono::TimeDelta;
use http::Method;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

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

async fn change(context: &TestContext, method: Method, path: &str, body: Value) {
    context.admin(method, path, body).await.assert_status(200);
}

/// A price set by the operator, without a spread around it.
async fn set_price(context: &TestContext, pair: &str, price: Value) {
    change(context, Method::PUT, &format!("/admin/v1/prices/{pair}"), json!({"price": price}))
        .await;
    let path = format!("/admin/v1/pairs/{pair}");
    change(context, Method::PATCH, &path, json!({"spreadPercentage": 0})).await;
}

fn pair<'a>(pairs: &'a Value, code: &str) -> &'a Value {
    pairs.as_array().unwrap().iter().find(|pair| pair["currencyPair"] == code).unwrap()
}

#[tokio::test]
async fn pairs_are_listed_in_their_literal_shape() {
    let context = TestContext::start().await;
    let pairs = context.partner("acme").await.get(PAIRS).await.json();
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
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let info = acme.get("/api/v1/system/info").await.json();
    assert_eq!(info["supportedRegions"][1], "nl-be");
    let page = |kind: &str, name: &str| info[kind][name]["nl-be"].as_str().unwrap().to_owned();
    assert_eq!(page("urls", "support"), "https://pay.example.com/nl-be/support?client=acme");
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
    change(&context, Method::PATCH, "/admin/v1/partners/acme", settings).await;
    let expected = json!({
        "slug": "acme", "name": "acme", "mode": "test", "allowedCountries": ["NL", "DE"],
        "defaultFeePercentage": 1.5,
    });
    assert_eq!(acme.get("/api/v2/client/info").await.json(), expected);
}

#[tokio::test]
async fn prices_fold_in_the_spread_and_the_fee() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    set_price(&context, "BTC-EUR", json!(90000)).await;
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

    // 90000 / (0.99 * 0.99): the spread is taken from what the fee leaves.
    let spread = json!({"spreadPercentage": 1});
    change(&context, Method::PATCH, "/admin/v1/pairs/BTC-EUR", spread).await;
    assert_eq!(acme.get("/api/v2/prices?fee=1").await.json()["BTC-EUR"]["buy"], json!(91827.36));
    // 90000 / 0.99: without a fee.
    assert_eq!(acme.get("/api/v2/prices").await.json()["BTC-EUR"]["buy"], json!(90909.09));
    let default = json!({"defaultFeePercentage": 1});
    change(&context, Method::PATCH, "/admin/v1/partners/acme", default).await;
    assert_eq!(acme.get("/api/v2/prices").await.json()["BTC-EUR"]["buy"], json!(91827.36));
}

#[tokio::test]
async fn a_default_fee_above_the_cap_is_shown_as_a_quote_charges_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    set_price(&context, "BTC-EUR", json!(90000)).await;
    let fees = json!({"defaultFeePercentage": 4, "feeCapPercentage": 2});
    change(&context, Method::PATCH, "/admin/v1/partners/acme", fees).await;
    assert_eq!(acme.get("/api/v2/client/info").await.json()["defaultFeePercentage"], json!(2));
    for version in ["v1", "v2"] {
        let path = format!("/api/{version}/prices");
        let capped = acme.get(&format!("{path}?fee=2")).await.assert_status(200).json();
        assert_eq!(acme.get(&path).await.json(), capped, "{version}");
    }
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let quote = acme.post("/api/v1/buy/quote", asked).await.assert_status(200).json();
    assert_eq!(quote["partnerFeePercentage"].to_string(), "2");
}

#[tokio::test]
async fn a_fee_out_of_bounds_is_er050() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    change(&context, Method::PATCH, "/admin/v1/partners/acme", json!({"feeCapPercentage": 3}))
        .await;
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
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = "/admin/v1/pairs/ETH-EUR";
    change(&context, Method::PATCH, path, json!({"sell": {"status": "maintenance"}})).await;
    let prices = acme.get("/api/v1/prices").await.json();
    assert!(prices["buy"]["ETH-EUR"].is_number() && prices["sell"].get("ETH-EUR").is_none());
    assert_eq!(acme.get("/api/v2/prices").await.json()["ETH-EUR"]["sell"], Value::Null);
    let pairs = acme.get(PAIRS).await.json();
    assert_eq!(pair(&pairs, "ETH-EUR")["buy"]["status"], "enabled");
    assert_eq!(pair(&pairs, "ETH-EUR")["sell"]["status"], "maintenance");

    change(&context, Method::PATCH, path, json!({"buy": {"status": "disabled"}})).await;
    assert!(acme.get("/api/v2/prices").await.json().get("ETH-EUR").is_none());
    assert_eq!(pair(&acme.get(PAIRS).await.json(), "ETH-EUR")["buy"]["status"], "disabled");
}

#[tokio::test]
async fn a_price_that_is_too_old_puts_its_pair_in_maintenance() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    set_price(&context, "BTC-EUR", json!(90000)).await;
    let age = json!({"priceMaxAgeSeconds": 60});
    change(&context, Method::PATCH, "/admin/v1/pairs/BTC-EUR", age).await;
    let fresh = acme.get(PAIRS).await;
    assert_eq!(pair(&fresh.json(), "BTC-EUR")["buy"]["status"], "enabled");
    // A list that is kept ends with the first of its prices.
    for path in ["/api/v1/prices", "/api/v2/prices"] {
        assert!(acme.get(path).await.text().contains("BTC-EUR"), "{path}");
    }
    context.clock().advance(TimeDelta::seconds(61));
    let stale = acme.get(PAIRS).await;
    for side in ["buy", "sell"] {
        assert_eq!(pair(&stale.json(), "BTC-EUR")[side]["status"], "maintenance");
    }
    assert_ne!(fresh.header("etag"), stale.header("etag"));
    let prices = acme.get("/api/v1/prices").await.json();
    assert!(prices["buy"].get("BTC-EUR").is_none() && prices["buy"]["ETH-EUR"].is_number());
    assert!(acme.get("/api/v2/prices").await.json().get("BTC-EUR").is_none());
}

#[tokio::test]
async fn what_has_not_changed_is_answered_by_304() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
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
    let context = TestContext::start().await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
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
    set_price(&context, "BTC-EUR", json!(1)).await;
    let after = version(acme.clone()).await;
    assert!(after > before);
    other.core().refresh().await.unwrap();
    assert_eq!(version(acme.at(&other)).await, after);
    assert_eq!(acme.at(&other).get("/api/v1/prices").await.json()["buy"]["BTC-EUR"], 1);
}

#[tokio::test]
async fn what_is_listed_is_quotable_at_the_listed_price() {
    let generous = |settings: &mut rampart_core::platform::settings::Settings| {
        settings.ratelimit.client = "1000/s burst 1000".parse().unwrap();
        settings.ratelimit.quotes = "1000/s burst 1000".parse().unwrap();
    };
    let context = TestContext::with(generous).await;
    let acme = context.partner("acme").await;
    for pair in ["BTC-EUR", "XRP-EUR"] {
        set_price(&context, pair, json!(2.5)).await;
    }
    change(
        &context,
        Method::PATCH,
        "/admin/v1/pairs/ETH-EUR",
        json!({"buy": {"status": "maintenance"}}),
    )
    .await;
    let off = json!({"enabled": false});
    change(&context, Method::PATCH, "/admin/v1/payment-methods/walletpay", off).await;

    let prices = acme.get("/api/v1/prices").await;
    let methods = acme.get(METHODS).await.json();
    let methods = methods["paymentMethods"].as_array().unwrap().clone();
    let listed = prices.json()["buy"].as_object().unwrap().clone();
    assert_eq!((listed.len(), methods.len()), (8, 10));
    for (pair, price) in listed {
        for method in &methods {
            let ask =
                json!({"currencyPair": pair, "paymentMethod": method["code"], "fiatAmount": 50});
            let quote = acme.post("/api/v1/buy/quote", ask).await;
            quote.assert_status(200);
            assert_eq!(quote.header("x-catalog-version"), prices.header("x-catalog-version"));
            if ["BTC-EUR", "XRP-EUR"].contains(&pair.as_str()) {
                assert_eq!(quote.json()["price"], price, "without spread and fee they are one");
            }
        }
    }
}

#[tokio::test]
async fn every_page_that_the_system_names_answers() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let info = acme.get("/api/v1/system/info").await.json();
    let show = async |url: &str| {
        let path = url.strip_prefix("https://pay.example.com").unwrap();
        acme.anonymous(Method::GET, path).send().await
    };
    for pages in info["urls"].as_object().unwrap().values() {
        for (region, url) in pages.as_object().unwrap() {
            let page = show(url.as_str().unwrap()).await;
            page.assert_status(200);
            assert!(page.text().contains("<h1>"), "{region}: {url}");
        }
    }
    for pages in info["privateUrls"].as_object().unwrap().values() {
        for url in pages.as_object().unwrap().values() {
            let url = url.as_str().unwrap();
            let login = ada.get("/api/v1/user/login-token").await.assert_status(200).json();
            let text = |name: &str| login[name].as_str().unwrap().to_owned();
            show(&format!("{url}?token={}&uuid={}", text("token"), text("uuid")))
                .await
                .assert_status(200);
            show(&format!("{url}?token=x&uuid={}", text("uuid"))).await.assert_status(404);
            // The address alone says how it is opened, and shows nobody's.
            let alone = show(url).await;
            let alone = alone.assert_status(200).text();
            assert!(alone.contains("<h1>") && !alone.contains("<form"), "{url}: {alone}");
        }
    }
}

#[tokio::test]
async fn pages_are_at_a_path_of_every_language() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let regions = ["en-gb", "nl-nl", "de-de", "fr-fr", "es-es", "pt-pt", "it-it", "pl-pl"];
    let pages = [
        "support",
        "faq",
        "forgot-password?client=acme",
        "account/dca",
        "account/verify-bank-account",
    ];
    for region in regions {
        let language = format!("<html lang=\"{}\"", region.split('-').next().unwrap());
        for page in pages {
            let path = format!("/{region}/{page}");
            let request = acme.anonymous(Method::GET, &path).header("accept-language", "sv");
            let shown = request.send().await;
            let text = shown.assert_status(200).text();
            assert!(text.contains(&language), "{path}: {text}");
        }
    }
    for other in ["/pt-br/support", "/pl-de/faq", "/pl/support"] {
        acme.anonymous(Method::GET, other).send().await.assert_status(404);
    }
    let info = acme.get("/api/v1/system/info").await.json();
    let supported = info["supportedRegions"].as_array().unwrap();
    assert!(["pt-pt", "it-it", "pl-pl"].iter().all(|added| !supported.contains(&json!(added))));
    assert!(info["urls"]["support"].get("pl-pl").is_none(), "{info}");
}

#[tokio::test]
async fn a_forgotten_password_is_reset_by_mail_from_the_page() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let path = "/nl-nl/forgot-password?client=acme";
    let submit = async |form: String| acme.anonymous(Method::POST, path).body(form).send().await;
    let mails = async || {
        let mail = context.admin(Method::GET, "/admin/v1/mail", Value::Null).await.json();
        mail.to_string().matches(ada.email.as_str()).count()
    };
    let before = mails().await;
    submit("email=".to_owned()).await.assert_status(400);
    assert_eq!(mails().await, before);
    let known = submit(format!("email={}", ada.email)).await;
    let unknown = submit("email=nobody@mail.example.com".to_owned()).await;
    let sent = known.assert_status(303).header("location").unwrap();
    assert_eq!(unknown.assert_status(303).header("location"), Some(sent));
    // A reload of the page there mails nothing.
    for _ in 0..2 {
        let page = acme.anonymous(Method::GET, sent).send().await;
        assert!(!page.assert_status(200).text().contains("<form"), "{}", page.text());
    }
    assert_eq!(mails().await, before + 1);
    for wrong in ["/nl-nl/forgot-password?client=nobody", "/xx-xx/forgot-password?client=acme"] {
        acme.anonymous(Method::GET, wrong).send().await.assert_status(404);
    }
}
