//! Clients that ask for much and read little: they cost others nothing, and are disconnected.

use bytes::Bytes;
use futures::future::join_all;
use h2::client::SendRequest;
use http::Request;
use nix::sys::signal::Signal;
use rampart_tests::edge::Edge;
use rampart_tests::wire::connect;

/// Answers that the slow client leaves unread at once; more than may be in flight.
const UNREAD: usize = 32;
/// Requests that may be in flight.
const IN_FLIGHT: &str = "8";

/// A connection whose client gives an answer room for one byte.
async fn narrow(edge: &Edge) -> SendRequest<Bytes> {
    let stream = connect(edge.address, "h2").await.unwrap();
    let mut builder = h2::client::Builder::new();
    let (sender, connection) = builder.initial_window_size(1).handshake(stream).await.unwrap();
    // How it ends is seen by whoever reads.
    tokio::spawn(async move { _ = connection.await });
    sender
}

/// The answer to a request for a large document, its body unread.
async fn ask(edge: &Edge, sender: &SendRequest<Bytes>) -> http::Response<h2::RecvStream> {
    let request = Request::get(edge.url("/openapi.json")).body(()).unwrap();
    let mut sender = sender.clone().ready().await.unwrap();
    sender.send_request(request, true).unwrap().0.await.unwrap()
}

#[tokio::test]
async fn unread_answers_hold_no_place_of_others_and_are_given_up() {
    let edge = Edge::with(|setup| _ = setup.set("edge.in_flight_max", IN_FLIGHT)).await;
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
    assert!(join_all(ends).await.into_iter().all(|reset| reset), "the pace is enforced");
}

#[tokio::test]
async fn an_end_does_not_wait_for_who_reads_nothing() {
    let edge = Edge::start().await;
    let sender = narrow(&edge).await;
    let answer = ask(&edge, &sender).await;
    edge.process.signal(Signal::SIGTERM);
    let status = edge.process.ended_within(std::time::Duration::from_secs(12)).await;
    assert_eq!(status.code(), Some(0));
    drop(answer);
}
