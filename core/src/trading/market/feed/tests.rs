use std::collections::BTreeMap;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::platform::settings::HttpPrice;

fn settings(url: &str, pointer: &str) -> Prices {
    let source = HttpPrice { url: url.to_owned(), pointer: pointer.to_owned() };
    Prices {
        source: PriceSource::Http,
        sources: BTreeMap::from([("BTC-EUR".to_owned(), source)]),
        ..Prices::default()
    }
}

/// The feed's result for a source that answers its first connection with these bytes.
async fn read_from(answer: Vec<u8>) -> Result<Decimal, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/ticker?key=secret", listener.local_addr().unwrap());
    let serve = async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let read = stream.read(&mut request).await.unwrap();
        assert!(read > 0);
        // The client may have hung up already: the answer is too large.
        drop(stream.write_all(&answer).await);
        drop(stream.shutdown().await);
    };
    let feed = PriceFeed::new(&settings(&url, "/last/price")).unwrap().unwrap();
    let (read, ()) = tokio::join!(feed.read(&feed.sources[0]), serve);
    read.map_err(|reason| reason.to_string())
}

fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[tokio::test]
async fn a_price_is_read_to_the_last_digit() {
    let price = read_from(ok(r#"{"last":{"price":90123.123456789012345}}"#)).await;
    assert_eq!(price.unwrap().to_string(), "90123.123456789012345");
    let price = read_from(ok(r#"{"last":{"price":"0.10"}}"#)).await;
    assert_eq!(price.unwrap(), Decimal::new(1, 1));
}

#[tokio::test]
async fn a_response_other_than_small_json_gives_no_price() {
    let long = format!(r#"{{"last":{{"price":1}},"x":"{}"}}"#, "x".repeat(BODY_BYTES_MAX));
    let redirect =
        b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    for (answer, reason) in [
        (ok(&long), "more than 65536 bytes"),
        (ok("<html>"), "not JSON"),
        (redirect.to_vec(), "answered 302"),
        (b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n".to_vec(), "answered 500"),
        (b"garbage\r\n\r\n".to_vec(), "error"),
    ] {
        let error = read_from(answer).await.unwrap_err();
        assert!(error.contains(reason) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn a_value_other_than_a_positive_number_gives_no_price() {
    for body in [
        r#"{"last":{"price":0}}"#,
        r#"{"last":{"price":-1}}"#,
        r#"{"last":{"price":"abc"}}"#,
        r#"{"last":{"price":null}}"#,
        r#"{"last":{"price":[1]}}"#,
        r#"{"last":{"price":1e400}}"#,
        r#"{"last":{}}"#,
        "[]",
    ] {
        assert!(price_at(body.as_bytes(), "/last/price").is_err(), "{body}");
    }
    assert!(price_at(br#"[{"a/b":1}]"#, "/0/a~1b").is_ok());
}

#[test]
fn a_source_is_https_or_on_this_machine() {
    for (url, pointer) in [
        ("http://prices.example/ticker", "/price"),
        ("ftp://prices.example", "/price"),
        ("prices.example", "/price"),
        ("https://prices.example/ticker", "price"),
    ] {
        assert!(PriceFeed::new(&settings(url, pointer)).is_err(), "{url} {pointer}");
    }
    assert!(PriceFeed::new(&settings("https://prices.example/x", "/price")).unwrap().is_some());
    assert!(PriceFeed::new(&Prices::default()).unwrap().is_none());
}
