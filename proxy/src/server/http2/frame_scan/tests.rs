mod client;

use bytes::Bytes;
use futures::FutureExt as _;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt as _;

use self::client::Client;
pub(in crate::server::http2) use self::client::coded;
use super::super::refused_streams::Verdict;
use super::*;

/// Bytes of the pieces in which a connection arrives.
const PIECES: [usize; 5] = [1, 2, 7, 64, usize::MAX];
/// Characters in the same places of the paths of two clients; nothing is cut off at the second one.
const MARKS: [char; 2] = ['#', '{'];
/// Largest payload of a frame.
const FRAME_BYTES: usize = 16 * 1024;
/// Time for a head.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// Most frames of a header block that the h2 crate takes with a list of 64 KiB: the first one, five that
/// go on, the last one.
const FRAMES_MAX: usize = 7;

/// The verdicts on these streams, one after the other, after a client has sent `wire`.
fn verdicts(wire: &[u8], piece: usize, streams: impl Iterator<Item = u32>) -> Vec<Verdict> {
    let info = Arc::new(ConnectionInfo::with([192, 0, 2, 1].into(), String::new()));
    let mut scan = FrameScan::new(Arc::clone(&info), HEAD_MAX, header_memory());
    wire.chunks(piece.min(wire.len().max(1))).for_each(|piece| scan.advance(piece));
    streams.map(|stream| info.refused_streams.judge(stream)).collect()
}

/// The requests that the h2 crate accepts of a client that sends `wire`.
fn accepted(wire: &[u8]) -> Vec<(u32, String)> {
    let (near, mut far) = tokio::io::duplex(wire.len() + 64 * 1024);
    far.write_all(wire).now_or_never().unwrap().unwrap();
    let handshake = h2::server::Builder::new().handshake::<_, Bytes>(near);
    let Some(Ok(mut connection)) = handshake.now_or_never() else { return Vec::new() };
    let (mut requests, mut open) = (Vec::new(), Vec::new());
    while let Some(Some(Ok((request, answer)))) = connection.accept().now_or_never() {
        requests.push((
            answer.stream_id().as_u32(),
            request.uri().path_and_query().map_or_else(String::new, ToString::to_string),
        ));
        open.push((request, answer));
    }
    requests
}

fn verdict(is_refused: bool) -> Verdict {
    if is_refused { Verdict::Refused } else { Verdict::Accepted }
}

/// A client's every head is read as the client has meant it, and as the h2 crate reads it.
fn check_choices(choices: &[u8]) {
    let client = Client::run(choices, '#', true);
    let seen = client.paths.iter().map(|(stream, path)| {
        let path = path.split('#').next().unwrap();
        (*stream, if path.is_empty() { "/" } else { path }.to_owned())
    });
    assert_eq!(accepted(&client.wire), seen.collect::<Vec<_>>());
    let is_web = |scheme: &str| scheme == "https" || scheme == "http";
    let heads = client.paths.iter().zip(&client.schemes);
    let expected: Vec<Verdict> =
        heads.map(|((_, path), scheme)| verdict(path.contains('#') || !is_web(scheme))).collect();
    for piece in PIECES {
        let streams = client.paths.iter().map(|(stream, _)| *stream);
        assert_eq!(verdicts(&client.wire, piece, streams), expected, "in pieces of {piece}");
    }
}

#[test]
fn fuzz_http2_heads() {
    rampart_fuzz::fuzz("http2-heads", check_choices);
}

proptest! {
    #[test]
    fn heads_of_any_client_are_read_as_h2_reads_them(
        choices in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        check_choices(&choices);
    }

    /// Two clients differ in the mark alone; what the h2 crate still accepts of the one, whole as its
    /// paths are, says what must be refused of the other.
    #[test]
    fn broken_frames_hide_no_fragment(
        choices in prop::collection::vec(any::<u8>(), 0..200),
        breaks in prop::collection::vec((any::<prop::sample::Index>(), 0..0x23_u8), 1..4),
    ) {
        let [mut cut, mut whole] = MARKS.map(|mark| Client::run(&choices, mark, false).wire);
        prop_assert_eq!(cut.len(), whole.len());
        for (at, byte) in breaks {
            let at = at.index(cut.len());
            (cut[at], whole[at]) = (byte, byte);
        }
        let accepted = accepted(&whole);
        for piece in PIECES {
            let verdicts = verdicts(&cut, piece, accepted.iter().map(|(stream, _)| *stream));
            for ((_, path), found) in accepted.iter().zip(verdicts) {
                prop_assert!(found != Verdict::Accepted || !path.contains('{'), "{path}");
            }
        }
    }
}

/// A frame of this type and flags on this stream.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

#[test]
fn what_cannot_be_read_ends_the_connection() {
    let preface = Client::run(&[], '#', true).wire;
    let get = b"\x82\x84\x87\x41\x01a";
    let whole = frame(HEADERS, END_HEADERS, 1, get);
    let broken = [
        frame(HEADERS, END_HEADERS, 1, b"\x44\x05/"),
        frame(HEADERS, END_HEADERS, 1, b"\x7f\xff\xff\xff\xff\x00"),
        [frame(HEADERS, 0, 1, b"\x40\0\x01a"), frame(CONTINUATION, END_HEADERS, 1, get)].concat(),
        frame(HEADERS, END_HEADERS, 1, b"\x82\x84\x87\x41\x01a\x40\x80\x01a"),
        frame(HEADERS, END_HEADERS | PADDED, 1, b"\x06\x82\x84\x87"),
        frame(HEADERS, END_HEADERS | PRIORITY, 1, &[b"\0\0\0\x01\x07", &get[..]].concat()),
        frame(HEADERS, END_HEADERS | PRIORITY, 1, b"\0"),
        frame(PUSH_PROMISE, END_HEADERS, 1, get),
        frame(CONTINUATION, END_HEADERS, 1, get),
        [frame(HEADERS, 0, 1, get), frame(CONTINUATION, END_HEADERS, 3, &[])].concat(),
        [frame(HEADERS, 0, 1, get), frame(0, 0, 1, b"x")].concat(),
    ];
    assert_eq!(
        verdicts(&[preface.clone(), whole].concat(), 1, [1].into_iter()),
        [Verdict::Accepted]
    );
    for broken in broken {
        // However long the next frames say they are.
        let wire = [&preface[..], &broken, &[0; 24]].concat();
        for piece in PIECES {
            let found = verdicts(&wire, piece, [1].into_iter());
            assert_eq!(found, [Verdict::Unknown], "{broken:02x?} in pieces of {piece}");
        }
    }
}

#[test]
fn a_table_forgets_what_is_too_old_and_what_a_larger_entry_pushes_out() {
    let preface = Client::run(&[], '#', true).wire;
    let long = [&b"\x40\x01x\x7f\xa1\x1f"[..], &[b'y'; 4_128]].concat();
    let heads = [b"\x82\x87\x41\x01a\x44\x03/#x".to_vec(), b"\x82\x87\xbf\xbe".to_vec(), long];
    let mut wire = preface;
    for (stream, head) in [1, 3, 5].into_iter().zip(heads) {
        let length = u32::try_from(head.len()).unwrap().to_be_bytes();
        wire.extend([&length[1..], &[HEADERS, 0x5, 0, 0, 0, stream], &head].concat());
    }
    // The newest entry, though not kept, has no name of a path.
    wire.extend(frame(HEADERS, 0x5, 7, b"\x7e\x02/#"));
    let (no, yes) = (Verdict::Accepted, Verdict::Refused);
    assert_eq!(verdicts(&wire, usize::MAX, [1, 3, 5, 7].into_iter()), [yes, yes, no, no]);
}

/// A connection's begin with a header block in so many full frames. At its end is a path with a fragment;
/// before it are sizes of the table, a byte each, which make no field.
fn block_of(frames: usize) -> Vec<u8> {
    let mut wire = Client::run(&[], '#', true).wire;
    for number in 1..=frames {
        let kind = if number == 1 { HEADERS } else { CONTINUATION };
        let (flags, end) =
            if number == frames { (END_HEADERS, &b"\x44\x03/#x"[..]) } else { (0, &b""[..]) };
        let payload = [&vec![0x20; FRAME_BYTES - end.len()][..], end].concat();
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        wire.extend([&length[1..], &[kind, flags, 0, 0, 0, 1], &payload].concat());
    }
    wire
}

#[test]
fn the_largest_block_is_read_and_a_larger_one_ends_the_connection() {
    let bound = BLOCK_BYTES_MAX / FRAME_BYTES;
    for (frames, verdict) in [
        (1, Verdict::Refused),
        (FRAMES_MAX, Verdict::Refused),
        (bound, Verdict::Refused),
        (bound + 1, Verdict::Unknown),
    ] {
        let wire = block_of(frames);
        for piece in PIECES {
            let found = verdicts(&wire, piece, [1].into_iter());
            assert_eq!(found, [verdict], "{frames} frames in pieces of {piece}");
        }
    }
}

#[test]
fn blocks_that_do_not_end_share_the_memory_of_their_address() {
    let memory = Arc::new(HeaderMemory::new(8, 4));
    let connection = |last, frames| {
        let info = Arc::new(ConnectionInfo::with([192, 0, 2, last].into(), String::new()));
        let mut scan = FrameScan::new(Arc::clone(&info), HEAD_MAX, Arc::clone(&memory));
        let wire = block_of(frames);
        scan.advance(&wire[..wire.len() - 1]);
        (scan, info.hostile().now_or_never().is_some())
    };
    let (held, is_ended) = connection(1, 4);
    assert!(!is_ended);
    assert!(!connection(1, 1).1, "one frame of each is free");
    assert!(connection(1, 3).1);
    assert!(!connection(2, 4).1, "another address has its own");
    drop(held);
    assert!(!connection(1, 5).1);
}
