//! Partners' hosts that never answer, and edges that are killed while they deliver: who listens is
//! told of each order, and of none under two numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use rampart_core::platform::clock::Clock;
use rampart_tests::buyer::{confirm, order_of, quotes};
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::deadline::until;
use rampart_tests::receiver::{Heard, Reaction, Receiver};
use serde_json::json;
use sqlx::PgPool;

use crate::fleet::Fleet;
use rampart_tests::journal::Fault;

/// Orders of the partner whose host is dead.
const DEAD_ORDERS: usize = 20;
/// Confirms between two kills.
const APART: usize = 100;
/// Longest time from the last order to its delivery.
const DELIVERED_WITHIN: Duration = Duration::from_secs(90);
/// The event that follows a confirm.
const CREATED: &str = "order.created";

pub(crate) async fn dead(scale: Scale) -> Report {
    let mut fleet = Fleet::start(scale).await;
    let (alive, silent) = (Receiver::start().await, Receiver::start().await);
    silent.react(Reaction::Silence);
    let other = fleet.edges[0].partner("silent").await.authenticated().await;
    for (partner, host) in [(&fleet.partner, &alive), (&other, &silent)] {
        let body = json!({"url": host.url("/hook"), "events": [CREATED]});
        partner.at(fleet.edges[0].address).post("/api/v2/webhooks", body).await.assert_status(200);
    }
    for quote in quotes(&other, DEAD_ORDERS).await {
        order_of(&confirm(&other, &quote).send().await);
    }
    silent.heard_at_least(1).await;
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    for kill in 0..scale.of(2, 20) {
        load.reach(load.acknowledged() + APART).await;
        fleet.kill_edge(kill % fleet.edges.len()).await;
        fault.injected += 1;
    }
    let journal = load.finish().await;
    let orders = journal.acknowledged_orders();
    let db = fleet.pool().await;
    if !scale.is_exact() {
        end_leases(&db).await;
    }
    let clock = Clock::system();
    until("every order is delivered", DELIVERED_WITHIN, async || {
        let told = told(&alive.heard());
        orders.iter().all(|order| told.contains_key(order)).then_some(())
    })
    .await;
    fault.recovery = Duration::from_nanos(clock.monotonic_ns());
    let doubled = told(&alive.heard()).values().filter(|ids| ids.len() > 1).count();
    let mut report = journal.reconcile(&db, &fault).await;
    report.require(doubled == 0, || format!("{doubled} orders were told under two numbers"));
    report
}

/// Ends the leases of the edges that were killed, as their time would, which the full form waits for.
/// The leases of the edges that run end too, but for those of rows that they are writing.
async fn end_leases(db: &PgPool) {
    let end = "update delivery set leased_until = now() where (client_id, delivery_id) in \
        (select client_id, delivery_id from delivery \
         where state = 'pending' and leased_until > now() for update skip locked)";
    sqlx::query(end).execute(db).await.unwrap();
}

/// The numbers under which each order was told.
fn told(heard: &[Heard]) -> BTreeMap<u64, Vec<String>> {
    let mut told: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for heard in heard {
        let order = heard.json()["data"]["orderId"].as_u64().unwrap();
        let ids = told.entry(order).or_default();
        let id = heard.header("webhook-id").to_owned();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    told
}
