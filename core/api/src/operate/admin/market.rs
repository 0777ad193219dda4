//! The market: currencies, pairs, prices, payment methods and maintenance windows. Every edge follows
//! a change within a second.

pub mod currencies;
pub mod maintenance;
pub mod pairs;
pub mod payment_methods;
pub mod prices;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::operator::Operator;
use crate::Core;
use crate::endpoint::openapi::doc::{Kind, Member, optional, required};
use crate::http::request::Input;
use crate::platform::db::{Connection, Transaction};
use crate::platform::error::{Denial, Error, Result};
use crate::platform::revision;
use rampart_types::PairCode;

/// The path's `{pair}`.
const PAIR: Member = required("pair", Kind::Text, "A currency pair, such as `BTC-EUR`.");

/// Most pairs of one answer; the catalogue has fewer.
const PAIRS_MAX: i64 = 1_000;
/// The query's `after` of a list of pairs.
const AFTER_PAIR: Member = optional("after", Kind::Text, "The last pair of the page before.");

/// The pair of the path; one that cannot be a pair is one that does not exist.
fn pair(input: &Input) -> Result<PairCode> {
    input.param("pair").parse().map_err(|_| Denial::not_found("pair").into())
}

/// Most raises of a pair's `quotes_valid_from` before the last one that are kept.
const RAISES_MAX: i32 = 16;

/// Voids the quotes of a pair that were sealed before `from`, whichever edge has sealed them, and
/// those that edges seal before they know, also at a revision that a failover has lost. A time to
/// come counts as now, to the millisecond. What earlier calls have voided stays void: after more
/// than [`RAISES_MAX`] that still decide, all that was sealed is. The caller holds the pair's row.
///
/// # Errors
/// 422 for a time before the one that counts already.
async fn void_quotes(
    conn: &mut Connection,
    pair: PairCode,
    from: DateTime<Utc>,
) -> Result<DateTime<Utc>> {
    let revision = revision::catalogue_changed_beyond_lost(conn).await?;
    let raised = sqlx::query_scalar!(
        r#"
        with asked as (
            -- the time that counts is later than this transaction where it had to wait for the pair
            select date_trunc('milliseconds', rampart_now()) as raised_at,
                date_trunc('milliseconds', least($2, greatest(rampart_now(), quotes_valid_from)))
                    as valid_from
            from currency_pair where pair = $1
        ), earlier as (
            select e.raised_at, e.revision,
                lead(e.raised_at, 1, a.raised_at) over (order by e.raised_at) as next_at
            from currency_pair p cross join asked a
                cross join lateral unnest(p.quotes_raised_before || p.quotes_raised_at,
                    p.quotes_revisions_before || p.quotes_raised_revision)
                    e (raised_at, revision)
            where p.pair = $1 and e.raised_at < a.raised_at
        ), kept as (
            -- quotes from before the next raise are void by their time, or have ended
            select coalesce(array_agg(e.raised_at order by e.raised_at), '{}') as raised_before,
                coalesce(array_agg(e.revision order by e.raised_at), '{}') as revisions_before
            from earlier e cross join asked a
            where e.next_at > greatest(a.valid_from, a.raised_at - interval '1 day')
        )
        update currency_pair p set
            quotes_valid_from = case when cardinality(k.raised_before) <= $4 then a.valid_from
                else greatest(a.valid_from, a.raised_at) end,
            quotes_raised_at = a.raised_at,
            quotes_raised_revision = $3,
            quotes_raised_before = k.raised_before,
            quotes_revisions_before = k.revisions_before
        from asked a cross join kept k
        where p.pair = $1
            and (p.quotes_valid_from is null or p.quotes_valid_from <= a.valid_from)
        returning p.quotes_valid_from as "quotes_valid_from!"
        "#,
        pair.to_string(),
        from,
        revision,
        RAISES_MAX,
    )
    .fetch_optional(conn)
    .await?;
    let earlier = "quotesValidFrom: earlier than it is, and it can only be raised";
    raised.ok_or_else(|| Denial::unprocessable(earlier).into())
}

/// A value that the table's checks refuse, named by its constraint.
fn outside_bounds(error: sqlx::Error) -> Error {
    match error.as_database_error() {
        Some(db) if db.is_check_violation() => {
            let constraint = db.constraint().unwrap_or_default();
            let about = constraint
                .trim_start_matches("currency_pair_")
                .trim_start_matches("payment_method_")
                .trim_end_matches("check");
            let reason = match about.trim_end_matches('_').replace('_', " ").as_str() {
                "" => "out of bounds: min is above max".to_owned(),
                side @ ("buy status" | "sell status") => {
                    let member = side.replace(' ', ".");
                    format!("{member}: one of enabled, disabled, maintenance")
                }
                member => format!("out of bounds: {member}"),
            };
            Denial::unprocessable(reason).into()
        }
        _ => error.into(),
    }
}

/// Records an operator's change of the catalogue, commits it and serves it.
pub(super) async fn publish(
    core: &Core,
    mut tx: Transaction<'_>,
    operator: &Operator,
    action: &'static str,
    target: &str,
    detail: Value,
) -> Result<()> {
    revision::catalogue_changed(&mut tx).await?;
    operator.record(&mut tx, core, action, target, detail).await?;
    tx.commit().await?;
    core.serve_committed().await;
    Ok(())
}
