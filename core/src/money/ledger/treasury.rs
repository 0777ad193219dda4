//! The coins that we hold by the books, by asset: a sum that is settled up to an entry, and the postings
//! since.

use rust_decimal::Decimal;
use serde_json::{Map, Value};

use crate::Core;
use crate::platform::error::{Error, Result};
use rampart_types::JsonDecimal;

/// Age from which an entry is settled, in seconds. Its id has the time at which its transaction made it, and
/// no transaction takes that long, so that none comes in before it any more.
const SETTLED_AGE: i32 = 10 * 60;
/// Most entries that one statement settles.
const SETTLED_MAX: i64 = 20_000;

/// Settles the next entries that are old enough. True while there may be more.
///
/// # Errors
/// When the database cannot be used; nothing is settled in part.
pub(super) async fn settle(core: &Core) -> Result<bool> {
    let entries = sqlx::query_scalar!(
        r#"
        with page as (
            select client_id, entry_id from ledger_entry
            where entry_id > (select treasury_place from ledger_check)
                -- the least id of that time (RFC 9562, section 5.7)
                and entry_id < (lpad(to_hex((extract(epoch from
                    rampart_now() - make_interval(secs => $1::int)) * 1000)::bigint), 12, '0')
                    || repeat('0', 20))::uuid
            order by entry_id limit $2
        ), sums as (
            select key as currency, value::numeric as amount
            from ledger_check, jsonb_each_text(treasury_settled)
            union all
            select a.currency, p.amount from page
            join ledger_posting p on p.client_id = page.client_id and p.entry_id = page.entry_id
            join ledger_account a on a.client_id = p.client_id and a.account_id = p.account_id
            where a.kind = 'treasury'
        )
        update ledger_check c set
            treasury_place =
                coalesce((select entry_id from page order by entry_id desc limit 1), c.treasury_place),
            treasury_settled = (select coalesce(jsonb_object_agg(currency, amount), '{}')
                from (select currency, sum(amount) as amount from sums group by currency) settled)
        -- another edge may have settled them meanwhile
        where c.treasury_place = (select treasury_place from ledger_check)
        returning (select count(*) from page) as "entries!"
        "#,
        SETTLED_AGE,
        SETTLED_MAX,
    )
    .fetch_optional(&core.db)
    .await?;
    Ok(entries.is_none_or(|entries| entries == SETTLED_MAX))
}

/// The sums by asset, as an object of JSON.
pub(super) async fn sums(core: &Core) -> Result<Value> {
    let settled = sqlx::query!("select treasury_place, treasury_settled from ledger_check")
        .fetch_one(&core.db)
        .await?;
    // Bound, so that Postgres sees how few entries came since.
    let rows = sqlx::query!(
        r#"
        select currency as "currency!", sum(amount) as "amount!"
        from (
            select key as currency, value::numeric as amount from jsonb_each_text($2)
            union all
            select a.currency, p.amount from ledger_entry e
            join ledger_posting p on p.client_id = e.client_id and p.entry_id = e.entry_id
            join ledger_account a on a.client_id = p.client_id and a.account_id = p.account_id
            where e.entry_id > $1 and a.kind = 'treasury'
        ) held
        group by currency
        "#,
        settled.treasury_place,
        settled.treasury_settled,
    )
    .fetch_all(&core.db)
    .await?;
    let amount = |amount: Decimal| serde_json::to_value(JsonDecimal(amount));
    let sums = rows.into_iter().map(|row| Ok((row.currency, amount(row.amount)?)));
    let sums: serde_json::Result<Map<String, Value>> = sums.collect();
    Ok(Value::Object(sums.map_err(|e| Error::internal("write the treasury", e))?))
}
