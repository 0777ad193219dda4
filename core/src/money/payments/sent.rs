//! The payouts of an order, by the reports of them.

mod name;
mod payout;

use rampart_statement::stored_reference;
use rust_decimal::Decimal;
use uuid::Uuid;

use self::name::Name;
use self::payout::Payout;
use super::terms::OrderTerms;
use crate::Core;
use crate::money::ledger::AccountKind::{PayoutPayable, Suspense};
use crate::money::ledger::{Position, Posting, Subject, post};
use crate::platform::db::Connection;
use rampart_types::OrderKey;

/// Kind of the entry of an order that is older than the books.
const OPENING: &str = "opening";
/// Kind of the entry by which a refund of an order has undone what had left of it.
const UNDONE: &str = "payout-returned";
/// Kind of the entry of what has left beyond what was owed: an index finds those for the review queue.
const EXCESS: &str = "payout-excess";

/// A report about a payout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayoutReport {
    Begin,
    End,
    Return,
    /// A return that has a reference of its own beside its payout's: no other one of these repeats it.
    NamedReturn,
}

impl PayoutReport {
    fn from_kind(kind: &str, has_own_reference: bool) -> Self {
        match kind {
            "payout-sent" | "transfer-sent" | OPENING => Self::Begin,
            "payout-confirmed" | "transfer-completed" => Self::End,
            _ if has_own_reference => Self::NamedReturn,
            _ => Self::Return,
        }
    }

    const fn is_return(self) -> bool {
        matches!(self, Self::Return | Self::NamedReturn)
    }
}

/// The payouts of an order in one currency that are on their way or have arrived.
#[derive(Debug, Default)]
pub(super) struct Sent {
    out: Vec<Payout>,
    /// Amounts that have come back.
    returned: Vec<Decimal>,
    /// Names of the reports by which they have, but for those with a reference of their own.
    returned_as: Vec<Name>,
    /// Payouts that have come back as a whole.
    back: Vec<Payout>,
    /// The amount that came back by reports without a reference of their own, less what others have
    /// repeated of it that have one: while some is left, any other return may repeat it.
    unnamed: Decimal,
    /// Payouts that a refund of the order has undone as a whole: their return says nothing new.
    undone: Vec<Payout>,
    /// The last report has moved coins or money that were in no earlier one.
    has_moved: bool,
    /// So much of what the last report's connector tells of had left by an operator's word alone.
    moved_from_hand: Decimal,
}

impl Sent {
    /// Reads those of a currency. `report` is the payment at hand, which comes last.
    pub(super) async fn of(
        conn: &mut Connection,
        OrderKey { client, order }: OrderKey,
        currency: &str,
        report: Uuid,
    ) -> Result<Self, sqlx::Error> {
        let rows = sqlx::query!(
            r#"
            select payment_id as "id!", kind as "kind!", amount as "amount!",
                connector as "connector!",
                nullif(provider_reference, payment_id::text) as reference,
                case when kind in ('payout-failed', 'transfer-returned')
                    then original_reference end as payout,
                exists (select from payment_alias a where a.client_id = payment.client_id
                    and a.payment_id = payment.payment_id) as "is_renamed!"
            from payment where client_id = $1 and order_id = $2 and currency = $3
                and kind in ('payout-sent', 'payout-confirmed', 'payout-failed', 'transfer-sent',
                    'transfer-completed', 'transfer-returned')
            union all
            select e.entry_id, e.kind, abs(l.amount), '', null, null, false from ledger_entry e
            join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
            join ledger_account a on a.client_id = l.client_id and a.account_id = l.account_id
            -- not by value: of a partner newer than its statistics the planner expects no row
            where e.client_id = (select $1::uuid) and e.order_id = $2 and a.currency = $3
                and a.kind in ('treasury', 'provider')
                and (e.kind = 'opening' and l.amount < 0
                    or e.kind = 'payout-returned' and l.amount > 0)
            order by 1
            "#,
            client.uuid(),
            order.number(),
            currency,
        )
        .fetch_all(conn)
        .await?;
        let (last, mut rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.id == report);
        // What had left before there were books has an entry alone, whose id tells no time.
        rows.sort_by_key(|row| row.kind != OPENING);
        rows.extend(last);
        let (mut sent, by_hand) = (Self::default(), format!("{order}/"));
        for row in rows {
            if row.kind == UNDONE {
                sent.undo(row.amount);
                continue;
            }
            let report = PayoutReport::from_kind(&row.kind, row.payout.is_some());
            // An event of the order has its number before the name, and of a long name a digest of both.
            let full = |name: String| match name.starts_with(&by_hand) {
                true => name,
                false => stored_reference(&format!("{by_hand}{name}")),
            };
            let reference = row.payout.or(row.reference).map(full);
            let name = Name { connector: row.connector, reference };
            let unnamed = sent.unnamed;
            sent.apply(report, name, row.amount);
            if row.is_renamed {
                // It was told again under a reference of its own.
                sent.unnamed = unnamed;
            }
        }
        Ok(sent)
    }

    fn apply(&mut self, report: PayoutReport, name: Name, amount: Decimal) {
        let known = self.find(report, &name, amount);
        let is_more = known.is_none() && self.is_certain(report) && self.has_come_back(&name);
        self.has_moved = is_more || report.is_return() == known.is_some();
        self.count_unnamed(report, &name, amount);
        let take = |known: usize| self.out[known].take_from_hand(report, &name);
        self.moved_from_hand = known.map_or(Decimal::ZERO, take);
        match (report, known) {
            (PayoutReport::Begin, Some(known)) => Name::keep(&mut self.out[known].begin, name),
            (PayoutReport::End, Some(known)) => Name::keep(&mut self.out[known].end, name),
            (PayoutReport::Return | PayoutReport::NamedReturn, Some(known)) => {
                self.returned.push(amount);
                if report == PayoutReport::Return {
                    self.returned_as.push(name);
                }
                let payout = &mut self.out[known];
                if amount < payout.amount {
                    payout.amount -= amount;
                    payout.is_rest = true;
                } else {
                    let payout = self.out.remove(known);
                    self.back.push(payout);
                }
            }
            (PayoutReport::Begin | PayoutReport::End, None) => {
                self.out.push(Payout::first(report, name, amount));
            }
            (PayoutReport::Return | PayoutReport::NamedReturn, None) => {}
        }
    }

    /// Counts what the last report has brought back without a reference of its own, and takes off what
    /// one that has such a reference tells of without moving anything.
    fn count_unnamed(&mut self, report: PayoutReport, name: &Name, amount: Decimal) {
        // One of a payout that a refund has undone, or that is not known, repeats no return.
        let is_known = self.out.iter().chain(&self.back).any(|one| one.is_named(name));
        match (report, self.has_moved) {
            (PayoutReport::Return, true) => self.unnamed += amount,
            (PayoutReport::NamedReturn, false) if is_known => {
                self.unnamed = (self.unnamed - amount).max(Decimal::ZERO);
            }
            _ => {}
        }
    }

    /// Takes out so much of what has left, what has not arrived first. A rest is last: it is a fee since
    /// the refund, and may come back, but for refunds of earlier versions, which have undone it.
    fn undo(&mut self, mut amount: Decimal) {
        while amount > Decimal::ZERO && !self.out.is_empty() {
            let out = &self.out;
            let on_its_way = out.iter().rposition(|one| one.end.is_none() && !one.is_rest);
            let whole = on_its_way.or_else(|| out.iter().rposition(|one| !one.is_rest));
            let last = whole.unwrap_or(out.len() - 1);
            if self.out[last].amount > amount {
                self.out[last].amount -= amount;
                return;
            }
            let payout = self.out.remove(last);
            amount -= payout.amount;
            self.undone.push(payout);
        }
    }

    /// True for a return that repeats no earlier one: it has a reference of its own, and so has what has
    /// come back.
    fn is_certain(&self, report: PayoutReport) -> bool {
        report == PayoutReport::NamedReturn && self.unnamed.is_zero()
    }

    /// True if all of the payout of this name has come back.
    fn has_come_back(&self, name: &Name) -> bool {
        self.back.iter().any(|one| one.is_named(name))
    }

    /// A rest that is less than what comes back. `None` if the report may repeat an earlier return, by
    /// itself or with what was kept of it, or may be of a payout that a refund has undone.
    fn find_smaller_rest(&self, amount: Decimal) -> Option<usize> {
        let is_known = self.returned.contains(&amount)
            || self.returned.iter().max().is_none_or(|most| *most <= amount)
            || !self.undone.is_empty();
        if is_known { None } else { self.out.iter().rposition(|one| one.is_rest) }
    }

    /// The payout that a report is about: the one of its name, else one that may be meant.
    fn find(&self, report: PayoutReport, name: &Name, amount: Decimal) -> Option<usize> {
        let is_open = |payout: &Payout| match report {
            PayoutReport::Begin => payout.begin.is_none(),
            // An operator, who names none, may have told of the end before its provider did.
            PayoutReport::End => payout.end.as_ref().is_none_or(|end| {
                let may_be = |begin: &Name| begin.is(name) || begin.may_be(name);
                end.reference.is_none() && payout.begin.as_ref().is_none_or(may_be)
            }),
            // More than a rest is rather of another payout, or was reported before.
            PayoutReport::Return | PayoutReport::NamedReturn => {
                !payout.is_rest || amount <= payout.amount
            }
        };
        let is_certain = self.is_certain(report);
        let is_meant = |one: &Payout| one.is_named(name) && (is_certain || is_open(one));
        let named = self.out.iter().position(is_meant);
        let is_gone = named.is_none()
            && (self.undone.iter().any(|one| one.is_named(name))
                || report == PayoutReport::NamedReturn && self.has_come_back(name));
        // One that names its payout, or repeats the reference of a return, is of no other payout.
        let is_bound = match report {
            PayoutReport::NamedReturn => self.out.iter().any(|one| one.is_named(name)),
            PayoutReport::Return => self.returned_as.iter().any(|known| known.is(name)),
            PayoutReport::Begin | PayoutReport::End => false,
        };
        let is_bound = named.is_none() && is_bound;
        let may_be = |one: &Payout| {
            (report.is_return() || !one.is_rest)
                && is_open(one)
                && one.names().any(|known| known.may_be(name))
        };
        match report {
            PayoutReport::Begin | PayoutReport::End => {
                // Two reporters may tell the same of one payout by its name.
                let is_told = |one: &Payout| !one.is_rest && one.has_told(report, name);
                let told = named.or_else(|| self.out.iter().position(is_told));
                // An operator, who names none, may have told of the end of another one.
                let has_no_end = |one: &Payout| one.end.is_none() && may_be(one);
                told.or_else(|| self.out.iter().position(has_no_end))
                    .or_else(|| self.out.iter().position(may_be))
            }
            PayoutReport::Return | PayoutReport::NamedReturn if is_gone => None,
            PayoutReport::Return | PayoutReport::NamedReturn if is_bound => {
                self.find_smaller_rest(amount)
            }
            // What has not arrived is more likely to come back.
            PayoutReport::Return | PayoutReport::NamedReturn => named
                .or_else(|| self.out.iter().rposition(|one| one.end.is_none() && may_be(one)))
                .or_else(|| self.out.iter().rposition(may_be))
                .or_else(|| self.out.iter().rposition(is_open))
                .or_else(|| self.find_smaller_rest(amount)),
        }
    }

    /// True if the last report has moved coins or money: the first one of its payout, or one of a
    /// payout that has come back.
    pub(super) const fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// The amount of the last report's payout, if an operator alone has told of it before: it is booked
    /// as sent by hand.
    pub(super) const fn moved_from_hand(&self) -> Decimal {
        self.moved_from_hand
    }

    /// The part of what has left that a provider or a network has kept of what came back.
    pub(super) fn kept(&self) -> Decimal {
        self.rests().map(|payout| payout.amount).sum()
    }

    /// The same, of the payouts that have left at this connector.
    pub(super) fn kept_by(&self, connector: &str) -> Decimal {
        let its = self.rests().filter(|payout| payout.connector == connector);
        its.map(|payout| payout.amount).sum()
    }

    fn rests(&self) -> impl Iterator<Item = &Payout> {
        self.out.iter().filter(|payout| payout.is_rest)
    }

    /// True if the order is exchanged, and all that it pays out has arrived at its recipient, but for
    /// what was kept of what came back.
    pub(super) async fn has_arrived(
        conn: &mut Connection,
        order: &OrderTerms,
    ) -> Result<bool, sqlx::Error> {
        let (payout, currency) = order.amounts.payout();
        let position = Position::of_order(&mut *conn, order.key).await?;
        if !position.is_executed(&order.amounts.crypto_currency)
            || !position.sum(PayoutPayable, currency).is_zero()
        {
            return Ok(false);
        }
        let sent = Self::of(conn, order.key, currency, Uuid::nil()).await?;
        let arrived = sent.out.iter().filter(|payout| payout.end.is_some() || payout.is_rest);
        Ok(arrived.map(|payout| payout.amount).sum::<Decimal>() >= payout)
    }
}

/// Books coins or money that have left. `left` is the posting to where they were, of which `due` was
/// owed: the rest stands in suspense.
pub(super) async fn post_payout(
    conn: &mut Connection,
    core: &Core,
    kind: &'static str,
    subject: &Subject,
    due: Decimal,
    left: &Posting,
) -> Result<(), sqlx::Error> {
    let excess = -left.amount - due;
    for (kind, account, amount) in [(kind, PayoutPayable, due), (EXCESS, Suspense, excess)] {
        let part = Posting { amount: -amount, ..left.clone() };
        let postings = [Posting::new(account, &left.currency, amount), part];
        post(conn, core, kind, subject, &postings).await?;
    }
    Ok(())
}

/// Names the transaction that has sent the coins of an order, where no event of the order could:
/// they had left before they were owed or while it waited, or their end alone is reported. It is
/// that of the last report in their currency: the transaction that its reporter has named last, else
/// its reference.
pub(super) async fn name_transaction(
    conn: &mut Connection,
    OrderKey { client, order }: OrderKey,
    currency: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "with told as materialized ( \
             select payment_id, connector, provider_reference, transaction_id, recorded_at \
             from payment where client_id = $1 and order_id = $2 and currency = $3 \
                 and kind in ('payout-sent', 'payout-confirmed')), \
         last as (select payment_id, connector, provider_reference from told \
             order by recorded_at desc, payment_id desc limit 1) \
         update buy_order o set transaction_id = coalesce( \
             (select t.transaction_id from told t \
                 where t.connector = l.connector and t.transaction_id is not null \
                 order by t.recorded_at desc, t.payment_id desc limit 1), \
             nullif(regexp_replace(l.provider_reference, '^' || o.order_id || '/', ''), \
                 l.payment_id::text)) \
         from last l \
         where o.client_id = $1 and o.order_id = $2 and o.transaction_id is null",
        client.uuid(),
        order.number(),
        currency,
    )
    .execute(conn)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests;
