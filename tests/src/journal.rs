//! The partner's own books: every quote that it sent, the order that was acknowledged for it, and
//! how long answers took. Reconciled with the database at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sqlx::PgPool;

use crate::campaign::Report;

/// Most sentences about answers that must not be.
const WRONG_MAX: usize = 10;

/// Slug of the partner whose books these are.
pub const PARTNER: &str = "journal";
/// Its orders and their quotes.
const ORDERS: &str = "select order_id, quote_id::text from buy_order \
    where client_id = (select client_id from client where slug = $1)";

/// The books.
#[derive(Default)]
pub struct Journal {
    /// The order of each quote, once it was acknowledged.
    orders: BTreeMap<String, Option<u64>>,
    /// Confirms acknowledged so far.
    pub acknowledged: usize,
    /// Times of answers to confirms, in microseconds.
    micros: Vec<u64>,
    /// Confirms whose connection failed before the answer.
    pub unanswered: usize,
    /// Requests whose connection failed once it was open.
    pub cut: usize,
    /// Requests that were refused for now.
    pub refused: usize,
    wrong: Vec<String>,
}

/// A fault, as the table shows it.
pub struct Fault {
    /// Times it was injected.
    pub injected: usize,
    /// The longest time from its end to the next acknowledgement.
    pub recovery: Duration,
}

/// Differences between the books and a database.
#[derive(Clone, Copy, Debug)]
pub struct Differences {
    /// Orders that were acknowledged and are not there.
    pub lost: usize,
    /// Orders of a quote that has another one.
    pub doubled: usize,
    /// Orders that nobody was told of. While confirms are on their way there are some.
    pub strays: usize,
}

impl Differences {
    /// Compares acknowledged orders with those of the partner in the database.
    pub async fn between(acknowledged: &BTreeSet<u64>, db: &PgPool) -> Self {
        let rows: Vec<(i64, String)> =
            sqlx::query_as(ORDERS).bind(PARTNER).fetch_all(db).await.unwrap();
        let kept: BTreeSet<u64> = rows.iter().map(|(id, _)| (*id).try_into().unwrap()).collect();
        let quotes: BTreeSet<&String> = rows.iter().map(|(_, quote)| quote).collect();
        Self {
            lost: acknowledged.difference(&kept).count(),
            doubled: rows.len() - quotes.len(),
            strays: kept.difference(acknowledged).count(),
        }
    }
}

impl Journal {
    /// Notes that this quote is about to be confirmed.
    pub fn send(&mut self, quote: &str) {
        self.orders.entry(quote.to_owned()).or_default();
    }

    /// Notes how long an answer took.
    pub fn answer(&mut self, micros: u64) {
        self.micros.push(micros);
    }

    /// Notes a refusal that a fault may cause.
    pub fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Every order that was acknowledged.
    pub fn acknowledged_orders(&self) -> BTreeSet<u64> {
        self.orders.values().copied().flatten().collect()
    }

    /// Notes an answer that a confirm must not get.
    pub fn complain(&mut self, wrong: String) {
        if self.wrong.len() < WRONG_MAX {
            self.wrong.push(wrong);
        }
    }

    /// Notes an acknowledgement.
    pub fn acknowledge(&mut self, quote: &str, order: u64) {
        self.acknowledged += 1;
        let before = self.orders.insert(quote.to_owned(), Some(order)).flatten();
        if before.is_some_and(|before| before != order) {
            self.complain(format!("order {before:?} of a quote became {order}"));
        }
    }

    /// The time that 99 of 100 answers took at most.
    pub fn p99(&mut self) -> Duration {
        self.micros.sort_unstable();
        let place = (self.micros.len() * 99).div_ceil(100);
        Duration::from_micros(place.checked_sub(1).map_or(0, |place| self.micros[place]))
    }

    /// The time of the slowest answer.
    pub fn worst(&self) -> Duration {
        Duration::from_micros(self.micros.iter().copied().max().unwrap_or_default())
    }

    /// Compares the books with what the database holds.
    pub async fn reconcile(mut self, db: &PgPool, fault: &Fault) -> Report {
        let acknowledged = self.acknowledged_orders();
        let Differences { lost, doubled, strays } = Differences::between(&acknowledged, db).await;
        let doubled = doubled + strays;
        let (p99, worst) = (self.p99(), self.worst());
        let mut report = Report {
            cells: vec![
                fault.injected.to_string(),
                self.acknowledged.to_string(),
                self.micros.len().to_string(),
                lost.to_string(),
                doubled.to_string(),
                format!("{} ms", p99.as_millis()),
                format!("{} ms", worst.as_millis()),
                format!("{} ms", fault.recovery.as_millis()),
            ],
            wrong: self.wrong,
        };
        let unsettled = self.orders.values().filter(|order| order.is_none()).count();
        report.require(lost == 0, || format!("{lost} acknowledged orders are lost"));
        report.require(doubled == 0, || format!("{doubled} orders that nobody was told of"));
        report.require(unsettled == 0, || format!("{unsettled} quotes could not be settled"));
        report.require(acknowledged.len() == self.orders.len() - unsettled, || {
            "two quotes have one order".to_owned()
        });
        report.require(fault.injected > 0, || "the fault never happened".to_owned());
        report
    }
}
