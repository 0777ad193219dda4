//! HTTP/2 by hand: streams that are reset, headers without end, connections that end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::{HeaderValue, Method, Request, Response};
use nix::sys::signal::Signal;
use rampart_tests::caller::Protocol;
use rampart_tests::cluster::{self, until_a_lock_is_awaited};
use rampart_tests::deadline::{SOON, after, until};
use rampart_tests::edge::Edge;
use rampart_tests::wire::{Wire, connect};
use sqlx::{Connection as _, PgConnection};

use super::Target;
use super::frames::{
    END_STREAM, Frames, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE, field, text,
};

/// More resets than any honest client needs, fewer than one connection could send in a second.
const STORM: usize = 1_000;
/// An endpoint for webhooks that does not exist.
const NO_ENDPOINT: &str = "/api/v2/webhooks/00000000-0000-4000-8000-000000000000";
/// Calls that are made together; few enough that the edge takes all at once.
const TOGETHER: usize = 50;
/// Documents that a slow client asks for at once: more than the system's buffers hold.
const DOCUMENTS: usize = 96;
/// Less than twice the time for which an idle connection is kept in a test, 4 s.
const LESS_THAN_TWICE: Duration = Duration::from_secs(7);
/// Pause of a slow client between two frames: it takes 3 MB a second.
const FRAME_PAUSE: Duration = Duration::from_millis(5);

async fn open(target: &Target) -> (SendRequest<Bytes>, Driving) {
    open_at(target.edge.address).await
}

/// A connection, and how it ends: well when the edge says that nothing is wrong.
type Driving = tokio::task::JoinHandle<Result<(), h2::Error>>;

async fn open_at(edge: SocketAddr) -> (SendRequest<Bytes>, Driving) {
    let stream = connect(edge, "h2").await.unwrap();
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    (sender, tokio::spawn(connection))
}

/// Sends a request for what does not exist; the answer, unless the connection takes no more.
async fn ask(edge: &Edge, sender: &SendRequest<Bytes>) -> Option<Response<RecvStream>> {
    let mut sender = sender.clone().ready().await.ok()?;
    let request = Request::get(edge.url("/nowhere")).body(()).unwrap();
    let (answer, _) = sender.send_request(request, true).ok()?;
    Some(answer.await.unwrap())
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
        stream.send_reset(Reason::CANCEL);
        drop(answer);
        tokio::task::yield_now().await;
    }
    until("the connection is closed", SOON, async || driving.is_finished().then_some(())).await;
    let reason = driving.await.unwrap().unwrap_err();
    assert!(reason.is_go_away(), "{reason:?}");
    assert_eq!(reason.reason(), Some(Reason::ENHANCE_YOUR_CALM));
    let partner = target.partner.over(Protocol::Http2);
    partner.get("/api/v2/buy/orders").await.assert_status(200);
}

#[tokio::test]
async fn resets_of_one_client_end_no_connection_that_a_balancer_shares() {
    let edge = Edge::with(|setup| {
        setup.set("edge.forwarded_for", "true").set("edge.trusted_proxies", "127.0.0.0/8");
    })
    .await;
    let partner = edge.partner("shared").await;
    let (name, value) = partner.credential();
    let (sender, _driving) = open_at(edge.address).await;
    for _ in 0..STORM / 4 {
        let request = Request::post(edge.url("/api/v1/buy/quote")).header(name, value);
        let mut sender_of_one = sender.clone().ready().await.unwrap();
        let request = request.body(()).unwrap();
        let (answer, mut stream) = sender_of_one.send_request(request, false).unwrap();
        // The edge waits for its body, since it has answered what came behind it.
        assert_eq!(ask(&edge, &sender).await.unwrap().status(), 404);
        stream.send_reset(Reason::CANCEL);
        drop(answer);
    }
}

/// A call that writes goes on without its client: here each one waits for a lock.
#[tokio::test]
async fn calls_that_clients_gave_up_end_no_connection_that_a_balancer_shares() {
    let edge = Edge::with(|setup| {
        setup.set("edge.forwarded_for", "true").set("edge.trusted_proxies", "127.0.0.0/8");
        setup.set("edge.in_flight_per_address_max", "1000");
        setup.set("database.acquire_timeout_ms", "20000");
        setup.set("database.statement_timeout_ms", "20000");
    })
    .await;
    let partner = edge.partner("given-up").await;
    let (name, value) = partner.credential();
    let mut holder = PgConnection::connect(edge.setup().database()).await.unwrap();
    let mut lock = holder.begin().await.unwrap();
    let statement = "lock table webhook_endpoint in access exclusive mode";
    sqlx::raw_sql(statement).execute(&mut *lock).await.unwrap();
    let (sender, _driving) = open_at(edge.address).await;
    let nowhere = async || {
        let mut sender = sender.clone().ready().await.unwrap();
        let request = Request::get(edge.url("/nowhere")).body(()).unwrap();
        let (answer, _) = sender.send_request(request, true).unwrap();
        answer.await.map(|answer| answer.status().as_u16())
    };
    let refused = until("a stream is refused", SOON, async || {
        let mut given_up = Vec::new();
        for _ in 0..TOGETHER {
            let mut sender = sender.clone().ready().await.unwrap();
            let request = Request::delete(edge.url(NO_ENDPOINT)).header(name, value);
            given_up.push(sender.send_request(request.body(()).unwrap(), true).unwrap());
        }
        // The edge has taken them all, since it has answered what came behind them.
        let refused = nowhere().await.err();
        given_up.iter_mut().for_each(|(_, stream)| stream.send_reset(Reason::CANCEL));
        refused
    })
    .await;
    assert_eq!(refused.reason(), Some(Reason::REFUSED_STREAM), "{refused}");
    lock.rollback().await.unwrap();
    let status = until("streams are served again", SOON, async || nowhere().await.ok()).await;
    assert_eq!(status, 404);
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
async fn a_header_block_that_does_not_end_ends_its_connection() {
    let edge = Edge::with(|setup| _ = setup.set("edge.request_header_timeout_seconds", "1")).await;
    let partner = edge.partner("endless").await;
    let target = Target { edge: Arc::new(edge), partner };
    let mut frames = Frames::open(&target).await;
    let before = frames.around[0].clone();
    frames.send(HEADERS, 0, frames.stream, &before).await;
    let (_, reason) = frames.told_to_leave().await;
    assert_eq!(Reason::from(reason), Reason::ENHANCE_YOUR_CALM);
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

#[tokio::test]
async fn a_head_that_http1_would_not_have_is_refused_and_the_connection_goes_on() {
    let target = Target::start("http2-heads").await;
    let (mut sender, _driving) = open(&target).await;
    let long = "M".repeat(33);
    for (method, path, value) in [
        (&*long, "/api/v1/prices", "y"),
        ("GET", "/api/v1/prices?{a}", "y"),
        ("GET", "/api/v1/prices", " y"),
        ("GET", "/api/v1/prices", "y "),
    ] {
        let mut request = get(&target, path);
        *request.method_mut() = method.parse().unwrap();
        request.headers_mut().append("x-name", HeaderValue::from_bytes(value.as_bytes()).unwrap());
        sender = sender.ready().await.unwrap();
        let answer = sender.send_request(request, true).unwrap().0.await.unwrap();
        assert_eq!(answer.status(), 400, "{method} {path} {value:?}");
    }
    for scheme in ["1https", "ftp"] {
        let mut request = get(&target, "/api/v1/prices");
        let mut parts = request.uri().clone().into_parts();
        parts.scheme = Some(scheme.parse().unwrap());
        *request.uri_mut() = http::Uri::from_parts(parts).unwrap();
        sender = sender.ready().await.unwrap();
        let answer = sender.send_request(request, true).unwrap().0.await.unwrap();
        assert_eq!(answer.status(), 400, "{scheme}");
    }
    sender = sender.ready().await.unwrap();
    let sound = sender.send_request(get(&target, "/api/v1/prices"), true).unwrap().0;
    assert_eq!(sound.await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_connection_ends_after_its_number_of_requests_and_answers_all_of_them() {
    let edge = Edge::with(|setup| _ = setup.set("edge.connection_requests_max", "3")).await;
    let (sender, driving) = open_at(edge.address).await;
    for _ in 0..3 {
        assert_eq!(ask(&edge, &sender).await.unwrap().status(), 404);
    }
    until("no further request is taken", SOON, async || {
        ask(&edge, &sender).await.is_none().then_some(())
    })
    .await;
    drop(sender);
    driving.await.unwrap().expect("GOAWAY without an error");

    let mut wire = Wire::open(edge.address).await;
    for is_last in [false, false, true] {
        let answer = wire.exchange(b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        assert_eq!(answer.header("connection") == Some("close"), is_last);
    }
    assert!(wire.is_closed().await);
}

#[tokio::test]
async fn a_connection_ends_at_its_age() {
    let edge = Edge::with(|setup| _ = setup.set("edge.connection_max_age_seconds", "4")).await;
    let http2 = async {
        let (sender, driving) = open_at(edge.address).await;
        assert_eq!(ask(&edge, &sender).await.unwrap().status(), 404);
        until("it is told to leave", SOON, async || driving.is_finished().then_some(())).await;
        driving.await.unwrap().expect("GOAWAY without an error");
    };
    let http1 = async {
        let request = b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut wire = Wire::open(edge.address).await;
        let first = wire.exchange(request).await.unwrap();
        assert_ne!(first.header("connection"), Some("close"));
        until("HTTP/1 is told to leave", SOON, async || {
            let next = wire.exchange(request).await.expect("every request is answered");
            (next.header("connection") == Some("close")).then_some(())
        })
        .await;
        assert!(wire.is_closed().await);
    };
    tokio::join!(http2, http1);
}

/// Its windows hold nothing back: what takes the answers slowly is the connection.
#[tokio::test]
async fn answers_have_their_time_in_a_connection_that_is_read_slowly() {
    let edge = Edge::with(|setup| _ = setup.set("edge.write_timeout_seconds", "1")).await;
    let partner = edge.partner("slow").await;
    let target = Target { edge: Arc::new(edge), partner };
    let mut frames = Frames::open(&target).await;
    frames.send(SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]).await;
    frames.send(WINDOW_UPDATE, 0, 0, &0x7fff_0000_u32.to_be_bytes()).await;
    let path = field(b"\x04", &text(b"/openapi.json"));
    for _ in 0..DOCUMENTS {
        frames.request(&path, 1).await;
        frames.stream += 2;
    }
    let (mut ended, mut reset) = (0, 0);
    while ended < DOCUMENTS {
        after(FRAME_PAUSE).await;
        let (kind, flags, stream, _) = frames.frame().await;
        let is_reset = kind == RST_STREAM;
        reset += usize::from(is_reset);
        ended += usize::from(stream > 0 && (is_reset || flags & END_STREAM != 0));
    }
    assert!(reset > 0, "all were sent, however long that took");
}

/// Waits until the edge says with GOAWAY that nothing is wrong and the connection ends: without the
/// frame a client sees only, later on, that its peer is gone.
async fn told_to_leave(sender: &SendRequest<Bytes>) {
    let told = async || sender.clone().ready().await.err();
    let reason = until("the client is told to leave", SOON, told).await;
    assert!(reason.is_go_away() && reason.is_remote(), "{reason:?}");
    assert_eq!(reason.reason(), Some(Reason::NO_ERROR));
}

#[tokio::test]
async fn an_idle_connection_is_told_why_it_ends() {
    let edge = Edge::with(|setup| _ = setup.set("edge.keepalive_timeout_seconds", "1")).await;
    let (idle, driving) = open_at(edge.address).await;
    told_to_leave(&idle).await;
    driving.await.unwrap().expect("an end without an error");
}

#[tokio::test]
async fn a_connection_is_kept_for_its_time_after_the_last_answer_and_no_longer() {
    let edge = Edge::with(|setup| _ = setup.set("edge.keepalive_timeout_seconds", "4")).await;
    let (idle, driving) = open_at(edge.address).await;
    assert_eq!(ask(&edge, &idle).await.unwrap().status(), 404);
    let told = tokio::time::timeout(LESS_THAN_TWICE, told_to_leave(&idle)).await;
    told.expect("it is kept once its time");
    driving.await.unwrap().expect("an end without an error");
}

/// An idle connection is kept for a minute here, and one of the two is not idle: what tells them to
/// leave is the stop.
#[tokio::test]
async fn a_stop_is_told_at_once_and_a_stream_under_way_ends_with_its_answer() {
    let edge = Arc::new(Edge::start().await);
    let partner = edge.partner("under-way").await;
    let database = edge.setup().database().to_owned();
    let mut holder = PgConnection::connect(&database).await.unwrap();
    let mut lock = holder.begin().await.unwrap();
    let statement = "lock table webhook_endpoint in access exclusive mode";
    sqlx::raw_sql(statement).execute(&mut *lock).await.unwrap();
    let (idle, driving) = open_at(edge.address).await;
    assert_eq!(ask(&edge, &idle).await.unwrap().status(), 404);
    let mut frames = Frames::open(&Target { edge: Arc::clone(&edge), partner }).await;
    frames.request(&field(b"\x04", &text(b"/api/v2/webhooks")), 1).await;
    until_a_lock_is_awaited(&cluster::pool(&database).await).await;

    edge.process.signal(Signal::SIGTERM);
    let (last, reason) = frames.told_to_leave().await;
    assert_eq!((last, reason), (0x7fff_ffff, 0), "no stream that is on its way is refused");
    told_to_leave(&idle).await;
    driving.await.unwrap().expect("an end without an error");
    lock.rollback().await.unwrap();
    assert_eq!(frames.answer().await.0, 200);
    let told = frames.told_to_leave().await;
    assert_eq!(told, (1, 0), "the last stream, and no error");
    assert!(frames.is_closed().await);
    assert_eq!(edge.process.ended().await.code(), Some(0));
}

#[tokio::test]
async fn connections_that_come_while_the_process_stops_are_told_to_leave_too() {
    let edge = Edge::with(|setup| _ = setup.set("edge.shutdown_delay_seconds", "3")).await;
    edge.process.signal(Signal::SIGTERM);
    until("it stops", SOON, async || {
        (edge.ops("/readyz").await.json()["stopping"] == true).then_some(())
    })
    .await;
    let (silent, silent_driving) = open_at(edge.address).await;
    let (late, driving) = open_at(edge.address).await;
    // What comes late is answered before it is told to leave.
    assert_eq!(ask(&edge, &late).await.unwrap().status(), 404);
    told_to_leave(&late).await;
    driving.await.unwrap().expect("an end without an error");
    told_to_leave(&silent).await;
    silent_driving.await.unwrap().expect("an end without an error");
    assert_eq!(edge.process.ended().await.code(), Some(0));
}
