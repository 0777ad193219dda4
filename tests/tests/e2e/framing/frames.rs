//! HTTP/2 frame by frame: what no client sends, and libraries hide.

use std::io;

use rampart_tests::deadline::{SOON, until};
use rampart_tests::wire::connect;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::Target;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Types of frames.
pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const GO_AWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;
/// Flags of frames.
pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
/// The reason of a client that does not want its answer any more.
const CANCEL: u32 = 8;
/// The largest window (RFC 9113, section 6.9.1).
const WINDOW_MAX: u32 = 0x7fff_ffff;
/// Most bytes that are looked at before they are read, and fewer than a socket holds at least.
const UNREAD_BYTES_MAX: usize = 16 * 1024 * 1024;
const UNREAD_BYTES_MIN: usize = 16 * 1024;
/// Looks in a row without another byte, after which none comes: between two of them an edge may
/// have waited for a processor.
const STILL_LOOKS: usize = 20;

/// A connection whose client writes every byte itself.
pub(super) struct Frames {
    tls: TlsStream<TcpStream>,
    /// `:method`, `:scheme`, `:authority` and the credential, none of which gets into the table.
    pub(super) around: [Vec<u8>; 2],
    /// The next request's.
    pub(super) stream: u32,
}

impl Frames {
    /// A connection that has sent its preface and its settings, which are those of the protocol.
    pub(super) async fn open(target: &Target) -> Self {
        let tls = connect(target.edge.address, "h2").await.unwrap();
        let authority = text(target.edge.address.to_string().as_bytes());
        let (name, value) = target.partner.credential();
        let credential = [text(name.as_bytes()), text(value.as_bytes())].concat();
        let around =
            [[&b"\x82\x87\x01"[..], &authority].concat(), [&b"\0"[..], &credential].concat()];
        let mut frames = Self { tls, around, stream: 1 };
        frames.tls.write_all(PREFACE).await.unwrap();
        frames.send(SETTINGS, 0, 0, &[]).await;
        frames
    }

    /// Sends a frame.
    pub(super) async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.send_all(&frame(kind, flags, stream, payload)).await;
    }

    /// Sends frames together.
    async fn send_all(&mut self, frames: &[u8]) {
        self.tls.write_all(frames).await.unwrap();
        self.tls.flush().await.unwrap();
    }

    /// Sends requests with this `:path`, together, each of them reset at once.
    pub(super) async fn give_up(&mut self, path: &[u8], count: usize) {
        let head = [&self.around[0][..], path, &self.around[1]].concat();
        let mut frames = Vec::new();
        for _ in 0..count {
            frames.extend(frame(HEADERS, END_STREAM | END_HEADERS, self.stream, &head));
            frames.extend(frame(RST_STREAM, 0, self.stream, &CANCEL.to_be_bytes()));
            self.stream += 2;
        }
        self.send_all(&frames).await;
    }

    /// Sends a request with this `:path` and what the edge has to reset its stream for: its window
    /// grows beyond the bound (RFC 9113, section 6.9.1).
    pub(super) async fn overflow(&mut self, path: &[u8]) {
        let head = [&self.around[0][..], path, &self.around[1]].concat();
        let asked = frame(HEADERS, END_STREAM | END_HEADERS, self.stream, &head);
        let grown = frame(WINDOW_UPDATE, 0, self.stream, &WINDOW_MAX.to_be_bytes());
        self.send_all(&[asked, grown].concat()).await;
    }

    /// Sends a request with this `:path`, whose field is cut into so many frames.
    pub(super) async fn request(&mut self, path: &[u8], frames: usize) {
        let [before, after] = self.around.clone();
        let pieces: Vec<&[u8]> = path.chunks(path.len().div_ceil(frames)).collect();
        let (last, first) = pieces.split_last().unwrap();
        let last = [last, &after[..]].concat();
        let mut kind = HEADERS;
        let mut payload = before;
        for piece in first {
            payload.extend(*piece);
            self.send(kind, END_STREAM & kind, self.stream, &payload).await;
            (kind, payload) = (CONTINUATION, Vec::new());
        }
        payload.extend(last);
        let flags = if kind == HEADERS { END_STREAM | END_HEADERS } else { END_HEADERS };
        self.send(kind, flags, self.stream, &payload).await;
    }

    /// The next frame: type, flags, stream, payload.
    pub(super) async fn frame(&mut self) -> (u8, u8, u32, Vec<u8>) {
        self.try_frame().await.unwrap()
    }

    /// The same.
    ///
    /// # Errors
    /// When the connection ends before it is whole.
    pub(super) async fn try_frame(&mut self) -> io::Result<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.tls.read_exact(&mut head).await?;
        let [high, middle, low, kind, flags, s0, s1, s2, s3] = head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.tls.read_exact(&mut payload).await?;
        Ok((kind, flags, u32::from_be_bytes([s0, s1, s2, s3]), payload))
    }

    /// Waits until the socket takes no more of what this client does not read.
    pub(super) async fn until_full(&self) {
        let (mut room, mut before, mut still) = (vec![0; UNREAD_BYTES_MAX], 0, 0);
        until("what is not read stands still", SOON, async || {
            let unread = self.tls.get_ref().0.peek(&mut room).await.unwrap();
            let stands_still = unread == std::mem::replace(&mut before, unread);
            still = if stands_still && unread >= UNREAD_BYTES_MIN { still + 1 } else { 0 };
            (still == STILL_LOOKS).then_some(())
        })
        .await;
    }

    /// Last stream and reason of the next GOAWAY, and nothing of the stream under way before it.
    pub(super) async fn told_to_leave(&mut self) -> (u32, u32) {
        loop {
            let (kind, _, stream, payload) = self.frame().await;
            assert_ne!(stream, self.stream, "a frame of type {kind}");
            if kind == GO_AWAY {
                let word = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
                return (word(0), word(4));
            }
        }
    }

    /// True if the edge ends TLS properly without another frame.
    pub(super) async fn is_closed(&mut self) -> bool {
        matches!(self.tls.read(&mut [0]).await, Ok(0))
    }

    /// Status and body of the answer to a request.
    pub(super) async fn ask(&mut self, path: &[u8], frames: usize) -> (u16, String) {
        self.request(path, frames).await;
        self.answer().await
    }

    /// Status and body of the answer to the request that was sent last.
    pub(super) async fn answer(&mut self) -> (u16, String) {
        let (mut status, mut body) = (0, Vec::new());
        loop {
            let (kind, flags, stream, payload) = self.frame().await;
            match kind {
                // Both statuses are in the static table.
                HEADERS if stream == self.stream => {
                    status = match payload[0] {
                        0x88 => 200,
                        0x8c => 400,
                        other => panic!("a status that begins with {other:#x}"),
                    };
                }
                DATA if stream == self.stream => body.extend(payload),
                _ if stream == self.stream => panic!("a frame of type {kind}, {payload:02x?}"),
                _ => assert_ne!(kind, GO_AWAY, "{payload:02x?}"),
            }
            if stream == self.stream && flags & END_STREAM != 0 {
                self.stream += 2;
                return (status, String::from_utf8(body).unwrap());
            }
        }
    }
}

/// A frame of this type and flags on this stream.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A string that is not coded.
pub(super) fn text(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match text.len().checked_sub(0x7f) {
        None => bytes.push(u8::try_from(text.len()).unwrap()),
        Some(mut more) => {
            bytes.push(0x7f);
            while more >= 0x80 {
                bytes.push(0x80 | u8::try_from(more & 0x7f).unwrap());
                more >>= 7;
            }
            bytes.push(u8::try_from(more).unwrap());
        }
    }
    [&bytes, text].concat()
}

/// A field with this name and value.
pub(super) fn field(name: &[u8], value: &[u8]) -> Vec<u8> {
    [name, value].concat()
}
