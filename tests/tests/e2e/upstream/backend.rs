//! A backend on loopback that speaks what it is told to, and records what it hears.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use rampart_tests::certificate::CERTIFICATE;
use rampart_tests::deadline::after;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::ANSWER;

/// A refusal, whatever its status.
const REFUSAL: &str =
    r#"{"errors":{"ER038":{"code":"ER038","message":"no limits","solution":"none"}}}"#;
/// Body of [`Behaviour::Large`]: more than an edge passes on before a client has read of it.
pub(super) static LARGE: LazyLock<String> = LazyLock::new(|| " ".repeat(768 * 1024));
/// A head that announces another one.
const INTERIM: &[u8] = b"HTTP/1.1 103 Early Hints\r\n\r\n";
/// Sent over and over by [`Behaviour::Endless`].
const BLOCK: &[u8] = &[b' '; 64 * 1024];
/// Number of blocks that [`Behaviour::Endless`] sends.
const BLOCKS: usize = 64;

/// Pause between two heads of [`Behaviour::Interim`]: less than the edge waits for a byte.
const INTERIM_PAUSE: Duration = Duration::from_secs(1);

/// The protocol that the backend speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Http1,
    Http2,
    Http1OverTls,
    Http2OverTls,
}

/// The backend's reaction to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// [`ANSWER`] with 200.
    Answer,
    /// [`ANSWER`] with trailers behind it, over HTTP/2.
    Trailers,
    /// An interim head over HTTP/1, and [`ANSWER`] behind it.
    Hinted,
    /// [`LARGE`] with 200.
    Large,
    /// [`REFUSAL`] with this status.
    Status(u16),
    /// Closes without an answer.
    Silence,
    /// Keeps the connection and never answers.
    Hang,
    /// Sends an interim head over HTTP/1 every second, and no answer.
    Interim,
    /// Announces an answer of this many bytes.
    Announced(usize),
    /// Sends more than anybody wants, without saying how much.
    Endless,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: usize,
}

impl Heard {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

struct Shared {
    spoken: Spoken,
    behaviour: Mutex<Behaviour>,
    heard: Mutex<Vec<Heard>>,
    connections: AtomicUsize,
    stopped: watch::Sender<bool>,
}

impl Shared {
    fn behaviour(&self) -> Behaviour {
        *lock(&self.behaviour)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The backend. It stops when it is dropped.
pub(super) struct Backend {
    address: SocketAddr,
    authority: String,
    shared: Arc<Shared>,
}

impl Backend {
    pub(super) async fn start(spoken: Spoken) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            spoken,
            behaviour: Mutex::new(Behaviour::Answer),
            heard: Mutex::default(),
            connections: AtomicUsize::new(0),
            stopped: watch::channel(false).0,
        });
        tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, authority: format!("localhost:{}", address.port()), shared }
    }

    pub(super) fn url(&self) -> String {
        let scheme = match self.shared.spoken {
            Spoken::Http1 => "http",
            Spoken::Http2 => "h2c",
            Spoken::Http1OverTls | Spoken::Http2OverTls => "https",
        };
        format!("{scheme}://{}", self.authority)
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) fn behave(&self, behaviour: Behaviour) {
        *lock(&self.shared.behaviour) = behaviour;
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        lock(&self.shared.heard).clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Closes every connection and takes no more. Returns once nothing listens.
    pub(super) async fn stop(&self) {
        self.shared.stopped.send_replace(true);
        while TcpStream::connect(self.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.shared.stopped.send_replace(true);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut stopped = shared.stopped.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let Ok((stream, _)) = accepted else { return };
        let (shared, mut stopped) = (Arc::clone(&shared), stopped.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = serve(stream, &shared) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        });
    }
}

async fn serve(stream: TcpStream, shared: &Arc<Shared>) {
    shared.connections.fetch_add(1, Ordering::Relaxed);
    let protocol: &[u8] = match shared.spoken {
        Spoken::Http1 => return http1(stream, shared).await,
        Spoken::Http2 => return http2(stream, shared).await,
        Spoken::Http1OverTls => b"http/1.1",
        Spoken::Http2OverTls => b"h2",
    };
    let acceptor = TlsAcceptor::from(Arc::new(CERTIFICATE.server(&[protocol])));
    let Ok(stream) = acceptor.accept(stream).await else { return };
    match shared.spoken {
        Spoken::Http2OverTls => http2(stream, shared).await,
        _ => http1(stream, shared).await,
    }
}

async fn http1(mut stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Shared) {
    let mut held = Vec::new();
    while let Some(heard) = read(&mut stream, &mut held).await {
        lock(&shared.heard).push(heard);
        let kept = "content-type: application/json\r\nx-of-the-backend: kept\r\n\
                    x-of-the-connection: 1\r\nconnection: keep-alive, x-of-the-connection\r\n";
        let (status, body) = match shared.behaviour() {
            Behaviour::Answer | Behaviour::Trailers => (200, ANSWER),
            Behaviour::Hinted => {
                let _ = stream.write_all(INTERIM).await;
                (200, ANSWER)
            }
            Behaviour::Large => (200, LARGE.as_str()),
            Behaviour::Status(status) => (status, REFUSAL),
            Behaviour::Silence => return,
            Behaviour::Hang => return std::future::pending().await,
            Behaviour::Interim => {
                while stream.write_all(INTERIM).await.is_ok() {
                    after(INTERIM_PAUSE).await;
                }
                return;
            }
            Behaviour::Announced(length) => {
                let head = format!("HTTP/1.1 200 OK\r\n{kept}content-length: {length}\r\n\r\n");
                // Whoever wants none of it has gone.
                let _ = stream.write_all(head.as_bytes()).await;
                return std::future::pending().await;
            }
            Behaviour::Endless => {
                let head = format!("HTTP/1.1 200 OK\r\n{kept}transfer-encoding: chunked\r\n\r\n");
                let _ = stream.write_all(head.as_bytes()).await;
                for _ in 0..BLOCKS {
                    let _ = stream.write_all(format!("{:x}\r\n", BLOCK.len()).as_bytes()).await;
                    let _ = stream.write_all(BLOCK).await;
                    let _ = stream.write_all(b"\r\n").await;
                }
                return;
            }
        };
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status} Because\r\n{kept}content-length: {length}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

/// The next request of a connection; `None` when it ends. A body is chunked and without a chunk.
async fn read(stream: &mut (impl AsyncRead + Unpin), held: &mut Vec<u8>) -> Option<Heard> {
    let end = loop {
        if let Some(at) = held.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        stream.read_buf(held).await.ok().filter(|count| *count > 0)?;
    };
    let head = String::from_utf8(held.drain(..end).collect()).unwrap();
    let mut lines = head.split("\r\n");
    let target = lines.next()?.split(' ').nth(1)?.to_owned();
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value.trim()).unwrap());
    }
    assert!(!headers.contains_key("content-length"), "nothing announces a body");
    if headers.remove("transfer-encoding").is_some() {
        while !held.starts_with(b"0\r\n\r\n") {
            assert!(held.len() < 5, "a body came");
            stream.read_buf(held).await.ok().filter(|count| *count > 0)?;
        }
        held.drain(..5);
    }
    Some(Heard { target, headers, body: 0 })
}

async fn http2(stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Arc<Shared>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        if shared.behaviour() == Behaviour::Silence {
            return;
        }
        tokio::spawn(answer(request, respond, Arc::clone(shared)));
    }
}

async fn answer(
    mut request: Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    shared: Arc<Shared>,
) {
    let mut body = 0;
    while let Some(Ok(bytes)) = request.body_mut().data().await {
        body += bytes.len();
    }
    let target = request.uri().path_and_query().unwrap().to_string();
    let mut headers = request.headers().clone();
    let authority = request.uri().authority().unwrap().as_str();
    headers.insert("host", HeaderValue::from_str(authority).unwrap());
    lock(&shared.heard).push(Heard { target, headers, body });
    let mut head = Response::builder()
        .header("content-type", "application/json")
        .header("x-of-the-backend", "kept");
    let (status, text) = match shared.behaviour() {
        Behaviour::Hang | Behaviour::Silence | Behaviour::Interim => {
            return std::future::pending().await;
        }
        Behaviour::Status(status) => (status, REFUSAL),
        Behaviour::Announced(length) => {
            head = head.header("content-length", length);
            let _held = respond.send_response(head.body(()).unwrap(), false);
            return std::future::pending().await;
        }
        Behaviour::Endless => {
            let Ok(mut stream) = respond.send_response(head.body(()).unwrap(), false) else {
                return;
            };
            for _ in 0..BLOCKS {
                // Queued for as long as the other side wants it.
                let _ = stream.send_data(Bytes::from_static(BLOCK), false);
            }
            let _ = stream.send_data(Bytes::new(), true);
            return;
        }
        Behaviour::Large => (200, LARGE.as_str()),
        Behaviour::Answer | Behaviour::Trailers | Behaviour::Hinted => (200, ANSWER),
    };
    let has_trailers = shared.behaviour() == Behaviour::Trailers;
    let head = head.status(status).body(()).unwrap();
    if let Ok(mut stream) = respond.send_response(head, false) {
        // Whoever does not wait for it gets none.
        let _ = stream.send_data(Bytes::from_static(text.as_bytes()), !has_trailers);
        if has_trailers {
            let trailer = (HeaderName::from_static("x-trailer"), HeaderValue::from_static("1"));
            let _ = stream.send_trailers(HeaderMap::from_iter([trailer]));
        }
    }
}
