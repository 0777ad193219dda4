//! The checks of `/readyz`.

use std::sync::Arc;

use chrono::TimeDelta;
use http::Method;
use rampart_api::workers;
use rampart_core::platform::crypto::Secret;
use rampart_core::platform::db::PoolKind;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::test_context::TestContext;
use serde_json::json;
use sqlx::AssertSqlSafe;
use tokio::sync::watch;

/// Names of the checks that do not hold.
async fn failing(context: &TestContext) -> Vec<&'static str> {
    let readiness = context.core().readiness().await;
    let failing: Vec<_> =
        readiness.checks.iter().filter(|check| !check.ok).map(|check| check.name).collect();
    assert_eq!(readiness.ready, failing.is_empty());
    failing
}

#[tokio::test]
async fn an_edge_with_everything_is_ready() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    assert!(failing(&context).await.is_empty());
    let names: Vec<_> =
        context.core().readiness().await.checks.into_iter().map(|check| check.name).collect();
    assert_eq!(
        names,
        [
            "database",
            "keys",
            "prices",
            "policies",
            "pool",
            "snapshot",
            "workers",
            "clock",
            "rows",
            "books",
            "audit",
            "rates",
            "documents",
            "replicas"
        ]
    );
}

#[tokio::test]
async fn a_stale_price_is_its_pairs_business_until_none_is_fresh() {
    let context = TestContext::start().await;
    let pairs = context.admin(Method::GET, "/admin/v1/pairs", json!({})).await.json();
    let pairs: Vec<_> =
        pairs.as_array().unwrap().iter().map(|pair| pair["pair"].as_str().unwrap()).collect();
    let ages = async |pair: &str| {
        let path = format!("/admin/v1/pairs/{pair}");
        let change = json!({"priceMaxAgeSeconds": 60});
        context.admin(Method::PATCH, &path, change).await.assert_status(200);
    };
    ages(pairs[0]).await;
    context.clock().advance(TimeDelta::seconds(61));
    assert!(failing(&context).await.is_empty());
    for pair in &pairs[1..] {
        ages(pair).await;
    }
    assert_eq!(failing(&context).await, ["prices"]);
}

#[tokio::test]
async fn secrets_sealed_under_another_master_key_are_noticed() {
    for (per_tenant, table) in [(true, "tenant_key"), (false, "client_secret")] {
        let context =
            TestContext::with(|settings| settings.keys.per_tenant = Some(per_tenant)).await;
        context.partner("acme").await;
        assert!(failing(&context).await.is_empty());
        let sealed =
            format!("update {table} set sealed = sealed || '\\x00' where sealed is not null");
        sqlx::query(AssertSqlSafe(sealed)).execute(context.db()).await.unwrap();
        assert_eq!(failing(&context).await, ["keys"]);
    }
}

#[tokio::test]
async fn an_edge_whose_background_work_stands_still_is_degraded() {
    let context = TestContext::start().await;
    let core = context.core();
    let (stop, stopped) = watch::channel(false);
    let working = tokio::spawn(workers::work(Arc::clone(core), stopped));
    until("the mail worker has begun", SOON, async || {
        core.heartbeats.age("mail", context.clock().monotonic_ns())
    })
    .await;
    working.abort();
    assert!(working.await.unwrap_err().is_cancelled());
    drop(stop);
    context.clock().advance(TimeDelta::seconds(60));
    // It answers from what it knew, which is a check of its own.
    assert_eq!(failing(&context).await, ["snapshot"]);
    let checks = core.readiness().await.checks;
    let workers = checks.iter().find(|check| check.name == "workers").unwrap();
    assert!(workers.detail.starts_with("degraded: "), "{workers:?}");
}

#[tokio::test]
async fn busy_workers_cost_an_edge_neither_its_snapshot_nor_its_readiness() {
    let context = TestContext::start().await;
    let mut held = Vec::new();
    for _ in 0..context.core().settings.database.worker_connections_max {
        held.push(context.core().db.acquire().await.unwrap());
    }
    context.core().refresh().await.unwrap();
    assert!(failing(&context).await.is_empty());
}

#[tokio::test]
async fn a_folder_of_documents_that_cannot_be_used_degrades_an_edge_until_it_can() {
    let folder = format!("rampart-documents-in-no-folder-{}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    std::fs::write(&folder, "").unwrap();
    let context =
        TestContext::with(|settings| settings.documents.folder = Some(folder.clone())).await;
    let core = context.core();
    let (stop, stopped) = watch::channel(false);
    let working = tokio::spawn(workers::work(Arc::clone(core), stopped));
    let detail = async || {
        let checks = core.readiness().await.checks;
        checks.into_iter().find(|check| check.name == "documents").unwrap().detail
    };
    let is_available =
        |value| core.metrics.render().contains(&format!("\nrampart_documents_available {value}\n"));
    // What cannot be written to may still be read.
    let problem =
        "degraded: documents cannot be stored, because of documents.folder: it is no folder";
    until("the folder has been looked at", SOON, async || {
        (detail().await.starts_with(problem) && is_available(0)).then_some(())
    })
    .await;
    assert!(failing(&context).await.is_empty());
    std::fs::remove_file(&folder).unwrap();
    until("it can be made", SOON, async || {
        (detail().await.is_empty() && is_available(1)).then_some(())
    })
    .await;
    stop.send_replace(true);
    working.await.unwrap();
}

/// Requests of the tests wait for a connection for longer than the check.
#[tokio::test]
async fn a_pool_without_a_free_connection_is_told_from_a_database_that_is_away() {
    let context = TestContext::start().await;
    let (db, mut held) = (&context.core().db, Vec::new());
    for _ in 0..context.core().settings.database.connections_max {
        held.push(PoolKind::Requests.run(db.acquire()).await.unwrap());
    }
    assert_eq!(failing(&context).await, ["pool"]);
    drop(held);
    until("connections are free again", SOON, async || {
        failing(&context).await.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_lost_database_is_noticed() {
    let context = TestContext::start().await;
    context.core().db.close().await;
    assert_eq!(failing(&context).await, ["database"]);
}

#[tokio::test]
async fn a_replica_that_has_never_answered_is_counted_as_down() {
    let context = TestContext::with(|settings| {
        settings.database.replica_urls = vec![Secret::new("postgres://127.0.0.1:1/rampart")];
    })
    .await;
    let shown = context.core().metrics_text();
    let of_replicas: Vec<_> =
        shown.lines().filter(|line| line.starts_with("rampart_replica_")).collect();
    assert_eq!(of_replicas, [r#"rampart_replica_up{replica="127.0.0.1:1"} 0"#]);
}

#[tokio::test]
async fn a_task_that_panics_counts_as_a_worker_that_fails() {
    let context = TestContext::start().await;
    let (stop, stopped) = watch::channel(false);
    let start = async || {
        stop.send_replace(true);
        assert!(!*stop.borrow(), "as a task's panic");
    };
    workers::keep(context.core(), "a task", stopped, start).await;
    let metrics = context.core().metrics_text();
    let line = r#"rampart_worker_runs_total{outcome="failed",worker="a task"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
}
