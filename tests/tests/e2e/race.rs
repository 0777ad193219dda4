//! Many confirms at once, over two edges and one database.

use std::collections::BTreeSet;

use futures::future::join_all;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;

use crate::buyer::{confirm, confirm_offer, offer, order_of, quotes};

/// Confirms that race.
const RACERS: usize = 32;
/// Races, each over an offer of its own.
const RACES: usize = 3;

/// The partner at each edge, over each protocol.
async fn callers(one: &Edge, other: &Edge) -> Vec<Caller> {
    let partner = one.partner("racer").await.authenticated().await;
    let there = partner.at(other.address);
    until("the other edge knows the partner", SOON, async || {
        (there.get("/api/v1/prices").await.status() == 200).then_some(())
    })
    .await;
    let over = |protocol| [partner.over(protocol), there.over(protocol)];
    [over(Protocol::Http1), over(Protocol::Http2)].concat()
}

#[tokio::test]
async fn one_offer_or_one_quote_becomes_one_order_however_many_ask_for_it() {
    let one = Edge::start().await;
    let other = one.beside().await;
    let callers = callers(&one, &other).await;
    let at = |racer: usize| &callers[racer % callers.len()];

    for _ in 0..RACES {
        let offer = offer(at(0), "https://shop.example/hook").await;
        let quotes = quotes(at(0), RACERS).await;
        let racing = quotes.iter().enumerate();
        let racing = racing.map(|(racer, quote)| confirm_offer(at(racer), quote, &offer).send());
        let (won, lost): (Vec<_>, Vec<_>) =
            join_all(racing).await.into_iter().partition(|answer| answer.status() == 200);
        assert_eq!((won.len(), lost.len()), (1, RACERS - 1));
        for answer in lost {
            answer.assert_status(400).assert_codes(&["ER131"]);
        }
    }

    let quote = quotes(at(0), 1).await.remove(0);
    let racing = (0..RACERS).map(|racer| confirm(at(racer), &quote).send());
    let orders: BTreeSet<_> = join_all(racing).await.iter().map(order_of).collect();
    assert_eq!(orders.len(), 1, "{orders:?}");
}
