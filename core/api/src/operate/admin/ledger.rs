//! The books, as operators read them.

pub mod balances;
mod beancount;
pub mod check;
pub mod entries;
pub mod export;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::page::check_after;
use crate::Core;
use crate::platform::error::Result;

/// A posting with its entry and its account.
#[derive(Debug)]
struct Line {
    slug: String,
    entry_id: Uuid,
    entry: String,
    order_id: Option<i64>,
    payment_id: Option<Uuid>,
    occurred_at: DateTime<Utc>,
    recorded_at: DateTime<Utc>,
    account_id: Uuid,
    account: String,
    currency: String,
    holder: String,
    amount: Decimal,
}

/// Entries that are asked for: every criterion that is there must hold.
#[derive(Debug, Default)]
pub struct Criteria {
    partner: Option<String>,
    order: Option<i64>,
    account: Option<Uuid>,
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
    /// The last entry of the page before.
    after: Option<Uuid>,
    /// Most entries.
    limit: i64,
}

impl Criteria {
    /// The postings of the entries, oldest first.
    async fn lines(self, core: &Core) -> Result<Vec<Line>> {
        let mut conn = core.db.acquire().await?;
        if let Some(after) = self.after {
            let exists = sqlx::query_scalar!(
                r#"select exists (select from ledger_entry where entry_id = $1) as "exists!""#,
                after,
            );
            check_after(exists.fetch_one(&mut *conn).await?)?;
        }
        let lines = sqlx::query_as!(
            Line,
            r#"
            with wanted as (
                select e.client_id, c.slug, e.entry_id, e.kind, e.order_id, e.payment_id,
                    e.occurred_at, e.recorded_at
                from ledger_entry e join client c on c.client_id = e.client_id
                where ($1::text is null
                        or e.client_id = (select client_id from client where slug = $1))
                    and ($2::bigint is null or e.order_id = $2)
                    and ($3::uuid is null or exists (select from ledger_posting p
                        where p.client_id = e.client_id and p.entry_id = e.entry_id
                            and p.account_id = $3))
                    and ($4::timestamptz is null or e.occurred_at >= $4)
                    and ($5::timestamptz is null or e.occurred_at < $5)
                    and ($6::uuid is null or (e.occurred_at, e.entry_id) >
                        (select occurred_at, entry_id from ledger_entry where entry_id = $6))
                order by e.occurred_at, e.entry_id limit $7
            )
            select w.slug as "slug!", w.entry_id as "entry_id!", w.kind as "entry!", w.order_id,
                w.payment_id, w.occurred_at as "occurred_at!", w.recorded_at as "recorded_at!",
                a.account_id, a.kind as account, a.currency, a.holder, p.amount
            from wanted w
            join ledger_posting p on p.client_id = w.client_id and p.entry_id = w.entry_id
            join ledger_account a on a.client_id = p.client_id and a.account_id = p.account_id
            order by w.occurred_at, w.entry_id, p.line
            "#,
            self.partner,
            self.order,
            self.account,
            self.from,
            self.to,
            self.after,
            self.limit,
        )
        .fetch_all(&mut *conn)
        .await?;
        Ok(lines)
    }
}
