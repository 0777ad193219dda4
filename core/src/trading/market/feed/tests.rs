use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::platform::settings::{HttpPrice, PriceSource};

fn source(url: &str) -> HttpPrice {
    HttpPrice {
        url: url.to_owned(),
        pointer: "/last/price".to_owned(),
        time_pointer: "/at".to_owned(),
    }
}

fn settings(sources: Vec<HttpPrice>) -> Prices {
    Prices {
        source: None,
        sources: BTreeMap::from([("BTC-EUR".to_owned(), sources)]),
        ..Prices::default()
    }
}

/// The price of a source that answers its first connection with these bytes.
async fn read_from(answer: Vec<u8>) -> Result<String, String> {
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
    let feed = PriceFeed::new(&settings(vec![source(&url)])).unwrap().unwrap();
    let (read, ()) = tokio::join!(feed.sources[0].read(&feed.http), serve);
    read.map(|reading| reading.price.to_string()).map_err(|reason| reason.to_string())
}

fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[tokio::test]
async fn a_response_other_than_small_json_gives_no_price() {
    let price = read_from(ok(r#"{"last":{"price":90123.5},"at":1700000000}"#)).await;
    assert_eq!(price.unwrap(), "90123.5");
    let long = format!(r#"{{"last":{{"price":1}},"at":1,"x":"{}"}}"#, "x".repeat(65_536));
    let redirect =
        b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    for (answer, reason) in [
        (ok(&long), "more than 65536 bytes"),
        (ok("<html>"), "not JSON"),
        (ok(r#"{"last":{"price":1}}"#), "no time"),
        (redirect.to_vec(), "answered 302"),
        (b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n".to_vec(), "answered 500"),
        (b"garbage\r\n\r\n".to_vec(), "error"),
    ] {
        let error = read_from(answer).await.unwrap_err();
        assert!(error.contains(reason) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn a_configuration_that_cannot_work_is_refused_in_a_sentence() {
    let (one, other) = (source("https://a.example/x"), source("https://b.example/x"));
    let two = settings(vec![one.clone(), other.clone()]);
    let feed = PriceFeed::new(&two).unwrap().unwrap();
    assert_eq!(feed.names().into_values().map(|names| names.len()).collect::<Vec<_>>(), [2]);
    assert!(PriceFeed::new(&Prices::default()).unwrap().is_none());
    let short = |least| {
        let settings = Prices { sources_min: least, ..two.clone() };
        PriceFeed::new(&settings).unwrap().unwrap().short_pairs()
    };
    let sentence = "prices.sources.BTC-EUR has fewer sources (2) than prices.sources_min (3)";
    assert_eq!((short(2), short(3)), (vec![], vec![sentence.to_owned()]));
    let by_name = |name: &str| Prices {
        sources: BTreeMap::from([(name.to_owned(), vec![one.clone()])]),
        ..two.clone()
    };
    let deviating =
        |percent: &str| Prices { deviation_max: percent.parse().unwrap(), ..two.clone() };
    assert!(PriceFeed::new(&deviating("0.75")).is_ok());
    for (settings, sentence) in [
        (by_name("bitcoin"), "'bitcoin', which is no currency pair"),
        (settings(vec![one.clone(), one.clone()]), "prices.sources.BTC-EUR has the same source"),
        (settings(vec![source("http://a.example/x")]), "neither https nor http on loopback"),
        (settings(Vec::new()), "prices.sources.BTC-EUR names no source"),
        (Prices { source: Some(PriceSource::Static), ..two.clone() }, "prices.source is 'static'"),
        (deviating("1000.01"), "'prices.deviation_max' is 1000.01, not between 0 and 1000"),
        (deviating("-1"), "'prices.deviation_max' is -1, not between 0 and 1000"),
        (deviating("0.125"), "'prices.deviation_max' is 0.125, not between 0 and 1000"),
    ] {
        let refused = PriceFeed::new(&settings).unwrap_err();
        assert!(refused.contains(sentence) && !refused.contains('\n'), "{refused}");
    }
}
