//! Connections to the database: calls of one operator that wait leave the others theirs.

use futures::future::join_all;
use rampart_tests::cluster::until_locks_are_awaited;

use super::*;

/// Longest wait of a call for a connection, shorter than that of a statement for a lock: who finds no
/// connection free is answered with 503.
const ACQUIRE_TIMEOUT_MS: u64 = 5_000;

#[tokio::test]
async fn calls_of_an_operator_that_wait_leave_other_operators_their_connections() {
    let context = TestContext::with(|settings| {
        settings.database.acquire_timeout_ms = ACQUIRE_TIMEOUT_MS;
    })
    .await;
    let [ada, bob] = ["ada", "bob"].map(|name| Operator::new(&context, name, &["support"]));
    let (ada, bob) = (ada.await, bob.await);
    let connections = context.core().settings.database.operator_connections_max;
    let share = i64::from(connections) - 1;
    let mut somebody = context.db().begin().await.unwrap();
    sqlx::query("lock table mail_outbox in access exclusive mode")
        .execute(&mut *somebody)
        .await
        .unwrap();
    // More than there are connections: those beyond the share wait for it.
    let waiting = join_all((0..=connections).map(|_| ada.get("/admin/v1/mail")));
    let others = async {
        until_locks_are_awaited(context.db(), share).await;
        bob.get("/admin/v1/users").await.assert_status(200);
        somebody.rollback().await.unwrap();
    };
    let (answers, ()) = futures::join!(waiting, others);
    for answer in answers {
        answer.assert_status(200);
    }
}
