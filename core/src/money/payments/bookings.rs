//! Bookings of an order's change of state, written in the transaction of the change: the
//! payment that caused it, unless it was recorded before, and the entries.

use chrono::{DateTime, Utc};
use rampart_statement::stored_reference;
use rust_decimal::Decimal;
use serde_json::json;
use uuid::Uuid;

use super::earlier::{Arrived, take_off, take_over};
use super::refund_sources::refund_sources;
use super::refund_withdrawals::CommandedRefunds;
use super::report::PaymentKind;
use super::reprice::{Repriced, Units, reprice};
use super::sent::{Sent, name_transaction, post_payout};
use super::store::{NewPayment, connector_of, store};
use super::terms::OrderTerms;
use super::unwind::{has_left, unwind};
use crate::Core;
use crate::money::connectors::payouts::withdraw_payout;
use crate::money::ledger::AccountKind::{
    Customer, Dispute, PayoutPayable, RefundPayable, Suspense, Treasury,
};
use crate::money::ledger::entries::holding;
use crate::money::ledger::{Position, Posting, Subject, post};
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::db::Connection;
use crate::trading::limits;
use crate::trading::orders::state::{Cause, OrderStatus};
use crate::trading::quotes::Side;
use rampart_types::{JsonDecimal, OrderKey};

/// A change of an order's state that is being written.
#[derive(Clone, Copy)]
pub(crate) struct Booking<'a> {
    pub(crate) core: &'a Core,
    pub(crate) key: OrderKey,
    pub(crate) side: Side,
    pub(crate) cause: Cause,
    /// The state before it.
    pub(crate) from: OrderStatus,
    /// The payment that causes it, if it is recorded already.
    pub(crate) payment: Option<Uuid>,
    /// Amount that arrived; `None` is the order's own.
    pub(crate) amount: Option<Decimal>,
    /// The provider's reference, or the transaction on chain.
    pub(crate) reference: Option<&'a str>,
    pub(crate) reason: Option<&'a str>,
    /// The price of the moment, for an order whose rate is fixed when it is paid.
    pub(crate) live_price: Option<Decimal>,
    pub(crate) actor: &'a str,
    pub(crate) now: DateTime<Utc>,
}

/// The result of a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Booked {
    /// It is written.
    Done,
    /// The payment's reference is another payment's: the transaction must be given up.
    KnownReference,
    /// The order cannot have the amount that arrived, or there is no price for its estimate: the
    /// transaction must be given up.
    NotPriceable,
    /// A connector may be sending what the order was to pay out before its payment changed: the
    /// transaction must be given up.
    PayoutUnderWay,
    /// A part of the payout has not left: the transaction must be given up.
    PayoutOwed,
    /// The payout of an order that does not wait has left: the transaction must be given up.
    PayoutLeft,
    /// A connector may be giving back what the order's change says was given back by hand: the
    /// transaction must be given up.
    RefundUnderWay,
}

impl Booking<'_> {
    /// Writes payment and entries. The order's row is locked and has its new state.
    pub(crate) async fn write(&self, conn: &mut Connection) -> Result<Booked, sqlx::Error> {
        match self.cause {
            Cause::PaymentReceived
            | Cause::PaymentLate
            | Cause::PaymentAmountWrong
            | Cause::PriceMoved => self.arrive(conn).await,
            Cause::Released => self.execute(conn).await,
            Cause::CoinsSent => self.send(conn, PaymentKind::PayoutSent).await,
            Cause::ConfirmedOnChain => self.send(conn, PaymentKind::PayoutConfirmed).await,
            Cause::PaidOut => self.send(conn, PaymentKind::TransferCompleted).await,
            Cause::Refunded => self.refund(conn).await,
            Cause::Confirmed
            | Cause::PaymentDenied
            | Cause::Expired
            | Cause::Cancelled
            | Cause::Held => Ok(Booked::Done),
        }
    }

    async fn terms(&self, conn: &mut Connection) -> Result<OrderTerms, sqlx::Error> {
        let terms = OrderTerms::lock(conn, self.key, self.side).await?;
        terms.ok_or(sqlx::Error::RowNotFound)
    }

    fn subject(&self, payment: Option<Uuid>) -> Subject {
        Subject {
            client: self.key.client,
            order: Some(self.key.order.number()),
            payment,
            occurred_at: self.now,
        }
    }

    /// The reference of a payment by the transaction on chain, which may pay several orders.
    fn reference_of_transaction(&self) -> Option<String> {
        self.reference.map(|id| stored_reference(&format!("{}/{id}", self.key.order)))
    }

    /// Stores a payment of the order itself, unless one is recorded already.
    async fn payment(
        &self,
        conn: &mut Connection,
        kind: PaymentKind,
        connector: &str,
        amount: Decimal,
        currency: &str,
        reference: Option<&str>,
    ) -> Result<Option<Uuid>, sqlx::Error> {
        let payment = NewPayment {
            client: self.key.client,
            connector,
            reference,
            original: None,
            transaction: None,
            kind,
            amount,
            currency,
            order: Some(self.key.order.number()),
            suspense: false,
            actor: self.actor,
            reason: self.reason,
            occurred_at: self.now,
        };
        store(conn, self.core, &payment).await
    }

    /// Money or coins arrived.
    async fn arrive(&self, conn: &mut Connection) -> Result<Booked, sqlx::Error> {
        if self.payment.is_none() {
            let terms = self.terms(conn).await?;
            let (due, currency) = terms.amounts.paid();
            let amount = self.amount.unwrap_or(due);
            let is_coins = self.side == Side::Sell;
            let (kind, reference) = match self.side {
                Side::Buy => (PaymentKind::Received, self.reference.map(str::to_owned)),
                Side::Sell => (PaymentKind::DepositReceived, self.reference_of_transaction()),
            };
            let connector = connector_of(self.actor);
            let reference = reference.as_deref();
            let payment = self.payment(conn, kind, connector, amount, currency, reference).await?;
            let Some(payment) = payment else { return Ok(Booked::KnownReference) };
            let postings = [
                holding(is_coins, connector, currency, amount),
                Posting::new(Customer, currency, -amount),
            ];
            let subject = self.subject(Some(payment));
            post(conn, self.core, kind.as_str(), &subject, &postings).await?;
            if let (Some(reference), Side::Buy) = (reference, self.side) {
                let (to, actor) = (self.key, self.actor);
                let arrived = Arrived { connector, reference, payment, to, actor };
                take_over(conn, self.core, &arrived).await?;
                take_off(conn, self.core, &arrived, &subject, amount, currency).await?;
            }
        }
        match self.cause {
            Cause::PaymentReceived => self.execute(conn).await,
            _ => Ok(Booked::Done),
        }
    }

    /// The exchange, unless it was made before: for what has arrived, and at the price of the
    /// moment if the order's is an estimate.
    async fn execute(&self, conn: &mut Connection) -> Result<Booked, sqlx::Error> {
        let terms = self.terms(conn).await?;
        let position = Position::of_order(conn, self.key).await?;
        let (due, currency) = terms.amounts.paid();
        if position.is_executed(&terms.amounts.crypto_currency) {
            return Ok(Booked::Done);
        }
        if self.cause == Cause::Released && withdraw_payout(conn, self.key).await? {
            return Ok(Booked::PayoutUnderWay);
        }
        // The price of an estimate is not a promise.
        if terms.is_estimated && self.live_price.is_none() {
            return Ok(Booked::NotPriceable);
        }
        let arrived = position.owed(Customer, currency);
        let price = self.live_price.filter(|_| terms.is_estimated);
        let price = price.unwrap_or(terms.amounts.price);
        let amounts = if arrived == due && price == terms.amounts.price {
            terms.amounts.clone()
        } else {
            let Some(repriced) = self.within_limits(&terms, arrived, price) else {
                return Ok(Booked::NotPriceable);
            };
            let fiat = repriced.amounts.fiat;
            if arrived > due && !limits::have_room(conn, self.key, self.side, fiat).await? {
                return Ok(Booked::NotPriceable);
            }
            self.write_amounts(conn, &terms, &repriced).await?;
            repriced.amounts
        };
        let subject = self.subject(self.payment);
        post(conn, self.core, "execution", &subject, &amounts.execution()).await?;
        // What left before it was owed is settled by it.
        let (payout, gets) = amounts.payout();
        let settled = position.sum(Suspense, gets).max(Decimal::ZERO).min(payout);
        let postings =
            [Posting::new(PayoutPayable, gets, settled), Posting::new(Suspense, gets, -settled)];
        post(conn, self.core, "settled", &subject, &postings).await?;
        if self.side == Side::Buy && settled >= payout {
            name_transaction(conn, self.key, gets).await?;
        }
        Ok(Booked::Done)
    }

    /// The order for what has arrived; `None` beyond the limits of its pair and payment method.
    fn within_limits(
        &self,
        terms: &OrderTerms,
        arrived: Decimal,
        price: Decimal,
    ) -> Option<Repriced> {
        let snapshot = self.core.snapshots.current();
        let pair = snapshot.catalogue.pairs.get(&terms.pair)?;
        let method = snapshot.catalogue.payment_method(&terms.payment_method);
        let units = Units {
            fiat_exponent: pair.quote.scale(),
            crypto_scale: pair.base.scale(),
            method_fixed: method.map_or(Decimal::ZERO, |method| method.fee_fixed),
        };
        let rules = terms.fee_rules.as_ref();
        let repriced = reprice(&terms.amounts, rules, arrived, price, units)?;
        // A pair's bounds are in the currency that the user pays.
        let accepted = arrived <= self.side.terms(pair).max
            && method.is_none_or(|method| method.accepts(repriced.amounts.fiat));
        // The amount that was confirmed has passed them: only a larger one is judged.
        (accepted || arrived <= terms.amounts.paid().0).then_some(repriced)
    }

    /// Writes the order's new amounts, its timeline's line and the partner's event.
    async fn write_amounts(
        &self,
        conn: &mut Connection,
        terms: &OrderTerms,
        repriced: &Repriced,
    ) -> Result<(), sqlx::Error> {
        let (before, amounts) = (&terms.amounts, &repriced.amounts);
        let reason = format!(
            "from {} {} for {} {} at {} to {} {} for {} {} at {}",
            before.crypto.normalize(),
            before.crypto_currency,
            before.fiat.normalize(),
            before.fiat_currency,
            before.price.normalize(),
            amounts.crypto.normalize(),
            amounts.crypto_currency,
            amounts.fiat.normalize(),
            amounts.fiat_currency,
            amounts.price.normalize(),
        );
        super::amounts::write(conn, self, terms, repriced, &reason).await?;
        let payload = json!({
            "orderId": self.key.order,
            "partnerOrderIdentifier": terms.partner_reference,
            "status": terms.status,
            "fiatAmount": JsonDecimal(amounts.fiat),
            "cryptoAmount": JsonDecimal(amounts.crypto),
            "price": JsonDecimal(amounts.price),
            "previousFiatAmount": JsonDecimal(before.fiat),
            "previousCryptoAmount": JsonDecimal(before.crypto),
            "previousPrice": JsonDecimal(before.price),
        });
        let (kind, order_id) = (EventType::OrderRepriced, Some(self.key.order));
        let event = NewEvent { kind, order_id, payload };
        events::record(conn, self.core, self.key.client, event, None).await
    }

    /// Coins or fiat left for the user, or have arrived there: whichever is reported first. An event
    /// names no amount: it means what is still owed, or, if nothing is, the whole payout.
    async fn send(&self, conn: &mut Connection, kind: PaymentKind) -> Result<Booked, sqlx::Error> {
        if self.payment.is_some() {
            // What is recorded is booked.
            return Ok(Booked::Done);
        }
        let terms = self.terms(conn).await?;
        let (payout, currency) = terms.amounts.payout();
        let owed = Position::of_order(conn, self.key).await?.owed(PayoutPayable, currency);
        let amount = if owed.is_zero() { payout } else { owed };
        let connector = connector_of(self.actor);
        let reference = self.reference_of_transaction();
        let reference = reference.as_deref();
        let payment = self.payment(conn, kind, connector, amount, currency, reference).await?;
        let Some(payment) = payment else { return Ok(Booked::KnownReference) };
        if Sent::of(conn, self.key, currency, payment).await?.has_moved() {
            let left = holding(self.side == Side::Buy, connector, currency, -amount);
            let subject = self.subject(Some(payment));
            post_payout(conn, self.core, kind.as_str(), &subject, owed, &left).await?;
        }
        let owed = Position::of_order(conn, self.key).await?.owed(PayoutPayable, currency);
        let is_end = kind != PaymentKind::PayoutSent;
        Ok(if is_end && owed > Decimal::ZERO { Booked::PayoutOwed } else { Booked::Done })
    }

    /// Everything that has arrived for the order was given back.
    async fn refund(&self, conn: &mut Connection) -> Result<Booked, sqlx::Error> {
        let terms = self.terms(conn).await?;
        // Of one that waits, the operator has decided that it came back.
        if self.from == OrderStatus::InProgress && has_left(conn, &terms).await? {
            return Ok(Booked::PayoutLeft);
        }
        unwind(conn, self.core, &terms, &self.subject(self.payment)).await?;
        if self.payment.is_some() {
            return Ok(Booked::Done);
        }
        let (_, currency) = terms.amounts.paid();
        // What is given back by hand is not given back by command as well.
        let order = Some(self.key.order);
        let commanded = CommandedRefunds { client: self.key.client, order, currency };
        commanded.withdraw_beyond(conn, self.core, Decimal::ZERO, None).await?;
        if commanded.are_under_way(conn).await? {
            return Ok(Booked::RefundUnderWay);
        }
        let position = Position::of_order(conn, self.key).await?;
        let is_coins = self.side == Side::Sell;
        let mut payable = position.owed(RefundPayable, currency);
        let mut owed = payable + position.owed(Customer, currency);
        let held = match is_coins {
            true => vec![(connector_of(self.actor).to_owned(), position.sum(Treasury, currency))],
            false => refund_sources(conn, self.key, &position, currency, owed).await?,
        };
        for (connector, amount) in held {
            let amount = amount.min(owed);
            if amount <= Decimal::ZERO {
                continue;
            }
            owed -= amount;
            let commanded = amount.min(payable);
            payable -= commanded;
            let kind = PaymentKind::Refunded;
            let payment = self.payment(conn, kind, &connector, amount, currency, None).await?;
            let postings = [
                Posting::new(RefundPayable, currency, commanded),
                Posting::new(Customer, currency, amount - commanded),
                holding(is_coins, &connector, currency, -amount),
            ];
            post(conn, self.core, kind.as_str(), &self.subject(payment), &postings).await?;
        }
        // What a dispute has taken back is given back already.
        let disputed = position.sum(Dispute, currency).max(Decimal::ZERO).min(owed);
        let commanded = disputed.min(payable);
        let postings = [
            Posting::new(RefundPayable, currency, commanded),
            Posting::new(Customer, currency, disputed - commanded),
            Posting::new(Dispute, currency, -disputed),
        ];
        post(conn, self.core, "refunded", &self.subject(None), &postings).await?;
        Ok(Booked::Done)
    }
}
