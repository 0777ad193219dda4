//! Prices after a migration: none that nobody has set or observed.

use rampart_core::platform::crypto::Secret;
use rampart_core::platform::db::MIGRATIONS;
use rampart_core::platform::schema;
use rampart_core::platform::settings::Database;
use rampart_tests::cluster;
use sqlx::PgPool;

async fn migrate(url: &str) {
    let settings = Database { url: Some(Secret::new(url)), ..Database::default() };
    schema::migrate(&settings, |_| ()).await.unwrap();
}

async fn priced(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("select pair from price order by pair").fetch_all(pool).await.unwrap()
}

#[tokio::test]
async fn no_pair_has_a_price_after_a_migration() {
    let url = cluster::empty_database().await;
    migrate(&url).await;
    assert_eq!(priced(&cluster::pool(&url).await).await, [""; 0]);
}

#[tokio::test]
async fn a_price_that_somebody_set_or_observed_stays() {
    let url = cluster::empty_database().await;
    let pool = cluster::pool(&url).await;
    MIGRATIONS.run_to(82, &pool).await.unwrap();
    assert_eq!(priced(&pool).await.len(), 9, "those of the first day");
    for statement in [
        "insert into audit (audit_id, at, actor, action, target, detail) \
         values ('0199a000-0000-7000-8000-000000000001', now(), 'ada', 'price.set', 'LTC-EUR', \
             '{\"price\": 85}')",
        "update price set fixed = false where pair = 'XRP-EUR'",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    migrate(&url).await;
    assert_eq!(priced(&pool).await, ["LTC-EUR", "XRP-EUR"]);
}
