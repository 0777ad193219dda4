//! Connections to the database: calls of connectors that wait leave operators theirs, by which they take
//! a connector's token away, and operators' calls leave connectors theirs.

use futures::future::join_all;
use rampart_tests::cluster::until_locks_are_awaited;
use sqlx::{Postgres, Transaction, raw_sql};

use super::*;

/// Longest wait of a call for a connection, shorter than that of a statement for a lock: who finds no
/// connection free is answered with 503.
const ACQUIRE_TIMEOUT_MS: u64 = 5_000;

async fn start() -> (TestContext, Connector) {
    let context = TestContext::with(|settings| {
        settings.database.acquire_timeout_ms = ACQUIRE_TIMEOUT_MS;
    })
    .await;
    let cards = Connector::new(&context, "cards", &["payment.create"]).await;
    (context, cards)
}

/// Locks a table: every call for it waits until the transaction is rolled back.
async fn lock(context: &TestContext, statement: &'static str) -> Transaction<'static, Postgres> {
    let mut somebody = context.db().begin().await.unwrap();
    raw_sql(statement).execute(&mut *somebody).await.unwrap();
    somebody
}

/// A report that its connector lives.
fn health(number: i64) -> Value {
    let id = format!("h{number}");
    json!({"id": id, "kind": "health", "occurredAt": "2026-03-01T12:00:00Z"})
}

#[tokio::test]
async fn calls_of_a_connector_that_wait_leave_operators_their_connections() {
    let (context, cards) = start().await;
    let bank = Connector::new(&context, "bank", &["payment.create"]).await;
    let connections = i64::from(context.core().settings.database.connector_connections_max);
    let somebody = lock(&context, "lock table connector_event in access exclusive mode").await;
    // A connector leaves one to the others.
    let of = |number: i64| if number == 0 { &bank } else { &cards };
    let waiting = join_all((0..connections).map(|number| of(number).event(health(number))));
    let operators = async {
        until_locks_are_awaited(context.db(), connections).await;
        let rotate = json!({"overlapSeconds": 0});
        let rotated = context.admin(Method::POST, "/admin/v1/connectors/cards/rotate", rotate);
        rotated.await.assert_status(200);
        somebody.rollback().await.unwrap();
    };
    let (answers, ()) = tokio::join!(waiting, operators);
    for answer in answers {
        answer.assert_status(200);
    }
    cards.event(health(connections)).await.assert_status(401);
}

#[tokio::test]
async fn calls_of_a_connector_that_wait_leave_other_connectors_their_connections() {
    let (context, cards) = start().await;
    let bank = Connector::new(&context, "bank", &["payment.create"]).await;
    let connections = i64::from(context.core().settings.database.connector_connections_max);
    let somebody = lock(&context, "lock table connector_event in access exclusive mode").await;
    // More than there are connections: those beyond the share wait for it.
    let waiting = join_all((0..=connections).map(|number| cards.event(health(number))));
    let others = async {
        until_locks_are_awaited(context.db(), connections - 1).await;
        let called = bank.call(Method::GET, "/connectors/v1/openapi.json", json!({}));
        called.await.assert_status(200);
        somebody.rollback().await.unwrap();
    };
    let (answers, ()) = tokio::join!(waiting, others);
    for answer in answers {
        answer.assert_status(200);
    }
}

#[tokio::test]
async fn calls_of_operators_that_wait_leave_connectors_their_connections() {
    let (context, cards) = start().await;
    let connections = i64::from(context.core().settings.database.operator_connections_max);
    let somebody = lock(&context, "lock table mail_outbox in access exclusive mode").await;
    let mut tokens = Vec::new();
    for number in 0..connections {
        tokens.push(context.operator(&format!("support-{number}"), &["support"]).await);
    }
    let mail = |token| context.admin_as(Some(token), Method::GET, "/admin/v1/mail", Bytes::new());
    let waiting = join_all(tokens.iter().map(String::as_str).map(mail));
    let connector = async {
        until_locks_are_awaited(context.db(), connections).await;
        assert_eq!(cards.lease(1).await, Vec::<Value>::new());
        somebody.rollback().await.unwrap();
    };
    let (answers, ()) = tokio::join!(waiting, connector);
    for answer in answers {
        answer.assert_status(200);
    }
}
