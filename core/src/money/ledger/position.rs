//! An order's position: the sums of its entries by account.

use rust_decimal::Decimal;

use super::AccountKind;
use crate::platform::db::Connection;
use rampart_types::{ClientId, OrderKey};

/// The sum of one account's postings in the entries of an order.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    kind: String,
    currency: String,
    holder: String,
    amount: Decimal,
}

/// The sums of the entries of an order. They hold as long as the order's row is locked.
#[derive(Clone, Debug, Default)]
pub struct Position(Vec<Sum>);

impl Position {
    /// The position of an order.
    pub async fn of_order(conn: &mut Connection, key: OrderKey) -> Result<Self, sqlx::Error> {
        Self::of_number(conn, key.client, key.order.number()).await
    }

    /// The position of an order of this client; without one, of what has no order.
    pub(crate) async fn of(
        conn: &mut Connection,
        client: ClientId,
        order: Option<i64>,
    ) -> Result<Self, sqlx::Error> {
        match order {
            Some(number) => Self::of_number(conn, client, number).await,
            None => Self::without_order(conn, client).await,
        }
    }

    async fn of_number(
        conn: &mut Connection,
        client: ClientId,
        number: i64,
    ) -> Result<Self, sqlx::Error> {
        let sums = sqlx::query_as!(
            Sum,
            r#"
            select a.kind, a.currency, a.holder, sum(p.amount) as "amount!"
            from ledger_entry e
            join ledger_posting p on p.client_id = e.client_id and p.entry_id = e.entry_id
            join ledger_account a on a.client_id = p.client_id and a.account_id = p.account_id
            -- not by value: of a partner newer than its statistics the planner expects no row
            where e.client_id = (select $1::uuid) and e.order_id = $2
            group by a.kind, a.currency, a.holder having sum(p.amount) <> 0
            order by a.kind, a.currency, a.holder
            "#,
            client.uuid(),
            number,
        )
        .fetch_all(conn)
        .await?;
        Ok(Self(sums))
    }

    /// The position of what has no order: what is settled of it, and the postings since. It is one
    /// statement, so that both are of one moment.
    async fn without_order(conn: &mut Connection, client: ClientId) -> Result<Self, sqlx::Error> {
        let sums = sqlx::query_as!(
            Sum,
            r#"
            select a.kind, a.currency, a.holder, sum(l.amount) as "amount!"
            from (
                select account_id, amount from ledger_settled_no_order where client_id = $1
                union all
                select p.account_id, p.amount from ledger_entry e
                cross join lateral (
                    -- entry by entry: no plan reads the postings from end to end
                    select account_id, amount from ledger_posting
                    where client_id = e.client_id and entry_id = e.entry_id offset 0) p
                where e.client_id = $1 and e.order_id is null
                    and e.entry_id > (select no_order_place from ledger_check)
            ) l
            join ledger_account a on a.client_id = $1 and a.account_id = l.account_id
            group by a.kind, a.currency, a.holder having sum(l.amount) <> 0
            order by a.kind, a.currency, a.holder
            "#,
            client.uuid(),
        )
        .fetch_all(conn)
        .await?;
        Ok(Self(sums))
    }

    /// The sum of the accounts of a kind in a currency; a debit is positive.
    pub(crate) fn sum(&self, kind: AccountKind, currency: &str) -> Decimal {
        let rows = self.0.iter();
        let rows = rows.filter(|row| row.kind == kind.as_str() && row.currency == currency);
        rows.map(|row| row.amount).sum()
    }

    /// The credit of a kind in a currency: what we owe there, or zero.
    pub fn owed(&self, kind: AccountKind, currency: &str) -> Decimal {
        (-self.sum(kind, currency)).max(Decimal::ZERO)
    }

    /// The connectors that hold a currency for the order, and how much.
    pub(crate) fn providers<'a>(
        &'a self,
        currency: &'a str,
    ) -> impl Iterator<Item = (&'a str, Decimal)> {
        self.at_providers(currency).filter(|(_, amount)| *amount > Decimal::ZERO)
    }

    /// The connectors that a currency was sent through for the order, and how much more than they hold.
    pub(crate) fn providers_below<'a>(
        &'a self,
        currency: &'a str,
    ) -> impl Iterator<Item = (&'a str, Decimal)> {
        let sums = self.at_providers(currency).map(|(connector, amount)| (connector, -amount));
        sums.filter(|(_, amount)| *amount > Decimal::ZERO)
    }

    fn at_providers<'a>(&'a self, currency: &'a str) -> impl Iterator<Item = (&'a str, Decimal)> {
        let rows = self.0.iter().filter(move |row| {
            row.kind == AccountKind::Provider.as_str() && row.currency == currency
        });
        rows.map(|row| (row.holder.as_str(), row.amount))
    }

    /// True if coins or money of a payout are owed, and have not left.
    pub(crate) fn owes_payout(&self) -> bool {
        let kind = AccountKind::PayoutPayable.as_str();
        self.0.iter().any(|row| row.kind == kind && row.amount < Decimal::ZERO)
    }

    /// True if the order's fiat and coins have been exchanged.
    pub fn is_executed(&self, currency: &str) -> bool {
        !self.sum(AccountKind::Conversion, currency).is_zero()
    }
}
