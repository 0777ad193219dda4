//! The catalogue as a transaction has changed it, which only its commit makes that of the edges.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::load::{routes, seconds};
use super::maintenance::InMaintenance;
use super::{Catalogue, Pair, PairSide, PairStatus, Price};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::settings;
use rampart_types::PairCode;

impl Catalogue {
    /// Pairs that this catalogue has, with the statuses and prices that the transaction sees, and the
    /// routes that it sees; nothing else.
    pub async fn uncommitted(
        &self,
        conn: &mut Connection,
        sourced: &settings::Prices,
    ) -> Result<Self> {
        let closed = InMaintenance::load(&mut *conn).await?;
        let rows = sqlx::query!(
            r#"
            select p.pair as "pair!", p.buy_status as "buy_status!", p.sell_status as "sell_status!",
                p.price_max_age_seconds as "pair_age?",
                v.price as "price?", v.fixed as "fixed?", v.observed_at as "observed_at?",
                v.max_age_seconds as "own_age?", v.deviating as "deviating?"
            from currency_pair p left join price v on v.pair = p.pair
            "#
        )
        .fetch_all(&mut *conn)
        .await?;
        let mut pairs = BTreeMap::new();
        for row in rows {
            let code: Option<PairCode> = row.pair.parse().ok();
            let Some(known) = code.and_then(|code| self.pairs.get(&code)) else { continue };
            // As `load` has it: its own time, else the pair's, else that of prices with sources.
            let default = row.fixed == Some(false) || sourced.has_sources(&row.pair);
            let max_age_seconds = seconds(row.own_age)
                .or_else(|| seconds(row.pair_age))
                .or(default.then_some(sourced.max_age_seconds));
            let price = row.price.zip(row.observed_at).map(|(amount, observed_at)| Price {
                amount,
                fixed: row.fixed == Some(true),
                observed_at,
                max_age_seconds,
                deviating: row.deviating,
            });
            let status = |own: &str| closed.status(&row.pair, PairStatus::from_name(own));
            let side = |own: &str, side: &PairSide| PairSide { status: status(own), ..*side };
            let pair = Pair {
                code: known.code,
                base: Arc::clone(&known.base),
                quote: Arc::clone(&known.quote),
                buy: side(&row.buy_status, &known.buy),
                sell: side(&row.sell_status, &known.sell),
                price,
                ..**known
            };
            pairs.insert(known.code, Arc::new(pair));
        }
        Ok(Self { pairs, routes: routes(conn).await?, ..Self::default() })
    }
}
