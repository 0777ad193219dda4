//! The events of the payment page over the network, and in a browser.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rampart_tests::browser::Browser;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

use crate::buyer::{self, order_of};

/// Longest time from a change to its event.
const TOLD_MAX: Duration = Duration::from_secs(2);
/// Most orders until the event of one has come in that time: other work may have the processors.
const ORDERS_MAX: usize = 12;
/// Most pages that follow one order.
const PER_ORDER_MAX: usize = 8;

/// An order of the sandbox: its number and the URL of its page.
async fn order(partner: &Caller) -> (String, String) {
    let confirmed = buyer::order(partner).await;
    let page = confirmed.json()["paymentUrl"].as_str().unwrap().to_owned();
    (order_of(&confirmed).to_string(), page)
}

async fn simulate(partner: &Caller, order: &str, event: &str) {
    let path = format!("/api/v2/sandbox/orders/{order}/{event}");
    partner.post(&path, Value::Null).await.assert_status(200);
}

async fn follow(client: &reqwest::Client, page: &str) -> Response {
    client.get(format!("{page}/events")).send().await.unwrap()
}

/// Reads until an event tells this state; `false` when the stream ends before.
async fn tells(stream: &mut Response, state: &str) -> bool {
    let (line, mut text) = (format!("data: {state}\n\n"), String::new());
    let reading = async {
        while let Ok(Some(part)) = stream.chunk().await {
            text.push_str(std::str::from_utf8(&part).unwrap());
            if text.contains(&line) {
                return true;
            }
        }
        false
    };
    timeout(SOON, reading).await.unwrap()
}

/// The shortest time from a change to the event that tells of it, of orders in turn until it is short
/// enough. The change follows another one's event, with all of the time until the edge looks again.
#[expect(clippy::disallowed_methods, reason = "the time of a network is the machine's")]
async fn told_after(protocol: Protocol, partner: &Caller) -> Duration {
    let client = protocol.client();
    let (mut orders, mut fastest) = (0, SOON);
    while fastest >= TOLD_MAX && orders < ORDERS_MAX {
        orders += 1;
        let (number, page) = order(partner).await;
        let mut stream = follow(&client, &page).await;
        assert_eq!(stream.status(), 200);
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        assert!(tells(&mut stream, "pending").await);
        simulate(partner, &number, "payment-received").await;
        assert!(tells(&mut stream, "in progress").await);
        let began = Instant::now();
        simulate(partner, &number, "coins-sent").await;
        assert!(tells(&mut stream, "in progress: sent").await);
        fastest = fastest.min(began.elapsed());
    }
    fastest
}

#[tokio::test]
async fn a_change_is_told_within_two_seconds() {
    let edge = Edge::with(|setup| _ = setup.set("sandbox.step_ms", "3600000")).await;
    let partner = edge.partner("followed").await.authenticated().await;
    let (first, second) =
        tokio::join!(told_after(Protocol::Http1, &partner), told_after(Protocol::Http2, &partner));
    assert!(first < TOLD_MAX && second < TOLD_MAX, "{first:?} {second:?}");
}

#[tokio::test]
async fn an_open_stream_keeps_no_request_waiting_and_its_place_ends_with_it() {
    let edge = Edge::with(|setup| _ = setup.set("edge.in_flight_max", "2")).await;
    let partner = edge.partner("patient").await.authenticated().await;
    let (_, page) = order(&partner).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let client = protocol.client();
        let mut open = Vec::new();
        for _ in 0..PER_ORDER_MAX {
            // The edge may not have noticed yet that the stream before has ended.
            let mut stream = until("a place is free", SOON, async || {
                Some(follow(&client, &page).await).filter(|stream| stream.status() == 200)
            })
            .await;
            assert!(tells(&mut stream, "pending").await);
            open.push(stream);
        }
        assert_eq!(follow(&client, &page).await.status(), 503);
        partner.get("/api/v1/prices").await.assert_status(200);
        drop((open, client));
        until("the places are free", SOON, async || {
            let stream = follow(&protocol.client(), &page).await;
            (stream.status() == 200).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_drain_ends_streams_at_once() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let edge = Edge::start().await;
        let partner = edge.partner("stopped").await.authenticated().await;
        let (_, page) = order(&partner).await;
        let mut stream = follow(&protocol.client(), &page).await;
        assert!(tells(&mut stream, "pending").await);
        edge.process.signal(Signal::SIGTERM);
        assert!(!tells(&mut stream, "never").await, "the stream ends");
        assert_eq!(edge.process.ended().await.code(), Some(0));
    }
}

#[tokio::test]
async fn a_page_left_open_goes_on_to_the_end_without_being_loaded_again() {
    let edge = Edge::with(|setup| _ = setup.set("sandbox.step_ms", "3600000")).await;
    let partner = edge.partner("watched").await.authenticated().await;
    let (number, page) = order(&partner).await;
    let browser = Browser::start().await;
    browser.open(&page).await;
    browser.shows("Choose how this test payment ends.").await;
    browser.run("window.mark = 'first'").await;
    for (event, text) in [
        ("payment-received", "the payment has arrived"),
        ("coins-sent", "the payment has arrived"),
        ("confirmed-on-chain", "Your order is complete"),
    ] {
        simulate(&partner, &number, event).await;
        browser.shows(text).await;
        assert_eq!(browser.run("return window.mark").await, "first");
    }
    let heading = browser.run("return document.activeElement.tagName").await;
    assert_eq!(heading, "H1", "the focus is where the news is");
    assert_eq!(browser.complaints().await, [""; 0]);
}

#[tokio::test]
async fn a_page_stays_while_there_is_no_answer_and_goes_on_after() {
    let edge = Edge::with(|setup| _ = setup.set("sandbox.step_ms", "3600000")).await;
    let partner = edge.partner("patient").await.authenticated().await;
    let (number, page) = order(&partner).await;
    let browser = Browser::start().await;
    browser.open(&page).await;
    browser.shows("Choose how this test payment ends.").await;
    let busy = "window.mark = 'first'; const own = window.fetch; \
        window.fetch = async () => { window.fetch = own; return new Response('{}', {status: 503}); };";
    browser.run(busy).await;
    simulate(&partner, &number, "payment-received").await;
    browser.shows("the payment has arrived").await;
    assert_eq!(browser.run("return window.mark").await, "first", "it was not loaded again");
}
