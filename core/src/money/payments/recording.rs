//! The meaning of a recorded payment: its entry in the books, and what follows for its order.

mod disputes;
mod repeats;
mod returns;

use rust_decimal::Decimal;
use serde_json::json;
use uuid::Uuid;

use super::catch_up::catch_up;
use super::earlier::{Arrived, take_off, take_over};
use super::refund_withdrawals::{CommandedRefunds, withdraw_disputed, withdraw_told};
use super::refunds::{self, Refund};
use super::report::{PaymentKind, Report};
use super::sent::{Sent, name_transaction, post_payout};
use super::store::MANUAL;
use super::terms::OrderTerms;
use super::unwind::unwind;
use crate::Core;
use crate::money::connectors::payouts::withdraw_payout;
use crate::money::ledger::AccountKind::{
    self, Customer, Dispute, PayoutPayable, RefundPayable, Suspense,
};
use crate::money::ledger::entries::holding;
use crate::money::ledger::{Position, Posting, Subject, post};
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::settings::Unexpected;
use crate::trading::orders::state::{Cause, OrderStatus};
use crate::trading::orders::status::{
    Applied, Event, NotApplied, OrderEvent, apply_recorded, unless_forbidden,
};
use crate::trading::quotes::Side;
use crate::trading::sell::status::SaleEvent;
use rampart_types::{ClientId, JsonDecimal, OrderKey};

/// A payment that is stored and being booked.
pub(super) struct Recording<'a> {
    pub(super) core: &'a Core,
    pub(super) report: &'a Report,
    pub(super) payment: Uuid,
    /// The tenant in whose book it is.
    pub(super) client: ClientId,
    pub(super) currency: String,
    pub(super) is_coins: bool,
    pub(super) order: Option<OrderTerms>,
    /// The order waits for it.
    pub(super) wanted: bool,
    /// Causes of the changes of the order's state.
    pub(super) causes: Vec<Cause>,
}

impl<'a> Recording<'a> {
    /// A payment that its order waits for.
    pub(super) fn matched(
        core: &'a Core,
        report: &'a Report,
        payment: Uuid,
        order: OrderTerms,
        is_coins: bool,
    ) -> Self {
        let (client, currency, wanted) = (order.key.client, report.currency.clone(), true);
        let (order, causes) = (Some(order), Vec::new());
        Self { core, report, payment, client, currency, is_coins, order, wanted, causes }
    }
}

impl Recording<'_> {
    /// Writes the entry and lets the order follow. One of a deposit that was booked by hand is that.
    pub(super) async fn book(
        &mut self,
        conn: &mut Connection,
        deposit: Option<OrderKey>,
    ) -> Result<()> {
        if let Some(deposit) = deposit
            && self.join(conn, deposit).await?
        {
            return Ok(());
        }
        match self.report.kind {
            PaymentKind::Received | PaymentKind::DepositReceived => self.arrive(conn).await,
            PaymentKind::Refunded => self.refund(conn).await,
            PaymentKind::PayoutSent
            | PaymentKind::PayoutConfirmed
            | PaymentKind::TransferSent
            | PaymentKind::TransferCompleted => self.send(conn).await,
            PaymentKind::PayoutFailed | PaymentKind::TransferReturned => self.fail(conn).await,
            PaymentKind::Disputed => self.dispute(conn).await,
            PaymentKind::DisputeWon => self.win(conn).await,
            PaymentKind::DisputeLost => self.lose(conn).await,
        }
    }

    fn subject(&self) -> Subject {
        Subject {
            client: self.client,
            order: self.order.as_ref().map(|order| order.key.order.number()),
            payment: Some(self.payment),
            occurred_at: self.report.occurred_at,
        }
    }

    fn line(&self, kind: AccountKind, amount: Decimal) -> Posting {
        Posting::new(kind, &self.currency, amount)
    }

    /// A posting to where the money or the coins are.
    fn held(&self, amount: Decimal) -> Posting {
        holding(self.is_coins, &self.report.connector, &self.currency, amount)
    }

    async fn post(&self, conn: &mut Connection, postings: &[Posting]) -> Result<()> {
        let kind = self.report.kind.as_str();
        Ok(post(conn, self.core, kind, &self.subject(), postings).await?)
    }

    /// The sums of the order's entries; without an order, those of what has none.
    async fn position(&self, conn: &mut Connection) -> Result<Position> {
        let order = self.order.as_ref().map(|order| order.key.order.number());
        Ok(Position::of(conn, self.client, order).await?)
    }

    async fn arrive(&mut self, conn: &mut Connection) -> Result<()> {
        let amount = self.report.amount;
        let to = if self.wanted { Customer } else { Suspense };
        self.post(conn, &[self.held(amount), self.line(to, -amount)]).await?;
        if self.wanted {
            return self.follow_arrival(conn).await;
        }
        let Some(order) = &self.order else { return self.set_off_lost(conn).await };
        let arrived = Arrived::by(self.report, self.payment, order.key);
        take_over(conn, self.core, &arrived).await?;
        let order = Some(order.key.order.number());
        self.record_event(conn, EventType::OrderPaymentReceived).await?;
        let left = self.set_off_earlier(conn).await?;
        let gives_back = self.core.settings.payments.unexpected == Unexpected::Refund
            && left > Decimal::ZERO
            && !self.may_repeat(conn).await?;
        if gives_back {
            let refund = Refund {
                of: self.client,
                book: self.client,
                order,
                payment: self.payment,
                amount: left,
                currency: &self.currency,
                from: Suspense,
                actor: refunds::EDGE,
                reason: None,
            };
            refunds::request(conn, self.core, &refund).await?;
            // Its dispute may have been reported first.
            withdraw_disputed(conn, self.core, self.report).await?;
        }
        Ok(())
    }

    /// Lets the order follow what it waited for.
    pub(super) async fn follow_arrival(&mut self, conn: &mut Connection) -> Result<()> {
        let Some(order) = &self.order else { return Ok(()) };
        let amount = Some(self.report.amount);
        let (key, side) = (order.key, order.amounts.side);
        let arrived = Arrived::by(self.report, self.payment, key);
        take_over(conn, self.core, &arrived).await?;
        match side {
            Side::Buy => {
                let (subject, paid, currency) =
                    (self.subject(), self.report.amount, &self.currency);
                let rest = take_off(conn, self.core, &arrived, &subject, paid, currency).await?;
                let amount = Some(rest);
                let reference = Some(self.report.provider_reference.clone());
                self.apply(conn, OrderEvent::PaymentReceived { amount, reference }).await?;
                self.hold_if_taken_back(conn).await?;
            }
            Side::Sell => {
                let transaction_id = self.report.transaction_id.clone();
                let deposit = SaleEvent::DepositReceived { amount, transaction_id };
                self.apply(conn, deposit).await?;
            }
        }
        let caught_up = catch_up(conn, self.core, key, side, &self.report.actor).await;
        caught_up.transpose().map_or(Ok(()), |applied| self.follow(applied))
    }

    /// Money or coins were given back: what was to be refunded, else what is not executed, else what
    /// nobody wants. More than all of that is a loss. What an operator has booked by hand under the
    /// same name has left its provider instead. The order follows what is given back of its own
    /// currency alone.
    async fn refund(&mut self, conn: &mut Connection) -> Result<()> {
        let by_hand = self.booked_by_hand(conn).await?;
        let amount = self.report.amount - by_hand;
        let is_paid_in = |order: &OrderTerms| order.amounts.paid().1 == self.currency;
        let order = self.order.clone().filter(is_paid_in);
        if let Some(order) = &order {
            let before = self.position(conn).await?;
            let open = before.owed(RefundPayable, &self.currency)
                + before.owed(Suspense, &self.currency)
                + before.owed(Customer, &self.currency);
            let unpaid = matches!(order.status, OrderStatus::InProgress | OrderStatus::Blocked);
            let payout = order.amounts.payout();
            if amount > open && unpaid && before.owed(PayoutPayable, payout.1) >= payout.0 {
                unwind(conn, self.core, order, &self.subject()).await?;
            }
        }
        let position = self.position(conn).await?;
        let mut rest = amount;
        let at_hand = holding(self.is_coins, MANUAL, &self.currency, by_hand);
        let mut postings = vec![self.held(-self.report.amount), at_hand];
        for kind in [RefundPayable, Suspense, Customer] {
            let part = position.owed(kind, &self.currency).min(rest);
            postings.push(self.line(kind, part));
            rest -= part;
        }
        let excess = if self.order.is_some() { Dispute } else { Suspense };
        postings.push(self.line(excess, rest));
        self.post(conn, &postings).await?;
        if amount.is_zero() {
            return Ok(());
        }
        if self.report.connector == MANUAL {
            // What was given back by hand is not given back by command as well.
            let set_aside = position.owed(RefundPayable, &self.currency);
            let left = (set_aside - amount).max(Decimal::ZERO);
            let (client, order) = (self.client, self.order.as_ref().map(|order| order.key.order));
            let commanded = CommandedRefunds { client, order, currency: &self.currency };
            commanded.withdraw_beyond(conn, self.core, left, Some(self.report)).await?;
        } else {
            withdraw_told(conn, self.core, self.report).await?;
        }
        let Some(order) = order else { return Ok(()) };
        let after = self.position(conn).await?;
        let owed = after.owed(Customer, &self.currency) + after.owed(RefundPayable, &self.currency);
        let executed = after.is_executed(&order.amounts.crypto_currency);
        let reason = self.report.reason.clone();
        match (order.status, order.amounts.side) {
            _ if executed => Ok(()),
            (OrderStatus::InProgress | OrderStatus::Blocked, Side::Buy) if owed.is_zero() => {
                self.apply(conn, OrderEvent::Refund { reason }).await
            }
            (OrderStatus::InProgress | OrderStatus::Blocked, Side::Sell) if owed.is_zero() => {
                self.apply(conn, SaleEvent::Refund { reason }).await
            }
            // A part of it is still with us.
            (OrderStatus::InProgress, _) => self.hold(conn, reason).await,
            _ => Ok(()),
        }
    }

    /// The payout is under way, or has arrived: whichever is reported first moves it.
    async fn send(&mut self, conn: &mut Connection) -> Result<()> {
        let amount = self.report.amount;
        let Some(order) = self.order.clone() else {
            return self.post(conn, &[self.line(Suspense, amount), self.held(-amount)]).await;
        };
        // A payout is reported twice, by its begin and by its end: whichever is first has moved it.
        let sent = Sent::of(conn, order.key, &self.currency, self.payment).await?;
        self.move_from_hand(conn, &sent).await?;
        let has_moved = sent.has_moved();
        if has_moved {
            let payable = self.position(conn).await?.owed(PayoutPayable, &self.currency);
            let (kind, left) = (self.report.kind.as_str(), self.held(-amount));
            let due = payable.min(amount);
            post_payout(conn, self.core, kind, &self.subject(), due, &left).await?;
        }
        if self.currency != order.amounts.payout().1 {
            return Ok(());
        }
        let is_by_hand = self.report.connector == MANUAL;
        if has_moved && (is_by_hand || self.report.kind == PaymentKind::TransferSent) {
            // What was sent by hand is not sent by command as well.
            withdraw_payout(conn, order.key).await?;
        }
        let transaction_id = self.report.transaction_id.clone();
        let transaction_id =
            transaction_id.unwrap_or_else(|| self.report.provider_reference.clone());
        match (self.report.kind, order.amounts.side) {
            (PaymentKind::PayoutSent, Side::Buy) => {
                self.apply(conn, OrderEvent::CoinsSent { transaction_id }).await
            }
            (PaymentKind::PayoutConfirmed, Side::Buy) => {
                // A connector may report the end alone: the transaction is the same.
                if self.report.transaction_id.is_some() {
                    self.apply(conn, OrderEvent::CoinsSent { transaction_id }).await?;
                }
                if Sent::has_arrived(conn, &order).await? {
                    name_transaction(conn, order.key, &self.currency).await?;
                    self.apply(conn, OrderEvent::ConfirmedOnChain).await?;
                }
                Ok(())
            }
            (PaymentKind::TransferCompleted, Side::Sell) => {
                if Sent::has_arrived(conn, &order).await? {
                    self.apply(conn, SaleEvent::PaidOut).await?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Records the partner's event about this payment of its order.
    async fn record_event(&self, conn: &mut Connection, kind: EventType) -> Result<()> {
        let Some(order) = &self.order else { return Ok(()) };
        let payload = json!({
            "orderId": order.key.order,
            "partnerOrderIdentifier": order.partner_reference,
            "status": order.status,
            "payment": {
                "id": self.payment,
                "amount": JsonDecimal(self.report.amount),
                "currencyCode": self.currency,
            },
        });
        let event = NewEvent { kind, order_id: Some(order.key.order), payload };
        Ok(events::record(conn, self.core, order.key.client, event, None).await?)
    }

    /// Lets its order wait.
    async fn hold(&mut self, conn: &mut Connection, reason: Option<String>) -> Result<()> {
        match self.order.as_ref().map(|order| order.amounts.side) {
            Some(Side::Buy) => self.apply(conn, OrderEvent::Hold { reason }).await,
            Some(Side::Sell) => self.apply(conn, SaleEvent::Hold { reason }).await,
            None => Ok(()),
        }
    }

    /// Lets its order follow the payment; it stays as it is where its state forbids that.
    async fn apply<E: Event>(&mut self, conn: &mut Connection, event: E) -> Result<()> {
        let Some(order) = &self.order else { return Ok(()) };
        let key = order.key;
        let (payment, actor) = (self.payment, &self.report.actor);
        let applied = apply_recorded(conn, self.core, key, payment, &event, actor).await;
        self.follow(applied)
    }

    fn follow(&mut self, applied: Result<Applied, NotApplied>) -> Result<()> {
        self.causes.extend(unless_forbidden(applied)?.map(|applied| applied.cause));
        Ok(())
    }
}
