//! The client's address behind balancers: the PROXY protocol, `X-Forwarded-For`, and what counts by it.

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::wire::Wire;
use serde_json::json;
use tokio::net::TcpStream;

/// PROXY protocol 2: 192.0.2.7 to 10.0.0.1, with a TLV behind the addresses.
const V2: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0f\xc0\0\x02\x07\x0a\0\0\x01\xc3\x50\x01\xbb\x04\0\0";
/// PROXY protocol 2: the balancer's own health check.
const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

fn v1(client: &str) -> Vec<u8> {
    format!("PROXY TCP4 {client} 10.0.0.1 50000 443\r\n").into_bytes()
}

fn behind(setup: &mut Setup, protocol: &str, trusted: &str) {
    setup.set("edge.proxy_protocol", protocol).set("edge.trusted_proxies", trusted);
}

/// Sends a request that is refused for its path alone: it takes from its address's rate.
async fn nowhere(header: &[u8], edge: &Edge) -> Answer {
    let mut wire = Wire::try_proxied(edge.address, header).await.unwrap();
    wire.exchange(b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap()
}

#[tokio::test]
async fn partners_behind_a_balancer_have_addresses_of_their_own() {
    let edge = Edge::with(|setup| {
        behind(setup, "any", "127.0.0.0/8");
        setup.set("ratelimit.address", "1/h burst 2");
    })
    .await;
    for header in [v1("192.0.2.7"), V2.to_vec()] {
        nowhere(&header, &edge).await.assert_status(404);
    }
    nowhere(V2, &edge).await.assert_status(429);
    nowhere(&v1("192.0.2.8"), &edge).await.assert_status(404);
    nowhere(V2_LOCAL, &edge).await.assert_status(404);
    // Private listeners stand in front of no balancer.
    edge.ops("/healthz").await.assert_status(200);
}

#[tokio::test]
async fn only_trusted_proxies_are_heard_and_only_in_the_configured_version() {
    let edge = Edge::with(|setup| behind(setup, "v2", "127.0.0.1")).await;
    nowhere(V2, &edge).await.assert_status(404);
    for header in [&v1("192.0.2.7")[..], b"", b"PROXY", &V2[..14]] {
        assert!(Wire::try_proxied(edge.address, header).await.is_err(), "{header:?}");
    }
    let elsewhere = Edge::with(|setup| behind(setup, "any", "192.0.2.0/24, 10.0.0.0/8")).await;
    assert!(Wire::try_proxied(elsewhere.address, V2).await.is_err(), "an untrusted proxy");
    let off = Edge::shared().await;
    assert!(Wire::try_proxied(off.address, V2).await.is_err(), "nobody asked for it");
}

#[tokio::test]
async fn a_balancer_that_says_nothing_is_closed_and_counted() {
    let edge = Edge::with(|setup| behind(setup, "any", "127.0.0.0/8")).await;
    let _silent = TcpStream::connect(edge.address).await.unwrap();
    until("the connection is counted", SOON, async || {
        let text = edge.ops("/metrics").await.assert_status(200).text().to_owned();
        let counted = r#"rampart_connections_refused_total{cause="proxy_protocol"} 1"#;
        text.contains(counted).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_forwarded_address_binds_every_credential() {
    let edge = Edge::with(|setup| {
        setup.set("edge.forwarded_for", "true").set("edge.trusted_proxies", "127.0.0.0/8,10.0.0.9");
    })
    .await;
    let partner = edge.partner("bound").await;
    let path = "/admin/v1/partners/bound";
    let token = partner.authenticated().await;
    let networks = json!({"allowedAddresses": ["192.0.2.0/24"]});
    edge.admin(Method::PATCH, path, networks).await.assert_status(200);
    for caller in [&partner, &token] {
        let from = |addresses: &str| {
            let request = caller.request(Method::GET, "/api/v1/prices");
            request.header("x-forwarded-for", addresses).send()
        };
        from("192.0.2.7").await.assert_status(200);
        from("198.51.100.1, 192.0.2.7, 10.0.0.9").await.assert_status(200);
        // What a client claims stands to the left of what the balancer saw.
        from("192.0.2.7, 198.51.100.1").await.assert_status(400);
        caller.get("/api/v1/prices").await.assert_status(400);
    }
}

#[tokio::test]
async fn without_trusted_proxies_an_edge_that_wants_them_does_not_start() {
    let mut setup = Setup::over("postgres://nobody@127.0.0.1:1/none");
    setup.set("edge.proxy_protocol", "v1");
    let process = setup.spawn();
    assert_eq!(process.ended().await.code(), Some(2));
    let said = process.err().join("\n");
    assert!(said.contains("edge.trusted_proxies"), "{said}");
}
