//! Pages on a slow line: their first content is there within a second.

use rampart_tests::browser::Browser;
use rampart_tests::edge::Edge;
use serde_json::json;

use crate::buyer::{RETURN_URL, order};

/// Time of a round trip, as Lighthouse has it for a slow mobile network, in milliseconds.
const ROUND_TRIP_MS: u32 = 150;
/// Bytes in a second on it, both ways: 1.6 Mbit/s.
const BYTES_PER_SECOND: u32 = 1_600_000 / 8;
/// Longest time until the first content, in milliseconds.
const FIRST_CONTENT_MAX_MS: f64 = 1_000.0;
/// Most looks at a page until one is fast enough: a busy machine only makes it slower.
const LOOKS_MAX: usize = 20;

/// A browser on such a line, which keeps nothing from one page to the next.
async fn slow_browser() -> Browser {
    let browser = Browser::start().await;
    browser.command("Network.enable", json!({})).await;
    browser.command("Network.setCacheDisabled", json!({"cacheDisabled": true})).await;
    browser.slow_down(ROUND_TRIP_MS, BYTES_PER_SECOND).await;
    browser
}

/// Time from the begin of the navigation to the page's first content, in milliseconds.
async fn first_content(browser: &Browser, url: &str) -> f64 {
    browser.open(url).await;
    let time = "return new Promise(done => {
        const look = () => {
            const paint = performance.getEntriesByName('first-contentful-paint')[0];
            paint ? done(paint.startTime) : setTimeout(look, 10);
        };
        look();
    });";
    browser.run(time).await.as_f64().unwrap()
}

#[tokio::test]
async fn the_first_content_of_a_page_is_there_within_a_second() {
    let edge = Edge::start().await;
    let partner = edge.partner("slow").await.authenticated().await;
    let body = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
        "quoteCurrencyAmount": 100, "returnUrl": RETURN_URL});
    let made = partner.post("/api/v2/buy/checkout", body).await.assert_status(200).json();
    let confirmed = order(&partner).await.json();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let own = ["/docs", "/docs/errors", "/nl-nl/faq", "/nl-nl/support", "/portal"];
    let mut pages: Vec<_> = own.iter().map(|path| edge.url(path)).collect();
    pages.extend([text(&made["checkoutUrl"]), text(&confirmed["paymentUrl"])]);
    pages.push(format!("http://{}/console", edge.admin));
    let browser = slow_browser().await;
    for page in pages {
        let mut times = Vec::new();
        while times.len() < LOOKS_MAX {
            let shown = first_content(&browser, &page).await;
            assert!(shown >= f64::from(ROUND_TRIP_MS), "the line is not slow: {shown} ms");
            times.push(shown);
            if shown <= FIRST_CONTENT_MAX_MS {
                break;
            }
        }
        println!("{page}: {times:.0?} ms");
        assert!(*times.last().unwrap() <= FIRST_CONTENT_MAX_MS, "{page}: {times:?} ms");
    }
}
