//! Numbers of quotes by hour, with which the operators' overview compares the orders.

use std::sync::atomic::{AtomicI64, Ordering};

use super::Side;
use crate::Core;
use crate::platform::error::Result;

/// Time for which the numbers of an hour stay, in days.
const HOUR_DAYS: i32 = 90;

/// Quotes that this edge has made and not written yet: those that partners asked for, and those of
/// a checkout that a shopper can confirm. The matrix, of which one request seals a quote for every
/// method, and prices that a checkout shows before, do not count.
///
/// A worker writes them every ten seconds, and the edge when it stops; a crash loses the last
/// seconds' ones.
#[derive(Debug, Default)]
pub struct QuoteCounts {
    buy: AtomicI64,
    sell: AtomicI64,
}

impl QuoteCounts {
    /// Counts a quote.
    pub(crate) fn record(&self, side: Side) {
        self.of(side).fetch_add(1, Ordering::Relaxed);
    }

    const fn of(&self, side: Side) -> &AtomicI64 {
        match side {
            Side::Buy => &self.buy,
            Side::Sell => &self.sell,
        }
    }
}

impl Core {
    /// Adds the quotes since the last call to the present hour, by the database's time: those of an
    /// hour's last ten seconds may stand in the next one.
    ///
    /// # Errors
    /// When the database cannot be written; the next call adds these quotes too.
    pub async fn write_quote_counts(&self) -> Result<()> {
        let taken = [Side::Buy, Side::Sell]
            .map(|side| (side, self.quote_counts.of(side).swap(0, Ordering::Relaxed)));
        let some = taken.iter().filter(|(_, quotes)| *quotes > 0);
        let (sides, quotes): (Vec<String>, Vec<i64>) =
            some.map(|(side, quotes)| (side.as_str().to_owned(), *quotes)).unzip();
        if sides.is_empty() {
            return Ok(());
        }
        // In one order, so that edges wait for each other in turn.
        let written = sqlx::query!(
            "insert into quote_hour (hour, side, quotes) \
             select date_trunc('hour', rampart_now(), 'UTC'), side, quotes \
             from unnest($1::text[], $2::bigint[]) as made (side, quotes) order by side \
             on conflict (hour, side) do update set quotes = quote_hour.quotes + excluded.quotes",
            &sides,
            &quotes,
        )
        .execute(&self.db)
        .await;
        if let Err(error) = written {
            for (side, quotes) in taken {
                self.quote_counts.of(side).fetch_add(quotes, Ordering::Relaxed);
            }
            return Err(error.into());
        }
        Ok(())
    }

    /// Deletes the numbers of hours that are too long ago: one run of a worker.
    ///
    /// # Errors
    /// When the database cannot be written; the next run does it.
    pub async fn delete_old_quote_counts(&self) -> Result<()> {
        sqlx::query!(
            "delete from quote_hour where hour < rampart_now() - make_interval(days => $1::int)",
            HOUR_DAYS,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }
}
