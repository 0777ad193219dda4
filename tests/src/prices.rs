//! Prices of the pairs in the tests: a migration leaves none.

use sqlx::{Connection, PgConnection};

/// The mid price of every pair, set by hand and without an end.
const PRICES: &str = "insert into price (pair, price, observed_at) values \
    ('BTC-EUR', 90000, now()), ('ETH-EUR', 3000, now()), ('LTC-EUR', 85, now()), \
    ('XRP-EUR', 2, now()), ('XLM-EUR', 0.25, now()), ('ADA-EUR', 0.5, now()), \
    ('SOL-EUR', 150, now()), ('DOGE-EUR', 0.15, now()), ('USDC-EUR', 0.92, now()) \
    on conflict (pair) do nothing";

/// Sets them in a migrated database that no edge serves yet.
pub async fn set(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query(PRICES).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
