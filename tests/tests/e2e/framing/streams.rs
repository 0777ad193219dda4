//! Streams of HTTP/2 whose client, by hand, takes away their windows, or takes them back.

use std::sync::Arc;

use nix::sys::signal::Signal;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use tokio::time::timeout;

use super::Target;
use super::frames::{
    END_STREAM, Frames, GO_AWAY, RST_STREAM, SETTINGS, WINDOW_UPDATE, field, text,
};

/// Documents that are asked for and not read: more than the system's buffers hold.
const DOCUMENTS: u32 = 60;
/// Small answers behind them.
const SMALL: u32 = 30;
/// Calls that one client takes back at once: fewer than may run, since the edge begins each of them.
const GIVEN_UP: usize = 60;
/// Calls that a client may reset at once on its own connection.
const OWN_GIVEN_UP: usize = 100;
/// Streams that an attacker has the edge reset, one after the other: more than any connection may have.
const STORM: usize = 1_000;
/// The reason of a connection whose client asks for too much (RFC 9113, section 7).
const ENHANCE_YOUR_CALM: u32 = 0xb;

/// The setting of the window that a stream begins with (RFC 9113, section 6.5.2).
fn initial_window(bytes: u32) -> Vec<u8> {
    [&[0, 4][..], &bytes.to_be_bytes()].concat()
}

/// Small answers are made and wait behind a full socket. When their client takes the windows away
/// before it reads on, none of them can leave any more, and nobody waits for them with a pace.
#[tokio::test]
async fn answers_that_cannot_leave_do_not_keep_their_connection_from_ending() {
    let edge = Edge::with(|setup| {
        setup.set("edge.write_timeout_seconds", "2").set("edge.drain_seconds", "120");
    })
    .await;
    let partner = edge.partner("windows").await;
    let target = Target { edge: Arc::new(edge), partner };
    let mut frames = Frames::open(&target).await;
    frames.send(SETTINGS, 0, 0, &initial_window(0x7fff_ffff)).await;
    frames.send(WINDOW_UPDATE, 0, 0, &0x7fff_0000_u32.to_be_bytes()).await;
    for _ in 0..DOCUMENTS {
        frames.request(&field(b"\x04", &text(b"/openapi.json")), 1).await;
        frames.stream += 2;
    }
    frames.until_full().await;
    let first_small = frames.stream;
    for _ in 0..SMALL {
        frames.request(&field(b"\x04", &text(b"/api/v1/prices")), 1).await;
        frames.stream += 2;
    }
    let labels = r#"partner="windows",route="/api/v1/prices",status="200""#;
    let made = format!("rampart_requests_total{{{labels}}} {SMALL}");
    until("the small answers are made", SOON, async || {
        let text = target.edge.ops("/metrics").await.assert_status(200).text().to_owned();
        text.lines().any(|line| line == made).then_some(())
    })
    .await;

    frames.send(SETTINGS, 0, 0, &initial_window(0)).await;
    target.edge.process.signal(Signal::SIGTERM);
    let whole = timeout(SOON, async {
        let mut whole = 0;
        while let Ok((_, flags, stream, _)) = frames.try_frame().await {
            whole += u32::from(stream >= first_small && flags & END_STREAM != 0);
        }
        whole
    });
    let whole = whole.await.expect("the connection ends");
    assert!(whole < SMALL, "all of them had left before");
    assert_eq!(target.edge.process.ended_within(SOON).await.code(), Some(0));
}

#[tokio::test]
async fn calls_that_are_taken_back_at_once_end_no_connection_that_a_balancer_shares() {
    let edge = Edge::with(|setup| {
        setup.set("edge.forwarded_for", "true").set("edge.trusted_proxies", "127.0.0.0/8");
    })
    .await;
    goes_on_after(GIVEN_UP, edge).await;
}

#[tokio::test]
async fn a_client_may_take_back_as_many_calls_at_once_as_it_may_reset() {
    goes_on_after(OWN_GIVEN_UP, Edge::start().await).await;
}

/// The connection of a client that takes back this many calls at once serves its next one.
async fn goes_on_after(given_up: usize, edge: Edge) {
    let partner = edge.partner("taken-back").await;
    let target = Target { edge: Arc::new(edge), partner };
    let mut frames = Frames::open(&target).await;
    let path = field(b"\x04", &text(b"/api/v1/prices"));
    // Together they are read before the edge accepts the first of them.
    frames.give_up(&path, given_up).await;
    assert_eq!(frames.ask(&path, 1).await.0, 200);
}

/// A client need not send a reset to take its call back: it can have the edge do it (CVE-2025-8671).
#[tokio::test]
async fn a_client_that_has_its_streams_reset_is_cut_like_one_that_resets_them() {
    let edge = Edge::start().await;
    let partner = edge.partner("made-to-reset").await;
    let target = Target { edge: Arc::new(edge), partner };
    let mut frames = Frames::open(&target).await;
    let path = field(b"\x04", &text(b"/api/v1/prices"));
    for _ in 0..STORM {
        frames.overflow(&path).await;
        loop {
            let (kind, _, stream, payload) = frames.frame().await;
            if kind == GO_AWAY {
                assert_eq!(payload[4..8], ENHANCE_YOUR_CALM.to_be_bytes());
                return;
            }
            if kind == RST_STREAM && stream == frames.stream {
                break;
            }
            assert_ne!(stream, frames.stream, "a frame of type {kind}");
        }
        frames.stream += 2;
    }
    panic!("the connection goes on after {STORM} streams");
}
