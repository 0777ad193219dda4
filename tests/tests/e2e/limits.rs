//! Limits of rate and number, and that they hold for who exceeds them alone.

mod logged;

use std::io;
use std::net::Ipv4Addr;

use futures::future::join_all;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::wire::Wire;
use serde_json::json;
use sqlx::{Connection as _, PgConnection, Postgres, Transaction};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PRICES: &str = "/api/v1/prices";
const HTML: &str = "text/html; charset=utf-8";
/// Another address of loopback than the usual one.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Handshakes that an address may have under way if it may have 80 connections.
const HANDSHAKES: usize = 64;

/// Requires that a newcomer is closed, and not because the time for its handshake is over.
async fn assert_refused(
    edge: &Edge,
    opening: impl Future<Output = io::Result<Wire>>,
    newcomer: &str,
) {
    let opened = timeout(SOON, opening).await.expect("no newcomer is left waiting");
    assert!(opened.is_err(), "{newcomer}");
    let text = edge.ops("/metrics").await.text().to_owned();
    let late = r#"rampart_tls_handshakes_total{outcome="timeout",version=""} 0"#;
    assert!(text.lines().any(|line| line == late), "{newcomer}: {text}");
}

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
    // A browser is shown a page, but for a path of the API.
    let browser =
        |path| partner.anonymous(Method::GET, path).header("accept", "text/html,*/*;q=0.8").send();
    let page = browser("/nl-nl/faq").await;
    assert_eq!((page.status(), page.header("content-type")), (429, Some(HTML)), "{}", page.text());
    assert!(page.header("retry-after").is_some() && page.header("ratelimit").is_some());
    assert!(page.text().contains("Te veel aanvragen"), "{}", page.text());
    assert!(is_limited(&browser(PRICES).await));
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
    let text = edge.ops("/metrics").await.text().to_owned();
    for line in ["rampart_connections_open 4", "rampart_connections_max 4"] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    assert_refused(&edge, Wire::try_open(edge.address), "a fifth connection").await;
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
async fn a_refusal_for_want_of_a_scope_promises_no_more_than_the_address_has_left() {
    let edge = Edge::with(|setup| _ = setup.set("ratelimit.address", "1/h burst 6")).await;
    let partner = edge.partner("reader").await;
    let scopes = json!({"scopes": ["quotes:read"]});
    let made = edge.admin(Method::POST, "/admin/v1/partners/reader/api-keys", scopes).await;
    let key = made.assert_status(201).json()["apiKey"].as_str().unwrap().to_owned();
    let orders = partner.anonymous(Method::GET, "/api/v2/buy/orders").header("x-api-key", &key);
    let refused = orders.send().await;
    refused.assert_status(400).assert_codes(&["ER805"]);
    assert_eq!(remaining(&refused), [("client".to_owned(), 5)]);
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

#[tokio::test]
async fn an_address_cannot_take_the_connections_of_another() {
    let edge = Edge::with(|setup| {
        setup.set("edge.connections_per_address_max", "3").set("edge.connections_max", "5");
        // They are silent until all are open.
        setup.set("edge.request_header_timeout_seconds", "60");
    })
    .await;
    let request = b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(Wire::open(edge.address).await);
    }
    for _ in 0..2 {
        assert_refused(&edge, Wire::try_open(edge.address), "a fourth connection").await;
    }
    for _ in 0..2 {
        open.push(Wire::try_open_from(ELSEWHERE, edge.address).await.unwrap());
    }
    for wire in &mut open {
        assert_eq!(wire.exchange(request).await.unwrap().status(), 404);
    }
    assert_refused(&edge, Wire::try_open_from(ELSEWHERE, edge.address), "a sixth of all").await;
    let text = edge.ops("/metrics").await.text().to_owned();
    for (cause, count) in [("address", 2), ("total", 1)] {
        let line = format!("rampart_connections_refused_total{{cause=\"{cause}\"}} {count}");
        assert!(text.contains(&line), "{line} in {text}");
    }
}

#[tokio::test]
async fn an_address_cannot_take_the_handshakes_of_another() {
    let edge = Edge::with(|setup| _ = setup.set("edge.connections_per_address_max", "80")).await;
    let connecting = (0..HANDSHAKES).map(|_| TcpStream::connect(edge.address));
    let mut silent: Vec<_> = join_all(connecting).await.into_iter().map(Result::unwrap).collect();
    // One that came before a silent one was counted had that one refused: another takes its place.
    until("one more handshake is refused", SOON, async || {
        silent.push(TcpStream::connect(edge.address).await.unwrap());
        Wire::try_open(edge.address).await.is_err().then_some(())
    })
    .await;
    let request = b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut other = Wire::try_open_from(ELSEWHERE, edge.address).await.unwrap();
    assert_eq!(other.exchange(request).await.unwrap().status(), 404);
    let text = edge.ops("/metrics").await.text().to_owned();
    for (cause, refused) in [("address_handshakes", true), ("address", false), ("total", false)] {
        let series = format!("rampart_connections_refused_total{{cause=\"{cause}\"}} ");
        let count = text.lines().find_map(|line| line.strip_prefix(&series)).unwrap();
        assert_eq!(count != "0", refused, "{series}{count}");
    }
    drop(silent);
    let next =
        until("a handshake is free again", SOON, async || Wire::try_open(edge.address).await.ok());
    assert_eq!(next.await.exchange(request).await.unwrap().status(), 404);
}

/// Locks the webhook endpoints: every call for them waits until the transaction is rolled back.
async fn lock_endpoints(holder: &mut PgConnection) -> Transaction<'_, Postgres> {
    let mut lock = holder.begin().await.unwrap();
    let statement = "lock table webhook_endpoint in access exclusive mode";
    sqlx::raw_sql(statement).execute(&mut *lock).await.unwrap();
    lock
}

#[tokio::test]
async fn a_client_whose_call_takes_too_long_is_told_its_rates() {
    let edge = Edge::with(|setup| _ = setup.set("edge.request_timeout_seconds", "1")).await;
    let partner = edge.limited_partner("patient").await;
    let mut holder = PgConnection::connect(edge.setup().database()).await.unwrap();
    let _lock = lock_endpoints(&mut holder).await;
    let answer = partner.get("/api/v2/webhooks").await;
    answer.assert_status(503).assert_codes(&["ER999"]);
    assert!(answer.header("retry-after").is_some());
    assert_eq!(remaining(&answer), [("client".to_owned(), 199)]);
}

/// Has two calls of `slow` wait for Postgres. Its third one is refused by `limit` and no other, and
/// `quick` is served all the same, if there is one.
async fn assert_shed(edge: &Edge, limit: &str, slow: &Caller, quick: Option<&Caller>) {
    let mut holder = PgConnection::connect(edge.setup().database()).await.unwrap();
    let lock = lock_endpoints(&mut holder).await;
    // The calls that look for the refusal may take a held one's place before it: it asks again.
    let held = [(); 2].map(|()| {
        until("a held call is answered", SOON, async || {
            Some(slow.get("/api/v2/webhooks").await).filter(|answer| answer.status() != 503)
        })
    });
    let others = async {
        let shed = until("a third one is refused", SOON, async || {
            Some(slow.get(PRICES).await).filter(|answer| answer.status() == 503)
        })
        .await;
        assert!(shed.header("retry-after").is_some());
        for quick in [quick; 8].into_iter().flatten() {
            quick.get(PRICES).await.assert_status(200);
        }
        lock.rollback().await.unwrap();
    };
    let (answers, ()) = tokio::join!(join_all(held), others);
    for answer in answers {
        answer.assert_status(200);
    }
    slow.get(PRICES).await.assert_status(200);
    let text = edge.ops("/metrics").await.text().to_owned();
    for known in ["total", "address", "partner"] {
        let series = format!("rampart_requests_shed_total{{limit=\"{known}\"}} ");
        let count = text.lines().find_map(|line| line.strip_prefix(&series)).unwrap();
        assert_eq!(count != "0", known == limit, "{series}{count}");
    }
    // The error budget is of those that no sender caused.
    let failed = "rampart_request_outcomes_total{outcome=\"failed\"} 0\n";
    assert_eq!(text.contains(failed), limit != "total", "{text}");
}

#[tokio::test]
async fn requests_beyond_those_that_may_be_in_flight_are_refused() {
    let edge = Edge::with(|setup| {
        setup.set("edge.in_flight_max", "2").set("edge.in_flight_per_partner_max", "8");
    })
    .await;
    let slow = edge.partner("slow").await;
    assert_shed(&edge, "total", &slow, None).await;
}

#[tokio::test]
async fn slow_calls_of_one_partner_cost_another_nothing() {
    let edge = Edge::with(|setup| {
        setup.set("edge.in_flight_max", "8").set("edge.in_flight_per_partner_max", "2");
    })
    .await;
    let (slow, quick) = (edge.partner("slow").await, edge.partner("quick").await);
    assert_shed(&edge, "partner", &slow, Some(&quick)).await;
}

#[tokio::test]
async fn slow_calls_of_one_address_cost_another_nothing() {
    let edge = Edge::with(|setup| {
        setup.set("edge.in_flight_max", "8").set("edge.in_flight_per_partner_max", "8");
        setup.set("edge.in_flight_per_address_max", "2");
    })
    .await;
    let slow = edge.partner("slow").await;
    let quick = slow.from(ELSEWHERE.into()).over(Protocol::Http1);
    assert_shed(&edge, "address", &slow, Some(&quick)).await;
}

#[tokio::test]
async fn newcomers_are_refused_at_once_when_the_limit_of_open_files_falls() {
    let edge = Edge::start().await;
    let request = b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut open = Wire::open(edge.address).await;
    assert_eq!(open.exchange(request).await.unwrap().status(), 404);
    let before = edge.process.open_files_max();
    edge.process.set_open_files_max(&edge.process.open_files().to_string());
    let address = edge.address;
    let newcomers = || (0..20).map(move |_| timeout(SOON, Wire::try_open(address)));
    let mut served = Vec::new();
    until("newcomers are refused", SOON, async || {
        let opened = join_all(newcomers()).await.into_iter();
        let opened: Vec<_> = opened.map(|opened| opened.expect("nobody is left waiting")).collect();
        let refused = opened.iter().all(Result::is_err);
        served.extend(opened.into_iter().flatten());
        refused.then_some(())
    })
    .await;
    let text = edge.ops("/metrics").await.assert_status(200).text().to_owned();
    let series = "rampart_connections_refused_total{cause=\"open_files\"} ";
    let count = text.lines().find_map(|line| line.strip_prefix(series)).unwrap();
    assert_ne!(count, "0");
    assert_eq!(open.exchange(request).await.unwrap().status(), 404);
    edge.process.set_open_files_max(&before);
    let next =
        until("newcomers are served", SOON, async || Wire::try_open(edge.address).await.ok());
    assert_eq!(next.await.exchange(request).await.unwrap().status(), 404);
}

/// Sets the limit of open files, by this option of `ulimit`, and becomes the edge.
fn limited(option: &str) -> [String; 3] {
    ["/bin/sh".into(), "-c".into(), format!(r#"ulimit {option}; exec "$0" "$@""#)]
}

#[tokio::test]
async fn open_files_are_enough_for_every_connection_or_nothing_starts() {
    // Not enough for the connections beside what an edge has open by itself.
    let edge = Edge::with(|setup| {
        let command = limited("-S -n 64");
        setup.under(&command.each_ref().map(String::as_str)).set("edge.connections_max", "40");
        // They are silent until the others are refused.
        setup.set("edge.request_header_timeout_seconds", "60");
    })
    .await;
    let limit: u64 = edge.process.open_files_max().parse().unwrap();
    assert!(limit > 1_000, "{limit}");
    let opening = (0..40).map(|_| timeout(SOON, Wire::try_open(edge.address)));
    let open: Vec<Wire> = join_all(opening).await.into_iter().flatten().flatten().collect();
    assert_eq!(open.len(), 40, "all are served");
    let beyond = || assert_refused(&edge, Wire::try_open(edge.address), "more than there may be");
    join_all((0..20).map(|_| beyond())).await;

    let mut setup = edge.setup();
    let command = limited("-n 256");
    setup.under(&command.each_ref().map(String::as_str));
    let process = setup.spawn();
    assert_eq!(process.ended().await.code(), Some(2));
    let err = process.err();
    assert!(err.iter().any(|line| line.contains("'edge.connections_max' = 40")), "{err:?}");
}
