//! Senders that keep a connection by a byte now and then, within the handshake, the head and the
//! body; and readers that ask for much and take it byte by byte.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::Request;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::wire::connect;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};

use crate::target::Target;
use crate::verdict::{Verdict, judged};

/// Pause between two bytes.
const DRIP: Duration = Duration::from_millis(500);
/// A connection that is there for longer has outlived every timeout.
const OUTLIVED: Duration = Duration::from_secs(25);
/// Start of a TLS record with a `ClientHello` of 508 bytes.
const HELLO: [u8; 9] = [22, 3, 1, 2, 0, 1, 0, 1, 252];
/// Start of HTTP/2, and a frame of headers without the end of them.
const PREFACE: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\x40\0\x01\0\0\0\0\x01";

/// Requests of each slow reader.
const UNREAD: usize = 40;

/// A kind of slowness: what it sends at once, and what it goes on with.
struct Kind {
    name: &'static str,
    protocol: Option<&'static str>,
    start: Vec<u8>,
    drip: &'static [u8],
}

pub(crate) async fn senders(scale: Scale) -> Report {
    let target = Target::with(|setup| {
        setup.set("edge.request_header_timeout_seconds", "2");
        setup.set("edge.keepalive_timeout_seconds", "2");
    })
    .await;
    let kinds = kinds(&target.own());
    let each = scale.of(8, 30);
    judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        let senders = kinds.iter().flat_map(|kind| std::iter::repeat_n(kind, each));
        let ends = senders.map(async |kind| (kind.name, outlives(&target, kind).await));
        for (name, outlived) in join_all(ends).await {
            verdict.note(outlived, || format!("a connection by {name}"));
        }
    })
    .await
}

fn kinds(own: &str) -> [Kind; 7] {
    let post = |framing: &str| format!("POST /api/v1/buy/quote HTTP/1.1\r\n{own}{framing}").into();
    let http1 = |name, start: Vec<u8>, drip| Kind { name, protocol: Some("http/1.1"), start, drip };
    [
        Kind { name: "half a handshake", protocol: None, start: HELLO.to_vec(), drip: b"\0" },
        Kind { name: "half a frame", protocol: Some("h2"), start: PREFACE.to_vec(), drip: b"\0" },
        http1("half a request line", b"GET /".to_vec(), b"a"),
        http1("half a head", post("X-A: "), b"a"),
        http1("lines without end", post(""), b"X: y\r\n"),
        http1("half a body", post("Content-Length: 100000\r\n\r\n"), b" "),
        http1("chunks of one byte", post("Transfer-Encoding: chunked\r\n\r\n"), b"1\r\n \r\n"),
    ]
}

/// `true` if the connection is still there when every timeout is over.
async fn outlives(target: &Target, kind: &Kind) -> bool {
    match kind.protocol {
        None => {
            let stream = TcpStream::connect(target.edge.address).await.unwrap();
            stays(stream, kind).await
        }
        Some(protocol) => {
            let stream = connect(target.edge.address, protocol).await.unwrap();
            stays(stream, kind).await
        }
    }
}

async fn stays<S: AsyncRead + AsyncWrite>(stream: S, kind: &Kind) -> bool {
    let (mut from, mut to) = tokio::io::split(stream);
    let sending = async {
        let mut pause = interval(DRIP);
        to.write_all(&kind.start).await?;
        loop {
            pause.tick().await;
            to.write_all(kind.drip).await?;
            to.flush().await?;
        }
    };
    let reading = async {
        let mut bytes = [0; 1024];
        while from.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
    };
    let ends = async {
        tokio::select! {
            failed = sending => { let _: std::io::Result<()> = failed; }
            () = reading => {}
        }
    };
    timeout(OUTLIVED, ends).await.is_err()
}

/// Readers that take a byte now and then, each with many requests for a large document: in HTTP/2 with
/// room for one byte, in HTTP/1 one after the other.
pub(crate) async fn readers(scale: Scale) -> Report {
    let target = Target::start().await;
    let connections = scale.of(4, 11);
    judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        let streams = join_all((0..connections).map(|_| read_slowly(&target)));
        let pipelines = join_all((0..connections).map(|_| read_in_turn_slowly(&target)));
        let (streams, pipelines) = tokio::join!(streams, pipelines);
        for outlived in streams.into_iter().flatten().chain(pipelines) {
            verdict.note(outlived, || "an answer that is read byte by byte".to_owned());
        }
    })
    .await
}

/// For each request of a connection: `true` if its answer goes on for as long as it is read.
async fn read_slowly(target: &Target) -> Vec<bool> {
    let stream = connect(target.edge.address, "h2").await.unwrap();
    let mut builder = h2::client::Builder::new();
    let (mut sender, connection) =
        builder.initial_window_size(1).handshake::<_, Bytes>(stream).await.unwrap();
    // How it ends is seen by whoever reads.
    tokio::spawn(async move { _ = connection.await });
    let mut answers = Vec::new();
    for _ in 0..UNREAD {
        let request = Request::get(target.edge.url("/openapi.json")).body(()).unwrap();
        let Ok(ready) = sender.ready().await else { break };
        sender = ready;
        let Ok((answer, _)) = sender.send_request(request, true) else { break };
        answers.push(answer);
    }
    assert!(!answers.is_empty(), "an answer is asked for");
    let reading = answers.into_iter().map(|answer| async {
        let ends = async {
            let Ok(answer) = answer.await else { return };
            let mut pause = interval(DRIP);
            let mut body = answer.into_body();
            while let Some(Ok(part)) = body.data().await {
                pause.tick().await;
                if body.flow_control().release_capacity(part.len()).is_err() {
                    return;
                }
            }
        };
        timeout(OUTLIVED, ends).await.is_err()
    });
    join_all(reading).await
}

/// The same over HTTP/1, where answers follow each other: `true` if the connection goes on.
async fn read_in_turn_slowly(target: &Target) -> bool {
    let stream = connect(target.edge.address, "http/1.1").await.unwrap();
    let (mut from, mut to) = tokio::io::split(stream);
    let request = format!("GET /openapi.json HTTP/1.1\r\nHost: {}\r\n\r\n", target.edge.address);
    let ends = async {
        to.write_all(request.repeat(UNREAD).as_bytes()).await?;
        to.flush().await?;
        let mut pause = interval(DRIP);
        loop {
            pause.tick().await;
            from.read_exact(&mut [0]).await?;
            // It fails once the connection has ended, however much of an answer is unread.
            to.write_all(request.as_bytes()).await?;
            to.flush().await?;
        }
    };
    let ended: Result<std::io::Result<()>, _> = timeout(OUTLIVED, ends).await;
    ended.is_err()
}
