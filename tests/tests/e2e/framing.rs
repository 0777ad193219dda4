//! Framing over raw sockets. Whatever is ambiguous is refused and the connection closed; whatever
//! is merely wrong is answered and the connection kept. Exactly, because between the two lies
//! request smuggling.

#[path = "framing/bodies.rs"]
mod bodies;
#[path = "framing/fragments.rs"]
mod fragments;
#[path = "framing/frames.rs"]
mod frames;
#[path = "framing/heads.rs"]
mod heads;
#[path = "framing/http2.rs"]
mod http2;
#[path = "framing/paths.rs"]
mod paths;
#[path = "framing/streams.rs"]
mod streams;
#[path = "framing/time.rs"]
mod time;

use std::sync::Arc;

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::caller::Caller;
use rampart_tests::edge::Edge;
use rampart_tests::wire::Wire;

use self::After::{Closed, Kept};

/// The state of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Closed,
    Kept,
}

/// Bytes, and what must come of them.
struct Vector {
    bytes: Vec<u8>,
    status: u16,
    code: &'static str,
    after: After,
}

/// Refused as ambiguous.
fn refused(bytes: impl Into<Vec<u8>>) -> Vector {
    Vector { bytes: bytes.into(), status: 400, code: "ER048", after: Closed }
}

/// Answered with this error.
fn answered(bytes: impl Into<Vec<u8>>, status: u16, code: &'static str, after: After) -> Vector {
    Vector { bytes: bytes.into(), status, code, after }
}

/// Granted.
fn granted(bytes: impl Into<Vec<u8>>, after: After) -> Vector {
    Vector { bytes: bytes.into(), status: 200, code: "", after }
}

/// An edge with a partner, for requests put together by hand.
struct Target {
    edge: Arc<Edge>,
    partner: Caller,
}

impl Target {
    async fn start(slug: &str) -> Self {
        let edge = Edge::shared().await;
        let partner = edge.partner(slug).await.authenticated().await;
        Self { edge, partner }
    }

    /// `Host` and credential.
    fn own(&self) -> String {
        let (name, value) = self.partner.credential();
        format!("Host: {}\r\n{name}: {value}\r\n", self.edge.address)
    }

    /// A request that is granted and leaves the connection open.
    fn good(&self) -> Vec<u8> {
        format!("GET /api/v1/prices HTTP/1.1\r\n{}\r\n", self.own()).into()
    }

    /// A request with this line and more headers; a body may follow the empty line in them.
    fn request(&self, line: &str, more: &str) -> Vec<u8> {
        format!("{line} HTTP/1.1\r\n{}{more}", self.own()).into()
    }

    /// A confirm, which takes a body, with these headers and that body.
    fn post(&self, more: &str) -> Vec<u8> {
        self.request("POST /api/v1/buy/confirm", more)
    }

    /// Sends each on a connection of its own; a good request afterwards shows that the connection
    /// is as it should be, and another on a new one that the edge is.
    async fn check(&self, vectors: impl IntoIterator<Item = Vector>) {
        for vector in vectors {
            let shown = String::from_utf8_lossy(&vector.bytes[..vector.bytes.len().min(300)]);
            let mut wire = Wire::open(self.edge.address).await;
            let answer = wire.exchange(&vector.bytes).await;
            let answer = answer.unwrap_or_else(|| panic!("no answer: {shown:?}"));
            let found = (answer.status(), codes(&answer));
            assert_eq!(found, (vector.status, vector.code.to_owned()), "{shown:?}");
            match vector.after {
                Closed => assert!(wire.is_closed().await, "not closed: {shown:?}"),
                Kept => {
                    let next = wire.exchange(&self.good()).await;
                    let next = next.unwrap_or_else(|| panic!("not kept: {shown:?}"));
                    assert_eq!(next.status(), 200, "{shown:?}");
                }
            }
            let mut other = Wire::open(self.edge.address).await;
            assert_eq!(other.exchange(&self.good()).await.unwrap().status(), 200, "{shown:?}");
        }
    }
}

/// The codes of an answer, which must be an envelope with a request id when it is an error.
fn codes(answer: &Answer) -> String {
    if answer.status() >= 400 {
        let no_route = "/a/path/of/no/route";
        return answer.clone().checked(&Method::GET, no_route).codes().join(",");
    }
    String::new()
}
