//! Disputes and refunds by the provider, which may be reported before the payment itself.

use rust_decimal::Decimal;

use super::Recording;
use crate::money::ledger::AccountKind::{Dispute, Suspense};
use crate::money::ledger::post;
use crate::money::payments::earlier::{self, DISPUTED};
use crate::money::payments::refund_withdrawals::withdraw_disputed;
use crate::money::payments::report::Report;
use crate::notify::events::EventType;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::quotes::Side;
use rampart_types::OrderId;

impl Recording<'_> {
    /// The provider took the payment back. Coins that have left are lost; others stay.
    pub(super) async fn dispute(&mut self, conn: &mut Connection) -> Result<()> {
        let amount = self.report.amount;
        self.post(conn, &[self.line(Dispute, amount), self.held(-amount)]).await?;
        // Its provider has taken it back: it is not given back by command as well.
        withdraw_disputed(conn, self.core, self.report).await?;
        if self.order.is_none() {
            return Ok(());
        }
        self.record_event(conn, EventType::OrderDisputed).await?;
        match self.order.as_ref().map(|order| order.amounts.side) {
            Some(Side::Buy) => self.hold(conn, Some(DISPUTED.to_owned())).await,
            _ => Ok(()),
        }
    }

    /// Lets the purchase that this payment has paid wait if a refund of either, or a dispute that
    /// is not won, was reported before it: the payout that it was to have is taken back.
    pub(super) async fn hold_if_taken_back(&mut self, conn: &mut Connection) -> Result<()> {
        let Some(order) = &self.order else { return Ok(()) };
        let Report { connector, provider_reference, .. } = self.report;
        let (key, currency) = (order.key, &self.currency);
        let reason =
            earlier::taken_back(conn, connector, provider_reference, key, currency).await?;
        match reason {
            Some(reason) => self.hold(conn, Some(reason.to_owned())).await,
            None => Ok(()),
        }
    }

    /// Sets off what had been given back or lost of this payment, which is in suspense, before it
    /// was reported itself. What is left of it is the answer.
    pub(super) async fn set_off_earlier(&self, conn: &mut Connection) -> Result<Decimal> {
        let gone = sqlx::query_scalar!(
            r#"
            select coalesce((
                    select sum(amount) from payment
                    where connector = $1 and kind = 'refunded' and currency = $3
                        and coalesce(original_reference, provider_reference) = $2), 0)
                + coalesce((
                    select sum(d.taken - d.still_open) from disputes_of($1, $2, null, null) d
                    where d.is_of_payment and d.currency = $3), 0) as "gone!"
            "#,
            self.report.connector,
            self.report.provider_reference,
            self.currency,
        )
        .fetch_one(&mut *conn)
        .await?;
        self.write_off(conn, "settled", gone).await?;
        Ok((self.report.amount - gone).max(Decimal::ZERO))
    }

    /// Sets off what had been lost of this payment, which has no order, before it was reported
    /// itself. A refund that was reported first is in suspense there, beside it.
    pub(super) async fn set_off_lost(&self, conn: &mut Connection) -> Result<()> {
        let lost = sqlx::query_scalar!(
            r#"
            with named as (
                select $2::text as reference
                union
                -- the end of a dispute may name the dispute alone
                select d.provider_reference from payment d
                where d.connector = $1 and d.kind = 'disputed'
                    and coalesce(d.original_reference, d.provider_reference) = $2
            )
            select coalesce(sum(l.amount - coalesce(b.amount, 0)), 0) as "lost!"
            from named n
            join payment l on coalesce(l.original_reference, l.provider_reference) = n.reference
            left join lateral lost_and_won(l.connector, l.provider_reference) b on true
            where l.connector = $1 and l.kind = 'dispute-lost' and l.currency = $3
                and l.client_id = $4
                -- an order that does not exist is none
                and not exists (select from buy_order o
                    where o.client_id = l.client_id and o.order_id = l.order_id)
                and not exists (select from sell_order o
                    where o.client_id = l.client_id and o.order_id = l.order_id)
            "#,
            self.report.connector,
            self.report.provider_reference,
            self.currency,
            self.client.uuid(),
        )
        .fetch_one(&mut *conn)
        .await?;
        self.write_off(conn, "settled", lost.min(self.report.amount)).await
    }

    /// The provider has returned what was disputed. What a loss that was told before had taken from
    /// suspense is owed there again.
    pub(super) async fn win(&self, conn: &mut Connection) -> Result<()> {
        let owed_again = sqlx::query_scalar!(
            r#"
            select least(b.amount, coalesce((
                select sum(l.amount)
                from payment p
                -- not by value: of a partner newer than its statistics the planner expects no row
                join ledger_entry e on e.client_id = (select $4::uuid)
                    and e.payment_id = p.payment_id
                    and e.kind in ('dispute-lost', 'settled')
                join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id
                join ledger_account a
                    on a.client_id = l.client_id and a.account_id = l.account_id
                where p.connector = $1 and a.kind = 'suspense' and a.currency = $5
                    and (p.kind = 'dispute-lost' and p.provider_reference = $3
                        -- the end of a dispute may name the dispute alone
                        or p.kind = 'received' and p.provider_reference in ($2, (
                            select d.original_reference from payment d
                            where d.connector = $1 and d.kind = 'disputed'
                                and d.provider_reference = $3)))), 0)) as "owed_again!"
            from lost_and_won($1, $3) b
            "#,
            self.report.connector,
            self.report.payment_reference(),
            self.report.provider_reference,
            self.client.uuid(),
            self.currency,
        )
        .fetch_optional(&mut *conn)
        .await?;
        let owed_again = owed_again.unwrap_or_default().max(Decimal::ZERO);
        let amount = self.report.amount;
        let postings = [
            self.held(amount),
            self.line(Suspense, -owed_again),
            self.line(Dispute, owed_again - amount),
        ];
        self.post(conn, &postings).await
    }

    /// The payer keeps what was disputed. The loss stands in the account of disputes already; what
    /// nobody wanted is no loss, but owed to nobody any more, unless it was won before.
    pub(super) async fn lose(&self, conn: &mut Connection) -> Result<()> {
        let lost = sqlx::query_scalar!(
            r#"
            select least(p.amount - requested.amount, $6::numeric - coalesce(b.amount, 0))
                as "lost!"
            from payment p
            cross join lateral refund_requested(p.client_id, p.payment_id) requested
            left join lateral lost_and_won($1, $3) b on true
            where p.connector = $1 and p.kind = 'received' and p.suspense
                and p.client_id = $4 and p.order_id is not distinct from $5
                -- the end of a dispute may name the dispute alone
                and p.provider_reference in ($2, (
                    select d.original_reference from payment d
                    where d.connector = $1 and d.kind = 'disputed' and d.provider_reference = $3))
                and not exists (select from payment_match m
                    where m.client_id = p.client_id and m.payment_id = p.payment_id)
            limit 1
            "#,
            self.report.connector,
            self.report.payment_reference(),
            self.report.provider_reference,
            self.client.uuid(),
            self.report.order.map(OrderId::number),
            self.report.amount,
        )
        .fetch_optional(&mut *conn)
        .await?;
        match lost {
            Some(lost) => self.write_off(conn, self.report.kind.as_str(), lost).await,
            None => Ok(()),
        }
    }

    /// Takes from suspense what is gone, as far as it stands in the account of disputes.
    async fn write_off(
        &self,
        conn: &mut Connection,
        kind: &'static str,
        gone: Decimal,
    ) -> Result<()> {
        if gone <= Decimal::ZERO {
            return Ok(());
        }
        let position = self.position(conn).await?;
        let disputed = position.sum(Dispute, &self.currency).max(Decimal::ZERO);
        let part = gone.min(position.owed(Suspense, &self.currency)).min(disputed);
        let postings = [self.line(Suspense, part), self.line(Dispute, -part)];
        Ok(post(conn, self.core, kind, &self.subject(), &postings).await?)
    }
}
