//! Requests that share a statement: each gets its own answer, whatever becomes of the others.

use std::collections::BTreeSet;

use futures::future::join_all;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{OTHER_BTC, Shop, confirm_of, confirm_under, count};

/// Requests at once: more than one statement takes.
const CROWD: usize = 150;

/// A partner that asks for itself, with a token: its orders are nobody's, so that no user's limit
/// for a day is in the way.
struct Crowd {
    shop: Shop,
    bearer: String,
}

impl Crowd {
    async fn of(context: &TestContext, slug: &str) -> Self {
        let shop = Shop::of(context, slug).await;
        let bearer = format!("Bearer {}", shop.partner.token().await);
        Self { shop, bearer }
    }

    /// A confirm of a new quote.
    fn body(&self, context: &TestContext) -> Value {
        confirm_of(&self.shop.quote(context, |quote| quote.user = None))
    }

    async fn confirm(&self, body: &Value) -> Answer {
        let request = self.shop.partner.anonymous(Method::POST, "/api/v1/buy/confirm");
        request.header("authorization", &self.bearer).json(body).send().await
    }

    async fn read(&self, name: &str) -> Answer {
        let path = format!("/api/v2/buy/orders/{name}");
        let request = self.shop.partner.anonymous(Method::GET, &path);
        request.header("authorization", &self.bearer).send().await
    }
}

#[tokio::test]
async fn a_crowd_of_confirms_makes_an_order_of_every_quote_with_all_that_belongs_to_it() {
    let context = TestContext::start().await;
    let (shop, rival) = (Crowd::of(&context, "acme").await, Crowd::of(&context, "rival").await);
    let shop_of = |index: usize| if index.is_multiple_of(3) { &rival } else { &shop };
    let bodies: Vec<Value> = (0..CROWD)
        .map(|index| {
            let mut body = shop_of(index).body(&context);
            body["partnerOrderIdentifier"] = json!(format!("ref-{index}"));
            body["callbackUrl"] = json!(format!("https://shop.example/{index}"));
            body
        })
        .collect();
    let confirming = bodies.iter().enumerate().map(|(index, body)| shop_of(index).confirm(body));
    let confirmed: Vec<Value> =
        join_all(confirming).await.iter().map(|answer| answer.assert_status(200).json()).collect();
    let ids: BTreeSet<i64> =
        confirmed.iter().map(|answer| answer["orderId"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), CROWD);
    for (index, answer) in confirmed.iter().enumerate() {
        let order = shop_of(index).read(&answer["orderId"].to_string()).await;
        let order = order.assert_status(200).json();
        assert_eq!(order["partnerOrderIdentifier"], format!("ref-{index}"));
        assert_eq!(order["expiresAt"], answer["expiresAt"]);
    }
    let commits = count(&context, "select count(distinct xmin::text) from buy_order").await;
    assert!(commits < i64::try_from(CROWD / 4).unwrap(), "{commits} commits");
    for written in [
        "select count(*) from event where type = 'order.created'",
        "select count(*) from order_transition t join buy_order using (client_id, order_id) \
         where t.to_status = 'pending' and t.cause = 'confirmed' and t.at = created_at",
        "select count(distinct callback_url) from buy_order where octet_length(terms_digest) = 32",
    ] {
        assert_eq!(count(&context, written).await, i64::try_from(CROWD).unwrap(), "{written}");
    }
}

#[tokio::test]
async fn one_that_cannot_be_made_costs_the_others_nothing() {
    let context = TestContext::start().await;
    let shop = Crowd::of(&context, "acme").await;
    let used = shop.body(&context);
    let first = shop.confirm(&used).await.assert_status(200).json()["orderId"].clone();
    let mut altered = used.clone();
    altered["returnUrl"] = json!("https://shop.example/elsewhere");
    altered["partnerOrderIdentifier"] = json!("another");
    let fresh: Vec<Value> = (0..20).map(|_| shop.body(&context)).collect();
    let crowd = fresh.iter().chain([&used, &altered]).chain(&fresh);
    let answers = join_all(crowd.map(|body| shop.confirm(body))).await;
    let (once, rest) = answers.split_at(fresh.len());
    let (again, twice) = rest.split_at(2);
    assert_eq!(again[0].assert_status(200).json()["orderId"], first);
    again[1].assert_codes(&["ER007"]);
    for (one, other) in once.iter().zip(twice) {
        let [one, other] =
            [one, other].map(|answer| answer.assert_status(200).json()["orderId"].clone());
        assert_eq!(one, other, "one quote became two orders");
    }
    assert_eq!(count(&context, "select count(*) from buy_order").await, 21);
    assert_eq!(count(&context, "select count(*) from order_transition").await, 21);
}

#[tokio::test]
async fn a_crowd_of_reads_finds_each_its_own() {
    let context = TestContext::start().await;
    let (shop, rival) = (Crowd::of(&context, "acme").await, Crowd::of(&context, "rival").await);
    let mut names = Vec::new();
    for index in 0..5 {
        for shop in [&shop, &rival] {
            // Both partners use the same names.
            let (mut body, reference) = (shop.body(&context), format!("ref-{index}"));
            body["partnerOrderIdentifier"] = json!(reference);
            let confirmed = shop.confirm(&body).await.assert_status(200).json();
            names.push((shop, reference, confirmed["orderId"].as_i64().unwrap()));
        }
    }
    let names: Vec<_> = names.iter().cycle().take(CROWD).collect();
    let asking = names.iter().enumerate().map(|(index, (shop, reference, number))| {
        let name = match index % 4 {
            0 => reference.clone(),
            1 => "no-such-order".to_owned(),
            _ => number.to_string(),
        };
        async move { shop.read(&name).await }
    });
    let answers = join_all(asking).await;
    for (index, ((_, reference, number), answer)) in names.iter().zip(&answers).enumerate() {
        if index % 4 == 1 {
            answer.assert_status(404).assert_codes(&["ER035"]);
            continue;
        }
        let order = answer.assert_status(200).json();
        assert_eq!(order["id"].to_string(), number.to_string(), "request {index}");
        assert_eq!(order["partnerOrderIdentifier"], **reference);
    }
}

#[tokio::test]
async fn guests_users_and_offers_share_batches_and_each_is_decided_by_itself() {
    let context = TestContext::start().await;
    let crowd = Crowd::of(&context, "acme").await;
    let shop = &crowd.shop;
    let poor = shop.with_another_user(&context).await;
    let gone = poor.with_another_user(&context).await;
    for (statement, user) in [
        (
            "update end_user set limit_overrides = '{\"user_day_limit\": 150}' where user_id = $1",
            &poor,
        ),
        ("update end_user set disabled_at = now() where user_id = $1", &gone),
    ] {
        sqlx::query(statement).bind(user.user).execute(context.db()).await.unwrap();
    }
    let new = || shop.quote(&context, |_| ());
    let used = confirm_of(&new());
    shop.v1(&used).await.assert_status(200);
    let mut altered = used.clone();
    altered["walletAddress"] = json!(OTHER_BTC);
    let contested = shop.offer(&context, "").await;

    let (mut users, mut guests, mut offers) = (vec![], vec![], vec![]);
    let (mut refused, mut limited, mut taken) = (vec![], vec![], vec![]);
    for _ in 0..8 {
        users.push(confirm_of(&new()));
        limited.push(confirm_of(&new()));
        taken.push(confirm_under(contested, &new()));
        offers.push(confirm_under(shop.offer(&context, "").await, &new()));
        guests.push(crowd.body(&context));
        refused.push(confirm_of(&new()));
    }
    let all = join_all([
        join_all(users.iter().map(|body| shop.v1(body)).map(boxed)),
        join_all(limited.iter().map(|body| poor.v1(body)).map(boxed)),
        join_all(taken.iter().map(|body| shop.v2(body)).map(boxed)),
        join_all(offers.iter().map(|body| shop.v2(body)).map(boxed)),
        join_all(guests.iter().map(|body| crowd.confirm(body)).map(boxed)),
        join_all(refused.iter().map(|body| gone.v1(body)).map(boxed)),
        join_all([&used, &altered].map(|body| shop.v1(body)).map(boxed)),
    ]);
    let answers = all.await;
    let [users, limited, taken, offers, guests, refused, again] = &answers[..] else {
        panic!("one list of answers for each of bodies");
    };
    for answer in users.iter().chain(offers).chain(guests).chain(&again[..1]) {
        answer.assert_status(200);
    }
    one_of(limited, "ER011");
    one_of(taken, "ER131");
    for answer in refused {
        answer.assert_status(400).assert_codes(&["ER124"]);
    }
    again[1].assert_status(400).assert_codes(&["ER007"]);
    assert_eq!(count(&context, "select count(*) from buy_order").await, 1 + 3 * 8 + 2);
    assert_eq!(count(&context, "select count(*) from event").await, 1 + 3 * 8 + 2);
    let offers = "select count(*) from offer o join buy_order b using (client_id, offer_id) \
                  where o.confirmed_at = b.created_at";
    assert_eq!(count(&context, offers).await, 8 + 1);
    assert_eq!(
        count(&context, "select count(*) from offer where confirmed_at is not null").await,
        8 + 1
    );
}

type Confirming<'a> = std::pin::Pin<Box<dyn Future<Output = Answer> + 'a>>;

fn boxed<'a>(confirming: impl Future<Output = Answer> + 'a) -> Confirming<'a> {
    Box::pin(confirming)
}

/// One of them went through, and the others were refused with this code.
fn one_of(answers: &[Answer], code: &str) {
    let (done, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status() == 200);
    assert_eq!(done.len(), 1, "{code}");
    for answer in refused {
        answer.assert_status(400).assert_codes(&[code]);
    }
}
