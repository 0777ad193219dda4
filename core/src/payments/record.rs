//! Recording a report: the payment and its entry first, then what follows for its order.

use rust_decimal::Decimal;
use serde_json::json;
use uuid::Uuid;

use super::bookings::unwind;
use super::matching::is_arrival;
use super::refunds::{self, Refund};
use super::report::{PaymentKind, PaymentState, Recorded, Report, house};
use super::store::{NewPayment, currency_of, store};
use super::terms::OrderTerms;
use crate::Core;
use crate::ledger::AccountKind::{
    self, Customer, Dispute, PayoutPayable, RefundPayable, Suspense,
};
use crate::ledger::entries::{holding, reversed};
use crate::ledger::{Position, Posting, Subject, post};
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::platform::settings::Unexpected;
use crate::trading::orders::state::{Cause, OrderStatus};
use crate::trading::orders::status::{NotApplied, OrderEvent, apply_recorded};
use crate::trading::quotes::Side;
use crate::trading::sell::status::SaleEvent;
use rampart_types::{ClientId, JsonDecimal, OrderId};

/// Records a report in the caller's transaction, which sees every tenant: the payment, its balanced
/// entry, and what follows for its order. A report that is known, or contradicts a known one,
/// changes nothing. The order's row stays locked until the transaction ends.
///
/// # Errors
/// The database's. The report's content is no error.
pub async fn record(conn: &mut Connection, core: &Core, report: &Report) -> Result<Recorded> {
    let (currency, is_coins) = currency_of(core, &report.currency);
    let (order, of_original) = find_order(conn, report).await?;
    let named = order.as_ref().map(|order| order.client);
    let client = named.or(report.client).or(of_original).unwrap_or_else(house);
    let wanted = order.as_ref().is_some_and(|order| wants(order, report.kind, &currency));
    let number = report.order.or(order.as_ref().map(|order| order.order));
    let payment = NewPayment {
        client,
        connector: &report.connector,
        reference: Some(&report.provider_reference),
        kind: report.kind,
        amount: report.amount,
        currency: &currency,
        order: number.map(|order| order.number()),
        suspense: !wanted && is_arrival(report.kind),
        actor: &report.actor,
        reason: report.reason.as_deref(),
        occurred_at: report.occurred_at,
    };
    let Some(id) = store(conn, core, &payment).await? else {
        return known(conn, report, &currency).await;
    };
    keep_report(conn, core, (client, id), report.raw.as_deref()).await?;
    let mut recording = Recording {
        core,
        report,
        payment: id,
        client,
        currency,
        is_coins,
        order,
        wanted,
        causes: Vec::new(),
    };
    // On the heap: it holds the state of an order's whole change.
    Box::pin(recording.book(conn)).await?;
    let Recording { causes, order, .. } = recording;
    let state = match (wanted || !is_arrival(report.kind), order) {
        (true, Some(_)) => PaymentState::Matched,
        (_, None) => PaymentState::Unmatched,
        (false, Some(_)) => PaymentState::Suspense,
    };
    let (duplicate, contradicts) = (false, false);
    Ok(Recorded { payment: id, client, duplicate, contradicts, state, causes })
}

/// True if the order waits for just this: money for a purchase, coins for a sale.
pub(super) fn wants(order: &OrderTerms, kind: PaymentKind, currency: &str) -> bool {
    let due = match order.amounts.side {
        Side::Buy => PaymentKind::Received,
        Side::Sell => PaymentKind::DepositReceived,
    };
    order.status == OrderStatus::Pending && kind == due && order.amounts.paid().1 == currency
}

/// The order that the report names, or that the payment has which it is about, locked; and that
/// payment's client.
async fn find_order(
    conn: &mut Connection,
    report: &Report,
) -> Result<(Option<OrderTerms>, Option<ClientId>), sqlx::Error> {
    if let Some(order) = report.order {
        return Ok((OrderTerms::find(conn, report.client, order).await?, None));
    }
    let Some(original) = &report.original else { return Ok((None, None)) };
    let found = sqlx::query!(
        r#"
        select coalesce(m.to_client_id, p.client_id) as "client_id!",
            coalesce(m.order_id, p.order_id) as order_id
        from payment p
        left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
        where p.connector = $1 and p.provider_reference = $2
        order by p.recorded_at limit 1
        "#,
        report.connector,
        original,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = found else { return Ok((None, None)) };
    let client = row.client_id.into();
    let order = match row.order_id.and_then(OrderId::new) {
        Some(order) => OrderTerms::find(conn, Some(client), order).await?,
        None => None,
    };
    Ok((order, Some(client)))
}

/// The payment that has the report's reference already.
async fn known(conn: &mut Connection, report: &Report, currency: &str) -> Result<Recorded> {
    let row = sqlx::query!(
        r#"
        select p.client_id, p.payment_id, p.amount, p.currency, p.order_id, p.suspense,
            m.payment_id is not null as "matched!"
        from payment p
        left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
        where connector = $1 and kind = $2 and provider_reference = $3
        "#,
        report.connector,
        report.kind.as_str(),
        report.provider_reference,
    )
    .fetch_optional(conn)
    .await?;
    let row = row.ok_or_else(|| Error::broken("find the payment of a known reference"))?;
    let other_order = report.order.is_some_and(|order| row.order_id != Some(order.number()));
    let state = match (row.order_id, row.suspense) {
        _ if row.matched => PaymentState::Matched,
        (None, _) => PaymentState::Unmatched,
        (Some(_), true) => PaymentState::Suspense,
        (Some(_), false) => PaymentState::Matched,
    };
    Ok(Recorded {
        payment: row.payment_id,
        client: row.client_id.into(),
        duplicate: true,
        contradicts: row.amount != report.amount || row.currency != currency || other_order,
        state,
        causes: Vec::new(),
    })
}

/// Stores the report as it came, sealed.
async fn keep_report(
    conn: &mut Connection,
    core: &Core,
    (client, payment): (ClientId, Uuid),
    raw: Option<&str>,
) -> Result<()> {
    let Some(raw) = raw else { return Ok(()) };
    let sealed = core.keys.seal(&core.clock, &report_context(client, payment), raw.as_bytes())?;
    sqlx::query!(
        "insert into payment_report (client_id, payment_id, sealed) values ($1, $2, $3)",
        client.uuid(),
        payment,
        sealed,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The context that a report is sealed for.
pub(crate) fn report_context(client: ClientId, payment: Uuid) -> String {
    format!("payment_report/{client}/{payment}")
}

/// A payment that is stored and being booked.
pub(super) struct Recording<'a> {
    core: &'a Core,
    report: &'a Report,
    payment: Uuid,
    client: ClientId,
    currency: String,
    is_coins: bool,
    order: Option<OrderTerms>,
    wanted: bool,
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
        let (client, currency, wanted) = (order.client, report.currency.clone(), true);
        let (order, causes) = (Some(order), Vec::new());
        Self { core, report, payment, client, currency, is_coins, order, wanted, causes }
    }
}

impl Recording<'_> {
    async fn book(&mut self, conn: &mut Connection) -> Result<()> {
        match self.report.kind {
            PaymentKind::Received | PaymentKind::DepositReceived => self.arrive(conn).await,
            PaymentKind::Refunded => self.refund(conn).await,
            PaymentKind::PayoutSent
            | PaymentKind::PayoutConfirmed
            | PaymentKind::TransferSent
            | PaymentKind::TransferCompleted => self.send(conn).await,
            PaymentKind::PayoutFailed | PaymentKind::TransferReturned => self.fail(conn).await,
            PaymentKind::Disputed => self.dispute(conn).await,
            PaymentKind::DisputeWon => {
                let amount = self.report.amount;
                self.post(conn, &[self.held(amount), self.line(Dispute, -amount)]).await
            }
            // The loss stands in the account of disputes already.
            PaymentKind::DisputeLost => Ok(()),
        }
    }

    fn subject(&self) -> Subject {
        Subject {
            client: self.client,
            order: self.order.as_ref().map(|order| order.order.number()),
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

    /// What the order's entries come to; without an order, those of what has none.
    async fn position(&self, conn: &mut Connection) -> Result<Position> {
        let order = self.order.as_ref().map(|order| order.order.number());
        Ok(Position::of(conn, self.client, order).await?)
    }

    async fn arrive(&mut self, conn: &mut Connection) -> Result<()> {
        let amount = self.report.amount;
        let to = if self.wanted { Customer } else { Suspense };
        self.post(conn, &[self.held(amount), self.line(to, -amount)]).await?;
        if self.wanted {
            return self.follow_arrival(conn).await;
        }
        let Some(order) = &self.order else { return Ok(()) };
        let book = (self.client, Some(order.order.number()));
        self.tell(conn, EventType::OrderPaymentReceived).await?;
        if self.core.settings.payments.unexpected == Unexpected::Refund {
            let refund = Refund {
                of: self.client,
                book,
                payment: self.payment,
                amount,
                currency: &self.currency,
                from: Suspense,
                actor: "edge",
                reason: None,
            };
            refunds::request(conn, self.core, &refund).await?;
        }
        Ok(())
    }

    /// Lets the order follow what it waited for.
    pub(super) async fn follow_arrival(&mut self, conn: &mut Connection) -> Result<()> {
        let Some(order) = &self.order else { return Ok(()) };
        let amount = Some(self.report.amount);
        match order.amounts.side {
            Side::Buy => {
                let reference = Some(self.report.provider_reference.clone());
                self.apply(conn, OrderEvent::PaymentReceived { amount, reference }).await
            }
            Side::Sell => {
                let transaction_id = self.report.transaction_id.clone();
                self.apply_sale(conn, SaleEvent::DepositReceived { amount, transaction_id }).await
            }
        }
    }

    /// Money or coins were given back: what was to be refunded, else what is not executed, else what
    /// nobody wants. More than all of that is a loss.
    async fn refund(&mut self, conn: &mut Connection) -> Result<()> {
        let amount = self.report.amount;
        if let Some(order) = self.order.clone() {
            let before = self.position(conn).await?;
            let open = before.owed(RefundPayable, &self.currency)
                + before.owed(Suspense, &self.currency)
                + before.owed(Customer, &self.currency);
            let unpaid = matches!(order.status, OrderStatus::InProgress | OrderStatus::Blocked);
            let payout = order.amounts.payout();
            if amount > open && unpaid && before.owed(PayoutPayable, payout.1) >= payout.0 {
                unwind(conn, self.core, &order, &self.subject()).await?;
            }
        }
        let position = self.position(conn).await?;
        let mut rest = amount;
        let mut postings = vec![self.held(-amount)];
        for kind in [RefundPayable, Suspense, Customer] {
            let part = position.owed(kind, &self.currency).min(rest);
            postings.push(self.line(kind, part));
            rest -= part;
        }
        let excess = if self.order.is_some() { Dispute } else { Suspense };
        postings.push(self.line(excess, rest));
        self.post(conn, &postings).await?;
        let Some(order) = &self.order else { return Ok(()) };
        let after = self.position(conn).await?;
        let owed =
            after.owed(Customer, &self.currency) + after.owed(RefundPayable, &self.currency);
        let returned = owed.is_zero() && !after.is_executed(&order.amounts.crypto_currency);
        if !returned || !matches!(order.status, OrderStatus::InProgress | OrderStatus::Blocked) {
            return Ok(());
        }
        let reason = self.report.reason.clone();
        match order.amounts.side {
            Side::Buy => self.apply(conn, OrderEvent::Refund { reason }).await,
            Side::Sell => self.apply_sale(conn, SaleEvent::Refund { reason }).await,
        }
    }

    /// The payout is under way, or has arrived: whichever is told first moves it.
    async fn send(&mut self, conn: &mut Connection) -> Result<()> {
        let amount = self.report.amount;
        let Some(order) = self.order.clone() else {
            return self.post(conn, &[self.line(Suspense, amount), self.held(-amount)]).await;
        };
        let position = self.position(conn).await?;
        // A payout is told twice, by its begin and by its end: whichever is first has moved it.
        if self.tells_of_another_payout(conn, &order).await? {
            let due = position.owed(PayoutPayable, &self.currency).min(amount);
            let excess = self.line(Suspense, amount - due);
            let postings = [self.line(PayoutPayable, due), excess, self.held(-amount)];
            self.post(conn, &postings).await?;
        }
        let transaction_id = self.report.transaction_id.clone();
        let transaction_id =
            transaction_id.unwrap_or_else(|| self.report.provider_reference.clone());
        match (self.report.kind, order.amounts.side) {
            (PaymentKind::PayoutSent, Side::Buy) => {
                self.apply(conn, OrderEvent::CoinsSent { transaction_id }).await
            }
            (PaymentKind::PayoutConfirmed, Side::Buy) => {
                self.apply(conn, OrderEvent::ConfirmedOnChain).await
            }
            (PaymentKind::TransferCompleted, Side::Sell) => {
                self.apply_sale(conn, SaleEvent::PaidOut).await
            }
            _ => Ok(()),
        }
    }

    /// True if more payouts of the order were begun or ended than the other reports know of.
    async fn tells_of_another_payout(
        &self,
        conn: &mut Connection,
        order: &OrderTerms,
    ) -> Result<bool> {
        let other = match self.report.kind {
            PaymentKind::PayoutSent => PaymentKind::PayoutConfirmed,
            PaymentKind::PayoutConfirmed => PaymentKind::PayoutSent,
            PaymentKind::TransferSent => PaymentKind::TransferCompleted,
            _ => PaymentKind::TransferSent,
        };
        let more = sqlx::query_scalar!(
            r#"
            select count(*) filter (where kind = $3) > count(*) filter (where kind = $4) as "more!"
            from payment where client_id = $1 and order_id = $2
            "#,
            order.client.uuid(),
            order.order.number(),
            self.report.kind.as_str(),
            other.as_str(),
        )
        .fetch_one(conn)
        .await?;
        Ok(more)
    }

    /// The payout did not leave, or came back: the order waits for an operator.
    async fn fail(&mut self, conn: &mut Connection) -> Result<()> {
        let Some(order) = self.order.clone() else {
            let amount = self.report.amount;
            return self.post(conn, &[self.held(amount), self.line(Suspense, -amount)]).await;
        };
        let position = self.position(conn).await?;
        let (payout, gets) = order.amounts.payout();
        let executed = position.is_executed(&order.amounts.crypto_currency);
        if executed && position.owed(PayoutPayable, gets) < payout {
            let postings = reversed(order.amounts.sending(&self.report.connector));
            self.post(conn, &postings).await?;
        }
        if order.amounts.side == Side::Buy {
            // They may be sent again.
            sqlx::query!(
                "update buy_order set transaction_id = null \
                 where client_id = $1 and order_id = $2 and status = 'in progress'",
                order.client.uuid(),
                order.order.number(),
            )
            .execute(&mut *conn)
            .await?;
        }
        let reason = Some(self.report.reason.clone().unwrap_or("the payout failed".to_owned()));
        match order.amounts.side {
            Side::Buy => self.apply(conn, OrderEvent::Hold { reason }).await,
            Side::Sell => self.apply_sale(conn, SaleEvent::Hold { reason }).await,
        }
    }

    /// The provider took the payment back. Coins that have left are lost; others stay.
    async fn dispute(&mut self, conn: &mut Connection) -> Result<()> {
        let amount = self.report.amount;
        self.post(conn, &[self.line(Dispute, amount), self.held(-amount)]).await?;
        if self.order.is_none() {
            return Ok(());
        }
        self.tell(conn, EventType::OrderDisputed).await?;
        let reason = Some("the payment is disputed".to_owned());
        match self.order.as_ref().map(|order| order.amounts.side) {
            Some(Side::Buy) => self.apply(conn, OrderEvent::Hold { reason }).await,
            _ => Ok(()),
        }
    }

    /// Records the partner's event about this payment of its order.
    async fn tell(&self, conn: &mut Connection, kind: EventType) -> Result<()> {
        let Some(order) = &self.order else { return Ok(()) };
        let payload = json!({
            "orderId": order.order,
            "partnerOrderIdentifier": order.partner_reference,
            "status": order.status,
            "payment": {
                "id": self.payment,
                "amount": JsonDecimal(self.report.amount),
                "currencyCode": self.currency,
            },
        });
        let event = NewEvent { kind, order_id: Some(order.order), payload };
        Ok(events::record(conn, self.core, order.client, event, None).await?)
    }

    /// Lets a purchase follow the payment; it stays as it is where its state forbids that.
    async fn apply(&mut self, conn: &mut Connection, event: OrderEvent) -> Result<()> {
        let Some(order) = &self.order else { return Ok(()) };
        let at = (order.client, order.order, self.payment);
        let applied = apply_recorded(conn, self.core, at, &event, &self.report.actor).await;
        self.follow(applied.map(|applied| applied.cause))
    }

    /// As [`Self::apply`], for a sale.
    async fn apply_sale(&mut self, conn: &mut Connection, event: SaleEvent) -> Result<()> {
        let Some(order) = &self.order else { return Ok(()) };
        let at = (order.client, order.order, self.payment);
        let applied = apply_recorded(conn, self.core, at, &event, &self.report.actor).await;
        self.follow(applied.map(|applied| applied.cause))
    }

    fn follow(&mut self, applied: Result<Cause, NotApplied>) -> Result<()> {
        match applied {
            Ok(cause) => self.causes.push(cause),
            Err(NotApplied::Failed(error)) => return Err(error),
            Err(NotApplied::Refused(reason)) => {
                return Err(Error::broken(reason));
            }
            Err(NotApplied::Forbidden { .. } | NotApplied::NoSuchOrder) => {}
        }
        Ok(())
    }
}
