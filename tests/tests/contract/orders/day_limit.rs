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

use super::BTC;

/// Confirms of each side that race.
const RACERS: usize = 12;

/// A user who may buy and sell for 1000 EUR a day, together, on two edges.
#[derive(Clone)]
struct Race {
    context: Arc<TestContext>,
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
        Self { partners: [acme.clone(), acme.at(&second)], context: Arc::new(context), user }
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
