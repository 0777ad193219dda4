//! Rates that edges share through Valkey or Redis: several edges grant one quota, and a server that is
//! away, slow, wrong or full costs no request anything.

use std::io::Write as _;
use std::net::TcpListener;
use std::slice;

use futures::future::join_all;
use nix::sys::signal::Signal;
use rampart_tests::caller::Caller;
use rampart_tests::certificate::CERTIFICATE;
use rampart_tests::cluster;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Folder, Setup};
use rampart_tests::port::free;
use rampart_tests::valkey::Valkey;

const PRICES: &str = "/api/v1/prices";
const SCRIPT: &str = include_str!("../../../core/src/platform/shared_rates/take.lua");
/// Requests of a bucket that is filled no more meanwhile.
const BURST: usize = 400;
/// Clients at each edge that take them.
const CLIENTS: usize = 2;
/// Most tries: an edge gives the server up after a tenth of a second, in which a machine where others
/// run does not answer each time.
const ROUNDS: usize = 8;

/// An edge that shares its rates through this server, with this rate for each client.
async fn sharing(url: &str, client: &str) -> Edge {
    Edge::with(|setup| {
        setup.set("ratelimit.redis_url", url).set("ratelimit.client", client);
    })
    .await
}

/// Waits until the edge shares its rates, or until it says why not.
async fn is_shared(edge: &Edge, problem: Option<&str>) {
    let state = if problem.is_some() { "degraded" } else { "ok" };
    let gauge = format!("rampart_rates_shared {}\n", u8::from(problem.is_none()));
    until(&format!("rates are {state}: {problem:?}"), SOON, async || {
        let ready = edge.ops("/readyz").await;
        let (status, body) = (ready.status(), ready.json());
        assert_eq!(status, 200, "{body}");
        let checks = body["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == "rates").unwrap();
        let says = check["detail"].as_str().unwrap().ends_with(problem.unwrap_or_default());
        let metrics = edge.ops("/metrics").await.text().to_owned();
        (check["status"] == state && says && metrics.contains(&gauge)).then_some(())
    })
    .await;
}

/// The partner at another edge, once that one knows it; one request is taken.
async fn at(partner: &Caller, edge: &Edge) -> Caller {
    let there = partner.at(edge.address);
    until("the edge knows the partner", SOON, async || {
        [200, 429].contains(&there.get(PRICES).await.status()).then_some(())
    })
    .await;
    there
}

/// Requests that pass before one does not.
async fn passing(partner: &Caller) -> usize {
    let mut passed = 0;
    while partner.get(PRICES).await.status() == 200 {
        passed += 1;
    }
    passed
}

/// That four edges share it to two percent, whatever their requests and exchanges, is a property of the
/// core's unit tests.
#[tokio::test]
async fn four_edges_grant_one_quota() {
    let server = Valkey::start(&[]).await;
    let edge = sharing(&server.url(), &format!("1/h burst {BURST}")).await;
    let edges = [edge.beside().await, edge.beside().await, edge.beside().await, edge];
    let mut seen = Vec::new();
    // An edge that does not reach the server in a tenth of a second counts alone.
    for number in 0..ROUNDS {
        let before = failures(&edges).await;
        let granted = granted(&edges, &format!("spread{number}")).await;
        if (BURST..=BURST + BURST / 10).contains(&granted) {
            return;
        }
        let is_shared_throughout = failures(&edges).await == before;
        assert!(!is_shared_throughout || granted < 2 * BURST, "{granted} of {BURST}");
        seen.push(granted);
    }
    panic!("never about {BURST}: {seen:?}");
}

/// The requests that edges grant a new partner until nothing is left.
async fn granted(edges: &[Edge], name: &str) -> usize {
    let partner = edges[0].limited_partner(name).await;
    let mut partners = Vec::new();
    for edge in edges {
        is_shared(edge, None).await;
        partners.push(at(&partner, edge).await);
    }
    let clients = partners.iter().flat_map(|partner| [partner; CLIENTS]);
    let passed: usize = join_all(clients.map(passing)).await.into_iter().sum();
    // Each edge has granted one before.
    let mut granted = edges.len() + passed;
    until("nothing is left on any edge", SOON, async || {
        let before = granted;
        for (edge, partner) in edges.iter().zip(&partners) {
            is_shared(edge, None).await;
            granted += passing(partner).await;
        }
        (granted == before).then_some(())
    })
    .await;
    granted
}

#[tokio::test]
async fn no_request_waits_for_a_server_that_hangs() {
    let server = Valkey::start(&[]).await;
    let edge = sharing(&server.url(), "1/h burst 10").await;
    let partner = edge.partner("quick").await;
    let mut answered_before = 0;
    for _ in 0..ROUNDS {
        is_shared(&edge, None).await;
        server.signal(Signal::SIGSTOP);
        partner.get(PRICES).await.assert_status(200);
        // The answer has come, and the edge still waits for the server.
        let metrics = edge.ops("/metrics").await;
        answered_before += usize::from(metrics.text().contains("rampart_rates_shared 1\n"));
        is_shared(&edge, Some("the server does not answer in time")).await;
        partner.get(PRICES).await.assert_status(200);
        server.signal(Signal::SIGCONT);
    }
    assert_ne!(answered_before, 0, "every one waited until the server was given up");
}

#[tokio::test]
async fn rates_are_local_while_the_server_is_away_and_shared_again_when_it_is_back() {
    let mut server = Valkey::start(&[]).await;
    let one = sharing(&server.url(), "1/h burst 10").await;
    let two = one.beside().await;
    is_shared(&two, None).await;
    let shared = emptied(&one).await;
    let there = at(&shared, &two).await;
    learns(&there, &two).await;
    assert_eq!(passing(&there).await, 0);
    until("the edge knows of the other", SOON, async || {
        let metrics = one.ops("/metrics").await;
        metrics.text().contains("rampart_rates_edges 2\n").then_some(())
    })
    .await;

    server.kill();
    is_shared(&one, Some("the server cannot be reached")).await;
    is_shared(&two, Some("the server cannot be reached")).await;
    let alone = one.limited_partner("alone").await;
    assert_eq!(passing(&alone).await, 5, "each edge grants its part");
    assert!(passing(&at(&alone, &two).await).await >= 4, "the other edge counts by itself");
    assert_eq!(passing(&shared).await, 0, "what was known stays");

    server.restart().await;
    is_shared(&one, None).await;
    // The edges tell the empty server what they know; one that has just started learns it there.
    let told = one.ops("/metrics").await.text().to_owned();
    for partner in [&shared, &alone] {
        assert_eq!(passing(partner).await, 0);
    }
    until("the server has been told", SOON, async || {
        assert_eq!(passing(&shared).await, 0);
        let metrics = one.ops("/metrics").await;
        (exchanges(metrics.text()) >= exchanges(&told) + 4).then_some(())
    })
    .await;
    let three = one.beside().await;
    is_shared(&three, None).await;
    for partner in [&shared, &alone] {
        let there = at(partner, &three).await;
        learns(&there, &three).await;
        assert_eq!(passing(&there).await, 0);
    }
}

/// A new partner whose bucket of ten this edge has emptied while it shared its rates throughout.
async fn emptied(edge: &Edge) -> Caller {
    for number in 0..ROUNDS {
        let partner = edge.limited_partner(&format!("shared{number}")).await;
        is_shared(edge, None).await;
        let before = failures(slice::from_ref(edge)).await;
        let granted = passing(&partner).await;
        if failures(slice::from_ref(edge)).await == before {
            assert_eq!(granted, 10);
            return partner;
        }
    }
    panic!("no bucket was emptied without a failure");
}

/// Asks an edge until it has heard from the server what others took: fewer times than the bucket holds.
async fn learns(partner: &Caller, edge: &Edge) {
    let before = exchanges(edge.ops("/metrics").await.text());
    until("the edge has heard of the bucket", SOON, async || {
        partner.get(PRICES).await;
        let metrics = edge.ops("/metrics").await;
        (exchanges(metrics.text()) >= before + 2).then_some(())
    })
    .await;
}

/// Exchanges that were answered.
fn exchanges(metrics: &str) -> u64 {
    let line = "rampart_rate_exchanges_total{outcome=\"ok\"} ";
    let counts = metrics.lines().filter_map(|text| text.strip_prefix(line));
    counts.map(|count| count.parse::<u64>().unwrap()).sum()
}

/// Exchanges of these edges that failed.
async fn failures(edges: &[Edge]) -> u64 {
    let mut failures = 0;
    for edge in edges {
        let metrics = edge.ops("/metrics").await.text().to_owned();
        let line = "rampart_rate_exchanges_total{outcome=\"";
        let counts = metrics.lines().filter_map(|text| text.strip_prefix(line)?.split_once("\"} "));
        let failed = counts.filter(|(outcome, _)| *outcome != "ok");
        failures += failed.map(|(_, count)| count.parse::<u64>().unwrap()).sum::<u64>();
    }
    failures
}

/// The address of a listener that answers everybody with something else.
fn nonsense() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // Who has gone away needs nothing.
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            open.push(stream);
        }
    });
    format!("redis://:canary-word@{address}")
}

#[tokio::test]
async fn a_server_that_is_full_wrong_or_closed_to_us_is_named_and_costs_nothing() {
    let full = Valkey::start(&["--maxmemory", "100kb", "--maxmemory-policy", "noeviction"]).await;
    let closed = Valkey::start(&["--requirepass", "another-word"]).await;
    for (url, problem, outcome) in [
        (nonsense(), "the server gives no usable answer", "wrong"),
        (full.url(), "the server's memory is full", "full"),
        (
            closed.url().replace("//", "//:canary-word@"),
            "the server refuses the user, the password or the script",
            "refused",
        ),
    ] {
        let edge = sharing(&url, "1/h burst 10").await;
        is_shared(&edge, Some(problem)).await;
        let partner = edge.limited_partner("served").await;
        assert_eq!(passing(&partner).await, 10, "{problem}");
        let metrics = edge.ops("/metrics").await.text().to_owned();
        let line = format!("rampart_rate_exchanges_total{{outcome=\"{outcome}\"}} ");
        let counted = metrics.lines().find_map(|text| text.strip_prefix(&line)).unwrap();
        assert_ne!(counted, "0", "{problem}");
        let logged = [edge.process.out(), edge.process.err()].concat().join("\n");
        assert!(logged.contains(problem), "{logged}");
        assert!(!logged.contains("canary-word"), "{logged}");
    }
}

#[tokio::test]
async fn a_url_that_is_none_stops_the_start_and_is_not_shown() {
    let mut setup = Setup::over(&cluster::database().await).under_roles().await;
    setup.set("ratelimit.redis_url", "http://:canary-word@127.0.0.1");
    let process = setup.spawn();
    assert_eq!(process.ended().await.code(), Some(2));
    let said = [process.out(), process.err()].concat().join("\n");
    assert!(said.contains("ratelimit.redis_url is not a URL such as redis://"), "{said}");
    assert!(!said.contains("canary-word"), "{said}");
}

#[tokio::test]
async fn rates_are_shared_over_tls() {
    let folder = Folder::make();
    CERTIFICATE.write(folder.path());
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (cert, key) = (place("cert.pem"), place("key.pem"));
    let port = free().port().to_string();
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &cert];
    let tls = ["--tls-port", &port, "--tls-auth-clients", "no"];
    let _server = Valkey::start(&[&tls[..], &files].concat()).await;
    let edge = Edge::with(|setup| {
        let trust = format!("SSL_CERT_FILE={cert}");
        setup.under(&["/usr/bin/env", &trust]);
        setup.set("ratelimit.redis_url", format!("rediss://127.0.0.1:{port}"));
    })
    .await;
    is_shared(&edge, None).await;
}

#[tokio::test]
async fn the_script_takes_raises_and_bounds() {
    let server = Valkey::start(&[]).await;
    let mut link = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let mut take = |key: &str, [taken, least, most]: [u64; 3]| {
        let mut command = redis::cmd("EVAL");
        command.arg(SCRIPT).arg(2).arg(key).arg("other").arg(taken).arg(least).arg(most);
        let answer: [u64; 2] = command.arg(0).arg(0).arg(0).query(&mut link).unwrap();
        assert_eq!(answer[1], 0, "another bucket is full");
        answer[0]
    };
    let second = 1_000_000;
    // What time takes away meanwhile.
    let about = |answer: u64, wanted: u64| {
        assert!(answer <= wanted && answer + second > wanted, "{answer} is not {wanted}");
    };
    assert_eq!(take("a", [0, 0, 60 * second]), 0);
    assert_eq!(take("a", [10 * second, 0, 60 * second]), 10 * second);
    about(take("a", [5 * second, 0, 60 * second]), 15 * second);
    about(take("a", [0, 20 * second, 60 * second]), 20 * second);
    about(take("a", [0, 0, 60 * second]), 20 * second);
    assert_eq!(take("a", [0, 0, 2 * second]), 2 * second, "a smaller quota");
    about(take("a", [second, 0, 2 * second]), 3 * second);
    let kept = |key: &str| redis::cmd("PTTL").arg(key).to_owned();
    let mut link = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let left: i64 = kept("a").query(&mut link).unwrap();
    assert!((1..=3_000).contains(&left), "{left}: a full bucket is not kept");
    assert_eq!(kept("other").query::<i64>(&mut link).unwrap(), -2, "nothing was taken");
}
