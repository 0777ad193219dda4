//! Settled sums: of each account what its postings come to up to an entry. A balance is that, and the
//! postings since. What decides on an order's money reads the order's postings themselves, and what
//! decides on money without an order the sums of what has none ([`super::Position`]).

use rust_decimal::Decimal;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use rampart_types::JsonDecimal;

/// Age from which an entry is settled, in seconds. Its id has the time at which its transaction made it, and
/// no transaction takes that long, so that none comes in before it any more: the database refuses it.
const SETTLED_AGE: i32 = 10 * 60;
/// Most entries that one statement settles.
const SETTLED_MAX: i64 = 20_000;

/// Settles the next entries that are old enough. True while there may be more.
///
/// # Errors
/// When the database cannot be used; nothing is settled in part.
pub(super) async fn settle(core: &Core) -> Result<bool> {
    let all = settle_all(core).await?;
    let without_order = settle_without_order(core).await?;
    Ok(all || without_order)
}

/// Settles the next entries, whatever they are of.
async fn settle_all(core: &Core) -> Result<bool> {
    let entries = sqlx::query_scalar!(
        r#"
        with page as (
            select client_id, entry_id from ledger_entry
            where entry_id > (select settled_place from ledger_check)
                -- the least id of that time (RFC 9562, section 5.7)
                and entry_id < (lpad(to_hex((extract(epoch from
                    rampart_now() - make_interval(secs => $1::int)) * 1000)::bigint), 12, '0')
                    || repeat('0', 20))::uuid
            order by entry_id limit $2
        ), moved as (
            update ledger_check c
            set settled_place = (select entry_id from page order by entry_id desc limit 1)
            -- another edge may have settled them meanwhile
            where c.settled_place = (select settled_place from ledger_check)
                and exists (select from page)
            returning c.settled_place
        ), added as (
            insert into ledger_settled as s (client_id, account_id, amount)
            select p.client_id, p.account_id, sum(p.amount)
            from moved cross join page
            join ledger_posting p on p.client_id = page.client_id and p.entry_id = page.entry_id
            group by p.client_id, p.account_id
            on conflict (client_id, account_id) do update set amount = s.amount + excluded.amount
        )
        select count(*) as "entries!" from page
        "#,
        SETTLED_AGE,
        SETTLED_MAX,
    )
    .fetch_one(&core.db)
    .await?;
    Ok(entries == SETTLED_MAX)
}

/// Settles the entries without an order among those that [`settle_all`] has settled. They have a place
/// of their own, as those that were settled before these sums were kept are added from the first on.
async fn settle_without_order(core: &Core) -> Result<bool> {
    let entries = sqlx::query_scalar!(
        r#"
        with page as (
            select client_id, entry_id, order_id from ledger_entry
            where entry_id > (select no_order_place from ledger_check)
                -- no entry comes in behind that
                and entry_id <= (select settled_place from ledger_check)
            order by entry_id limit $1
        ), moved as (
            update ledger_check c
            set no_order_place = (select entry_id from page order by entry_id desc limit 1)
            -- another edge may have settled them meanwhile
            where c.no_order_place = (select no_order_place from ledger_check)
                and exists (select from page)
            returning c.no_order_place
        ), added as (
            insert into ledger_settled_no_order as s (client_id, account_id, amount)
            select p.client_id, p.account_id, sum(p.amount)
            from moved cross join page
            join ledger_posting p on p.client_id = page.client_id and p.entry_id = page.entry_id
            where page.order_id is null
            group by p.client_id, p.account_id
            on conflict (client_id, account_id) do update set amount = s.amount + excluded.amount
        )
        select count(*) as "entries!" from page
        "#,
        SETTLED_MAX,
    )
    .fetch_one(&core.db)
    .await?;
    Ok(entries == SETTLED_MAX)
}

/// The last settled entry. A statement compares entries with the one that it sees itself, and besides
/// with this one, as a bound value: Postgres then expects few.
pub async fn place(conn: &mut Connection) -> Result<Uuid, sqlx::Error> {
    sqlx::query_scalar!("select settled_place from ledger_check").fetch_one(conn).await
}

/// The coins that we hold by the books, by asset, as an object of JSON.
pub(super) async fn treasury(core: &Core) -> Result<Value> {
    let mut tx = core.db.begin().await?;
    let place = place(&mut tx).await?;
    let rows = sqlx::query!(
        r#"
        select currency as "currency!", sum(amount) as "amount!"
        from (
            select a.currency, s.amount from ledger_account a
            join ledger_settled s on s.client_id = a.client_id and s.account_id = a.account_id
            where a.kind = 'treasury'
            union all
            select a.currency, p.amount from ledger_entry e
            join ledger_posting p on p.client_id = e.client_id and p.entry_id = e.entry_id
            join ledger_account a on a.client_id = p.client_id and a.account_id = p.account_id
            where e.entry_id > $1 and e.entry_id > (select settled_place from ledger_check)
                and a.kind = 'treasury'
        ) held
        group by currency
        "#,
        place,
    )
    .fetch_all(&mut *tx)
    .await?;
    let amount = |amount: Decimal| serde_json::to_value(JsonDecimal(amount));
    let sums = rows.into_iter().map(|row| Ok((row.currency, amount(row.amount)?)));
    let sums: serde_json::Result<Map<String, Value>> = sums.collect();
    Ok(Value::Object(sums.map_err(|e| Error::internal("write the treasury", e))?))
}
