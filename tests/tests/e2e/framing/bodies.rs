//! Bodies: where they end, how large they may be, and what follows them.

use rampart_tests::wire::Wire;

use super::After::{Closed, Kept};
use super::{Target, answered, codes, refused};

/// More than a JSON route takes.
const TOO_LARGE: usize = 256 * 1024 + 1;

/// A confirm without a quote.
const EMPTY: &str = "{}";

#[tokio::test]
async fn chunks_that_can_be_read_in_two_ways_are_refused() {
    let target = Target::start("chunks").await;
    let bodies = [
        "2\r\n{}\r\n0\r\nX\r\n\r\n",
        "2\r\n{}\r\n0\r\nX : y\r\n\r\n",
        "2\r\n{}\r\n0\r\nGET / HTTP/1.1\r\n\r\n",
        "x\r\n{}\r\n0\r\n\r\n",
        "\r\n{}\r\n0\r\n\r\n",
        "+2\r\n{}\r\n0\r\n\r\n",
        "-2\r\n{}\r\n0\r\n\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        " 2\r\n{}\r\n0\r\n\r\n",
        "2 \r\n{}\r\n0\r\n\r\n",
        "2\n{}\r\n0\r\n\r\n",
        "2\r\n{}\n0\r\n\r\n",
        "2\r\n{}X\r\n0\r\n\r\n",
        "1\r\n{}\r\n0\r\n\r\n",
        "2\r{}\r\n0\r\n\r\n",
        "fffffffffffffffff\r\n{}\r\n0\r\n\r\n",
        "2;\0\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}\r\n0\r\n X: y\r\n\r\n",
    ];
    let post = |body| target.post(&format!("Transfer-Encoding: chunked\r\n\r\n{body}"));
    target.check(bodies.map(|body| refused(post(body)))).await;
}

#[tokio::test]
async fn a_body_ends_where_it_says() {
    let target = Target::start("ends").await;
    let refusal = codes(&first(&target, &length(&target, EMPTY)).await);
    assert!(refusal.contains("ER045"), "a confirm without a quote: {refusal}");
    let refusal: &'static str = refusal.leak();
    let confirm = |bytes| answered(bytes, 400, refusal, Kept);
    let chunked = |body| target.post(&format!("Transfer-Encoding: chunked\r\n\r\n{body}"));
    target
        .check([
            confirm(length(&target, EMPTY)),
            confirm(chunked("2\r\n{}\r\n0\r\n\r\n")),
            confirm(chunked("1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")),
            confirm(chunked("0002;name=value\r\n{}\r\n0\r\nX-Trailer: x y\r\n\r\n")),
            answered(target.post("\r\n"), 400, "ER048", Kept),
            answered(length(&target, "{"), 400, "ER048", Kept),
        ])
        .await;
}

#[tokio::test]
async fn json_in_strings_of_json_does_not_exhaust_the_stack() {
    let target = Target::start("nested").await;
    let nested = nested_json(80);
    assert!(nested.len() < TOO_LARGE, "{} bytes", nested.len());
    target.check([answered(length(&target, &nested), 400, "ER048", Kept)]).await;
}

#[tokio::test]
async fn what_is_too_large_is_refused_however_it_is_announced() {
    let target = Target::start("too-large").await;
    let large = "x".repeat(TOO_LARGE);
    let chunk = format!("Transfer-Encoding: chunked\r\n\r\n{TOO_LARGE:x}\r\n{large}\r\n0\r\n\r\n");
    let announced = format!("Content-Length: {TOO_LARGE}\r\n\r\n");
    target
        .check([
            answered(target.post(&announced), 413, "ER048", Closed),
            answered(length(&target, &large), 413, "ER048", Closed),
            answered(target.post(&chunk), 413, "ER048", Closed),
            answered(target.post("Content-Length: 999999999999999\r\n\r\n"), 413, "ER048", Closed),
        ])
        .await;
}

#[tokio::test]
async fn requests_sent_together_are_answered_in_order() {
    let target = Target::start("pipelining").await;
    let chunked = target.post("Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
    let (good, post) = (target.good(), length(&target, EMPTY));
    let mut wire = Wire::open(target.edge.address).await;
    wire.send(&[&good[..], &post, &good, &chunked, &good, &chunked, &post, &good].concat()).await;
    for status in [200, 400, 200, 400, 200, 400, 400, 200] {
        assert_eq!(wire.answer().await.unwrap().status(), status);
    }
    assert_eq!(wire.exchange(&good).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_body_is_never_taken_for_a_request() {
    let target = Target::start("smuggling").await;
    let inner = String::from_utf8(target.request("GET /smuggled", "\r\n")).unwrap();
    let hidden = format!("Content-Length: {}\r\n\r\n{inner}", inner.len());
    for outer in
        ["GET /api/v1/prices", "GET /nowhere", "POST /api/v1/buy/confirm", "PUT /api/v1/prices"]
    {
        let mut wire = Wire::open(target.edge.address).await;
        let first = wire.exchange(&target.request(outer, &hidden)).await.unwrap();
        // Either it closes, or the next answer is the next request's: never that of the body.
        if let Some(next) = wire.exchange(&target.good()).await {
            assert_eq!(next.status(), 200, "after {} to {outer}", first.status());
        }
    }
}

#[tokio::test]
async fn who_waits_for_100_gets_it_when_the_body_is_wanted() {
    let target = Target::start("continue").await;
    let expect = "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let mut wire = Wire::open(target.edge.address).await;
    assert_eq!(wire.exchange(&target.post(expect)).await.unwrap().status(), 100);
    let answer = wire.exchange(EMPTY.as_bytes()).await.unwrap();
    assert_eq!(answer.status(), 400);
    assert!(codes(&answer).contains("ER045"));
    assert_eq!(wire.exchange(&target.good()).await.unwrap().status(), 200);

    let too_large = format!("Expect: 100-continue\r\nContent-Length: {TOO_LARGE}\r\n\r\n");
    target.check([answered(target.post(&too_large), 413, "ER048", Closed)]).await;
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_no_interim_answer() {
    let target = Target::start("continue-old").await;
    let expect = "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}";
    let post = format!("POST /api/v1/buy/confirm HTTP/1.0\r\n{}{expect}", target.own());
    let answer = first(&target, post.as_bytes()).await;
    assert_eq!(answer.status(), 400);
    assert!(codes(&answer).contains("ER045"));
}

/// Arrays as deep as serde_json takes them, and within them an object whose member it takes for JSON in
/// a string, as often as said.
fn nested_json(levels: usize) -> String {
    let around = |inner: String| {
        let deep = format!("{}{inner}{}", "[".repeat(110), "]".repeat(110));
        // Escapes that the next level makes longer by little: quotes would double each time.
        let text = deep.replace('\\', "\\u005c").replace('"', "\\u0022");
        format!(r#"{{"$serde_json::private::RawValue":"{text}"}}"#)
    };
    (0..levels).fold("1".to_owned(), |inner, _| around(inner))
}

fn length(target: &Target, body: &str) -> Vec<u8> {
    target.post(&format!("Content-Length: {}\r\n\r\n{body}", body.len()))
}

async fn first(target: &Target, bytes: &[u8]) -> rampart_tests::answer::Answer {
    Wire::open(target.edge.address).await.exchange(bytes).await.unwrap()
}
