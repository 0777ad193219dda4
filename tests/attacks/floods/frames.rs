//! The floods, frame by frame (RFC 9113, section 6).

/// Start of a connection: the preface, and settings that say nothing.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const UNKNOWN: u8 = 99;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
/// Frames of a flood.
const MANY: u32 = 20_000;

/// The frames of a stream of this number.
type Frames = dyn Fn(u32) -> Vec<u8> + Send + Sync;

/// One flood.
pub(super) struct Flood {
    pub(super) name: &'static str,
    /// No honest client sends it: the edge ends the connection.
    pub(super) must_end: bool,
    /// The attacker reads what comes back.
    pub(super) reads: bool,
    pub(super) start: Vec<u8>,
    pub(super) count: u32,
    pub(super) frames: Box<Frames>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// HPACK of `GET /` at this authority; a request without a credential.
fn get(authority: &str) -> Vec<u8> {
    let length = u8::try_from(authority.len()).unwrap();
    [&[0x82, 0x84, 0x87, 0x41, length], authority.as_bytes()].concat()
}

/// The stream of a client's request with this number.
fn stream(number: u32) -> u32 {
    2 * number + 1
}

/// Every flood.
pub(super) fn floods(authority: &str) -> Vec<Flood> {
    let request = get(authority);
    let mut all = cheap(&request);
    all.extend(provoked(&request));
    all.extend(endless(&request));
    all.extend(forbidden(&request));
    all
}

/// Frames that are allowed, each alone.
fn cheap(request: &[u8]) -> Vec<Flood> {
    let flood = |name, frames: Box<Frames>| Flood {
        name,
        must_end: false,
        reads: true,
        start: Vec::new(),
        count: MANY,
        frames,
    };
    let open = frame(HEADERS, END_HEADERS, 1, request);
    let ping = || Box::new(|_| frame(PING, 0, 0, &[0; 8]));
    let settings = || Box::new(|_| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255]));
    let resetting = request.to_vec();
    let mut all = vec![
        flood("pings", ping()),
        flood("settings", settings()),
        flood("priorities", Box::new(|n| frame(PRIORITY, 0, stream(n), &[0, 0, 0, 0, 1]))),
        flood("unknown frames", Box::new(|_| frame(UNKNOWN, 0, 0, &[0; 100]))),
        flood("windows of one byte", Box::new(|_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]))),
        Flood { reads: false, ..flood("pings whose answers are left", ping()) },
        Flood { reads: false, ..flood("settings whose answers are left", settings()) },
        Flood { start: open.clone(), ..flood("empty data", Box::new(|_| frame(DATA, 0, 1, &[]))) },
    ];
    let resets = move |n| {
        let asked = frame(HEADERS, END_HEADERS | END_STREAM, stream(n), &resetting);
        [asked, frame(RST_STREAM, 0, stream(n), &[0, 0, 0, 8])].concat()
    };
    all.push(Flood { must_end: true, ..flood("resets", Box::new(resets)) });
    all
}

/// Streams that the edge has to reset itself (CVE-2025-8671).
fn provoked(request: &[u8]) -> [Flood; 2] {
    let flood = |name, frames: Box<Frames>| Flood {
        name,
        must_end: true,
        reads: true,
        start: Vec::new(),
        count: MANY,
        frames,
    };
    let asked = request.to_vec();
    let overflowing = move |n| {
        let asked = frame(HEADERS, END_HEADERS | END_STREAM, stream(n), &asked);
        [asked, frame(WINDOW_UPDATE, 0, stream(n), &[127, 255, 255, 255])].concat()
    };
    // `content-length: 1`, and two bytes.
    let announced = [request, &[0x0f, 0x0d, 1, b'1']].concat();
    let longer = move |n| {
        let announced = frame(HEADERS, END_HEADERS, stream(n), &announced);
        [announced, frame(DATA, 0, stream(n), b"xx")].concat()
    };
    [
        flood("windows of streams that overflow", Box::new(overflowing)),
        flood("bodies longer than announced", Box::new(longer)),
    ]
}

/// Headers that do not end, or become very large.
fn endless(request: &[u8]) -> Vec<Flood> {
    let flood = |name, start, frames: Box<Frames>| Flood {
        name,
        must_end: true,
        reads: true,
        start,
        count: MANY,
        frames,
    };
    let open = frame(HEADERS, END_STREAM, 1, request);
    // A header that is not put into the table: `x: ` and a hundred bytes.
    let field = [&[0, 1, b'x', 100][..], &[b'y'; 100]].concat();
    // One of 4,000 bytes that is, and then a frame of nothing but references to it.
    let large = [&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'y'; 4_000]].concat();
    let bomb = frame(HEADERS, END_HEADERS | END_STREAM, 1, &[request, &large].concat());
    let references = [request, &[0xbe; 16_000]].concat();
    let again = request.to_vec();
    vec![
        flood(
            "headers without end",
            open.clone(),
            Box::new(move |_| frame(CONTINUATION, 0, 1, &field)),
        ),
        flood("empty continuations", open, Box::new(|_| frame(CONTINUATION, 0, 1, &[]))),
        Flood {
            must_end: false,
            count: 50,
            ..flood(
                "references to a large header",
                bomb,
                Box::new(move |n| {
                    frame(HEADERS, END_HEADERS | END_STREAM, stream(n + 1), &references)
                }),
            )
        },
        Flood {
            must_end: false,
            reads: false,
            ..flood(
                "answers that are left",
                Vec::new(),
                Box::new(move |n| frame(HEADERS, END_HEADERS | END_STREAM, stream(n), &again)),
            )
        },
    ]
}

/// Frames that are errors of the connection.
fn forbidden(request: &[u8]) -> Vec<Flood> {
    let once = |name, bytes: Vec<u8>| Flood {
        name,
        must_end: true,
        reads: true,
        start: bytes,
        count: 0,
        frames: Box::new(|_| Vec::new()),
    };
    let whole = END_HEADERS | END_STREAM;
    let opened = frame(HEADERS, END_HEADERS, 1, request);
    vec![
        once("data on stream 0", frame(DATA, 0, 0, b"x")),
        once("headers on stream 0", frame(HEADERS, whole, 0, request)),
        once("headers on an even stream", frame(HEADERS, whole, 2, request)),
        once(
            "an earlier stream",
            [frame(HEADERS, whole, 5, request), frame(HEADERS, whole, 3, request)].concat(),
        ),
        once("a promise", frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2])),
        once("settings on a stream", frame(SETTINGS, 0, 1, &[])),
        once("settings of five bytes", frame(SETTINGS, 0, 0, &[0; 5])),
        once("an acknowledgement with settings", frame(SETTINGS, ACK, 0, &[0; 6])),
        once("a window beyond its bound", frame(SETTINGS, 0, 0, &[0, 4, 255, 255, 255, 255])),
        once("frames larger than allowed", frame(DATA, 0, 1, &vec![0; 17_000])),
        once("a ping of seven bytes", frame(PING, 0, 0, &[0; 7])),
        once("a ping on a stream", frame(PING, 0, 1, &[0; 8])),
        once("a window that overflows", frame(WINDOW_UPDATE, 0, 0, &[127, 255, 255, 255])),
        once("a window of nothing", frame(WINDOW_UPDATE, 0, 0, &[0; 4])),
        once("a continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, request)),
        once(
            "headers within headers",
            [frame(HEADERS, END_STREAM, 1, request), frame(HEADERS, whole, 3, request)].concat(),
        ),
        once("padding longer than the frame", frame(HEADERS, whole | 8, 1, &[255, 0x82])),
        once("an index beyond the table", frame(HEADERS, whole, 1, &[0xff, 0xff, 0x7f])),
        once("a table larger than allowed", frame(HEADERS, whole, 1, &[0x3f, 0xe1, 0xff, 0x7f])),
        once("a reset of an idle stream", frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])),
        once("data on an idle stream", frame(DATA, 0, 1, b"x")),
        once("a dependency on itself", [opened, frame(RST_STREAM, 0, 1, &[0; 3])].concat()),
    ]
}
