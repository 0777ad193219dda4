//! The checks of `/readyz`: database, keys, prices, policies.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::world::World;
use serde_json::json;

/// Names of the checks that do not hold.
async fn failing(world: &World) -> Vec<&'static str> {
    let readiness = world.core().readiness().await;
    let failing: Vec<_> =
        readiness.checks.iter().filter(|check| !check.ok).map(|check| check.name).collect();
    assert_eq!(readiness.ready, failing.is_empty());
    failing
}

#[tokio::test]
async fn an_edge_with_everything_is_ready() {
    let world = World::start().await;
    world.partner("acme").await;
    assert!(failing(&world).await.is_empty());
    let names: Vec<_> =
        world.core().readiness().await.checks.into_iter().map(|check| check.name).collect();
    assert_eq!(names, ["database", "keys", "prices", "policies"]);
}

#[tokio::test]
async fn a_stale_price_is_its_pairs_business_until_none_is_fresh() {
    let world = World::start().await;
    let pairs = world.admin(Method::GET, "/admin/v1/pairs", json!({})).await.json();
    let pairs: Vec<_> =
        pairs.as_array().unwrap().iter().map(|pair| pair["pair"].as_str().unwrap()).collect();
    let ages = async |pair: &str| {
        let path = format!("/admin/v1/pairs/{pair}");
        let change = json!({"priceMaxAgeSeconds": 60});
        world.admin(Method::PATCH, &path, change).await.assert_status(200);
    };
    ages(pairs[0]).await;
    world.clock().advance(TimeDelta::seconds(61));
    assert!(failing(&world).await.is_empty());
    for pair in &pairs[1..] {
        ages(pair).await;
    }
    assert_eq!(failing(&world).await, ["prices"]);
}

#[tokio::test]
async fn secrets_sealed_under_another_master_key_are_noticed() {
    let world = World::start().await;
    world.partner("acme").await;
    let sealed = "update client_secret set sealed = sealed || '\\x00' where sealed is not null";
    sqlx::query(sealed).execute(world.db()).await.unwrap();
    assert_eq!(failing(&world).await, ["keys"]);
}

#[tokio::test]
async fn a_lost_database_is_noticed() {
    let world = World::start().await;
    world.core().db.close().await;
    assert_eq!(failing(&world).await, ["database"]);
}
