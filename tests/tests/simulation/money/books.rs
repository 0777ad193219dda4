//! The books, the payments and the orders as the tables have them, read by statements of the test's
//! own.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use sqlx::PgPool;
use uuid::Uuid;

/// An order, or what has none: the tenant and the order's number.
pub(crate) type Place = (Uuid, Option<i64>);

#[derive(Clone, Debug, sqlx::FromRow)]
pub(crate) struct Order {
    pub(crate) client_id: Uuid,
    pub(crate) order_id: i64,
    pub(crate) status: String,
    pub(crate) due: Decimal,
    pub(crate) pays: String,
    pub(crate) payout: Decimal,
    pub(crate) gets: String,
    pub(crate) asset: String,
    pub(crate) coins: Decimal,
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub(crate) struct Payment {
    pub(crate) client_id: Uuid,
    pub(crate) payment_id: Uuid,
    pub(crate) connector: String,
    pub(crate) provider_reference: String,
    pub(crate) kind: String,
    pub(crate) amount: Decimal,
    pub(crate) currency: String,
    pub(crate) order_id: Option<i64>,
    pub(crate) suspense: bool,
    pub(crate) actor: String,
    pub(crate) to_client_id: Option<Uuid>,
    pub(crate) to_order_id: Option<i64>,
    pub(crate) refunds: Decimal,
    /// Entries of its own kind, and what those have moved at providers and in the treasury.
    pub(crate) entries: i64,
    pub(crate) moved: Decimal,
}

/// A provider's report of a refund that an operator's event has booked.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(crate) struct Confirmation {
    pub(crate) payment_id: Uuid,
    pub(crate) connector: String,
    pub(crate) provider_reference: String,
    pub(crate) amount: Decimal,
    pub(crate) currency: String,
}

#[derive(Clone, Debug, sqlx::FromRow)]
struct Sum {
    client_id: Uuid,
    order_id: Option<i64>,
    kind: String,
    currency: String,
    amount: Decimal,
}

#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) orders: Vec<Order>,
    pub(crate) payments: Vec<Payment>,
    pub(crate) confirmations: Vec<Confirmation>,
    /// Sums of postings by place, kind of account and currency.
    sums: BTreeMap<(Place, String, String), Decimal>,
    pub(crate) unbalanced: Vec<Uuid>,
    /// Orders whose payout an operator says has come back.
    pub(crate) taken_back: BTreeSet<i64>,
    /// The most that an order was ever to pay out.
    payouts: BTreeMap<i64, Decimal>,
}

const ORDERS: &str = "
    select client_id, order_id, status, fiat_amount as due, fiat_currency as pays,
        crypto_amount as payout, crypto_currency as gets, crypto_currency as asset,
        crypto_amount as coins
    from buy_order
    union all
    select client_id, order_id, status, crypto_amount, crypto_currency, fiat_amount, fiat_currency,
        crypto_currency, -crypto_amount
    from sell_order order by order_id";

const PAYMENTS: &str = "
    with booked as (
        select e.payment_id, e.kind, count(distinct e.entry_id) as entries,
            coalesce(sum(l.amount) filter (where a.kind in ('provider', 'treasury')), 0) as moved
        from ledger_entry e left join ledger_posting l using (client_id, entry_id)
            left join ledger_account a using (client_id, account_id)
        group by 1, 2
    ), refunded as (
        select r.payment_id, sum(r.amount - coalesce(w.amount, 0)) as refunds
        from payment_refund r left join payment_refund_withdrawal w using (client_id, refund_id)
        group by 1
    )
    select p.client_id, p.payment_id, p.connector, p.provider_reference, p.kind, p.amount, p.currency,
        p.order_id, p.suspense, p.actor, m.to_client_id, m.order_id as to_order_id,
        coalesce(r.refunds, 0) as refunds, coalesce(b.entries, 0) as entries,
        coalesce(b.moved, 0) as moved
    from payment p left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
        left join booked b on b.payment_id = p.payment_id and b.kind = p.kind
        left join refunded r on r.payment_id = p.payment_id
    order by p.payment_id";

const CONFIRMATIONS: &str = "
    select c.payment_id, c.connector, c.provider_reference, c.amount, p.currency
    from refund_confirmation c join payment p using (client_id, payment_id)";

const SUMS: &str = "
    select e.client_id, e.order_id, a.kind, a.currency, sum(l.amount) as amount
    from ledger_entry e join ledger_posting l using (client_id, entry_id)
        join ledger_account a using (client_id, account_id)
    group by 1, 2, 3, 4 having sum(l.amount) <> 0";

const UNBALANCED: &str = "
    select distinct e.entry_id from ledger_entry e left join ledger_posting l using (client_id, entry_id)
        left join ledger_account a using (client_id, account_id)
    group by e.client_id, e.entry_id, a.currency having coalesce(sum(l.amount), 1) <> 0";

const TAKEN_BACK: &str = "select distinct order_id from ledger_entry where kind = 'payout-returned' and order_id is not null";

const PAYOUTS: &str = "
    select e.order_id, max(-l.amount)
    from ledger_entry e join ledger_posting l using (client_id, entry_id)
        join ledger_account a using (client_id, account_id)
    where e.kind = 'execution' and a.kind = 'payout_payable' and e.order_id is not null group by 1";

impl Books {
    pub(crate) async fn read(db: &PgPool) -> Self {
        // One snapshot for all: nothing may change between two of them.
        let mut tx = db.begin_with("begin isolation level repeatable read").await.unwrap();
        let sums: Vec<Sum> = sqlx::query_as(SUMS).fetch_all(&mut *tx).await.unwrap();
        let place = |sum: &Sum| (sum.client_id, sum.order_id);
        let sums = sums
            .into_iter()
            .map(|sum| ((place(&sum), sum.kind.clone(), sum.currency.clone()), sum.amount));
        let taken_back: Vec<i64> =
            sqlx::query_scalar(TAKEN_BACK).fetch_all(&mut *tx).await.unwrap();
        let payouts: Vec<(i64, Decimal)> =
            sqlx::query_as(PAYOUTS).fetch_all(&mut *tx).await.unwrap();
        Self {
            sums: sums.collect(),
            orders: sqlx::query_as(ORDERS).fetch_all(&mut *tx).await.unwrap(),
            payments: sqlx::query_as(PAYMENTS).fetch_all(&mut *tx).await.unwrap(),
            confirmations: sqlx::query_as(CONFIRMATIONS).fetch_all(&mut *tx).await.unwrap(),
            unbalanced: sqlx::query_scalar(UNBALANCED).fetch_all(&mut *tx).await.unwrap(),
            taken_back: taken_back.into_iter().collect(),
            payouts: payouts.into_iter().collect(),
        }
    }

    /// The sum of the accounts of a kind in a currency, in the entries of an order or of none.
    pub(crate) fn sum(&self, place: Place, kind: &str, currency: &str) -> Decimal {
        let key = (place, kind.to_owned(), currency.to_owned());
        self.sums.get(&key).copied().unwrap_or_default()
    }

    /// The most that an order was ever to pay out; a part of its payment may have been given back since.
    pub(crate) fn payout_max(&self, order: i64) -> Decimal {
        self.payouts.get(&order).copied().unwrap_or_default()
    }

    /// Holdings of providers and the treasury for an order, or for none, by currency.
    pub(crate) fn holdings(&self) -> BTreeMap<(Place, String), Decimal> {
        let mut holdings = BTreeMap::new();
        for ((place, kind, currency), amount) in &self.sums {
            if kind == "provider" || kind == "treasury" {
                *holdings.entry((*place, currency.clone())).or_default() += amount;
            }
        }
        holdings
    }

    /// Sums that must not be debits, and are.
    pub(crate) fn debits(&self, kinds: &[&str]) -> Vec<String> {
        let wrong = self.sums.iter().filter(|((_, kind, _), amount)| {
            kinds.contains(&kind.as_str()) && **amount > Decimal::ZERO
        });
        wrong.map(|(sum, amount)| format!("{sum:?} is a debit of {amount}")).collect()
    }
}
