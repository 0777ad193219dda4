//! HTTP/2 by hand: streams that are reset, headers without end.

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderValue, Method, Request};
use rampart_tests::caller::Protocol;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::wire::connect;

use super::Target;

/// More resets than any honest client needs, fewer than one connection could send in a second.
const STORM: usize = 1_000;

async fn open(target: &Target) -> (SendRequest<Bytes>, tokio::task::JoinHandle<()>) {
    let stream = connect(target.edge.address, "h2").await.unwrap();
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    // How it ends is seen by whoever sends.
    let driving = tokio::spawn(async move { _ = connection.await });
    (sender, driving)
}

fn get(target: &Target, path: &str) -> Request<()> {
    let (name, value) = target.partner.credential();
    Request::builder()
        .method(Method::GET)
        .uri(target.edge.url(path))
        .header(name, value)
        .body(())
        .unwrap()
}

#[tokio::test]
async fn a_storm_of_resets_ends_its_connection_and_nothing_else() {
    let target = Target::start("resets").await;
    let (mut sender, driving) = open(&target).await;
    let request = || get(&target, "/api/v2/buy/orders");
    for _ in 0..STORM {
        let Ok(ready) = sender.clone().ready().await else { break };
        sender = ready;
        let Ok((answer, mut stream)) = sender.send_request(request(), true) else { break };
        stream.send_reset(h2::Reason::CANCEL);
        drop(answer);
        tokio::task::yield_now().await;
    }
    until("the connection is closed", SOON, async || driving.is_finished().then_some(())).await;
    let partner = target.partner.over(Protocol::Http2);
    partner.get("/api/v2/buy/orders").await.assert_status(200);
}

#[tokio::test]
async fn a_header_list_without_end_is_refused_and_the_connection_goes_on() {
    let target = Target::start("header-list").await;
    let (mut sender, _driving) = open(&target).await;
    for (count, length, status) in
        [(1, 17_000, 431), (200, 10, 431), (3, 40_000, 431), (1, 10, 200)]
    {
        let mut request = get(&target, "/api/v1/prices");
        for number in 0..count {
            let name: http::HeaderName = format!("x-{number}").parse().unwrap();
            let value = HeaderValue::from_bytes(&vec![b'a'; length]).unwrap();
            request.headers_mut().append(name, value);
        }
        sender = sender.ready().await.unwrap();
        let (answer, _) = sender.send_request(request, true).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), status, "{count} headers of {length} bytes");
    }
}

#[tokio::test]
async fn a_head_that_names_two_hosts_is_refused_and_the_connection_goes_on() {
    let target = Target::start("two-hosts").await;
    let (mut sender, _driving) = open(&target).await;
    let authority = target.edge.url("/").parse::<http::Uri>().unwrap();
    let own = authority.authority().unwrap().to_string();
    for (fields, status) in [
        (&[("host", "other.example")][..], 400),
        (&[("host", &own), ("host", &own)], 400),
        (&[("host", "user@host")], 400),
        (&[("content-length", "0"), ("content-length", "0")], 400),
        (&[("host", &own), ("content-length", "0")], 200),
    ] {
        let mut request = get(&target, "/api/v1/prices");
        for (name, value) in fields {
            request.headers_mut().append(*name, value.parse().unwrap());
        }
        sender = sender.ready().await.unwrap();
        let (answer, _) = sender.send_request(request, true).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), status, "{fields:?}");
        assert!(answer.headers().contains_key("x-request-id"), "{fields:?}");
    }
}
