//! Limits of rate and number, and that they hold for who exceeds them alone.

use futures::future::join_all;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::wire::Wire;
use serde_json::json;

const PRICES: &str = "/api/v1/prices";

/// A refusal by rate: its status, code and `Retry-After`.
fn is_limited(answer: &Answer) -> bool {
    if answer.status() != 429 {
        return false;
    }
    answer.assert_codes(&["920"]);
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    true
}

#[tokio::test]
async fn an_address_is_limited_before_anybody_asks_who_it_is() {
    let limit = |setup: &mut rampart_tests::edge::Setup| {
        setup.set("ratelimit.address", "2/min burst 10");
    };
    let edge = Edge::with(limit).await;
    let partner = edge.partner("early").await;
    let anonymous = || partner.anonymous(Method::GET, PRICES).send();
    for _ in 0..10 {
        anonymous().await.assert_status(400).assert_codes(&["ER802"]);
    }
    for answer in [anonymous().await, partner.get(PRICES).await, partner.get("/nowhere").await] {
        assert!(is_limited(&answer), "{}", answer.status());
        assert_eq!(answer.header("ratelimit-policy"), Some(r#""address";q=2;w=60"#));
        assert!(answer.header("ratelimit").unwrap().starts_with(r#""address";r=0;t="#));
    }
    // Private listeners are not for the public, and not limited with it.
    edge.ops("/healthz").await.assert_status(200);
}

#[tokio::test]
async fn a_partner_sees_its_limits_and_feels_only_its_own() {
    let edge = Edge::shared().await;
    let loud = edge.limited_partner("loud").await;
    let quiet = edge.limited_partner("quiet").await;

    let first = loud.get(PRICES).await;
    assert_eq!(first.header("ratelimit-policy"), Some(r#""client";q=100;w=1"#));
    assert_eq!(first.header("ratelimit"), Some(r#""client";r=199;t=1"#));
    let body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let quote = loud.post("/api/v1/buy/quote", body).await;
    let policy = quote.assert_status(200).header("ratelimit-policy").unwrap().to_owned();
    assert_eq!(policy, r#""client";q=100;w=1, "quotes";q=50;w=1"#);

    let slow = json!({"rateLimits": {"client": "1/s burst 5"}});
    let path = "/admin/v1/partners/loud";
    edge.admin(Method::PATCH, path, slow).await.assert_status(200);
    let flood = join_all((0..100).map(|_| loud.get(PRICES)));
    let others = join_all((0..50).map(|_| quiet.get(PRICES)));
    let (flood, others) = tokio::join!(flood, others);
    let limited = flood.iter().filter(|answer| is_limited(answer)).count();
    assert!(limited >= 50, "{limited} of 100 were limited");
    for answer in flood.iter().filter(|answer| answer.status() == 429) {
        assert!(answer.header("ratelimit").unwrap().starts_with(r#""client";r=0;"#));
    }
    for answer in others {
        answer.assert_status(200);
    }
}

#[tokio::test]
async fn connections_beyond_the_cap_are_closed_and_the_others_go_on() {
    let edge = Edge::with(|setup| _ = setup.set("edge.connections_max", "4")).await;
    let request = b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut wire = Wire::open(edge.address).await;
        assert_eq!(wire.exchange(request).await.unwrap().status(), 404);
        open.push(wire);
    }
    assert!(Wire::try_open(edge.address).await.is_err(), "a fifth connection");
    for wire in &mut open {
        assert_eq!(wire.exchange(request).await.unwrap().status(), 404);
    }
    open.pop();
    let mut next =
        until("a place is free again", SOON, async || Wire::try_open(edge.address).await.ok())
            .await;
    assert_eq!(next.exchange(request).await.unwrap().status(), 404);
}

/// The members of `RateLimit`: bucket and what is left of it.
fn remaining(answer: &Answer) -> Vec<(String, usize)> {
    let member = |text: &str| {
        let (bucket, rest) = text.trim().split_once(";r=").unwrap();
        let left = rest.split(';').next().unwrap().parse().unwrap();
        (bucket.trim_matches('"').to_owned(), left)
    };
    answer.header("ratelimit").unwrap().split(',').map(member).collect()
}

#[tokio::test]
async fn no_limit_promises_what_another_one_takes_away() {
    let edge = Edge::with(|setup| _ = setup.set("ratelimit.address", "1/h burst 6")).await;
    let partner = edge.partner("hopeful").await;
    for left in (0..6).rev() {
        let answer = partner.get(PRICES).await;
        assert_eq!(remaining(answer.assert_status(200)), [("client".to_owned(), left)]);
    }
    let answer = partner.get(PRICES).await;
    assert!(answer.status() == 429 && answer.header("retry-after").is_some());
    assert_eq!(remaining(&answer), [("address".to_owned(), 0)]);
}

#[tokio::test]
async fn a_refusal_by_rate_names_the_limit_that_ran_out() {
    let edge = Edge::with(|setup| _ = setup.set("ratelimit.credentials", "1/min burst 1")).await;
    let partner = edge.partner("named").await;
    let rates = json!({"rateLimits": {"quotes": "1/min burst 1"}});
    edge.admin(Method::PATCH, "/admin/v1/partners/named", rates).await.assert_status(200);
    let body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    partner.post("/api/v1/buy/quote", body.clone()).await.assert_status(200);
    let quote = partner.post("/api/v1/buy/quote", body).await;
    assert!(is_limited(&quote));
    assert_eq!(remaining(&quote), [("quotes".to_owned(), 0)]);
    let log_in = || {
        let wrong = json!({"username": "named", "password": "wrong"});
        partner.anonymous(Method::POST, "/api/v1/authenticate").json(&wrong).send()
    };
    log_in().await.assert_codes(&["ER038"]);
    let refused = log_in().await;
    assert!(is_limited(&refused));
    assert_eq!(remaining(&refused), [("credentials".to_owned(), 0)]);
}
