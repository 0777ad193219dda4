//! Heads: request lines, header fields, lengths that can be read in two ways.

use rampart_tests::wire::Wire;

use super::After::{Closed, Kept};
use super::{Target, answered, granted, refused};

#[tokio::test]
async fn request_lines_that_can_be_read_in_two_ways_are_refused() {
    let target = Target::start("request-lines").await;
    let lines = [
        "GET /api/v1/prices x HTTP/1.1",
        "GET  /api/v1/prices HTTP/1.1",
        " GET /api/v1/prices HTTP/1.1",
        "GET /api/v1/prices HTTP/1.1 ",
        "GET\t/api/v1/prices\tHTTP/1.1",
        "GET /api/v1/prices",
        "GET /api/v1/prices HTTP/2.0",
        "GET /api/v1/prices HTTP/1.2",
        "GET /api/v1/prices http/1.1",
        "GET /api/v1/prices HTTP/1.1\rX: y",
        "G(T /api/v1/prices HTTP/1.1",
        "GET /api/v1/prices#x HTTP/1.1",
        "GET /api/v1/<x> HTTP/1.1",
        "GET /api/v1/\u{e4} HTTP/1.1",
        "GET /api/v1/\0 HTTP/1.1",
        "GET api/v1/prices HTTP/1.1",
        "GET ftp://localhost/api/v1/prices HTTP/1.1",
        "PRI * HTTP/2.0",
    ];
    target.check(lines.map(|line| refused(format!("{line}\r\n{}\r\n", target.own())))).await;
}

#[tokio::test]
async fn hosts_that_can_be_read_in_two_ways_are_refused() {
    let target = Target::start("hosts").await;
    let get = |target: &str, host: &str| format!("GET {target} HTTP/1.1\r\n{host}\r\n");
    let path = "/api/v1/prices";
    target
        .check([
            refused(get(path, "")),
            refused(get(path, "Host: a.example\r\nHost: a.example\r\n")),
            refused(get(path, "Host: a.example\r\nHost: b.example\r\n")),
            refused(get(path, "Host: a.example, b.example\r\n")),
            refused(get(path, "Host:\r\n")),
            refused(get(path, "Host: a.example/x\r\n")),
            refused(get(path, "Host: user@a.example\r\n")),
            refused(get("https://b.example/api/v1/prices", "Host: a.example\r\n")),
            refused(get("https://A.example/api/v1/prices", "Host: a.example\r\n")),
            refused(get("https://user@a.example/api/v1/prices", "Host: a.example\r\n")),
            refused(get("https://a.example@b.example/", "Host: a.example\r\n")),
        ])
        .await;
}

#[tokio::test]
async fn header_fields_that_can_be_read_in_two_ways_are_refused() {
    let target = Target::start("fields").await;
    let fields: [&[u8]; 17] = [
        b"X-Api-Version : 1\r\n",
        b"Content-Length : 5\r\n",
        b" X-A: b\r\n",
        b"X-A: b\r\n c\r\n",
        b"X-A: b\r\n\tc\r\n",
        b"X-A\r\n",
        b": b\r\n",
        b"X A: b\r\n",
        b"X(A: b\r\n",
        b"X-A: b\0c\r\n",
        b"X-A: b\rTransfer-Encoding: chunked\r\n",
        b"X-A: b\x7f\r\n",
        b"X-A: b\x0c\r\n",
        b"X-A: b\r\r\n",
        b"Content-Length: 0\x0b\r\n",
        b"X-A: \xff\r\n",
        b"X\xe4: b\r\n",
    ];
    target
        .check(fields.map(|field| refused([&target.post("")[..], field, b"\r\n"].concat())))
        .await;
}

#[tokio::test]
async fn bare_line_feeds_are_refused() {
    let target = Target::start("line-feeds").await;
    let good = String::from_utf8(target.good()).unwrap();
    target
        .check([
            refused(good.replace("\r\n", "\n")),
            refused(good.replacen("\r\n", "\n", 1)),
            refused(good.replace("\r\n\r\n", "\r\n\n")),
            refused(good.replace("\r\n\r\n", "\n\r\n")),
            refused(format!("\n{good}")),
            refused(format!("\r\n\r\n{good}")),
            granted(format!("\r\n{good}"), Kept),
        ])
        .await;
}

#[tokio::test]
async fn lengths_that_can_be_read_in_two_ways_are_refused() {
    let target = Target::start("lengths").await;
    let headers = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 5.0\r\n",
        "Content-Length: five\r\n",
        "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: chunked,\r\n",
        "Transfer-Encoding: \r\n",
        "Transfer-Encoding:\u{b}chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Upgrade: h2c\r\nContent-Length: 5\r\n",
        "Upgrade: websocket\r\nTransfer-Encoding: chunked\r\n",
    ];
    let body = "\r\n0\r\n\r\n";
    target.check(headers.map(|header| refused(target.post(&format!("{header}{body}"))))).await;
    let old = format!(
        "POST /api/v1/buy/confirm HTTP/1.0\r\n{}Transfer-Encoding: chunked\r\n{body}",
        target.own()
    );
    target.check([refused(old)]).await;
}

#[tokio::test]
async fn large_heads_are_refused_before_they_are_whole() {
    let target = Target::start("large-heads").await;
    let long = "a".repeat(9 * 1024);
    let huge = "a".repeat(17 * 1024);
    let many = "X: y\r\n".repeat(101);
    target
        .check([
            answered(target.request(&format!("GET /{long}"), "\r\n"), 414, "ER048", Closed),
            answered(target.request(&format!("GET /?{long}"), "\r\n"), 414, "ER048", Closed),
            answered(format!("GET /{}", "a".repeat(64 * 1024)), 414, "ER048", Closed),
            answered(target.post(&format!("X-A: {huge}\r\n\r\n")), 431, "ER048", Closed),
            answered(target.post(&format!("X-A: {huge}")), 431, "ER048", Closed),
            answered(target.post(&format!("{many}\r\n")), 431, "ER048", Closed),
            granted(
                target.request("GET /api/v1/prices", &format!("X-A: {}\r\n\r\n", &huge[..15_000])),
                Kept,
            ),
        ])
        .await;
}

#[tokio::test]
async fn a_refused_head_is_answered_with_its_request_id() {
    let target = Target::start("refused-ids").await;
    let id = "X-Request-Id: mine-1\r\n";
    let long = "a".repeat(8 * 1024);
    let huge = "a".repeat(17 * 1024);
    for (head, status, sent) in [
        (target.request(&format!("GET /{long}"), &format!("{id}\r\n")), 414, true),
        (target.post(&format!("{id}X-A: {huge}\r\n\r\n")), 431, true),
        (target.post(&format!("{}X-A\r\n\r\n", id.to_lowercase())), 400, true),
        (target.post("X-Request-Id: not one\r\nX-A\r\n\r\n"), 400, false),
        (target.post("X-A\r\n\r\n"), 400, false),
    ] {
        let mut wire = Wire::open(target.edge.address).await;
        let answer = wire.exchange(&head).await.unwrap();
        assert_eq!(answer.status(), status);
        let own = answer.header("x-request-id").unwrap();
        assert_eq!(own == "mine-1", sent, "{status} {own}");
        assert_eq!(own.len() == 36, !sent, "{status} {own}");
    }
}

#[tokio::test]
async fn sound_heads_of_every_form_are_understood() {
    let target = Target::start("sound-heads").await;
    let own = target.own();
    let address = target.edge.address;
    target
        .check([
            granted(
                target.request("GET /api/v1/prices", "X-Name: \u{e4}\t\u{1f600}\r\n\r\n"),
                Kept,
            ),
            granted(target.request(&format!("GET https://{address}/api/v1/prices"), "\r\n"), Kept),
            granted(target.request("GET /api/v1/prices", "Connection: close\r\n\r\n"), Closed),
            granted(format!("GET /api/v1/prices HTTP/1.0\r\n{own}\r\n"), Closed),
            granted(target.request("GET /api/v1/prices", "Content-Length: 0\r\n\r\n"), Kept),
            answered(target.request("OPTIONS *", "\r\n"), 404, "ER998", Kept),
            answered(target.request("DELETE /api/v1/prices", "\r\n"), 405, "ER998", Kept),
            answered(target.request("BREW /api/v1/prices", "\r\n"), 405, "ER998", Kept),
            answered(
                format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n"),
                405,
                "ER998",
                Closed,
            ),
        ])
        .await;
}
