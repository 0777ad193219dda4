//! Needs of a live client before its first order, and the end of what was simulated for it.

use http::StatusCode;
use serde_json::json;

use crate::Core;
use crate::http::reply::Reply;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use crate::tenancy::tenants::Mode;
use crate::trading::catalogue::{Catalogue, Pair, PairStatus};
use crate::trading::dca::deposit;
use crate::trading::quotes::Side;
use crate::trading::routing;
use crate::users::simulated_checks;

/// Needs of a live client of this slug that are not met, in words; of any, without one.
pub fn missing_for_live(core: &Core, slug: Option<&str>) -> Vec<&'static str> {
    missing_in(core, &core.snapshots.current().catalogue, slug)
}

/// The same by the pairs, prices and routes of this catalogue.
pub(crate) fn missing_in(
    core: &Core,
    catalogue: &Catalogue,
    slug: Option<&str>,
) -> Vec<&'static str> {
    let now = core.clock.now();
    let settings = &core.settings;
    let routed = |pair: &Pair| is_routed(catalogue, slug.unwrap_or_default(), pair);
    let has_route = catalogue.pairs.values().any(|pair| routed(pair));
    // Of a pair that has routes: another one's price sells nothing.
    let priced = |pair: &Pair| pair.observed_price(now).is_some() && (!has_route || routed(pair));
    let needs = [
        ("route", has_route),
        ("live price", catalogue.pairs.values().any(|pair| priced(pair))),
        ("configured master key", settings.keys.is_configured()),
        ("mail", settings.mail.smtp_url.is_some()),
        ("documents", settings.documents.is_configured()),
    ];
    needs.into_iter().filter_map(|(need, met)| (!met).then_some(need)).collect()
}

/// True if the partner is live.
///
/// # Errors
/// 404 without the partner.
pub(crate) async fn is_live(core: &Core, slug: &str) -> Result<bool> {
    let mode =
        sqlx::query_scalar!("select mode from client where slug = $1 and slug <> 'house'", slug,)
            .fetch_optional(&core.db)
            .await?;
    let mode = mode.ok_or_else(|| Denial::not_found("partner"))?;
    Ok(mode == Mode::Live.as_str())
}

/// The refusal to make this partner live, while something is missing.
///
/// # Errors
/// When it cannot be serialized.
pub(crate) fn refuse_live(core: &Core, slug: &str) -> Result<Option<Reply>> {
    let missing = missing_for_live(core, Some(slug));
    if missing.is_empty() {
        return Ok(None);
    }
    let reason = format!("a live partner needs: {}", missing.join(", "));
    Reply::json(StatusCode::CONFLICT, &json!({"error": reason, "missing": missing})).map(Some)
}

/// Refuses to make a live partner a test client again, one too that has gone live meanwhile: its row is
/// held until the transaction ends.
///
/// # Errors
/// 409 for a live partner.
pub(crate) async fn refuse_return(conn: &mut Connection, slug: &str) -> Result<()> {
    let mode =
        sqlx::query_scalar!("select mode from client where slug = $1 for no key update", slug)
            .fetch_optional(conn)
            .await?;
    if mode.as_deref() == Some(Mode::Live.as_str()) { Err(stays_live().into()) } else { Ok(()) }
}

/// The refusal to make a live partner a test client.
pub(crate) fn stays_live() -> Denial {
    Denial::conflict("a live partner stays live")
}

/// Lets nothing real follow what was simulated for a test client, in the transaction that makes it
/// live; nothing for a partner that is live.
pub(crate) async fn end_simulation(conn: &mut Connection, slug: &str) -> Result<()> {
    simulated_checks::reset(conn, slug).await?;
    deposit::keep_simulated(conn, slug).await?;
    // What was paid for before is paid out as a test client's is.
    sqlx::query!(
        "update client set live_since = rampart_now() where slug = $1 and mode = 'test'",
        slug,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// True if a live partner can buy or sell the pair: enabled, with a route for money and coins.
fn is_routed(catalogue: &Catalogue, slug: &str, pair: &Pair) -> bool {
    let asset = pair.base.code().to_string();
    [Side::Buy, Side::Sell].into_iter().any(|side| {
        side.terms(pair).status == PairStatus::Enabled
            && routing::is_routed(catalogue, slug, side, &asset)
    })
}
