//! The edge dies in the middle of its work, again and again. What it has acknowledged stays; what
//! it has not is settled by asking again.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use rampart_core::platform::clock::Clock;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::cluster;
use rampart_tests::edge::{Edge, Setup};

use crate::buyer::{confirm, order_of, quotes};

/// Times the edge is killed in the middle of its work.
const KILLS: usize = 5;
/// Times it is killed at most: it may have done everything before we have read its answers.
const ROUNDS_MAX: usize = 3 * KILLS;
/// Confirms in flight when it happens.
const CONFIRMS: usize = 500;
/// HTTP/2 connections that they come over; each carries at most 100 at once.
const CONNECTIONS: usize = 5;
/// Acknowledgements after which the edge is killed at the latest.
const ACKNOWLEDGED_MAX: u64 = 200;

/// The partner's own books: every quote that was sent, and the order that the edge has
/// acknowledged for it.
#[derive(Default)]
struct Ledger {
    sent: BTreeSet<String>,
    acknowledged: BTreeMap<String, u64>,
}

impl Ledger {
    fn acknowledge(&mut self, quote: &str, order: u64) {
        let before = self.acknowledged.insert(quote.to_owned(), order);
        assert!(before.is_none_or(|before| before == order), "{before:?} became {order}");
    }

    /// Quotes of which nobody knows what became.
    fn unknown(&self) -> Vec<String> {
        let open = self.sent.iter().filter(|quote| !self.acknowledged.contains_key(*quote));
        open.cloned().collect()
    }
}

/// The partner at `edge`, over [`CONNECTIONS`] connections.
fn connections(partner: &Caller, edge: &Edge) -> Vec<Caller> {
    (0..CONNECTIONS).map(|_| partner.at(edge.address).over(Protocol::Http2)).collect()
}

/// Confirms the quotes all at once. The edge is killed when `enough` of them were acknowledged.
async fn confirm_all(
    edge: &Edge,
    partner: &Caller,
    ledger: &mut Ledger,
    quotes: &[String],
    enough: u64,
) {
    let callers = connections(partner, edge);
    ledger.sent.extend(quotes.iter().cloned());
    let sending = quotes.iter().enumerate().map(|(number, quote)| {
        let request = confirm(&callers[number % callers.len()], quote);
        async move { (quote, request.try_send().await) }
    });
    let mut sending: FuturesUnordered<_> = sending.collect();
    let mut acknowledged = 0;
    while let Some((quote, answer)) = sending.next().await {
        match answer {
            Ok(answer) if answer.status() == 503 => {}
            Ok(answer) => {
                ledger.acknowledge(quote, order_of(&answer));
                acknowledged += 1;
                if acknowledged == enough {
                    edge.process.kill();
                }
            }
            Err(_) => assert!(acknowledged >= enough, "lost before the edge was killed: {quote}"),
        }
    }
}

#[tokio::test]
async fn no_acknowledged_order_is_lost_and_none_is_made_twice() {
    let database = cluster::database().await;
    let mut setup = Setup::over(&database);
    setup.set("lifetimes.quote_seconds", "3600").set("log.access", "false");
    // The whole load is one partner's, from one address.
    let all = CONFIRMS.to_string();
    setup.set("edge.in_flight_per_address_max", &all).set("edge.in_flight_per_partner_max", &all);
    let mut edge = Edge::of(setup).await;
    let partner = edge.partner("mortal").await.authenticated().await;
    let mut ledger = Ledger::default();
    let mut waiting = Vec::new();
    let mut kills = 0;
    for _ in 0..ROUNDS_MAX {
        waiting.extend(quotes(&partner.at(edge.address), CONFIRMS - waiting.len()).await);
        let random = Clock::system().random_u64().unwrap();
        confirm_all(&edge, &partner, &mut ledger, &waiting, 1 + random % ACKNOWLEDGED_MAX).await;
        waiting = ledger.unknown();
        edge = edge.beside().await;
        kills += usize::from(!waiting.is_empty());
        if kills == KILLS {
            break;
        }
    }
    assert_eq!(kills, KILLS, "the others came after its work");
    confirm_all(&edge, &partner, &mut ledger, &waiting, u64::MAX).await;
    assert!(ledger.unknown().is_empty(), "what is unknown is settled by asking again");

    let rows = sqlx::query_scalar("select order_id from buy_order")
        .fetch_all(&cluster::pool(&database).await)
        .await
        .unwrap();
    let kept: Vec<u64> = rows.into_iter().map(|id: i64| id.try_into().unwrap()).collect();
    let orders: BTreeSet<u64> = ledger.acknowledged.values().copied().collect();
    assert_eq!(orders.len(), ledger.sent.len(), "every quote has an order of its own");
    assert_eq!(kept.len(), orders.len(), "and there is no other");
    assert_eq!(BTreeSet::from_iter(kept), orders);
}
