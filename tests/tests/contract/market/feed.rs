//! Prices that are read from sources: several, fresh, stale, lying, deviating, slow.

use std::sync::Arc;

use chrono::TimeDelta;
use http::Method;
use rampart_core::platform::settings::Prices;
use rampart_tests::answer::Answer;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::partner::Partner;
use rampart_tests::price_source::PriceSource;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::change;

const QUOTE: &str = "/api/v1/buy/quote";
const PRICE: &str = "/admin/v1/prices/BTC-EUR";

/// An edge whose price of a bitcoin comes from sources. The last one is 90000.
struct Market {
    context: Arc<TestContext>,
    acme: Partner,
    sources: Vec<PriceSource>,
}

impl Market {
    async fn with(sources: usize, rules: impl FnOnce(&mut Prices)) -> Self {
        let mut started = Vec::new();
        for _ in 0..sources {
            started.push(PriceSource::start().await);
        }
        let settings = started.iter().map(PriceSource::settings).collect();
        let context = TestContext::with(|all| {
            all.prices.sources.insert("BTC-EUR".to_owned(), settings);
            rules(&mut all.prices);
        })
        .await;
        let acme = context.partner("acme").await;
        Self { context: Arc::new(context), acme, sources: started }
    }

    async fn of(sources: usize) -> Self {
        Self::with(sources, |_| ()).await
    }

    /// Has every source say a price of now.
    fn say(&self, prices: &[&str]) {
        let now = self.context.clock().now();
        for (source, price) in self.sources.iter().zip(prices) {
            source.say(price, now);
        }
    }

    /// Polls the sources that are due.
    async fn poll(&self) {
        poll(&self.context).await;
    }

    /// The same after an interval.
    async fn poll_again(&self) {
        self.context.clock().advance(TimeDelta::seconds(10));
        self.poll().await;
    }

    async fn quote(&self) -> Answer {
        let asked =
            json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 250});
        self.acme.post(QUOTE, asked).await
    }

    /// The price of a quote; `None` while the pair is closed.
    async fn price(&self) -> Option<String> {
        let quote = self.quote().await;
        if quote.status() == 200 {
            return Some(quote.json()["price"].to_string());
        }
        quote.assert_codes(&["ER008"]);
        None
    }

    /// Waits until this price is stored.
    async fn until_price(&self, price: &str) {
        until("the price is stored", SOON, async || {
            self.context.core().refresh().await.unwrap();
            (self.price().await.as_deref() == Some(price)).then_some(())
        })
        .await;
    }

    /// The detail of the check of prices, which passes.
    async fn degraded(&self) -> String {
        let readiness = self.context.core().readiness().await;
        let prices = readiness.checks.iter().find(|check| check.name == "prices").unwrap();
        assert!(prices.ok, "{prices:?}");
        prices.detail.to_string()
    }

    /// The pair in the operators' list.
    async fn listed(&self) -> Value {
        let all = self.context.admin(Method::GET, "/admin/v1/prices", json!({})).await.json();
        all.as_array().unwrap().iter().find(|pair| pair["pair"] == "BTC-EUR").unwrap().clone()
    }
}

async fn poll(edge: &TestContext) {
    let core = edge.core();
    core.price_feed.as_ref().unwrap().refresh(core).await.unwrap();
    core.refresh().await.unwrap();
}

#[tokio::test]
async fn several_edges_read_a_source_about_once_an_interval() {
    let market = Market::of(1).await;
    let other = market.context.second_edge().await;
    market.say(&["90123.45"]);
    let read = async |edge: &TestContext| {
        poll(edge).await;
        market.sources[0].asked()
    };
    let (this, context) = (&*market.context, &market.context);
    assert_eq!((read(this).await, read(&other).await, read(this).await), (1, 1, 1));
    assert_eq!(market.price().await.as_deref(), Some("90123.45"));
    context.clock().advance(TimeDelta::seconds(10));
    assert_eq!((read(&other).await, read(this).await), (2, 2));
    // It still says its first price, and that ages by the source's time.
    assert!(market.price().await.is_some());
    context.clock().advance(TimeDelta::seconds(111));
    poll(this).await;
    assert_eq!(market.price().await, None);
    let prices = market.acme.get("/api/v1/prices").await.json();
    assert!(prices["buy"].get("BTC-EUR").is_none() && prices["buy"]["ETH-EUR"].is_number());
}

#[tokio::test]
async fn the_price_is_the_median_whatever_a_liar_says() {
    let market = Market::of(3).await;
    for (said, median) in [
        (["90000", "90100", "1"], "90000"),
        (["90000", "90100", "99999999"], "90100"),
        (["90000.5", "\"90100\"", "90050.25"], "90050.25"),
    ] {
        market.say(&said);
        market.poll_again().await;
        assert_eq!(market.price().await.as_deref(), Some(median), "{said:?}");
    }
    // The mean of two while the third one says nothing that counts.
    market.context.clock().advance(TimeDelta::seconds(120));
    market.say(&["90000", "90100"]);
    market.poll().await;
    assert_eq!(market.price().await.as_deref(), Some("90050"));
}

#[tokio::test]
async fn a_source_that_is_stale_broken_or_from_the_future_does_not_count() {
    let market = Market::with(2, |prices| prices.sources_min = 2).await;
    let [good, bad] = &market.sources[..] else { panic!("two were started") };
    let clock = market.context.clock();
    // What was there before ends.
    market.say(&["90000", "90100"]);
    market.poll().await;
    assert_eq!(market.price().await.as_deref(), Some("90050"));
    let large = format!(r#"{{"last":90000,"at":1,"x":"{}"}}"#, "x".repeat(70_000));
    for wrong in ["stale", "future", "no time", "not json", "large", "status"] {
        clock.advance(TimeDelta::seconds(121));
        good.say("90000", clock.now());
        match wrong {
            "stale" => bad.say("90000", clock.now() - TimeDelta::seconds(121)),
            "future" => bad.say("90000", clock.now() + TimeDelta::seconds(60)),
            "no time" => bad.answer_with(200, r#"{"last":90000}"#),
            "not json" => bad.answer_with(200, "<html>"),
            "large" => bad.answer_with(200, &large),
            _ => bad.answer_with(500, r#"{"last":90000,"at":1}"#),
        }
        market.poll().await;
        assert_eq!(market.price().await, None, "{wrong}");
        assert_eq!(market.listed().await["status"], "stale", "{wrong}");
    }
    market.say(&["90000", "90100"]);
    market.poll_again().await;
    assert_eq!(market.price().await.as_deref(), Some("90050"));
}

#[tokio::test]
async fn a_pair_closes_when_too_few_sources_are_still_fresh() {
    let market = Market::with(3, |prices| prices.sources_min = 2).await;
    let clock = market.context.clock();
    market.say(&["90000", "90100", "90200"]);
    market.poll().await;
    assert_eq!(market.price().await.as_deref(), Some("90100"));
    // Only one goes on. The others' words are good for two minutes, and for the price until then.
    for source in &market.sources[1..] {
        source.answer_with(503, "");
    }
    clock.advance(TimeDelta::seconds(90));
    market.sources[0].say("90000", clock.now());
    market.poll().await;
    assert_eq!(market.price().await.as_deref(), Some("90100"));
    clock.advance(TimeDelta::seconds(31));
    assert_eq!(market.price().await, None, "nobody needs to notice: the price ends by itself");
}

#[tokio::test]
async fn a_pair_with_fewer_sources_than_are_needed_is_closed() {
    let market = Market::with(1, |prices| prices.sources_min = 2).await;
    // The price of before may be too old already.
    let fresh = json!({"price": 90_000});
    market.context.admin(Method::PUT, PRICE, fresh).await.assert_status(200);
    let detail = "degraded: prices.sources.BTC-EUR has fewer sources (1) than prices.sources_min \
                  (2)";
    assert_eq!(market.degraded().await, detail);
    // What was there before ends.
    market.context.clock().advance(TimeDelta::seconds(121));
    market.say(&["90100"]);
    market.poll().await;
    assert_eq!(market.price().await, None);
    let prices = market.acme.get("/api/v1/prices").await.json();
    assert!(prices["buy"]["ETH-EUR"].is_number(), "the others are open: {prices}");
}

#[tokio::test]
async fn a_quote_is_not_confirmed_once_its_price_has_ended() {
    let market = Market::with(2, |prices| prices.sources_min = 2).await;
    let ada = market.acme.user("ada").await;
    market.say(&["90000", "90100"]);
    market.poll().await;
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 250});
    let quote = ada.post(QUOTE, &asked).await.assert_status(200).json()["quote"].clone();
    let body = json!({"quote": quote, "returnUrl": "https://shop.example/back",
        "walletAddress": crate::orders::BTC});
    market.sources[1].answer_with(503, "");
    market.context.clock().advance(TimeDelta::seconds(121));
    market.sources[0].say("90000", market.context.clock().now());
    market.poll().await;
    let confirm = async || ada.post("/api/v1/buy/confirm", &body).await;
    confirm().await.assert_status(400).assert_codes(&["ER008"]);
    market.sources[1].say("90100", market.context.clock().now());
    market.poll_again().await;
    confirm().await.assert_status(200);
}

#[tokio::test]
async fn a_price_that_jumps_closes_its_pair_until_a_second_source_says_the_same() {
    let market = Market::of(2).await;
    let [one, two] = &market.sources[..] else { panic!("two were started") };
    let clock = market.context.clock();
    two.answer_with(500, "");
    one.say("98000", clock.now());
    market.poll().await;
    assert_eq!(market.price().await.as_deref(), Some("98000"), "less than a tenth");
    let quote = market.quote().await.json();

    clock.advance(TimeDelta::seconds(10));
    one.say("120000", clock.now());
    market.poll().await;
    assert_eq!(market.price().await, None);
    let confirm = json!({"quote": quote["quote"], "returnUrl": "https://shop.example/back",
        "walletAddress": crate::orders::BTC});
    let ada = market.acme.user("ada").await;
    let refused = ada.post("/api/v1/buy/confirm", &confirm).await;
    refused.assert_status(400).assert_codes(&["ER008"]);
    let listed = market.listed().await;
    assert_eq!((&listed["status"], &listed["price"]), (&json!("deviating"), &json!(98000)));
    assert_eq!(listed["deviating"], 120_000);
    assert_eq!(listed["sources"][0]["price"], 120_000);
    assert_eq!(listed["sources"][1]["price"], Value::Null);
    let detail = "degraded: pairs are closed: BTC-EUR: its sources say 120000 instead";
    assert_eq!(market.degraded().await, detail);

    // Saying it again confirms nothing, and neither does a source that disagrees.
    market.say(&["120000", "98000"]);
    market.poll_again().await;
    assert_eq!(market.price().await, None);
    market.say(&["120000", "121000"]);
    market.poll_again().await;
    assert_eq!(market.price().await.as_deref(), Some("120500"));
    // Or the jump was none.
    market.say(&["60000", "120500"]);
    market.poll_again().await;
    assert_eq!(market.price().await, None);
    market.say(&["121000", "120500"]);
    market.poll_again().await;
    assert_eq!(market.price().await.as_deref(), Some("120750"));
}

#[tokio::test]
async fn an_operator_confirms_a_price_that_deviates() {
    let market = Market::of(1).await;
    market.say(&["50000"]);
    market.poll().await;
    assert_eq!(market.price().await, None);
    let change = json!({"price": 50_100});
    market.context.admin(Method::PUT, PRICE, change).await.assert_status(200);
    assert_eq!(market.price().await.as_deref(), Some("50100"));
    assert_eq!(market.listed().await["fixed"], true);
    market.say(&["50000"]);
    market.poll_again().await;
    assert_eq!(market.price().await.as_deref(), Some("50000"));
    assert_eq!(market.listed().await["fixed"], false);
    // A wrong confirmation is contradicted by the next reading.
    market.context.admin(Method::PUT, PRICE, json!({"price": 90_000})).await.assert_status(200);
    market.say(&["50000"]);
    market.poll_again().await;
    assert_eq!(market.price().await, None);
}

#[tokio::test]
async fn a_slow_source_delays_no_other_ones_price() {
    let market = Market::of(3).await;
    market.say(&["91000"]);
    let context = Arc::clone(&market.context);
    let polling = tokio::spawn(async move { poll(&context).await });
    market.until_price("91000").await;
    // The price of one that is late does not wait for a later one either.
    market.sources[1].say("93000", market.context.clock().now());
    market.until_price("92000").await;
    assert!(!polling.is_finished(), "the slow one is still waited for");
    polling.abort();
}

#[tokio::test]
async fn age_and_deviation_of_a_price_are_metrics() {
    let market = Market::of(1).await;
    let shown = |line: &str| {
        let text = market.context.core().metrics_text();
        assert!(text.contains(line), "{line}: {text}");
    };
    market.sources[0].say("72000", market.context.clock().now() - TimeDelta::seconds(30));
    market.poll().await;
    shown(r#"rampart_price_deviation_ratio{pair="BTC-EUR"} 0.2"#);
    shown(r#"rampart_price_age_seconds{pair="BTC-EUR"} "#);
    shown(r#"rampart_price_deviation_ratio{pair="ETH-EUR"} 0"#);
}

#[tokio::test]
async fn a_price_is_stale_while_its_age_closes_a_pair_that_is_offered() {
    let context = TestContext::start().await;
    let shown = |stale: u8| {
        let text = context.core().metrics_text();
        let line = format!("\nrampart_price_stale{{pair=\"ETH-EUR\"}} {stale}\n");
        assert!(text.contains(&line), "{line}: {text}");
    };
    let price = json!({"price": 3000, "maxAgeSeconds": 600});
    change(&context, Method::PUT, "/admin/v1/prices/ETH-EUR", price).await;
    // Old for a source, and not for the operator who has set it.
    context.clock().advance(TimeDelta::seconds(500));
    shown(0);
    context.clock().advance(TimeDelta::seconds(101));
    shown(1);
    let closed = json!({"buy": {"status": "maintenance"}, "sell": {"status": "maintenance"}});
    change(&context, Method::PATCH, "/admin/v1/pairs/ETH-EUR", closed).await;
    shown(0);
}

#[tokio::test]
async fn a_pair_whose_sources_never_gave_a_price_is_stale() {
    let market = Market::of(1).await;
    sqlx::query("delete from price").execute(market.context.db()).await.unwrap();
    let edge = market.context.second_edge().await;
    let text = edge.core().metrics_text();
    // A pair without sources waits for an operator.
    for (pair, stale) in [("BTC-EUR", 1), ("ETH-EUR", 0)] {
        let line = format!("\nrampart_price_stale{{pair=\"{pair}\"}} {stale}\n");
        assert!(text.contains(&line), "{line}: {text}");
    }
}

#[tokio::test]
async fn a_live_client_is_quoted_only_what_was_observed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let live = context.partner_of(json!({"slug": "live", "name": "L", "mode": "live"})).await;
    let no_end = "update currency_pair set price_max_age_seconds = null where pair = 'ETH-EUR'";
    sqlx::query(no_end).execute(context.db()).await.unwrap();
    let path = "/admin/v1/prices/ETH-EUR";
    change(&context, Method::PUT, path, json!({"price": 3000})).await;
    let asked =
        json!({"currencyPair": "ETH-EUR", "paymentMethod": "creditCard", "fiatAmount": 250});
    acme.post(QUOTE, asked.clone()).await.assert_status(200);
    live.post(QUOTE, asked.clone()).await.assert_status(400).assert_codes(&["ER008"]);
    let prices = live.get("/api/v1/prices").await.json();
    assert!(prices["buy"].get("ETH-EUR").is_none() && prices["buy"]["BTC-EUR"].is_number());

    change(&context, Method::PUT, path, json!({"price": 3000, "maxAgeSeconds": 60})).await;
    live.post(QUOTE, asked.clone()).await.assert_status(200);
    context.clock().advance(TimeDelta::seconds(61));
    for partner in [&live, &acme] {
        partner.post(QUOTE, asked.clone()).await.assert_status(400).assert_codes(&["ER008"]);
    }
    for wrong in [json!(0), json!(-1), json!(31_536_001), json!("60")] {
        let body = json!({"price": 3000, "maxAgeSeconds": wrong});
        context.admin(Method::PUT, path, body).await.assert_status(422);
    }
}
