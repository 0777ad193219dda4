//! One purchase that is quoted and confirmed before the leader is killed, and paid after it.

use std::time::Duration;

use http::Method;
use rampart_tests::buyer::{confirm, order_of, quote};
use rampart_tests::caller::Caller;
use rampart_tests::deadline::until;
use rampart_tests::edge::Edge;

/// Longest wait for the completion of an order, with what follows a new leader.
const COMPLETED_WITHIN: Duration = Duration::from_secs(60);

/// A confirmed order.
pub(crate) struct Purchase {
    /// Its number.
    pub(crate) order: u64,
    /// The quote that it was made of.
    pub(crate) quote: String,
    /// Path of the page where it is paid.
    page: String,
}

impl Purchase {
    /// Quotes and confirms at this edge.
    pub(crate) async fn begin(partner: &Caller, edge: &Edge) -> Self {
        let there = partner.at(edge.address);
        let quoted = quote(&there).await;
        let quote = quoted["quote"].as_str().unwrap().to_owned();
        let confirmed = confirm(&there, &quote).send().await;
        let order = order_of(&confirmed);
        let page = confirmed.json()["paymentUrl"].as_str().unwrap().to_owned();
        let page = page.strip_prefix(&edge.url("")).expect("a page of this edge").to_owned();
        Self { order, quote, page }
    }

    /// Pays at this edge and waits for the coins. While there is no leader the page says so, and the user
    /// presses again.
    pub(crate) async fn complete(self, partner: &Caller, edge: &Edge) {
        let there = partner.at(edge.address);
        let path = format!("/api/v2/buy/orders/{}", self.order);
        until("the order is completed", COMPLETED_WITHIN, async || {
            let read = there.request(Method::GET, &path).try_send().await.ok()?;
            if read.status() == 503 {
                return None;
            }
            let status = read.assert_status(200).json()["status"].clone();
            if status == "pending" {
                let press = there.anonymous(Method::POST, &self.page).form("action=pay");
                let pressed = press.send().await;
                assert!([303, 409, 503].contains(&pressed.status()), "{}", pressed.status());
            }
            (status == "completed").then_some(())
        })
        .await;
    }
}
