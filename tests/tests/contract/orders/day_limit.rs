//! The user's limit for a day, which no race goes beyond.

use std::sync::Arc;

use futures::future::{join, join_all};
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::{BTC, with_dollars};

/// Confirms of each side that race.
const RACERS: usize = 12;

/// A user who may buy and sell for 1000 EUR a day, together, on two edges.
#[derive(Clone)]
struct Race {
    context: Arc<TestContext>,
    second: Arc<TestContext>,
    partners: [Partner; 2],
    user: User,
}

impl Race {
    async fn start() -> Self {
        let context = TestContext::start().await;
        let price = json!({"price": 50000});
        context.admin(Method::PUT, "/admin/v1/prices/BTC-EUR", price).await.assert_status(200);
        let second = context.second_edge().await;
        let acme = context.partner("acme").await;
        let user = acme.user("ada").await;
        for edge in [&context, &second] {
            edge.core().refresh().await.unwrap();
        }
        let partners = [acme.clone(), acme.at(&second)];
        Self { partners, context: Arc::new(context), second: Arc::new(second), user }
    }

    /// Quotes of one side, a little over or under 300 EUR each.
    async fn quotes(&self, side: &str) -> Vec<Value> {
        let asked = match side {
            "buy" => {
                json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 300})
            }
            _ => json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.006}),
        };
        let mut quotes = Vec::new();
        for _ in 0..RACERS {
            let quote = self.user.post(&format!("/api/v1/{side}/quote"), &asked).await;
            quotes.push(quote.assert_status(200).json()["quote"].clone());
        }
        quotes
    }

    /// Confirms all of them at once, half of them on each edge.
    async fn confirm(&self, side: &str, quotes: &[Value]) -> Vec<Answer> {
        let tries = quotes.iter().enumerate().map(async |(n, quote)| {
            let user = User { partner: self.partners[n % 2].clone(), ..self.user.clone() };
            let mut body = json!({"quote": quote});
            if side == "buy" {
                body["returnUrl"] = json!("https://shop.example/");
                body["walletAddress"] = json!(BTC);
            }
            user.post(&format!("/api/v1/{side}/confirm"), &body).await
        });
        join_all(tries).await
    }

    /// The total of all orders that are neither cancelled nor refunded.
    async fn traded(&self) -> Decimal {
        let sum = "select coalesce(sum(fiat_amount), 0) from ( \
                       select fiat_amount, status from buy_order \
                       union all select fiat_amount, status from sell_order) as orders \
                   where status not in ('cancelled', 'refunded')";
        sqlx::query_scalar(sum).fetch_one(self.context.db()).await.unwrap()
    }

    /// The remaining limits for buying and selling, from the user's profile.
    async fn remaining(&self) -> [Value; 2] {
        let limits = self.user.get("/api/v1/user/info").await.json()["limits"].clone();
        ["buy", "sell"].map(|side| limits[side]["remaining"]["amount"].clone())
    }
}

/// Number of requests that were granted; every other one was refused for the limit.
fn through(answers: &[Answer]) -> usize {
    let (done, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status() == 200);
    for answer in refused {
        answer.assert_status(400).assert_codes(&["ER011"]);
    }
    done.len()
}

#[tokio::test]
async fn purchases_that_race_stay_within_the_limit() {
    let race = Race::start().await;
    let quotes = race.quotes("buy").await;
    let answers = race.confirm("buy", &quotes).await;
    assert_eq!(through(&answers), 3);
    assert_eq!(race.traded().await, Decimal::from(900));
    assert_eq!(race.remaining().await, [json!(100), json!(100)]);
    // One that is called off gives back what it took.
    let order = answers.iter().find(|answer| answer.status() == 200).unwrap().json();
    let path = format!("/admin/v1/orders/{}/events", order["orderId"]);
    race.context.admin(Method::POST, &path, json!({"event": "cancel"})).await.assert_status(200);
    assert_eq!(race.remaining().await, [json!(400), json!(400)]);
    let left: Vec<_> = (0..RACERS).filter(|n| answers[*n].status() != 200).collect();
    let quotes: Vec<_> = left.iter().map(|n| quotes[*n].clone()).collect();
    assert_eq!(through(&race.confirm("buy", &quotes).await), 1);
    assert_eq!(race.traded().await, Decimal::from(900));
}

#[tokio::test]
async fn no_user_of_a_crowd_goes_beyond_the_limit() {
    let race = Race::start().await;
    let mut races = Vec::new();
    for name in ["bob", "carol", "dave", "erin"] {
        races.push(Race { user: race.partners[0].user(name).await, ..race.clone() });
    }
    let mut quotes = Vec::new();
    for race in &races {
        quotes.push(race.quotes("buy").await);
    }
    let confirming = races.iter().zip(&quotes).map(|(race, quotes)| race.confirm("buy", quotes));
    for answers in join_all(confirming).await {
        assert_eq!(through(&answers), 3);
    }
    for race in &races {
        assert_eq!(race.remaining().await, [json!(100), json!(100)]);
    }
    assert_eq!(race.traded().await, Decimal::from(4 * 900));
}

#[tokio::test]
async fn sales_that_race_stay_within_the_limit() {
    let race = Race::start().await;
    let quotes = race.quotes("sell").await;
    let answers = race.confirm("sell", &quotes).await;
    assert_eq!(through(&answers), 3);
    assert!(race.traded().await <= Decimal::from(1000));
    let order = answers.iter().find(|answer| answer.status() == 200).unwrap().json();
    let path = format!("/api/v2/sandbox/sell/orders/{}/expire", order["orderId"]);
    let before = race.remaining().await;
    race.user.partner.post(&path, json!({})).await.assert_status(200);
    assert_ne!(race.remaining().await, before);
}

#[tokio::test]
async fn both_sides_share_the_limit_in_a_race() {
    let race = Race::start().await;
    let (bought, sold) = (race.quotes("buy").await, race.quotes("sell").await);
    let (bought, sold) = join(race.confirm("buy", &bought), race.confirm("sell", &sold)).await;
    assert_eq!(through(&bought) + through(&sold), 3);
    assert!(race.traded().await <= Decimal::from(1000));
}

#[tokio::test]
async fn one_quote_that_is_confirmed_many_times_at_the_limit_is_one_order() {
    let race = Race::start().await;
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 1000});
    let quote = race.user.post("/api/v1/buy/quote", &asked).await.json()["quote"].clone();
    let answers = race.confirm("buy", &vec![quote; RACERS]).await;
    for answer in &answers {
        assert_eq!(answer.assert_status(200).text(), answers[0].text());
    }
    assert_eq!(race.remaining().await, [json!(0), json!(0)]);
}

/// Changes the catalogue behind the edges' backs, and lets them see it.
async fn change_catalogue(race: &Race, statement: &'static str) {
    let told = "update change_counter set revision = revision + 1 where scope = 'catalogue'";
    for statement in [statement, told] {
        sqlx::query(statement).execute(race.context.db()).await.unwrap();
    }
    for edge in [&race.context, &race.second] {
        edge.core().refresh().await.unwrap();
    }
}

#[tokio::test]
async fn purchases_in_two_currencies_that_race_stay_within_one_limit() {
    let race = Race::start().await;
    with_dollars(&[&race.context, &race.second]).await;
    let mut quotes = Vec::new();
    for number in 0..RACERS {
        let (pair, amount) = if number % 2 == 0 { ("BTC-EUR", 300) } else { ("BTC-USD", 600) };
        let asked =
            json!({"currencyPair": pair, "paymentMethod": "creditCard", "fiatAmount": amount});
        let quote = race.user.post("/api/v1/buy/quote", &asked).await.assert_status(200).json();
        assert_eq!(quote["quoteUnconfirmableReasons"], json!(["userRegistrationNotCompleted"]));
        quotes.push(quote["quote"].clone());
    }
    let answers = race.confirm("buy", &quotes).await;
    assert_eq!(through(&answers), 3);
    assert_eq!(race.remaining().await, [json!(100), json!(100)]);
    let counted: Decimal = sqlx::query_scalar("select sum(limit_amount) from buy_order")
        .fetch_one(race.context.db())
        .await
        .unwrap();
    assert_eq!(counted, Decimal::from(900));
    // What is sold counts with it: 0.003 BTC are 150 EUR, in dollars 300.
    let asked = json!({"currencyPair": "BTC-USD", "cryptoAmount": 0.003});
    let quote = race.user.post("/api/v1/sell/quote", &asked).await.assert_status(200).json();
    let reasons = quote["quoteUnconfirmableReasons"].as_array().unwrap();
    assert!(reasons.contains(&json!("userLimitExceeded")), "{quote}");
    assert_eq!(through(&race.confirm("sell", &[quote["quote"].clone()]).await), 0);
    // The rate of the confirm stays with the order.
    let price = json!({"price": 60_000});
    let path = "/admin/v1/prices/BTC-EUR";
    race.context.admin(Method::PUT, path, price).await.assert_status(200);
    assert_eq!(race.remaining().await, [json!(100), json!(100)]);
}

#[tokio::test]
async fn an_order_without_a_rate_to_the_currency_of_limits_is_refused() {
    let race = Race::start().await;
    with_dollars(&[&race.context, &race.second]).await;
    let asked =
        json!({"currencyPair": "BTC-USD", "paymentMethod": "creditCard", "fiatAmount": 100});
    let quote = race.user.post("/api/v1/buy/quote", &asked).await.json()["quote"].clone();
    let sale = json!({"currencyPair": "BTC-USD", "cryptoAmount": 0.003});
    let sale = race.user.post("/api/v1/sell/quote", &sale).await.json()["quote"].clone();
    change_catalogue(&race, "delete from price where pair = 'BTC-EUR'").await;
    for (side, quote) in [("buy", quote), ("sell", sale)] {
        for answer in race.confirm(side, &[quote]).await {
            answer.assert_status(400).assert_codes(&["ER008"]);
        }
    }
    assert_eq!(race.traded().await, Decimal::ZERO);
    // Nobody's limits count a guest's order.
    let acme = &race.partners[0];
    let bearer = format!("Bearer {}", acme.token().await);
    let post = async |path: &str, body: Value| {
        let request = acme.anonymous(Method::POST, path).header("authorization", &bearer);
        request.json(&body).send().await.assert_status(200).json()
    };
    let quote = post("/api/v1/buy/quote", asked).await["quote"].clone();
    let body = json!({"quote": quote, "returnUrl": "https://shop.example/", "walletAddress": BTC});
    post("/api/v1/buy/confirm", body).await;
}

#[tokio::test]
async fn the_largest_order_of_a_guest_is_in_the_currency_of_limits() {
    let race = Race::start().await;
    with_dollars(&[&race.context, &race.second]).await;
    let guests = json!({"guestOrders": {"allowed": true, "maxFiat": 150}});
    let path = "/admin/v1/partners/acme";
    race.context.admin(Method::PATCH, path, guests).await.assert_status(200);
    let acme = &race.partners[0];
    let bearer = format!("Bearer {}", acme.token().await);
    let post = async |path: &str, body: Value| {
        let request = acme.anonymous(Method::POST, path).header("authorization", &bearer);
        request.json(&body).send().await
    };
    for (fiat, status) in [(300, 200), (301, 400)] {
        let asked =
            json!({"currencyPair": "BTC-USD", "paymentMethod": "creditCard", "fiatAmount": fiat});
        let quote = post("/api/v1/buy/quote", asked).await.assert_status(200).json();
        let body = json!({"quote": quote["quote"], "returnUrl": "https://shop.example/",
            "walletAddress": BTC});
        post("/api/v1/buy/confirm", body).await.assert_status(status);
    }
}

#[tokio::test]
async fn what_a_partner_allows_guests_holds_on_every_edge_at_once() {
    let race = Race::start().await;
    let acme = &race.partners[1];
    let bearer = format!("Bearer {}", acme.token().await);
    let post = async |path: &str, body: Value| {
        let request = acme.anonymous(Method::POST, path).header("authorization", &bearer);
        request.json(&body).send().await
    };
    let bought =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let sold = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.006});
    let confirm = async |side: &str, asked: &Value| {
        let quote = post(&format!("/api/v1/{side}/quote"), asked.clone()).await;
        let mut body = json!({"quote": quote.assert_status(200).json()["quote"]});
        if side == "buy" {
            body["returnUrl"] = json!("https://shop.example/");
            body["walletAddress"] = json!(BTC);
        }
        post(&format!("/api/v1/{side}/confirm"), body).await
    };
    // This edge has not heard of it yet.
    for (guests, code) in [
        (json!({"allowed": true, "maxFiat": 50}), Some("ER011")),
        (json!({"allowed": false}), Some("ER700")),
        (json!({"allowed": true, "maxFiat": 400}), None),
    ] {
        let body = json!({ "guestOrders": guests });
        let path = "/admin/v1/partners/acme";
        race.context.admin(Method::PATCH, path, body).await.assert_status(200);
        for (side, asked) in [("buy", &bought), ("sell", &sold)] {
            let answer = confirm(side, asked).await;
            match code {
                Some(code) => answer.assert_codes(&[code]),
                None => answer.assert_status(200),
            };
        }
        let is_refused = code.is_some();
        assert_eq!(race.traded().await.is_zero(), is_refused, "{guests}");
    }
}
