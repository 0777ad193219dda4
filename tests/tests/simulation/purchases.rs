//! Confirms: one order for a quote and for an offer, a day limit that no race goes beyond, and keys
//! whose answer is always the first one.

use std::collections::BTreeMap;

use http::Method;
use proptest::prelude::*;
use rampart_tests::buyer::WALLET;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use crate::history::Model;
use crate::script::{Round, play, rounds, simulate};

const WALLETS: [&str; 2] = [WALLET, "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"];
/// Quotes of a script, by their amounts in EUR.
const QUOTES: [u32; 6] = [300, 400, 300, 400, 500, 300];
const OFFERS: usize = 3;
/// Limit of each user for a day, in EUR: that of a user who has shown nothing but an address.
const DAY_LIMIT: u32 = 1_000;

/// A confirm: its key aside, these are the terms of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Terms {
    user: usize,
    quote: usize,
    offer: Option<usize>,
    wallet: usize,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    /// Confirms a quote, under an `Idempotency-Key` of this number.
    Confirm(Terms, Option<u8>),
    /// An operator cancels the order of a quote.
    Cancel(usize),
}

impl Call {
    /// Route and number of its key.
    fn key(&self) -> Option<(bool, u8)> {
        match self {
            Self::Confirm(terms, key) => key.map(|key| (terms.offer.is_some(), key)),
            Self::Cancel(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Answer {
    /// The order of this number, which is there now or was before.
    Order(i64),
    /// Refused with these codes.
    Refused(Vec<String>),
    /// 409 or 422, because of the key.
    Key(u16),
    /// Cancelled, or not.
    Cancelled(bool),
    /// The quote has no order that anybody knows of.
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Order {
    terms: Terms,
    /// Unknown as long as nobody heard it.
    number: Option<i64>,
    cancelled: bool,
}

/// Orders by their quotes, and what was answered under each key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Shop {
    orders: BTreeMap<usize, Order>,
    keys: BTreeMap<(bool, u8), (Terms, Option<Answer>)>,
}

impl Shop {
    fn used(&self, user: usize) -> u32 {
        let counted = self.orders.values().filter(|order| order.terms.user == user);
        counted.filter(|order| !order.cancelled).map(|order| QUOTES[order.terms.quote]).sum()
    }

    /// Codes that stand against a new order.
    fn refusals(&self, terms: &Terms) -> Vec<&'static str> {
        let taken = |order: &Order| terms.offer.is_some() && order.terms.offer == terms.offer;
        let mut codes = Vec::new();
        if self.orders.values().any(taken) {
            codes.push("ER131");
        }
        if self.used(terms.user) + QUOTES[terms.quote] > DAY_LIMIT {
            codes.push("ER011");
        }
        codes
    }

    /// The state after a confirm that is carried out, unless its answer is another one.
    fn confirm(&self, terms: &Terms, answer: Option<&Answer>) -> Option<Self> {
        let mut after = self.clone();
        let refused = |codes: &[&str]| match answer {
            None => true,
            Some(Answer::Refused(given)) => {
                // The others are looked up afterwards, and may be of what came later.
                given.iter().any(|code| codes.contains(&code.as_str()))
            }
            Some(_) => false,
        };
        let number = match answer {
            Some(Answer::Order(number)) => Some(*number),
            _ => None,
        };
        let is_order = answer.is_none() || number.is_some();
        match after.orders.get_mut(&terms.quote) {
            Some(order) if order.terms != *terms => return refused(&["ER007"]).then_some(after),
            Some(order) => {
                if !is_order || order.number.is_some_and(|known| number.is_some_and(|n| n != known))
                {
                    return None;
                }
                order.number = order.number.or(number);
            }
            None => {
                let codes = self.refusals(terms);
                if !codes.is_empty() {
                    return refused(&codes).then_some(after);
                }
                if !is_order {
                    return None;
                }
                let order = Order { terms: *terms, number, cancelled: false };
                after.orders.insert(terms.quote, order);
            }
        }
        Some(after)
    }

    fn cancel(&self, quote: usize, answer: Option<&Answer>) -> Option<Self> {
        let mut after = self.clone();
        let expected = match after.orders.get_mut(&quote) {
            // The script did not know its number.
            _ if answer == Some(&Answer::Nothing) => return Some(after),
            None => return answer.is_none().then_some(after),
            Some(order) => !std::mem::replace(&mut order.cancelled, true),
        };
        answer.is_none_or(|answer| *answer == Answer::Cancelled(expected)).then_some(after)
    }
}

impl Model for Shop {
    type Call = Call;
    type Answer = Answer;

    fn after(&self, call: &Call, answer: Option<&Answer>, beside: &[&Call]) -> Vec<Self> {
        let Call::Confirm(terms, key) = call else {
            let Call::Cancel(quote) = call else { return Vec::new() };
            return self.cancel(*quote, answer).into_iter().collect();
        };
        let Some((slot, _)) = call.key().zip(*key) else {
            return self.confirm(terms, answer).into_iter().collect();
        };
        let rival = |other: &&&Call| other.key() == Some(slot);
        let rivals = beside.iter().filter(rival).count();
        match (self.keys.get(&slot), answer) {
            // While another one with the key runs, or after one that nobody heard the end of.
            (None, Some(Answer::Key(409 | 422))) if rivals > 0 => vec![self.clone()],
            (None, Some(Answer::Key(_))) => Vec::new(),
            (Some((first, _)), answer) if first != terms => {
                let is_right = matches!(answer, None | Some(Answer::Key(422)));
                let in_turn = matches!(answer, Some(Answer::Key(409))) && rivals > 0;
                if is_right || in_turn { vec![self.clone()] } else { Vec::new() }
            }
            (Some(_), None) => vec![self.clone()],
            (Some(_), Some(Answer::Key(409))) if rivals > 0 => vec![self.clone()],
            (Some((_, Some(saved))), Some(answer)) => {
                if saved == answer {
                    vec![self.clone()]
                } else {
                    Vec::new()
                }
            }
            // Nobody heard the first answer: this is it.
            (Some((_, None)), Some(answer)) => {
                let mut after = self.clone();
                after.keys.insert(slot, (*terms, Some(answer.clone())));
                if let Answer::Order(number) = answer {
                    let Some(order) = after.orders.get_mut(&terms.quote) else { return Vec::new() };
                    if order.number.is_some_and(|known| known != *number) {
                        return Vec::new();
                    }
                    order.number = Some(*number);
                }
                vec![after]
            }
            (None, answer) => {
                let Some(mut after) = self.confirm(terms, answer) else { return Vec::new() };
                let unsaved = after.clone();
                after.keys.insert(slot, (*terms, answer.cloned()));
                // Of what nobody heard, a refusal may have been saved or not.
                if answer.is_none() { vec![after, unsaved] } else { vec![after] }
            }
        }
    }
}

/// The partner's side of a script.
#[derive(Clone)]
struct Checkout {
    users: [User; 2],
    quotes: Vec<Value>,
    offers: Vec<Value>,
}

impl Checkout {
    async fn open(partner: &Partner) -> Self {
        let users = [partner.user("ada").await, partner.user("bob").await];
        let (mut quotes, mut offers) = (Vec::new(), Vec::new());
        for fiat in QUOTES {
            let asked = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard",
                "fiatAmount": fiat});
            let quote = partner.post("/api/v1/buy/quote", asked).await.assert_status(200).json();
            quotes.push(quote["quote"].clone());
        }
        for _ in 0..OFFERS {
            let asked = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
                "paymentMethod": "creditCard"});
            let offer = partner.post("/api/v2/buy/offer", asked).await.assert_status(200).json();
            offers.push(offer["offerUuid"].clone());
        }
        Self { users, quotes, offers }
    }

    async fn confirm(self, partner: Partner, terms: Terms, key: Option<u8>) -> Option<Answer> {
        let user = User { partner, ..self.users[terms.user].clone() };
        let mut body = json!({
            "quote": self.quotes[terms.quote],
            "walletAddress": WALLETS[terms.wallet],
            "returnUrl": "https://shop.example/back",
            "partnerOrderIdentifier": reference(&terms),
        });
        let mut path = "/api/v1/buy/confirm";
        if let Some(offer) = terms.offer {
            path = "/api/v2/buy/confirm";
            body["offerId"] = self.offers[offer].clone();
            body.as_object_mut().unwrap().remove("returnUrl");
        }
        let mut request = user.request(Method::POST, path).json(&body);
        if let Some(key) = key {
            request = request.header("idempotency-key", &format!("key-{key}"));
        }
        let answer = request.send().await;
        match answer.status() {
            200 => Some(Answer::Order(answer.json()["orderId"].as_i64().unwrap())),
            400 => Some(Answer::Refused(answer.codes())),
            status @ (409 | 422) => Some(Answer::Key(status)),
            503 => None,
            other => panic!("{other} {}", answer.text()),
        }
    }
}

/// The name that the partner gives an order: it says all its terms.
fn reference(terms: &Terms) -> String {
    let offer = terms.offer.map_or("-".to_owned(), |offer| offer.to_string());
    format!("u{} q{} o{offer} w{}", terms.user, terms.quote, terms.wallet)
}

async fn cancel(context: &TestContext, number: Option<i64>) -> Option<Answer> {
    let Some(number) = number else { return Some(Answer::Nothing) };
    let path = format!("/admin/v1/orders/{number}/events");
    let answer = context.admin(Method::POST, &path, json!({"event": "cancel"})).await;
    match answer.status() {
        200 => Some(Answer::Cancelled(true)),
        409 => Some(Answer::Cancelled(false)),
        503 => None,
        other => panic!("{other} {}", answer.text()),
    }
}

/// An order as the tables show it: name, number, status.
type Row = (String, i64, String);

async fn rows(db: &PgPool, client: Uuid) -> Vec<Row> {
    let orders = "select partner_reference, order_id, status from buy_order \
                  where client_id = $1 order by 1";
    sqlx::query_as(orders).bind(client).fetch_all(db).await.unwrap()
}

fn is_shown(shop: &Shop, rows: &[Row]) -> bool {
    rows.len() == shop.orders.len()
        && shop.orders.values().all(|order| {
            let status = if order.cancelled { "cancelled" } else { "pending" };
            rows.iter().any(|(name, number, shown)| {
                *name == reference(&order.terms)
                    && shown == status
                    && order.number.is_none_or(|known| known == *number)
            })
        })
}

/// Fails unless every order and every change of one was told in its own transaction.
async fn check_events(db: &PgPool, client: Uuid) -> Result<(), String> {
    let untold = "select count(*) from buy_order o where client_id = $1 and ( \
                  (select count(*) from event e where e.client_id = $1 \
                   and e.order_id = o.order_id and type = 'order.created') <> 1 \
                  or (select count(*) from event e where e.client_id = $1 \
                      and e.order_id = o.order_id and type = 'order.cancelled') \
                     <> case when o.status = 'cancelled' then 1 else 0 end)";
    let untold: i64 = sqlx::query_scalar(untold).bind(client).fetch_one(db).await.unwrap();
    if untold == 0 { Ok(()) } else { Err(format!("{untold} orders without their events")) }
}

fn calls() -> impl Strategy<Value = Call> {
    let quote = 0..QUOTES.len();
    let offer = prop::option::weighted(0.4, 0..OFFERS);
    let terms = (0..2_usize, quote.clone(), offer, 0..WALLETS.len());
    let terms = terms.prop_map(|(user, quote, offer, wallet)| Terms { user, quote, offer, wallet });
    prop_oneof![
        5 => (terms, prop::option::weighted(0.4, 0..2_u8))
            .prop_map(|(terms, key)| Call::Confirm(terms, key)),
        1 => quote.prop_map(Call::Cancel),
    ]
}

/// A call of a round repeated: what a client does that heard nothing, on the other edge as well.
fn with_repeats(script: Vec<Round<Call>>) -> Vec<Round<Call>> {
    let repeat = |mut round: Round<Call>| {
        let (edge, call) = round.calls[0];
        round.calls.push((1 - edge, call));
        round
    };
    script.into_iter().map(repeat).collect()
}

#[test]
fn confirms_are_as_if_one_came_after_the_other() {
    simulate(rounds(calls(), 5).prop_map(with_repeats), |edges, script| async move {
        let partners = edges.partner().await;
        let client: Uuid = partners[0].id.parse().unwrap();
        let checkout = Checkout::open(&partners[0]).await;
        let db = edges.contexts[0].db();
        let send = |edge: usize, call: Call| {
            let (checkout, partner) = (checkout.clone(), partners[edge].clone());
            let edges = std::sync::Arc::clone(&edges);
            async move {
                match call {
                    Call::Confirm(terms, key) => checkout.confirm(partner, terms, key).await,
                    Call::Cancel(quote) => {
                        let name = format!(" q{quote} ");
                        let rows = rows(edges.contexts[0].db(), client).await;
                        let known = rows.iter().find(|(named, ..)| named.contains(&name));
                        cancel(&edges.contexts[edge], known.map(|(_, number, _)| *number)).await
                    }
                }
            }
        };
        play::<Shop, _>(&edges, &partners, &script, send, async |history| {
            let rows = rows(db, client).await;
            history.see(&rows, |shop| is_shown(shop, &rows))
        })
        .await?;
        check_events(db, client).await
    });
}
