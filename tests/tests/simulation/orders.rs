//! An order's states: operators who race move it along the contract's table and no other way, every
//! move is in its timeline, and what partners are told follows from it.

use http::Method;
use proptest::prelude::*;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use crate::history::Model;
use crate::script::{play, rounds, simulate};

/// Orders of a script.
const ORDERS: usize = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Status {
    #[default]
    Pending,
    InProgress,
    Blocked,
    Completed,
    Cancelled,
    Refunded,
}

impl Status {
    const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in progress",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Refunded => "refunded",
        }
    }
}

/// An operator's event, by the name in the contract.
type Event = &'static str;

const EVENTS: [Event; 8] = [
    "payment-received",
    "payment-denied",
    "coins-sent",
    "confirmed-on-chain",
    "hold",
    "release",
    "refund",
    "cancel",
];

/// An order: its state, if its coins have left, and what its partner was told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Order {
    status: Status,
    coins_sent: bool,
    told: Vec<&'static str>,
}

impl Order {
    /// Section 8 of the contract, line by line.
    fn after(&self, event: Event) -> Option<Self> {
        use Status::{Blocked, Cancelled, Completed, InProgress, Pending, Refunded};
        let (status, told) = match (self.status, event) {
            (Pending, "payment-received") => (InProgress, Some("order.paid")),
            (Pending, "payment-denied" | "cancel") => (Cancelled, Some("order.cancelled")),
            (InProgress, "coins-sent") if !self.coins_sent => (InProgress, Some("order.sent")),
            (InProgress, "confirmed-on-chain") => (Completed, Some("order.completed")),
            (InProgress, "hold") => (Blocked, Some("order.blocked")),
            (InProgress, "refund") if !self.coins_sent => (Refunded, Some("order.refunded")),
            (Blocked, "release") => (InProgress, None),
            (Blocked, "refund") => (Refunded, Some("order.refunded")),
            _ => return None,
        };
        let coins_sent = self.coins_sent || event == "coins-sent";
        let told = self.told.iter().copied().chain(told).collect();
        Some(Self { status, coins_sent, told })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Orders([Order; ORDERS]);

impl Model for Orders {
    type Call = (usize, Event);
    /// True if the event was applied.
    type Answer = bool;

    fn after(
        &self,
        (order, event): &Self::Call,
        applied: Option<&bool>,
        _: &[&Self::Call],
    ) -> Vec<Self> {
        let next = self.0[*order].after(event);
        if applied.is_some_and(|applied| *applied != next.is_some()) {
            return Vec::new();
        }
        let mut after = self.clone();
        if let Some(next) = next {
            after.0[*order] = next;
        }
        vec![after]
    }
}

async fn apply(context: &TestContext, order: i64, event: Event) -> Option<bool> {
    let mut body = json!({"event": event});
    if event == "coins-sent" {
        body["transactionId"] = json!("ab12");
    }
    let path = format!("/admin/v1/orders/{order}/events");
    let answer = context.admin(Method::POST, &path, body).await;
    match answer.status() {
        200 => Some(true),
        409 => Some(false),
        503 => None,
        other => panic!("{other} {}", answer.text()),
    }
}

/// An order as the tables show it: its state, its timeline from state to state, and its events.
#[derive(Debug)]
struct Shown {
    status: String,
    timeline: Vec<(String, String)>,
    told: Vec<String>,
}

impl Shown {
    async fn read(db: &PgPool, client: Uuid, order: i64) -> Self {
        let status = "select status from buy_order where client_id = $1 and order_id = $2";
        let timeline = "select from_status, to_status from order_transition \
                        where client_id = $1 and order_id = $2 order by at, transition_id";
        let told = "select type from event where client_id = $1 and order_id = $2 \
                    order by created_at, event_id";
        Self {
            status: sqlx::query_scalar(status)
                .bind(client)
                .bind(order)
                .fetch_one(db)
                .await
                .unwrap(),
            timeline: sqlx::query_as(timeline)
                .bind(client)
                .bind(order)
                .fetch_all(db)
                .await
                .unwrap(),
            told: sqlx::query_scalar(told).bind(client).bind(order).fetch_all(db).await.unwrap(),
        }
    }

    fn is_of(&self, order: &Order) -> bool {
        self.status == order.status.name() && self.told == order.told
    }

    /// True if each move begins where the one before has ended, and the last one is the state.
    fn is_a_path(&self) -> bool {
        let ends = self.timeline.iter().map(|(_, to)| to.as_str());
        let begins = self.timeline.iter().map(|(from, _)| from.as_str());
        std::iter::once("pending").chain(ends).eq(begins.chain([self.status.as_str()]))
    }
}

#[test]
fn events_that_race_move_an_order_along_the_table() {
    let call = (0..ORDERS, prop::sample::select(&EVENTS[..]));
    simulate(rounds(call, 8), |edges, script| async move {
        let partners = edges.partner().await;
        let client: Uuid = partners[0].id.parse().unwrap();
        let mut orders = Vec::new();
        for _ in 0..ORDERS {
            let order = OrderFixture::order(&edges.contexts[0], &partners[0], None, None).await;
            orders.push(order.id);
        }
        let send = |edge: usize, (order, event): (usize, Event)| {
            let (edges, order) = (std::sync::Arc::clone(&edges), orders[order]);
            async move { apply(&edges.contexts[edge], order, event).await }
        };
        play::<Orders, _>(&edges, &partners, &script, send, async |history| {
            let mut shown = Vec::new();
            for order in &orders {
                let order = Shown::read(edges.contexts[0].db(), client, *order).await;
                if !order.is_a_path() {
                    return Err(format!("not a path: {order:#?}"));
                }
                shown.push(order);
            }
            history.see(&shown, |model| {
                model.0.iter().zip(&shown).all(|(order, shown)| shown.is_of(order))
            })
        })
        .await
    });
}
