//! One payout, as the reports of it have it.

use rust_decimal::Decimal;

use super::PayoutReport;
use super::name::Name;
use crate::money::payments::store::MANUAL;

/// A payout that has left: by the report of its begin, that of its end, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payout {
    /// As the first report has it, by which it is booked.
    pub(super) amount: Decimal,
    /// The connector that was the first to tell of it, after an operator maybe: it has left there.
    pub(super) connector: String,
    pub(super) begin: Option<Name>,
    pub(super) end: Option<Name>,
    /// Less than what was sent has come back: this is what its provider has kept.
    pub(super) is_rest: bool,
}

impl Payout {
    /// The payout of the first report of it, which is of its begin or of its end.
    pub(super) fn first(report: PayoutReport, name: Name, amount: Decimal) -> Self {
        let connector = name.connector.clone();
        let is_begin = report == PayoutReport::Begin;
        let (begin, end) = if is_begin { (Some(name), None) } else { (None, Some(name)) };
        Self { amount, connector, begin, end, is_rest: false }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.begin.iter().chain(&self.end)
    }

    pub(super) fn is_named(&self, name: &Name) -> bool {
        self.names().any(|known| known.is(name))
    }

    /// True if its begin, or its end, was reported by this name.
    pub(super) fn has_told(&self, report: PayoutReport, name: &Name) -> bool {
        let told = if report == PayoutReport::Begin { &self.begin } else { &self.end };
        told.as_ref().is_some_and(|told| told.is(name))
    }

    /// Notes that it has left at the connector that tells of it, if an operator alone has told of it
    /// before: its amount then, else zero. A return may be of another one, unless it has its name.
    pub(super) fn take_from_hand(&mut self, report: PayoutReport, name: &Name) -> Decimal {
        let may_be_other = report.is_return() && !self.is_named(name);
        if self.connector != MANUAL || name.connector == MANUAL || may_be_other {
            return Decimal::ZERO;
        }
        self.connector.clone_from(&name.connector);
        self.amount
    }
}
