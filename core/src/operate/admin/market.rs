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

/// Voids the quotes of a pair that were sealed before `from`, whichever edge has sealed them, and
/// those that edges seal before they know, also at a revision that a failover has lost. A time to
/// come counts as now, to the millisecond. The caller holds the pair's row.
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
        update currency_pair set
            quotes_valid_from = date_trunc('milliseconds', least($2, rampart_now())),
            quotes_raised_at = date_trunc('milliseconds', rampart_now()),
            quotes_raised_revision = $3
        where pair = $1 and (quotes_valid_from is null
            or quotes_valid_from <= date_trunc('milliseconds', least($2, rampart_now())))
        returning quotes_valid_from as "quotes_valid_from!"
        "#,
        pair.to_string(),
        from,
        revision,
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
