//! Entries of the books on the days of a statement that the statement lacks.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use rampart_statement::Line;
use rampart_types::JsonDecimal;

use super::{Account, DIFFERENCES_MAX, Difference};
use crate::Core;
use crate::platform::error::Result;

/// The days and the accounts that a statement covers.
pub(super) struct Coverage {
    days: Vec<DateTime<Utc>>,
    pub(super) accounts: BTreeSet<Account>,
}

impl Coverage {
    pub(super) fn of(lines: &[Line]) -> Self {
        let account = |line: &Line| Account {
            currency: line.currency.clone(),
            account: line.account.clone(),
        };
        Self {
            days: lines.iter().filter_map(Line::at).collect(),
            accounts: lines.iter().map(account).collect(),
        }
    }

    /// The account that a payment of this currency is missing in; the books know of no more than one.
    fn account(&self, currency: &str) -> String {
        let found = self.accounts.iter().find(|account| account.currency == currency);
        found.map(|account| account.account.clone()).unwrap_or_default()
    }
}

/// The payments of the statement's days and currencies whose references no line has, as many as are
/// kept: an account of another currency, or an address of another asset, has a statement of its own. One
/// that an earlier statement has is of another account in the currency, or of another page of this one.
///
/// # Errors
/// The database's.
pub(super) async fn in_books_alone(
    core: &Core,
    connector: &str,
    coverage: &Coverage,
    seen: &[String],
) -> Result<Vec<Difference>> {
    let Coverage { days, accounts } = coverage;
    let span = days.iter().min().zip(days.iter().max());
    let Some((first, last)) = span else { return Ok(Vec::new()) };
    let currencies: Vec<String> = accounts.iter().map(|account| account.currency.clone()).collect();
    // A payout is reported by its begin and by its end: the one that moved it has the entry.
    let until = *last + chrono::TimeDelta::days(1);
    let most = i64::try_from(DIFFERENCES_MAX + 1).unwrap_or(i64::MAX);
    let rows = sqlx::query!(
        r#"
        select provider_reference as "provider_reference!", currency as "currency!",
            amount as "amount!", kind as "kind!"
        from (
            select p.provider_reference, p.currency, p.occurred_at, p.payment_id,
                case p.kind when 'transfer-completed' then 'transfer-sent'
                    when 'payout-confirmed' then 'payout-sent' else p.kind end as kind,
                case when p.kind in ('received', 'deposit-received', 'transfer-returned',
                        'payout-failed', 'dispute-won') then p.amount
                    else coalesce((
                        select sum(c.amount) from refund_confirmation c
                        where c.client_id = p.client_id and c.payment_id = p.payment_id), 0)
                        - p.amount end as amount
            from payment p
            where p.connector = $1 and p.occurred_at >= $2 and p.occurred_at < $3
                and p.currency = any ($6)
                and p.kind in ('received', 'deposit-received', 'refunded', 'transfer-sent',
                    'transfer-completed', 'transfer-returned', 'payout-sent', 'payout-confirmed',
                    'payout-failed', 'disputed', 'dispute-won')
                and (p.kind not in ('transfer-sent', 'transfer-completed', 'transfer-returned',
                        'payout-sent', 'payout-confirmed', 'payout-failed') or exists (
                    select from ledger_entry e where e.client_id = p.client_id
                        and e.payment_id = p.payment_id and e.kind <> 'network-fee'))
                -- the rest of what was confirmed is of the same line
                and not (p.kind = 'refunded' and exists (
                    select from refund_of_rest($1, p.provider_reference, p.amount)))
            union all
            -- by the provider's reference, not by that of the refund by hand
            select c.provider_reference, p.currency, c.occurred_at, c.payment_id, p.kind,
                -c.amount - c.rest
            from refund_confirmation c
            join payment p on p.client_id = c.client_id and p.payment_id = c.payment_id
            where c.connector = $1 and c.occurred_at >= $2 and c.occurred_at < $3
                and p.currency = any ($6)
        ) moved
        where amount <> 0 and not exists (select from unnest($4::text[]) seen (reference)
                where seen.reference = moved.provider_reference)
            and not exists (select from reconciled_payment r where r.connector = $1
                and r.provider_reference = moved.provider_reference and r.kind = moved.kind)
        order by occurred_at, payment_id limit $5
        "#,
        connector,
        first,
        until,
        seen,
        most,
        &currencies,
    )
    .fetch_all(&core.db)
    .await?;
    let missing = rows.into_iter().map(|row| Difference {
        side: "books".to_owned(),
        account: coverage.account(&row.currency),
        provider_reference: row.provider_reference,
        amount: JsonDecimal(row.amount),
        currency: row.currency,
        booked_amount: None,
        other_references: Vec::new(),
        kind: row.kind,
    });
    Ok(missing.collect())
}

/// The begin of a payout whose end has another name.
pub(super) struct Begin {
    pub(super) reference: String,
    pub(super) kind: String,
    /// The name of its end.
    pub(super) end: String,
}

/// The begins of payouts whose end is one of these: a transaction may have taken the place of the one
/// that was told first. The end of a payout that had left moves nothing, and has no entry.
///
/// # Errors
/// The database's.
pub(super) async fn renamed(core: &Core, connector: &str, ends: &[String]) -> Result<Vec<Begin>> {
    let begins = sqlx::query_as!(
        Begin,
        r#"
        select p.provider_reference as reference, p.kind, e.provider_reference as "end"
        from payment e
        join payment p on p.client_id = e.client_id and p.order_id = e.order_id
        where e.connector = $1 and e.provider_reference = any ($2)
            and e.kind in ('payout-confirmed', 'transfer-completed')
            and p.connector = $1 and p.currency = e.currency and p.amount = e.amount
            and p.kind = case e.kind when 'payout-confirmed' then 'payout-sent'
                else 'transfer-sent' end
            and p.recorded_at <= e.recorded_at
            and not exists (
                select from ledger_entry l where l.client_id = e.client_id
                    and l.payment_id = e.payment_id and l.kind <> 'network-fee')
            -- that of its own name, or of a later begin, is another payout's
            and not exists (
                select from payment b
                where b.client_id = p.client_id and b.order_id = p.order_id
                    and b.connector = $1 and b.kind = p.kind and b.payment_id <> p.payment_id
                    and (b.provider_reference = e.provider_reference
                        or b.recorded_at between p.recorded_at and e.recorded_at))
        "#,
        connector,
        ends,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(begins)
}
