//! The chain of the audit's rows.

use rampart_tests::cluster::until_a_lock_is_awaited;
use sqlx::AssertSqlSafe;

use super::*;

async fn verification(context: &TestContext) -> Value {
    let path = "/admin/v1/audit/verification";
    context.admin(Method::GET, path, Value::Null).await.assert_status(200).json()
}

/// A context whose audit has six rows.
async fn written() -> TestContext {
    let context = TestContext::start().await;
    for price in ["10.50", "100", "30", "40.000001", "50.0", "60.00"] {
        let price = serde_json::from_str(&format!(r#"{{"price": {price}}}"#)).unwrap();
        let path = "/admin/v1/prices/BTC-EUR";
        context.admin(Method::PUT, path, price).await.assert_status(200);
    }
    context
}

async fn tamper(context: &TestContext, statement: &str) {
    let done = sqlx::query(AssertSqlSafe(statement.to_owned())).execute(context.db()).await;
    assert!(done.unwrap().rows_affected() > 0, "{statement}");
}

#[tokio::test]
async fn what_was_changed_taken_out_or_put_in_is_found() {
    let context = written().await;
    let intact = verification(&context).await;
    assert_eq!((&intact["intact"], &intact["complete"]), (&json!(true), &json!(true)));
    assert_eq!((&intact["rows"], &intact["position"]), (&json!(6), &json!(6)));
    for (statement, position) in [
        ("update audit set detail = '{\"price\": 1}' where position = 3", 3),
        ("update audit set actor = 'eve' where position = 6", 6),
        ("update audit set at = at + interval '1 microsecond' where position = 1", 1),
        ("delete from audit where position = 4", 4),
        ("delete from audit where position = 6", 6),
        (
            "insert into audit select gen_random_uuid(), at, actor, action, target, detail, 7, mac \
             from audit where position = 6",
            6,
        ),
        (
            "insert into audit (audit_id, at, actor, action, target, detail) \
             select gen_random_uuid(), at, 'eve', action, target, detail from audit limit 1",
            0,
        ),
        ("update audit set position = position + 100", 6),
        ("update audit_head set mac = ''", 6),
    ] {
        let context = written().await;
        tamper(&context, statement).await;
        let found = verification(&context).await;
        assert_eq!(found["intact"], false, "{statement}");
        assert_eq!(found["broken"]["position"], position, "{statement} {found}");
    }
}

#[tokio::test]
async fn a_second_row_of_one_position_is_found() {
    // Positions are unique within a month; this one is of another.
    for position in [3, 6] {
        let context = written().await;
        let twice = format!(
            "insert into audit select 'ffffffff-ffff-7fff-bfff-ffffffffffff'::uuid, at, actor, \
                 action, target, detail, position, mac from audit where position = {position}"
        );
        tamper(&context, &twice).await;
        assert_eq!(verification(&context).await["intact"], false, "{position}");
    }
}

#[tokio::test]
async fn an_end_that_was_kept_elsewhere_shows_a_chain_made_anew() {
    let context = written().await;
    let kept = verification(&context).await;
    let path = "/admin/v1/prices/BTC-EUR";
    context.admin(Method::PUT, path, json!({"price": 1})).await.assert_status(200);
    let (after, mac) = (kept["position"].to_string(), kept["mac"].as_str().unwrap());
    let behind = async |mac: &str| {
        let path = format!("/admin/v1/audit/verification?after={after}&mac={mac}");
        context.admin(Method::GET, &path, Value::Null).await
    };
    let continued = behind(mac).await.json();
    assert_eq!((&continued["intact"], &continued["rows"]), (&json!(true), &json!(1)));
    let other = behind(&"0".repeat(64)).await.json();
    assert_eq!((&other["intact"], &other["broken"]["position"]), (&json!(false), &json!(6)));
    behind("zz").await.assert_status(422);
}

#[tokio::test]
async fn racing_changes_stay_in_one_chain() {
    let context = TestContext::start().await;
    let changes = (1..=16).map(|price| {
        let body = json!({ "price": price });
        context.admin(Method::PUT, "/admin/v1/prices/BTC-EUR", body)
    });
    for answer in futures::future::join_all(changes).await {
        answer.assert_status(200);
    }
    let found = verification(&context).await;
    assert_eq!((&found["intact"], &found["rows"]), (&json!(true), &json!(16)));
}

#[tokio::test]
async fn a_role_without_bypass_cannot_rewrite_the_audit() {
    let context = written().await;
    let database: String = sqlx::query_scalar("select current_database()::text")
        .fetch_one(context.db())
        .await
        .unwrap();
    let tables: Vec<String> =
        sqlx::query_scalar("select relid::text from pg_partition_tree('audit')")
            .fetch_all(context.db())
            .await
            .unwrap();
    assert_eq!(tables.len(), 6, "{tables:?}");
    let role = format!("writer_of_{database}");
    let mut connection = context.db().acquire().await.unwrap();
    for statement in [
        format!("create role {role}"),
        format!("grant all on all tables in schema public to {role}"),
        format!("set role {role}"),
    ] {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut *connection).await.unwrap();
    }
    for table in tables {
        for statement in
            [format!("update {table} set actor = 'eve'"), format!("delete from {table}")]
        {
            let done = sqlx::query(AssertSqlSafe(&*statement)).execute(&mut *connection).await;
            assert_eq!(done.unwrap().rows_affected(), 0, "{statement}");
        }
    }
    for statement in
        ["reset role".to_owned(), format!("drop owned by {role}"), format!("drop role {role}")]
    {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut *connection).await.unwrap();
    }
    assert_eq!(verification(&context).await["rows"], 6);
}

#[tokio::test]
async fn edges_verify_the_chain_in_turn_and_readyz_tells() {
    let context = written().await;
    let second = context.second_edge().await;
    let told = async || {
        let checks = context.core().readiness().await.checks;
        let check = checks.into_iter().find(|check| check.name == "audit").unwrap();
        assert!(check.ok, "an edge serves all the same");
        check.detail.into_owned()
    };
    let again = "update audit_check set due_at = now()";
    sqlx::query("update audit_check set created_at = now() - interval '7 hours'")
        .execute(context.db())
        .await
        .unwrap();
    let runs = [context.core(), second.core(), context.core()].map(|core| core.check_audit());
    for run in futures::future::join_all(runs).await {
        run.unwrap();
    }
    // The other edge may have had the round, and have ended it after these looked.
    context.core().check_audit().await.unwrap();
    assert_eq!(told().await, "");
    let age = context.core().metrics.audit_check_age.with_label_values::<&str>(&[]);
    assert!(age.get() < 60);

    tamper(&context, "update audit set actor = 'eve' where position = 3").await;
    context.core().check_audit().await.unwrap();
    assert_eq!(told().await, "", "the next round is not due");
    tamper(&context, again).await;
    context.core().check_audit().await.unwrap();
    assert_eq!(told().await, "degraded: the audit's chain is broken");
    let found: (i64, String) =
        sqlx::query_as("select broken_position, broken_reason from audit_check")
            .fetch_one(context.db())
            .await
            .unwrap();
    assert_eq!(found, (3, "the row was changed, or put in".to_owned()));

    tamper(&context, again).await;
    let actor: String = sqlx::query_scalar("select actor from audit where position = 2")
        .fetch_one(context.db())
        .await
        .unwrap();
    sqlx::query("update audit set actor = $1 where position = 3")
        .bind(actor)
        .execute(context.db())
        .await
        .unwrap();
    second.core().check_audit().await.unwrap();
    context.core().check_audit().await.unwrap();
    assert_eq!(told().await, "", "an edge tells what another one has found");
}

#[tokio::test]
async fn an_edge_whose_claim_has_ended_leaves_the_audits_round_to_the_next_one() {
    let context = written().await;
    let mut held = context.db().begin().await.unwrap();
    sqlx::query("lock table audit_head").execute(&mut *held).await.unwrap();
    let next = "update audit_check set claimed_until = now() + interval '1 hour', \
        broken_position = 3, broken_reason = 'found since'";
    let (checked, ()) = tokio::join!(context.core().check_audit(), async {
        until_a_lock_is_awaited(context.db()).await;
        sqlx::query(next).execute(&mut *held).await.unwrap();
        held.commit().await.unwrap();
    });
    checked.unwrap();
    let is_left = "select claimed_until > now() and broken_position = 3 from audit_check";
    let is_left: bool = sqlx::query_scalar(is_left).fetch_one(context.db()).await.unwrap();
    assert!(is_left);
}
