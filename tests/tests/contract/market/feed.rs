//! Prices that are read from a source.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use chrono::TimeDelta;
use http::Method;
use rampart_core::platform::settings::{HttpPrice, PriceSource};
use rampart_tests::test_context::TestContext;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::change;

/// A source that answers every request with this price, and how often it was asked.
async fn source(price: &'static str) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/ticker", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 2048];
            let _ = stream.read(&mut request).await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let body = format!(r#"{{"last":{price}}}"#);
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        }
    });
    (url, asked)
}

#[tokio::test]
async fn several_edges_read_a_source_about_once_an_interval() {
    let (url, asked) = source("12345.67").await;
    let context = TestContext::with(|settings| {
        settings.prices.source = PriceSource::Http;
        let price = HttpPrice { url, pointer: "/last".to_owned() };
        settings.prices.sources.insert("BTC-EUR".to_owned(), price);
    })
    .await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    change(&context, Method::PATCH, "/admin/v1/pairs/BTC-EUR", json!({"spreadPercentage": 0}))
        .await;
    let read = async |edge: &TestContext| {
        let core = edge.core();
        core.price_feed.as_ref().unwrap().refresh(core).await.unwrap();
        for edge in [&context, &other] {
            edge.core().refresh().await.unwrap();
        }
        asked.load(Ordering::Relaxed)
    };
    assert_eq!((read(&context).await, read(&other).await, read(&context).await), (1, 1, 1));
    let price = acme.get("/api/v1/prices").await.json()["buy"]["BTC-EUR"].to_string();
    assert_eq!(price, "12345.67");
    context.clock().advance(TimeDelta::seconds(10));
    assert_eq!((read(&other).await, read(&context).await), (2, 2));
    // Nothing reads any more: what came from a source ages.
    context.clock().advance(TimeDelta::seconds(121));
    assert!(acme.get("/api/v1/prices").await.json()["buy"].get("BTC-EUR").is_none());
    assert!(acme.get("/api/v1/prices").await.json()["buy"]["ETH-EUR"].is_number());
}
