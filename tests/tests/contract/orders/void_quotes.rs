//! Quotes that an operator voids: at once on every edge, decided by the statement that makes orders.

use std::sync::Arc;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use futures::future::{join, join_all};
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{Shop, confirm_of, count};

const PAIR: &str = "/admin/v1/pairs/BTC-EUR";
const PRICE: &str = "/admin/v1/prices/BTC-EUR";
/// Confirms that race.
const RACERS: usize = 24;

async fn quoted(shop: &Shop) -> String {
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let request = shop.request(Method::POST, "/api/v1/buy/quote").json(&asked);
    let quote = request.send().await.assert_status(200).json();
    quote["quote"].as_str().unwrap().to_owned()
}

/// Voids the quotes sealed so far.
async fn void(context: &TestContext) -> Answer {
    let now = context.clock().now() + TimeDelta::hours(1);
    let body = json!({"quotesValidFrom": now});
    let answer = context.admin(Method::PATCH, PAIR, body).await;
    answer.assert_status(200);
    answer
}

#[tokio::test]
async fn quotes_sealed_before_are_void_on_every_edge_at_once() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let other = context.second_edge().await;
    let there = shop.at(&other);
    let confirmed = quoted(&shop).await;
    let order = shop.v1(&confirm_of(&confirmed)).await.assert_status(200).json();
    let sealed = [quoted(&shop).await, quoted(&there).await];
    let raised = void(&context).await.json();
    assert!(raised["quotesValidFrom"].is_string(), "{raised}");

    // The other edge has not heard of it yet, and goes on sealing.
    let [first, second] = &sealed;
    let late = quoted(&there).await;
    for (edge, quote) in [(&shop, first), (&there, second), (&there, &late), (&shop, &late)] {
        let refused = edge.v1(&confirm_of(quote)).await;
        refused.assert_status(400).assert_codes(&["ER006"]);
    }
    let again = there.v1(&confirm_of(&confirmed)).await.assert_status(200).json();
    assert_eq!(again["orderId"], order["orderId"], "an order stands, whatever its quote is now");
    shop.v1(&confirm_of(&quoted(&shop).await)).await.assert_status(200);
    other.core().refresh().await.unwrap();
    there.v1(&confirm_of(&quoted(&there).await)).await.assert_status(200);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 3);
}

#[tokio::test]
async fn a_corrected_price_voids_the_quotes_of_the_wrong_one() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let (kept, wrong) = (quoted(&shop).await, json!({"price": 9_000}));
    context.admin(Method::PUT, PRICE, wrong).await.assert_status(200);
    shop.v1(&confirm_of(&kept)).await.assert_status(200);
    let cheap = quoted(&shop).await;
    let soon = context.clock().now() + TimeDelta::minutes(1);
    let corrected = json!({"price": 90_000, "quotesValidFrom": soon});
    let set = context.admin(Method::PUT, PRICE, corrected).await;
    let set = set.assert_status(200).json();
    assert!(set["quotesValidFrom"].as_str().unwrap() < &*soon.to_rfc3339(), "{set}");
    shop.v1(&confirm_of(&cheap)).await.assert_status(400).assert_codes(&["ER006"]);
    shop.v1(&confirm_of(&quoted(&shop).await)).await.assert_status(200);
    let eth = json!({"currencyPair": "ETH-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let request = shop.request(Method::POST, "/api/v1/buy/quote").json(&eth);
    assert_eq!(request.send().await.status(), 200, "another pair goes on");
}

#[tokio::test]
async fn a_time_divides_quotes_and_is_never_lowered() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let now = context.clock().now();
    let at = |ago: i64| now - TimeDelta::seconds(ago);
    let revision = context.core().snapshots.current().catalogue.revision;
    let sealed = |ago: i64| {
        shop.quote(&context, |quote| {
            quote.issued_at = at(ago);
            quote.catalogue_revision = revision;
        })
    };
    let (before, after) = (sealed(61), sealed(59));
    let raise = async |ago: i64| {
        context.admin(Method::PATCH, PAIR, json!({"quotesValidFrom": at(ago)})).await
    };
    let raised = raise(60).await.assert_status(200).json();
    let raised: DateTime<Utc> = raised["quotesValidFrom"].as_str().unwrap().parse().unwrap();
    assert_eq!(raised, at(60).trunc_subsecs(3));
    shop.v1(&confirm_of(&before)).await.assert_status(400).assert_codes(&["ER006"]);
    shop.v1(&confirm_of(&after)).await.assert_status(200);

    raise(70).await.assert_status(422);
    for wrong in [json!("yesterday"), json!(7)] {
        let body = json!({ "quotesValidFrom": wrong });
        context.admin(Method::PATCH, PAIR, body.clone()).await.assert_status(422);
        let mut price = body;
        price["price"] = json!(90_000);
        context.admin(Method::PUT, PRICE, price).await.assert_status(422);
    }
    raise(60).await.assert_status(200);
}

#[tokio::test]
async fn what_was_voided_stays_void_when_quotes_are_voided_again() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let revision = || context.core().snapshots.current().catalogue.revision;
    let time = |answer: &Answer| -> DateTime<Utc> {
        answer.json()["quotesValidFrom"].as_str().unwrap().parse().unwrap()
    };
    let unaware = revision();
    let first = time(&void(&context).await);
    let sealed = |revision: i64| {
        shop.quote(&context, |quote| {
            quote.issued_at = first + TimeDelta::milliseconds(1);
            quote.catalogue_revision = revision;
        })
    };
    let (wrong, right) = (sealed(unaware), sealed(revision()));
    let again = async || {
        context.clock().advance(TimeDelta::seconds(1));
        let answer = context.admin(Method::PATCH, PAIR, json!({ "quotesValidFrom": first })).await;
        time(answer.assert_status(200))
    };
    for _ in 0..3 {
        shop.v1(&confirm_of(&wrong)).await.assert_status(400).assert_codes(&["ER006"]);
        assert_eq!(again().await, first);
    }
    shop.v1(&confirm_of(&wrong)).await.assert_status(400).assert_codes(&["ER006"]);
    shop.v1(&confirm_of(&right)).await.assert_status(200);

    // Of so many within the life of a quote not each is kept: then all that was sealed is void.
    let mut last = first;
    for _ in 0..16 {
        last = again().await;
        if last > first {
            break;
        }
    }
    assert!(last > first, "{last}");
    shop.v1(&confirm_of(&wrong)).await.assert_status(400).assert_codes(&["ER006"]);
    shop.v1(&confirm_of(&quoted(&shop).await)).await.assert_status(200);
}

#[tokio::test]
async fn quotes_are_voided_also_while_another_operator_voids_them() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    // The other's is ahead: it was committed while this one waited for the pair.
    let other = "update currency_pair \
                 set quotes_valid_from = date_trunc('second', rampart_now() + interval '61 s') \
                 where pair = 'BTC-EUR' returning quotes_valid_from";
    let ahead: DateTime<Utc> = sqlx::query_scalar(other).fetch_one(context.db()).await.unwrap();
    let sealed = quoted(&shop).await;
    let raised = void(&context).await.json();
    let raised: DateTime<Utc> = raised["quotesValidFrom"].as_str().unwrap().parse().unwrap();
    assert_eq!(raised, ahead);
    shop.v1(&confirm_of(&sealed)).await.assert_status(400).assert_codes(&["ER006"]);
    context.clock().advance(TimeDelta::minutes(1));
    shop.v1(&confirm_of(&quoted(&shop).await)).await.assert_status(200);
}

#[tokio::test]
async fn a_quote_of_a_revision_that_a_failover_lost_is_void_too() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    // An edge that has not heard of the failover seals at what the leader before had reached.
    let lost = context.core().snapshots.current().catalogue.revision + 1_000_000;
    let raised = void(&context).await.json();
    let raised: DateTime<Utc> = raised["quotesValidFrom"].as_str().unwrap().parse().unwrap();
    let sealed = |revision: i64| {
        shop.quote(&context, |quote| {
            quote.issued_at = raised + TimeDelta::milliseconds(1);
            quote.catalogue_revision = revision;
        })
    };
    shop.v1(&confirm_of(&sealed(lost))).await.assert_status(400).assert_codes(&["ER006"]);
    let known = context.core().snapshots.current().catalogue.revision;
    shop.v1(&confirm_of(&sealed(known))).await.assert_status(200);
}

#[tokio::test]
async fn a_sale_of_a_void_quote_is_refused() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let sell = async |path: &str, body: &Value| {
        shop.request(Method::POST, &format!("/api/v1/sell/{path}")).json(body).send().await
    };
    let asked = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.01});
    let quote = async || {
        let quote = sell("quote", &asked).await.assert_status(200).json();
        json!({"quote": quote["quote"]})
    };
    let (sold, open) = (quote().await, quote().await);
    let sale = sell("confirm", &sold).await.assert_status(200).json();
    void(&context).await;
    sell("confirm", &open).await.assert_status(400).assert_codes(&["ER006"]);
    let again = sell("confirm", &sold).await.assert_status(200).json();
    assert_eq!(again["orderId"], sale["orderId"]);
    sell("confirm", &quote().await).await.assert_status(200);
    assert_eq!(count(&context, "select count(*) from sell_order").await, 2);
}

#[tokio::test]
async fn no_confirm_that_begins_after_quotes_were_voided_makes_an_order() {
    let context = Arc::new(TestContext::start().await);
    let other = context.second_edge().await;
    let shop = Shop::of(&context, "acme").await;
    let rates = json!({"rateLimits": {"quotes": "100000/s burst 100000"}});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", rates).await.assert_status(200);
    other.core().refresh().await.unwrap();
    let edges = [shop.at(&context), shop.at(&other)];
    for _ in 0..4 {
        let quotes: Vec<_> = (0..2 * RACERS).map(|_| quoted(&shop)).collect();
        let quotes: Vec<_> = join_all(quotes).await;
        let bodies: Vec<_> = quotes.iter().map(|quote| confirm_of(quote)).collect();
        let before = count(&context, "select count(*) from buy_order").await;
        let (early, late) = bodies.split_at(RACERS);
        let confirm = |bodies: &'static str, body: &Value, edge: usize| {
            let (shop, body) = (&edges[edge % edges.len()], body.clone());
            async move { (bodies, shop.v1(&body).await) }
        };
        let racing = early.iter().enumerate().map(|(edge, body)| confirm("early", body, edge));
        let voided = async {
            void(&context).await;
            let late = late.iter().enumerate().map(|(edge, body)| confirm("late", body, edge));
            join_all(late).await
        };
        let (racing, after) = join(join_all(racing), voided).await;
        let mut placed = 0;
        for (when, answer) in racing.into_iter().chain(after) {
            if answer.status() == 200 {
                assert_eq!(when, "early");
                placed += 1;
            } else {
                answer.assert_status(400).assert_codes(&["ER006"]);
            }
        }
        let orders = count(&context, "select count(*) from buy_order").await - before;
        assert_eq!(orders, placed, "every order was answered, and nothing else");
    }
}
