//! Clients that ask for much and read little: they cost others nothing, and are disconnected.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use h2::client::SendRequest;
use http::Request;
use http::request::Builder;
use nix::sys::signal::Signal;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::wire::connect;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{interval, timeout};

/// Answers that the slow client leaves unread at once; more than may be in flight.
const UNREAD: usize = 32;
/// Requests that may be in flight.
const IN_FLIGHT: &str = "8";
/// Time for an answer that is longer than any test: where it is set, the pace alone ends one.
const ENDLESS: &str = "3600";
/// Bytes that a reader takes: where a byte a second suffices, its pace is kept for ten seconds.
const TAKEN: usize = 10;
/// Less than those ten seconds.
const PACE_KEPT: Duration = Duration::from_secs(8);
/// Documents that a reader of HTTP/1 asks for at once: more than the system's buffers hold.
const DOCUMENTS: usize = 96;
/// Bytes that it takes at a time, and the pause between two times: a document takes it seconds.
const PART: usize = 8 * 1024;
const PART_PAUSE: Duration = Duration::from_millis(100);
/// Less than the 30 seconds that an answer has: what ends one before is its reader's pace.
const END_MAX: Duration = Duration::from_secs(20);

/// A connection whose client gives an answer room for one byte.
pub(super) async fn narrow(edge: &Edge) -> SendRequest<Bytes> {
    let stream = connect(edge.address, "h2").await.unwrap();
    let mut builder = h2::client::Builder::new();
    let (sender, connection) = builder.initial_window_size(1).handshake(stream).await.unwrap();
    // How it ends is seen by whoever reads.
    tokio::spawn(async move { _ = connection.await });
    sender
}

/// The answer to a request for a large document, its body unread.
async fn ask(edge: &Edge, sender: &SendRequest<Bytes>) -> http::Response<h2::RecvStream> {
    send(sender, Request::get(edge.url("/openapi.json"))).await
}

async fn send(sender: &SendRequest<Bytes>, request: Builder) -> http::Response<h2::RecvStream> {
    let request = request.body(()).unwrap();
    let mut sender = sender.clone().ready().await.unwrap();
    sender.send_request(request, true).unwrap().0.await.unwrap()
}

#[tokio::test]
async fn unread_answers_hold_no_place_of_others_and_are_given_up() {
    let edge = Edge::with(|setup| {
        setup.set("edge.in_flight_max", IN_FLIGHT).set("edge.write_timeout_seconds", ENDLESS);
    })
    .await;
    let partner = edge.partner("neighbour").await;
    let (one, other) = tokio::join!(narrow(&edge), narrow(&edge));
    let mut unread = Vec::new();
    for number in 0..UNREAD {
        let answer = ask(&edge, if number % 2 == 0 { &one } else { &other }).await;
        assert_eq!(answer.status(), 200, "answer {number}");
        unread.push(answer.into_body());
    }
    for _ in 0..UNREAD {
        partner.get("/api/v1/prices").await.assert_status(200);
    }
    let ends = unread.into_iter().map(|mut body| async move {
        while let Some(part) = body.data().await {
            match part {
                Ok(_) => {}
                Err(error) => return error.is_reset(),
            }
        }
        false
    });
    let ends = timeout(SOON, join_all(ends)).await.expect("the pace is enforced");
    assert!(ends.into_iter().all(|reset| reset));
}

#[tokio::test]
async fn large_answers_that_a_partner_leaves_unread_take_bounded_memory() {
    const LARGE: &str = "/api/v2/sandbox/scenarios";
    let edge = Edge::with(|setup| _ = setup.set("edge.body_memory_bytes", "1048576")).await;
    let (partner, neighbour) = tokio::join!(edge.partner("hoarder"), edge.partner("neighbour"));
    let sender = narrow(&edge).await;
    let (key, secret) = partner.credential();
    // It takes all that the partner may have.
    let unread = send(&sender, Request::get(edge.url(LARGE)).header(key, secret)).await;
    assert_eq!(unread.status(), 200);
    partner.get(LARGE).await.assert_status(503);
    partner.get("/api/v1/prices").await.assert_status(200);
    neighbour.get(LARGE).await.assert_status(200);
    drop(unread);
    let taken = async || Some(partner.get(LARGE).await.status()).filter(|status| *status == 200);
    until("its memory is given back", SOON, taken).await;
}

/// The answer to a form of a page, its body unread.
async fn send_form(
    sender: &SendRequest<Bytes>,
    url: &str,
    form: &'static str,
) -> http::Response<h2::RecvStream> {
    let request = Request::post(url).body(()).unwrap();
    let mut sender = sender.clone().ready().await.unwrap();
    let (answer, mut body) = sender.send_request(request, false).unwrap();
    body.send_data(Bytes::from_static(form.as_bytes()), true).unwrap();
    answer.await.unwrap()
}

#[tokio::test]
async fn pages_that_refuse_the_forms_of_one_address_take_bounded_memory() {
    let edge = Edge::with(|setup| _ = setup.set("edge.body_memory_bytes", "1048576")).await;
    let partner = edge.partner("visited").await;
    let body = json!({"identifier": "v".repeat(36), "returnUrl": "https://shop.example/"});
    let made = partner.post("/api/v1/user/register-identifier", body).await;
    let url = made.assert_status(200).json()["redirectUrl"]["nl-nl"].take();
    let path = url.as_str().unwrap().splitn(4, '/').nth(3).unwrap().to_owned();
    let url = edge.url(&format!("/{path}"));
    let sender = narrow(&edge).await;
    let ask = async || send_form(&sender, &url, "action=log-in&email=").await;
    let mut unread = Vec::new();
    loop {
        let page = ask().await;
        if page.status() == 503 {
            break;
        }
        assert_eq!(page.status(), 400);
        unread.push(page);
        assert!(unread.len() < 5, "their memory is not counted");
    }
    partner.get("/api/v1/prices").await.assert_status(200);
    drop(unread);
    let shown = async || Some(ask().await.status()).filter(|status| *status == 400);
    until("its memory is given back", SOON, shown).await;
}

#[tokio::test]
async fn an_answer_has_its_time_whatever_the_pace_of_its_reader() {
    let edge = Edge::with(|setup| {
        setup.set("edge.write_timeout_seconds", "1").set("edge.send_rate_min_bytes", "1");
    })
    .await;
    let sender = narrow(&edge).await;
    let mut body = ask(&edge, &sender).await.into_body();
    let end = async {
        let mut taken = 0;
        while let Some(part) = body.data().await {
            let bytes = match part {
                Ok(part) => part.len(),
                Err(error) => return error.is_reset(),
            };
            taken += bytes;
            if taken < TAKEN {
                body.flow_control().release_capacity(bytes).unwrap();
            }
        }
        false
    };
    assert!(timeout(PACE_KEPT, end).await.expect("the time for an answer is bounded"));
}

#[tokio::test]
async fn an_answer_of_http1_has_its_time_whatever_the_pace_of_its_reader() {
    let edge = Edge::with(|setup| {
        setup.set("edge.write_timeout_seconds", "1").set("edge.send_rate_min_bytes", "1");
    })
    .await;
    let stream = connect(edge.address, "http/1.1").await.unwrap();
    let (mut from, mut to) = tokio::io::split(stream);
    let request = "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n";
    let end = async {
        to.write_all(request.repeat(DOCUMENTS).as_bytes()).await?;
        to.flush().await?;
        let mut pause = interval(PART_PAUSE);
        loop {
            pause.tick().await;
            from.read_exact(&mut [0; PART]).await?;
            // It fails once the connection has ended, however much of an answer is unread.
            to.write_all(request.as_bytes()).await?;
            to.flush().await?;
        }
    };
    let ended: Result<std::io::Result<()>, _> = timeout(SOON, end).await;
    assert!(ended.expect("the time for an answer is bounded").is_err());
}

#[tokio::test]
async fn an_end_does_not_wait_for_who_reads_nothing() {
    let edge = Edge::start().await;
    let sender = narrow(&edge).await;
    let answer = ask(&edge, &sender).await;
    edge.process.signal(Signal::SIGTERM);
    let status = edge.process.ended_within(END_MAX).await;
    assert_eq!(status.code(), Some(0));
    drop(answer);
}
