//! A load generator of our own, for what the others cannot do: bodies that are used up, a pace that
//! is kept, handshakes that resume nothing, connections that stay open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use rampart_core::platform::clock::Clock;
use rampart_tests::certificate::CERTIFICATE;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::processes::pin_this_thread;

/// Bytes that are read at once at most.
const READ_BYTES: usize = 16 * 1024;

/// An answer and its latency.
pub(crate) struct Answered {
    /// Its status.
    pub(crate) status: u16,
    /// Its body.
    pub(crate) body: Vec<u8>,
    /// Seconds from the first byte of the request to the last of the answer.
    pub(crate) seconds: f64,
}

impl Answered {
    /// The same, if it was a success.
    pub(crate) fn ok(self) -> Self {
        let Self { status, body, .. } = &self;
        assert!((200..300).contains(status), "{status}: {}", String::from_utf8_lossy(body));
        self
    }
}

/// A request as its bytes on the wire.
pub(crate) fn request(line: &str, headers: &[&str], body: &str) -> Bytes {
    let mut text = format!("{line} HTTP/1.1\r\nhost: localhost\r\n");
    for header in headers {
        text += &format!("{header}\r\n");
    }
    if !body.is_empty() {
        let length = body.len();
        text += &format!("content-type: application/json\r\ncontent-length: {length}\r\n");
    }
    (text + "\r\n" + body).into()
}

/// TLS that asks for HTTP/1.1, trusts the benchmark's certificate and resumes nothing.
fn tls() -> TlsConnector {
    let mut config: ClientConfig = CERTIFICATE.client(&["http/1.1"]);
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

/// A connection that asks and waits for the answer.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    held: Vec<u8>,
    clock: Clock,
}

impl Connection {
    async fn open(address: SocketAddr, tls: &TlsConnector, clock: &Clock) -> Self {
        let tcp = TcpStream::connect(address).await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = tls.connect(name, tcp).await.unwrap();
        Self { stream, held: Vec::new(), clock: clock.clone() }
    }

    async fn ask(&mut self, request: &[u8]) -> Answered {
        let began = self.clock.monotonic_ns();
        self.stream.write_all(request).await.unwrap();
        self.stream.flush().await.unwrap();
        self.held.clear();
        let (status, body_at, end) = loop {
            self.more().await;
            if let Some(head) = head(&self.held) {
                break head;
            }
        };
        while self.held.len() < end {
            self.more().await;
        }
        let body = self.held[body_at..end].to_vec();
        Answered { status, body, seconds: seconds(self.clock.monotonic_ns() - began) }
    }

    async fn more(&mut self) {
        self.held.reserve(READ_BYTES);
        let count = self.stream.read_buf(&mut self.held).await.unwrap();
        assert!(count > 0, "the connection was closed");
    }
}

/// Status, where the body begins and where it ends.
fn head(bytes: &[u8]) -> Option<(u16, usize, usize)> {
    let body_at = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..body_at]).unwrap();
    let status = text.split(' ').nth(1)?.parse().unwrap();
    let length = text.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
    });
    Some((status, body_at, body_at + length.unwrap_or(0)))
}

fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}

async fn connections(address: SocketAddr, count: usize) -> Vec<Connection> {
    let (tls, clock) = (tls(), Clock::system());
    let mut open = Vec::with_capacity(count);
    for _ in 0..count {
        open.push(Connection::open(address, &tls, &clock).await);
    }
    open
}

/// Sends each request once, over so many connections, each with one at a time. All answers, and
/// the seconds from the first request to the last answer.
pub(crate) async fn each(
    address: SocketAddr,
    count: usize,
    requests: Vec<Bytes>,
) -> (Vec<Answered>, f64) {
    let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
    let open = connections(address, count).await;
    let clock = Clock::system();
    let began = clock.monotonic_ns();
    let tasks = open.into_iter().map(|mut connection| {
        let (requests, next) = (Arc::clone(&requests), Arc::clone(&next));
        tokio::spawn(async move {
            let mut answers = Vec::new();
            while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                answers.push(connection.ask(request).await);
            }
            answers
        })
    });
    let answers = join_all(tasks.collect::<Vec<_>>()).await;
    let took = seconds(clock.monotonic_ns() - began);
    (answers.into_iter().flat_map(Result::unwrap).collect(), took)
}

/// Sends one request again and again for a time. Successes a second.
pub(crate) async fn again(
    address: SocketAddr,
    count: usize,
    request: Bytes,
    time: Duration,
) -> f64 {
    let open = connections(address, count).await;
    let clock = Clock::system();
    let began = clock.monotonic_ns();
    let end = began + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let tasks = open.into_iter().map(|mut connection| {
        let (request, clock) = (request.clone(), clock.clone());
        tokio::spawn(async move {
            let mut answers = 0_u32;
            while clock.monotonic_ns() < end {
                connection.ask(&request).await.ok();
                answers += 1;
            }
            answers
        })
    });
    let answers = join_all(tasks.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap);
    f64::from(answers.sum::<u32>()) / seconds(clock.monotonic_ns() - began)
}

/// Sends requests at a fixed pace whether or not answers come, each connection these in turn. The
/// seconds from when each was due to its answer, so that a server that stalls cannot hide it by
/// slowing the questions down.
pub(crate) async fn paced(
    address: SocketAddr,
    count: usize,
    requests: Vec<Bytes>,
    pace: Duration,
    time: Duration,
) -> Vec<f64> {
    let open = connections(address, count).await;
    let each = pace * u32::try_from(count).unwrap();
    let start = tokio::time::Instant::now() + pace;
    let tasks = open.into_iter().zip(0..).map(|(mut connection, index): (_, u32)| {
        let requests = requests.clone();
        tokio::spawn(async move {
            let (mut due, mut latencies) = (start + pace * index, Vec::new());
            for request in requests.iter().cycle() {
                if due >= start + time {
                    break;
                }
                tokio::time::sleep_until(due).await;
                connection.ask(request).await.ok();
                latencies.push(due.elapsed().as_secs_f64());
                due += each;
            }
            latencies
        })
    });
    let answers = join_all(tasks.collect::<Vec<_>>()).await;
    answers.into_iter().flat_map(Result::unwrap).collect()
}

/// The same from a thread on the second core that never sleeps, so that who answers does not pay for
/// waking it. How many answers came.
pub(crate) fn paced_awake(
    address: SocketAddr,
    count: usize,
    request: Bytes,
    pace: Duration,
    time: Duration,
) -> f64 {
    let asking = thread::spawn(move || {
        pin_this_thread(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async move {
            tokio::spawn(async {
                loop {
                    tokio::task::yield_now().await;
                }
            });
            paced(address, count, vec![request], pace, time).await.len()
        })
    });
    f64::from(u32::try_from(asking.join().unwrap()).unwrap())
}

/// Opens connections one after the other, several at a time, with one request on each, for a time;
/// returns their number.
pub(crate) async fn handshakes(
    address: SocketAddr,
    count: usize,
    request: Bytes,
    time: Duration,
) -> f64 {
    let (tls, clock) = (tls(), Clock::system());
    let end = clock.monotonic_ns() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let tasks = (0..count).map(|_| {
        let (tls, clock, request) = (tls.clone(), clock.clone(), request.clone());
        tokio::spawn(async move {
            let mut opened = 0_u32;
            while clock.monotonic_ns() < end {
                let mut connection = Connection::open(address, &tls, &clock).await;
                connection.ask(&request).await.ok();
                opened += 1;
            }
            opened
        })
    });
    let opened = join_all(tasks.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap);
    f64::from(opened.sum::<u32>())
}

/// Connections that have asked once and stay open.
pub(crate) async fn hold(address: SocketAddr, count: usize, request: &Bytes) -> Vec<Connection> {
    let mut open = connections(address, count).await;
    for connection in &mut open {
        connection.ask(request).await.ok();
    }
    open
}
