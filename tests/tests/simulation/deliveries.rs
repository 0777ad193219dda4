//! The outbox: whatever hosts answer and edges die of, each endpoint is told of every event at least
//! once, of an order's events in their order, and of nothing else; once where nothing went wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use proptest::prelude::*;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::receiver::{Heard, Reaction, Receiver};
use serde_json::json;
use uuid::Uuid;

use crate::script::{Edges, simulate};

/// Orders, and endpoints, of a script.
const ORDERS: usize = 3;
const ENDPOINTS: usize = 2;
/// Events that operators may apply: each order goes along this way as far as the script leads it.
const WAY: [&str; 5] = ["payment-received", "hold", "release", "coins-sent", "confirmed-on-chain"];
/// Events of those that partners are told.
const TOLD: [&str; 4] = ["order.paid", "order.blocked", "order.sent", "order.completed"];
/// Turns of the worker at the end, an hour apart: more than any retry waits for by then.
const LAST_TURNS: usize = 24;

/// A step of a script.
#[derive(Clone, Debug)]
enum Step {
    /// The next event of an order.
    Event(usize),
    /// Both edges deliver what is due, at the same time.
    Deliver,
    /// One edge delivers, and dies after so many microseconds.
    Die(usize, u64),
    /// One edge delivers and both lose their connections to the database.
    Disconnect(usize, u8),
    /// From now on a host answers with this status.
    React(usize, u16),
    /// So many seconds pass.
    Wait(i64),
}

impl Step {
    /// True if an attempt may be made again because of it.
    fn is_fault(&self) -> bool {
        matches!(self, Self::Die(..) | Self::Disconnect(..))
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..ORDERS).prop_map(Step::Event),
        4 => Just(Step::Deliver),
        1 => (0..2_usize, 0..20_000_u64).prop_map(|(edge, life)| Step::Die(edge, life)),
        1 => (0..2_usize, 0..8_u8).prop_map(|(edge, late)| Step::Disconnect(edge, late)),
        2 => (0..ENDPOINTS, prop::sample::select(vec![200_u16, 200, 500, 503]))
            .prop_map(|(host, status)| Step::React(host, status)),
        2 => prop::sample::select(vec![6_i64, 31, 320]).prop_map(Step::Wait),
    ]
}

/// A partner with endpoints and orders, and what was done to them.
struct Shop {
    edges: Arc<Edges>,
    partners: [Partner; 2],
    hosts: Vec<Receiver>,
    orders: Vec<OrderFixture>,
    /// Events applied to each order.
    applied: [usize; ORDERS],
    /// Attempts that were refused, by host.
    refused: [usize; ENDPOINTS],
    /// Status that each host answers with, and attempts that it had heard when it began to.
    reactions: [(u16, usize); ENDPOINTS],
    faults: usize,
}

impl Shop {
    async fn open(edges: Arc<Edges>) -> Self {
        let partners = edges.partner().await;
        let (mut hosts, mut orders) = (Vec::new(), Vec::new());
        for _ in 0..ENDPOINTS {
            let host = Receiver::start().await;
            let body = json!({"url": host.url("/hook")});
            partners[0].post("/api/v2/webhooks", body).await.assert_status(200);
            hosts.push(host);
        }
        for _ in 0..ORDERS {
            let order = OrderFixture::order(&edges.contexts[0], &partners[0], None, None).await;
            orders.push(order);
        }
        let reactions = [(200, 0); ENDPOINTS];
        let (applied, refused) = ([0; ORDERS], [0; ENDPOINTS]);
        Self { edges, partners, hosts, orders, applied, refused, reactions, faults: 0 }
    }

    async fn take(&mut self, step: &Step) {
        self.faults += usize::from(step.is_fault());
        match *step {
            Step::Event(order) => self.apply(order).await,
            Step::Deliver => _ = tokio::join!(self.deliver(0), self.deliver(1)),
            Step::Die(edge, life) => {
                let life = std::time::Duration::from_micros(life);
                let _ = tokio::time::timeout(life, self.deliver(edge)).await;
            }
            Step::Disconnect(edge, late) => {
                let _ = tokio::join!(self.deliver(edge), self.edges.disconnect(late));
                self.edges.recovered(&self.partners).await;
            }
            Step::React(host, status) => self.react(host, status),
            Step::Wait(seconds) => {
                self.edges.contexts[0].clock().advance(TimeDelta::seconds(seconds));
            }
        }
    }

    async fn apply(&mut self, order: usize) {
        let Some(event) = WAY.get(self.applied[order]) else { return };
        let mut body = json!({"event": event});
        if *event == "coins-sent" {
            body["transactionId"] = json!("ab12");
        }
        let path = format!("/admin/v1/orders/{}/events", self.orders[order].id);
        let context = &self.edges.contexts[order % 2];
        let mut tries = 0;
        until("the event is applied", SOON, async || {
            let answer = context.admin(http::Method::POST, &path, body.clone()).await;
            tries += 1;
            match answer.status() {
                200 => Some(()),
                // The try before was carried out, and lost its connection.
                409 if tries > 1 => Some(()),
                503 => None,
                other => panic!("{other} {}", answer.text()),
            }
        })
        .await;
        self.applied[order] += 1;
    }

    /// One turn of an edge's worker; attempts made. One that loses its database makes none.
    async fn deliver(&self, edge: usize) -> usize {
        let core = Arc::clone(self.edges.contexts[edge].core());
        let turn = tokio::spawn(async move { core.deliver_due().await.unwrap_or(0) });
        let turn = AbortOnDrop(turn);
        turn.wait().await
    }

    fn react(&mut self, host: usize, status: u16) {
        let heard = self.hosts[host].heard().len();
        let (before, since) = self.reactions[host];
        if before != 200 {
            self.refused[host] += heard - since;
        }
        self.reactions[host] = (status, heard);
        self.hosts[host].react(Reaction::status(status));
    }

    /// Lets everything arrive that still can.
    async fn settle(&mut self) {
        for host in 0..ENDPOINTS {
            self.react(host, 200);
        }
        for _ in 0..LAST_TURNS {
            self.edges.contexts[0].clock().advance(TimeDelta::hours(1));
            while self.deliver(0).await + self.deliver(1).await > 0 {}
        }
    }

    /// Types of the events that each order's partner is to be told, in order.
    fn expected(&self, order: usize) -> Vec<&'static str> {
        // A release is told to nobody.
        let released = usize::from(self.applied[order] > 2);
        TOLD[..self.applied[order] - released].to_vec()
    }

    fn check(&self) -> Result<(), String> {
        for (index, host) in self.hosts.iter().enumerate() {
            let heard = host.heard();
            let first = first_attempts(&heard)?;
            for (order, fixture) in self.orders.iter().enumerate() {
                let told = first.get(&fixture.id).cloned().unwrap_or_default();
                let expected = self.expected(order);
                if told != expected {
                    return Err(format!(
                        "host {index} heard {told:?} of order {order}: {expected:?}"
                    ));
                }
            }
            let events: usize = (0..ORDERS).map(|order| self.expected(order).len()).sum();
            let again = heard.len() - events;
            // An edge that dies may have had all of them under way.
            let most = self.refused[index] + self.faults * events;
            if again > most {
                return Err(format!(
                    "host {index} heard {again} attempts again, for {most} reasons"
                ));
            }
        }
        Ok(())
    }
}

/// The types that were heard of each order, in the order of their first attempts.
fn first_attempts(heard: &[Heard]) -> Result<BTreeMap<i64, Vec<String>>, String> {
    let mut ids = BTreeMap::new();
    let mut first = BTreeMap::<i64, Vec<String>>::new();
    for attempt in heard {
        let id = attempt.header("webhook-id").to_owned();
        if let Some(before) = ids.insert(id, attempt.body.clone()) {
            if before != attempt.body {
                return Err("two attempts of one event differ".to_owned());
            }
            continue;
        }
        let json = attempt.json();
        let order = json["data"]["orderId"].as_i64().unwrap();
        first.entry(order).or_default().push(json["type"].as_str().unwrap().to_owned());
    }
    Ok(first)
}

/// A task that ends with whoever waits for it.
struct AbortOnDrop(tokio::task::JoinHandle<usize>);

impl AbortOnDrop {
    async fn wait(mut self) -> usize {
        (&mut self.0).await.unwrap()
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Fails unless every delivery of the partner is told of as done.
async fn check_states(shop: &Shop) -> Result<(), String> {
    let client: Uuid = shop.partners[0].id.parse().unwrap();
    let states: Vec<String> = sqlx::query_scalar("select state from delivery where client_id = $1")
        .bind(client)
        .fetch_all(shop.edges.contexts[0].db())
        .await
        .unwrap();
    let states: BTreeSet<String> = states.into_iter().collect();
    if states.iter().all(|state| state == "delivered") {
        Ok(())
    } else {
        Err(format!("{states:?}"))
    }
}

#[test]
fn every_endpoint_is_told_of_every_event_in_order() {
    simulate(prop::collection::vec(step(), 4..24), |edges, script| async move {
        let mut shop = Shop::open(edges).await;
        for step in &script {
            shop.take(step).await;
        }
        shop.settle().await;
        shop.check()?;
        check_states(&shop).await
    });
}
