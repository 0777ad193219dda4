//! Paths with a fragment and strange schemes over HTTP/2, frame by frame: no client sends them, and
//! libraries hide them.

use super::Target;
use super::frames::{END_HEADERS, END_STREAM, Frames, HEADERS, field, text};

/// Flag of a head with a priority.
const PRIORITY: u8 = 0x20;

const SOUND: &str = "/api/v1/prices";
const CUT: &str = "/api/v1/prices#x";
/// [`CUT`] and `:path` in the Huffman code.
const CUT_CODED: &[u8] = b"\x60\x75\x99\x8e\xe1\x62\xbb\x0c\x42\xa3\xfe\xbc\xff";
const NAME_CODED: &[u8] = b"\xb9\x58\xd3\x3f";
/// The newest field of the table, and a name that it has, of a field that stays out of the table.
const NEWEST: &[u8] = b"\xbe";
const NEWEST_NAME: &[u8] = b"\x0f\x2f";

impl Frames {
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

/// A string in the Huffman code.
fn coded(bytes: &[u8]) -> Vec<u8> {
    [&[0x80 | u8::try_from(bytes.len()).unwrap()], bytes].concat()
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
    // PROTOCOL_ERROR
    assert_eq!(frames.told_to_leave().await.1, 1);
}
