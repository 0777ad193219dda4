//! Paths with a fragment and strange schemes over HTTP/2, frame by frame: no client sends them, and
//! libraries hide them.

use rampart_tests::wire::connect;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::Target;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Types of frames.
const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const SETTINGS: u8 = 0x4;
const GO_AWAY: u8 = 0x7;
const CONTINUATION: u8 = 0x9;
/// Flags of frames.
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PRIORITY: u8 = 0x20;

const SOUND: &str = "/api/v1/prices";
const CUT: &str = "/api/v1/prices#x";
/// [`CUT`] and `:path` in the Huffman code.
const CUT_CODED: &[u8] = b"\x60\x75\x99\x8e\xe1\x62\xbb\x0c\x42\xa3\xfe\xbc\xff";
const NAME_CODED: &[u8] = b"\xb9\x58\xd3\x3f";
/// The newest field of the table, and a name that it has, of a field that stays out of the table.
const NEWEST: &[u8] = b"\xbe";
const NEWEST_NAME: &[u8] = b"\x0f\x2f";

/// A connection whose client writes every byte itself.
struct Frames {
    tls: TlsStream<TcpStream>,
    /// `:method`, `:scheme`, `:authority` and the credential, none of which gets into the table.
    around: [Vec<u8>; 2],
    stream: u32,
}

impl Frames {
    async fn open(target: &Target) -> Self {
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

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.tls.write_all(&[&head, payload].concat()).await.unwrap();
        self.tls.flush().await.unwrap();
    }

    /// Sends a request with this `:path`, whose field is cut into so many frames.
    async fn request(&mut self, path: &[u8], frames: usize) {
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
    async fn frame(&mut self) -> (u8, u8, u32, Vec<u8>) {
        let mut head = [0; 9];
        self.tls.read_exact(&mut head).await.unwrap();
        let [high, middle, low, kind, flags, s0, s1, s2, s3] = head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.tls.read_exact(&mut payload).await.unwrap();
        (kind, flags, u32::from_be_bytes([s0, s1, s2, s3]), payload)
    }

    /// Status and body of the answer to a request.
    async fn ask(&mut self, path: &[u8], frames: usize) -> (u16, String) {
        self.request(path, frames).await;
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

    async fn is_refused(&mut self, path: &[u8], frames: usize) {
        let (status, body) = self.ask(path, frames).await;
        assert_eq!(status, 400, "{path:02x?}");
        assert!(body.contains("ER048") && body.contains("a character that no URL has"), "{body}");
        self.is_granted(&field(b"\x04", &text(SOUND.as_bytes()))).await;
    }

    async fn is_granted(&mut self, path: &[u8]) {
        assert_eq!(self.ask(path, 1).await.0, 200, "{path:02x?}");
    }
}

/// A string that is not coded.
fn text(text: &[u8]) -> Vec<u8> {
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

/// A string in the Huffman code.
fn coded(bytes: &[u8]) -> Vec<u8> {
    [&[0x80 | u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

/// A field with this name and value.
fn field(name: &[u8], value: &[u8]) -> Vec<u8> {
    [name, value].concat()
}

#[tokio::test]
async fn a_path_with_a_fragment_is_refused_however_it_is_written() {
    let target = Target::start("fragments").await;
    let mut frames = Frames::open(&target).await;
    let [plain, with_query, alone] =
        [CUT, "/api/v1/prices?a=b#x", "#"].map(|path| text(path.as_bytes()));
    let huffman = coded(CUT_CODED);
    let spelled_out = [field(b"\0", &text(b":path")), field(b"\0", &coded(NAME_CODED))];
    for name in [b"\x04", b"\x14", b"\x05", &spelled_out[0][..], &spelled_out[1]] {
        for value in [&plain, &with_query, &alone, &huffman] {
            for pieces in [1, 2, 5] {
                frames.is_refused(&field(name, value), pieces).await;
            }
        }
    }
    for value in [&plain, &huffman] {
        frames.is_refused(&field(b"\x44", value), 1).await;
        frames.is_refused(NEWEST, 1).await;
        frames.is_refused(&field(NEWEST_NAME, value), 1).await;
        frames.is_granted(&field(NEWEST_NAME, &text(SOUND.as_bytes()))).await;
        frames.is_granted(&field(b"\x44", &text(SOUND.as_bytes()))).await;
        frames.is_granted(NEWEST).await;
        frames.is_refused(&field(NEWEST_NAME, value), 1).await;
    }
}

#[tokio::test]
async fn what_is_no_path_may_have_a_number_sign() {
    let target = Target::start("no-fragments").await;
    let mut frames = Frames::open(&target).await;
    let path = field(b"\x04", &text(SOUND.as_bytes()));
    for more in [&b"\x40\x01x\x02/#"[..], NEWEST, b"\x0f\x2f\x02/#", b"\x0f\x2b\x01#"] {
        frames.is_granted(&[&path, more].concat()).await;
    }
}

#[tokio::test]
async fn a_scheme_that_is_not_of_the_web_is_refused_and_the_connection_goes_on() {
    let target = Target::start("schemes").await;
    let mut frames = Frames::open(&target).await;
    let path = field(b"\x04", &text(SOUND.as_bytes()));
    let [before, credential] = frames.around.clone();
    // Without `:authority` the h2 crate drops the scheme.
    let host = [&b"\x0f\x17"[..], &before[3..], &credential].concat();
    for (authority, after) in [(&before[2..], credential), (&[][..], host)] {
        frames.around[1] = after;
        for scheme in [&b""[..], b"1https", b"ftp"] {
            frames.around[0] = [&b"\x82\x07"[..], &text(scheme), authority].concat();
            assert_eq!(frames.ask(&path, 1).await.0, 400, "{scheme:?}");
            frames.around[0] = [&b"\x82\x87"[..], authority].concat();
            frames.is_granted(&path).await;
        }
    }
}

#[tokio::test]
async fn a_connection_whose_heads_cannot_be_followed_ends() {
    let target = Target::start("self-dependent").await;
    let mut frames = Frames::open(&target).await;
    // Stream 1 depends on itself, and what it would put into the table is not there.
    let path = field(b"\x04", &text(SOUND.as_bytes()));
    let [before, after] = frames.around.clone();
    let head = [&[0, 0, 0, 1, 0], &before[..], &path, &after].concat();
    frames.send(HEADERS, END_STREAM | END_HEADERS | PRIORITY, 1, &head).await;
    frames.stream = 3;
    frames.request(&path, 1).await;
    let payload = loop {
        let (kind, _, stream, payload) = frames.frame().await;
        assert!(stream != 3, "an answer");
        if kind == GO_AWAY {
            break payload;
        }
    };
    assert_eq!(payload[4..8], 1_u32.to_be_bytes(), "PROTOCOL_ERROR");
}
