//! The outside as it is: the transactions of a simulated chain and bank, and every fact that a
//! provider has told and seen accepted. The checks compare the books with it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rust_decimal::Decimal;

/// The fate of coins or money that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Sent,
    Arrived,
    Failed,
}

/// Coins or money that left for an order.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) order: i64,
    pub(crate) amount: Decimal,
    pub(crate) currency: String,
    /// The command that had it sent; `None` by hand.
    pub(crate) command: Option<String>,
    pub(crate) fate: Fate,
    /// Round in which it left.
    pub(crate) round: usize,
    /// Reports of it that were accepted.
    pub(crate) told_sent: bool,
    pub(crate) told_arrived: bool,
    pub(crate) told_failed: bool,
}

impl Outgoing {
    /// True if the books must know that it has left.
    pub(crate) const fn is_booked(&self) -> bool {
        (self.told_sent || self.told_arrived) && !self.told_failed
    }
}

/// Name of a fact: connector, kind and reference.
pub(crate) type FactName = (String, String, String);

#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// By transaction.
    pub(crate) outgoing: BTreeMap<String, Outgoing>,
    /// Accepted facts with every amount that was told under their name.
    pub(crate) facts: BTreeMap<FactName, Vec<(Decimal, String)>>,
    /// Violations of what must always hold.
    pub(crate) violations: Vec<String>,
    /// Calls that died or failed, by whether they turned out to be carried out.
    pub(crate) cut_before: usize,
    pub(crate) cut_after: usize,
}

/// The truth, shared by everybody who acts.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<Truth>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Truth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Truth {
    /// Sends a transaction. The same one again is the same.
    pub(crate) fn send(&mut self, id: &str, outgoing: Outgoing) {
        let order = outgoing.order;
        if let Some(known) = self.outgoing.get(id) {
            if known.amount != outgoing.amount {
                self.violations.push(format!("order {order}: {id} was sent with another amount"));
            }
            return;
        }
        self.outgoing.insert(id.to_owned(), outgoing);
        let commanded = self.outgoing.iter().filter(|(_, one)| {
            one.order == order && one.command.is_some() && one.fate != Fate::Failed
        });
        let ids: Vec<&str> = commanded.map(|(id, _)| id.as_str()).collect();
        if ids.len() > 1 {
            let violation = format!("order {order}: sent twice by command: {}", ids.join(", "));
            self.violations.push(violation);
        }
    }

    /// Notes an accepted fact.
    pub(crate) fn fact(
        &mut self,
        connector: &str,
        kind: &str,
        reference: &str,
        amount: Decimal,
        currency: &str,
    ) {
        let name = (connector.to_owned(), kind.to_owned(), reference.to_owned());
        self.facts.entry(name).or_default().push((amount, currency.to_owned()));
    }

    /// The amount that had left for an order by hand before a round.
    pub(crate) fn paid_by_hand(&self, order: i64, currency: &str, round: usize) -> Decimal {
        let by_hand = self.outgoing.values().filter(|one| {
            let is_of = one.order == order && one.currency == currency && one.command.is_none();
            is_of && one.is_booked() && one.round < round
        });
        by_hand.map(|one| one.amount).sum()
    }
}
