//! Rows of one partner that somebody holds: its requests wait, and those of others do not.

use futures::future::join_all;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::test_context::TestContext;
use sqlx::query;

use super::{Shop, confirm_of};

/// Requests of the partner whose rows are locked, at once.
const CROWD: usize = 100;
/// Requests of the other partner, one after the other.
const OTHERS: usize = 20;
/// Limits of this edge's statements, and of waits for connections, longer than the lock is held: whoever
/// waits for it, or for a connection of who does, has no answer before, or a refusal.
const STATEMENT_TIMEOUT_MS: u64 = 120_000;
const ACQUIRE_TIMEOUT_MS: u64 = 30_000;

/// A confirm of a new quote of nobody's, under a key of its own or none.
async fn confirm(context: &TestContext, shop: &Shop, bearer: &str, key: Option<usize>) -> Answer {
    let body = confirm_of(&shop.quote(context, |quote| quote.user = None));
    let request = shop.partner.anonymous(Method::POST, "/api/v1/buy/confirm").json(&body);
    let request = request.header("authorization", bearer);
    match key {
        Some(key) => request.header("idempotency-key", &format!("key{key}")).send().await,
        None => request.send().await,
    }
}

async fn others_are_served(with_keys: bool) {
    let context = TestContext::with(|settings| {
        settings.database.connections_max = 16;
        settings.database.statement_timeout_ms = STATEMENT_TIMEOUT_MS;
        settings.database.acquire_timeout_ms = ACQUIRE_TIMEOUT_MS;
    })
    .await;
    let (acme, rival) = (Shop::of(&context, "acme").await, Shop::of(&context, "rival").await);
    let bearers =
        [&acme, &rival].map(|shop| async { format!("Bearer {}", shop.partner.token().await) });
    let [of_acme, of_rival]: [String; 2] = join_all(bearers).await.try_into().unwrap();
    let mut somebody = context.db().begin().await.unwrap();
    let lock = "select from client where slug = 'acme' for update";
    query(lock).execute(&mut *somebody).await.unwrap();

    let key = |number| with_keys.then_some(number);
    let waiting = join_all((0..CROWD).map(|n| confirm(&context, &acme, &of_acme, key(n))));
    let others = async {
        until("the partner's share is in use", SOON, async || {
            let metrics = context.core().metrics_text();
            metrics
                .contains("rampart_db_connections{pool=\"requests\",state=\"busy\"} 8")
                .then_some(())
        })
        .await;
        for number in 0..OTHERS {
            confirm(&context, &rival, &of_rival, key(number)).await.assert_status(200);
        }
        somebody.rollback().await.unwrap();
    };
    let (answers, ()) = tokio::join!(waiting, others);
    for answer in answers {
        assert!([200, 503].contains(&answer.status()), "{}", answer.text());
    }
    let metrics = context.core().metrics_text();
    let waits = "rampart_db_partner_wait_seconds_count{pool=\"requests\"} ";
    let waits = metrics.lines().find_map(|line| line.strip_prefix(waits)).unwrap();
    assert!(waits.parse::<usize>().unwrap() >= CROWD - 8, "{waits}");
}

#[tokio::test]
async fn a_partner_whose_rows_are_locked_leaves_others_their_orders() {
    others_are_served(false).await;
}

#[tokio::test]
async fn a_partner_whose_rows_are_locked_leaves_others_their_idempotency_keys() {
    others_are_served(true).await;
}
