//! A partner's host: an HTTP server on loopback that records what it is sent and answers as told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Longest wait for a request that must come.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// The head of an answer whose body nobody would read to its end.
const LONG_HEAD: &[u8] = b"HTTP/1.1 200 Because\r\ncontent-length: 1099511627776\r\n\r\n";
/// Bytes of such a body that are sent together.
const PART_BYTES: usize = 16 * 1024;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Heard {
    /// `POST`
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, byte for byte.
    pub body: Bytes,
}

impl Heard {
    /// A header's text; panics without one.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The host's reaction to a request once it has read it.
#[derive(Clone, Debug)]
pub enum Reaction {
    /// Answers with this status and these header lines.
    Status(u16, String),
    /// Answers 200 with this text.
    Text(&'static str),
    /// Keeps the connection and never answers.
    Silence,
    /// Answers 200 and never sends the body.
    Unfinished,
    /// Answers 200 and a body without end; [`Receiver::cut_after`] says how much was taken of it.
    Endless,
    /// Closes the connection.
    Close,
}

impl Reaction {
    /// A bare status.
    pub fn status(status: u16) -> Self {
        Self::Status(status, String::new())
    }

    /// A status with a header.
    pub fn with_header(status: u16, name: &str, value: &str) -> Self {
        Self::Status(status, format!("{name}: {value}\r\n"))
    }
}

struct Shared {
    heard: Mutex<Vec<Heard>>,
    reaction: Mutex<Reaction>,
    /// Bytes of the last answer without end.
    cut_after: Mutex<Option<usize>>,
    came: Notify,
}

/// The host. It stops when it is dropped.
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Receiver {
    /// Listens on a free port and answers 200.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            heard: Mutex::default(),
            reaction: Mutex::new(Reaction::status(200)),
            cut_after: Mutex::default(),
            came: Notify::new(),
        });
        let serving = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Self { address, shared, accepting }
    }

    /// Its URL with this path and query.
    pub fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    /// From now on it does this.
    pub fn react(&self, reaction: Reaction) {
        *self.shared.reaction.lock().unwrap_or_else(PoisonError::into_inner) = reaction;
    }

    /// Bytes of an answer without end that were sent when its reader left; `None` before.
    pub fn cut_after(&self) -> Option<usize> {
        *self.shared.cut_after.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every request so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.shared.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The requests, once there are at least so many. Panics when they do not come.
    pub async fn heard_at_least(&self, count: usize) -> Vec<Heard> {
        let enough = async {
            loop {
                let came = self.shared.came.notified();
                let heard = self.heard();
                if heard.len() >= count {
                    return heard;
                }
                came.await;
            }
        };
        let heard = tokio::time::timeout(WAIT_MAX, enough).await;
        heard.unwrap_or_else(|_| panic!("{} of {count} requests came", self.heard().len()))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut buffer = Vec::new();
    while let Some(heard) = read(&mut stream, &mut buffer).await {
        let reaction = shared.reaction.lock().unwrap_or_else(PoisonError::into_inner).clone();
        shared.heard.lock().unwrap_or_else(PoisonError::into_inner).push(heard);
        shared.came.notify_waiters();
        let (status, headers, body) = match reaction {
            Reaction::Status(status, headers) => (status, headers, "ok"),
            Reaction::Text(text) => (200, String::new(), text),
            Reaction::Silence => return std::future::pending().await,
            Reaction::Unfinished => {
                // The reader may have disconnected.
                let _ = stream.write_all(LONG_HEAD).await;
                return std::future::pending().await;
            }
            Reaction::Endless => return send_without_end(&mut stream, &shared).await,
            Reaction::Close => return,
        };
        let head = format!("HTTP/1.1 {status} Because\r\n{headers}content-length: {}", body.len());
        let answer = format!("{head}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Sends a body until its reader has left.
async fn send_without_end(stream: &mut TcpStream, shared: &Shared) {
    let (mut part, mut sent) = (LONG_HEAD, 0);
    while stream.write_all(part).await.is_ok() {
        sent += part.len();
        part = &[b'x'; PART_BYTES];
    }
    *shared.cut_after.lock().unwrap_or_else(PoisonError::into_inner) = Some(sent);
}

/// The next request of a connection; `None` when it ends. Bodies have a `Content-Length`.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Heard> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        fill(stream, buffer).await?;
    };
    let head = String::from_utf8(buffer[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut request = lines.next()?.split(' ').map(str::to_owned);
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value.trim()).unwrap());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |text| text.to_str().unwrap().parse::<usize>().unwrap());
    while buffer.len() < head_end + length {
        fill(stream, buffer).await?;
    }
    let body = Bytes::copy_from_slice(&buffer[head_end..head_end + length]);
    buffer.drain(..head_end + length);
    Some(Heard { method: request.next()?, target: request.next()?, headers, body })
}

async fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut chunk = [0; 4096];
    let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
    buffer.extend_from_slice(&chunk[..count]);
    Some(())
}
