//! The statements of a search for orders: one for each index that may lead it, so that none reads the
//! whole table.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use super::Search;
use crate::Core;
use crate::operate::admin::page::check_after;
use crate::platform::error::Result;

/// Statuses that most orders end in, which the newest orders lead to; an index has the others.
const FREQUENT: [&str; 2] = ["completed", "cancelled"];
/// The status that orders begin with; an index of its own has them.
const PENDING: &str = "pending";

/// An order that was found.
pub(super) struct Found {
    pub(super) slug: String,
    pub(super) order_id: i64,
    pub(super) side: String,
    pub(super) status: String,
    pub(super) pair: String,
    pub(super) fiat_amount: Decimal,
    pub(super) fiat_currency: String,
    pub(super) partner_reference: Option<String>,
    pub(super) created_at: DateTime<Utc>,
}

/// A search through each side: the condition that leads to an index, and every criterion besides.
macro_rules! search {
    (of each partner, $led_by:literal, $search:expr) => {
        search!(
            from "client c cross join lateral (", $led_by,
            ") o where ($1::text is null or c.slug = $1)", $search
        )
    };
    (of all, $led_by:literal, $search:expr) => {
        search!(from "(", $led_by, ") o join client c on c.client_id = o.client_id", $search)
    };
    (from $from:literal, $led_by:literal, $behind:literal, $search:expr) => {
        search!(
            from $from, $led_by, $behind, $search,
            "($1::text is null or client_id = (select client_id from client where slug = $1)) \
             and ($2::text is null or status = $2) \
             and ($3::text is null or partner_reference = $3) \
             and ($4::text is null or wallet_address = $4) \
             and ($5::text is null or transaction_id = $5) \
             and ($6::timestamptz is null or created_at >= $6) \
             and ($7::timestamptz is null or created_at < $7) \
             and ($10::bigint is null \
                 or (created_at, order_id) < ((select created_at from after), $10))"
        )
    };
    (from $from:literal, $led_by:literal, $behind:literal, $search:expr, $criteria:literal) => {
        sqlx::query_as!(
            Found,
            "with after as ( \
                 select created_at from buy_order where order_id = $10 \
                 union all select created_at from sell_order where order_id = $10 limit 1) \
             select c.slug as \"slug!\", order_id as \"order_id!\", side as \"side!\", \
                 o.status as \"status!\", pair as \"pair!\", fiat_amount as \"fiat_amount!\", \
                 fiat_currency as \"fiat_currency!\", partner_reference, \
                 o.created_at as \"created_at!\" \
             from " + $from + "(select client_id, order_id, 'buy' as side, status, pair, \
                     fiat_amount, fiat_currency, partner_reference, created_at \
                 from buy_order where ($8::text is null or $8 = 'buy') and " + $led_by
                 + $criteria + " order by created_at desc, order_id desc limit $9) \
                 union all (select client_id, order_id, 'sell' as side, status, pair, \
                     fiat_amount, fiat_currency, partner_reference, created_at \
                 from sell_order where ($8::text is null or $8 = 'sell') and " + $led_by
                 + $criteria + " order by created_at desc, order_id desc limit $9)" + $behind
                 + " order by o.created_at desc, order_id desc limit $9",
            $search.criteria.partner,
            $search.criteria.status,
            $search.criteria.partner_order_identifier,
            $search.criteria.wallet_address,
            $search.criteria.transaction_id,
            $search.criteria.from,
            $search.criteria.to,
            $search.criteria.side.map(|side| side.to_string()),
            $search.paging.rows_max(),
            $search.after.map(rampart_types::OrderId::number),
        )
    };
}

/// The orders that meet every criterion, newest first.
///
/// # Errors
/// 422 for an `after` that no order has; else when the database cannot be read.
pub(super) async fn find(core: &Core, search: &Search) -> Result<Vec<Found>> {
    let mut conn = core.db.acquire().await?;
    if let Some(after) = search.after {
        let exists = sqlx::query_scalar!(
            "select exists (select from buy_order where order_id = $1) \
                 or exists (select from sell_order where order_id = $1) as \"exists!\"",
            after.number(),
        );
        check_after(exists.fetch_one(&mut *conn).await?)?;
    }
    let asked = &search.criteria;
    let is_rare = |status: &String| !FREQUENT.contains(&status.as_str());
    let found = if asked.transaction_id.is_some() {
        search!(of all, "transaction_id = $5 and ", search).fetch_all(&mut *conn).await?
    } else if asked.wallet_address.is_some() {
        search!(of all, "wallet_address = $4 and ", search).fetch_all(&mut *conn).await?
    } else if asked.partner_order_identifier.is_some() {
        let led_by_reference = search!(of each partner, "client_id = c.client_id and partner_reference = $3 and ", search);
        led_by_reference.fetch_all(&mut *conn).await?
    } else if asked.status.as_deref() == Some(PENDING) {
        search!(of all, "status = 'pending' and ", search).fetch_all(&mut *conn).await?
    } else if asked.status.is_some() && asked.partner.is_some() {
        let led_by_status = search!(
            of each partner, "client_id = c.client_id and status = $2 and status <> 'pending' and ", search
        );
        led_by_status.fetch_all(&mut *conn).await?
    } else if asked.status.as_ref().is_some_and(is_rare) {
        let led_by_status = search!(
            of all, "status = $2 and status not in ('pending', 'completed', 'cancelled') and ", search
        );
        led_by_status.fetch_all(&mut *conn).await?
    } else if asked.partner.is_some() {
        search!(of each partner, "client_id = c.client_id and ", search)
            .fetch_all(&mut *conn)
            .await?
    } else {
        search!(of all, "true and ", search).fetch_all(&mut *conn).await?
    };
    Ok(found)
}
