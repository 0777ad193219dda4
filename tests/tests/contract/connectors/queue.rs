//! The way of a command: leases, checkpoints, results.

use std::collections::BTreeSet;
use std::time::Duration;

use rampart_tests::deadline::{SOON, until};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

const PAYOUT: CommandKind = CommandKind::PayoutSend;
/// Less than the half minute for which a lease waits here.
const WAITED_MAX: Duration = Duration::from_secs(25);

/// Lets every lease end.
pub(super) async fn end_leases(context: &TestContext) {
    sqlx::query("update command set leased_until = now() - interval '1 second'")
        .execute(context.db())
        .await
        .unwrap();
}

/// Commands that have a checkpoint.
async fn checkpoints(context: &TestContext) -> i64 {
    let query = "select count(checkpoint) from command";
    sqlx::query_scalar(query).fetch_one(context.db()).await.unwrap()
}

#[tokio::test]
async fn commands_come_oldest_first_with_their_body_and_once() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let chain = Connector::new(&context, "chain", &["payout.send", "payment.refund"]).await;
    for key in ["a", "b", "c"] {
        assert!(command(&context, &acme, PAYOUT, key, None, to("chain")).await);
    }
    let other = CommandKind::PaymentCreate;
    assert!(command(&context, &acme, other, "d", None, to("chain")).await, "not capable");
    assert!(!command(&context, &acme, PAYOUT, "a", None, to("chain")).await, "commanded once");
    let leased = chain.lease(2).await;
    let keys: Vec<_> = leased.iter().map(|command| command["body"]["key"].clone()).collect();
    assert_eq!(keys, ["a", "b"]);
    let first = &leased[0];
    assert_eq!((&first["kind"], &first["attempt"]), (&json!("payout.send"), &json!(1)));
    assert_eq!(first["body"]["amount"].to_string(), "1.25");
    assert_eq!(first["checkpoint"], Value::Null);
    let rest = chain.lease(10).await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    let only = json!({"kinds": ["payment.refund"], "waitSeconds": 0, "leaseSeconds": 10, "max": 1});
    let none = chain.call(Method::POST, "/connectors/v1/commands/lease", only).await;
    assert_eq!(none.json(), json!([]));
    for (member, value) in
        [("max", 0), ("max", 101), ("waitSeconds", 31), ("leaseSeconds", 9), ("leaseSeconds", 601)]
    {
        let mut lease = json!({"max": 1, "waitSeconds": 0, "leaseSeconds": 60});
        lease[member] = json!(value);
        let refused = chain.call(Method::POST, "/connectors/v1/commands/lease", lease).await;
        refused.assert_status(422);
    }
}

#[tokio::test]
async fn a_command_that_cannot_be_opened_costs_no_other() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let chain = Connector::new(&context, "chain", &["payout.send"]).await;
    for key in ["broken", "a", "b"] {
        assert!(command(&context, &acme, PAYOUT, key, None, to("chain")).await);
    }
    let spoil = "update command set sealed_body = '\\x00' where command_id = \
        (select command_id from command order by created_at, command_id limit 1)";
    sqlx::query(spoil).execute(context.db()).await.unwrap();
    for _ in 0..2 {
        let leased = chain.lease(100).await;
        let keys: Vec<_> = leased.iter().map(|command| command["body"]["key"].clone()).collect();
        assert_eq!(keys, ["a", "b"]);
        end_leases(&context).await;
    }
    let is_begun = "select attempt <> retries from command where sealed_body = '\\x00'";
    let is_begun: bool = sqlx::query_scalar(is_begun).fetch_one(context.db()).await.unwrap();
    assert!(!is_begun, "no connector has had it");
    let counted = "rampart_worker_rows_failed_total{worker=\"commands\"} 2";
    assert!(context.core().metrics_text().lines().any(|line| line == counted));
}

#[tokio::test]
async fn what_is_routed_and_what_is_anybodys_come_in_one_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let kinds = ["payout.send", "screening.check"];
    let chain = Connector::new(&context, "chain", &kinds).await;
    let other = Connector::new(&context, "other", &kinds).await;
    for (key, is_routed) in [("a", false), ("b", true), ("c", false), ("d", true), ("e", false)] {
        let (kind, target) = match is_routed {
            true => (PAYOUT, to("chain")),
            false => (CommandKind::ScreeningCheck, Target::Capability),
        };
        assert!(command(&context, &acme, kind, key, None, target).await);
    }
    let mut keys = Vec::new();
    for (connector, max) in [(&chain, 3), (&other, 1), (&chain, 100), (&other, 100)] {
        let leased = connector.lease(max).await;
        keys.push(leased.iter().map(|one| one["body"]["key"].clone()).collect::<Vec<_>>());
    }
    assert_eq!(keys, [&["a", "b", "c"][..], &["e"], &["d"], &[]]);
}

#[tokio::test]
async fn a_partner_with_many_commands_delays_nobody_elses() {
    let context = TestContext::start().await;
    let (acme, globex) = (context.partner("acme").await, context.partner("globex").await);
    let chain = Connector::new(&context, "chain", &["payout.send", "screening.check"]).await;
    for (kind, target) in [(PAYOUT, to("chain")), (CommandKind::ScreeningCheck, Target::Capability)]
    {
        let key = |name: &str| format!("{kind:?}/{name}");
        for number in 0..20 {
            let key = key(&number.to_string());
            command(&context, &acme, kind, &key, None, target.clone()).await;
        }
        command(&context, &globex, kind, &key("late"), None, target).await;
        let leased = chain.lease(2).await;
        let keys: Vec<_> = leased.iter().map(|command| command["body"]["key"].clone()).collect();
        assert_eq!(keys, [key("0"), key("late")]);
        let rest = chain.lease(100).await;
        assert_eq!(rest.len(), 19, "those of one partner fill a lease");
    }
}

#[tokio::test]
async fn one_orders_commands_come_one_after_the_other() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let one = Connector::new(&context, "one", &["payout.send"]).await;
    let two = Connector::new(&context, "two", &["payment.refund"]).await;
    command(&context, &acme, PAYOUT, "a", Some(7), to("one")).await;
    command(&context, &acme, CommandKind::PaymentRefund, "b", Some(7), to("two")).await;
    command(&context, &acme, CommandKind::PaymentRefund, "c", Some(8), to("two")).await;
    let free = two.lease(10).await;
    assert_eq!(free.len(), 1, "{free:?}");
    assert_eq!(free[0]["body"]["key"], "c");
    let first = one.lease(10).await;
    assert!(two.lease(10).await.is_empty());
    one.report(&first[0], "done", json!({"transactionId": "0x1"})).await.assert_status(200);
    assert_eq!(two.lease(10).await[0]["body"]["key"], "b");
}

#[tokio::test]
async fn nothing_waits_for_a_command_that_nobody_gets() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let one = Connector::new(&context, "one", &["payment.refund"]).await;
    let screening = CommandKind::ScreeningCheck;
    let out = Target::Asset { direction: Direction::Out, asset: "ETH".to_owned() };
    command(&context, &acme, CommandKind::PaymentCancel, "a", Some(7), to("one")).await;
    command(&context, &acme, PAYOUT, "unrouted", Some(7), out).await;
    command(&context, &acme, screening, "unserved", Some(7), Target::Capability).await;
    command(&context, &acme, CommandKind::PaymentRefund, "b", Some(7), to("one")).await;
    command(&context, &acme, CommandKind::PaymentRefund, "c", Some(7), to("one")).await;
    let free = one.lease(10).await;
    assert_eq!(free.len(), 1, "{free:?}");
    assert_eq!(free[0]["body"]["key"], "b");
    let two = Connector::new(&context, "two", &["screening.check"]).await;
    assert_eq!(two.lease(10).await[0]["body"]["key"], "unserved");
    command(&context, &acme, screening, "d", Some(8), Target::Capability).await;
    command(&context, &acme, CommandKind::PaymentRefund, "e", Some(8), to("one")).await;
    assert!(one.lease(10).await.is_empty(), "somebody gets what is before it");
}

#[tokio::test]
async fn of_many_leases_at_once_each_gets_other_commands() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let chain = Connector::new(&context, "chain", &["payout.send"]).await;
    for number in 0..40 {
        command(&context, &acme, PAYOUT, &number.to_string(), None, to("chain")).await;
    }
    let leases = (0..8).map(|_| {
        let chain = chain.clone();
        tokio::spawn(async move {
            let (mut keys, mut empty) = (Vec::new(), 0);
            // A lease passes over rows that another one holds, so an empty one is no end yet.
            while empty < 3 {
                let leased = chain.lease(3).await;
                empty = if leased.is_empty() { empty + 1 } else { 0 };
                keys.extend(leased.iter().map(|c| c["body"]["key"].as_str().unwrap().to_owned()));
            }
            keys
        })
    });
    let leased = futures::future::join_all(leases.collect::<Vec<_>>()).await;
    let leased: Vec<String> = leased.into_iter().flat_map(Result::unwrap).collect();
    let distinct: BTreeSet<_> = leased.iter().collect();
    assert_eq!((leased.len(), distinct.len()), (40, 40));
}

#[tokio::test]
async fn a_lost_lease_changes_nothing() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let chain = Connector::new(&context, "chain", &["payout.send"]).await;
    let other = Connector::new(&context, "other", &["payout.send"]).await;
    command(&context, &acme, PAYOUT, "a", None, to("chain")).await;
    let first = chain.lease(1).await.remove(0);
    chain.checkpoint(&first, json!({"nonce": 7})).await.assert_status(200);
    other.checkpoint(&first, json!({"nonce": 8})).await.assert_status(404);
    other.report(&first, "done", Value::Null).await.assert_status(404);
    end_leases(&context).await;
    chain.checkpoint(&first, json!({"nonce": 8})).await.assert_status(409);
    chain.report(&first, "done", Value::Null).await.assert_status(409);
    let second = chain.lease(1).await.remove(0);
    assert_eq!((&second["id"], &second["attempt"]), (&first["id"], &json!(2)));
    assert_eq!(second["checkpoint"], json!({"nonce": 7}), "the last one under a lease");
    chain.checkpoint(&first, json!({"nonce": 9})).await.assert_status(409);
    chain.report(&first, "rejected", Value::Null).await.assert_status(409);
    let mut guess = second.clone();
    guess["leaseToken"] = json!("guess");
    chain.report(&guess, "done", Value::Null).await.assert_status(409);
    chain.report(&second, "done", json!({"transactionId": "0x1"})).await.assert_status(200);
    chain.checkpoint(&second, json!({})).await.assert_status(409);
    let mut unknown = second.clone();
    unknown["id"] = json!("00000000-0000-7000-8000-000000000000");
    chain.report(&unknown, "done", Value::Null).await.assert_status(404);
    unknown["id"] = json!("nonsense");
    chain.report(&unknown, "done", Value::Null).await.assert_status(404);
}

#[tokio::test]
async fn a_payout_is_not_done_without_the_transaction_that_has_sent_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let chain = Connector::new(&context, "chain", &["payout.send"]).await;
    command(&context, &acme, PAYOUT, "a", None, to("chain")).await;
    let leased = chain.lease(1).await.remove(0);
    for result in [
        Value::Null,
        json!({}),
        json!({"transactionId": ""}),
        json!({"transactionId": 7}),
        json!({ "transactionId": "x".repeat(256) }),
    ] {
        let refused = chain.report(&leased, "done", result).await.assert_status(422).json();
        assert!(refused["error"].as_str().unwrap().contains("transactionId"), "{refused}");
    }
    chain.checkpoint(&leased, json!({"nonce": 7})).await.assert_status(200);
    chain.report(&leased, "retry", Value::Null).await.assert_status(200);
    assert_eq!(checkpoints(&context).await, 1);
    sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
    let again = chain.lease(1).await.remove(0);
    chain.report(&again, "done", json!({"transactionId": "0x1"})).await.assert_status(200);
    assert_eq!(checkpoints(&context).await, 0, "it goes with the command's end");
}

#[tokio::test]
async fn a_checkpoint_is_bounded_and_extends_the_lease() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let chain = Connector::new(&context, "chain", &["payout.send"]).await;
    command(&context, &acme, PAYOUT, "a", None, to("chain")).await;
    let leased = chain.lease(1).await.remove(0);
    let large = json!({ "text": "x".repeat(16 * 1024) });
    chain.checkpoint(&leased, large).await.assert_status(422);
    let fits = json!({ "text": format!("\u{0}{}", "x".repeat(16 * 1024 - 17)) });
    let path = format!("/connectors/v1/commands/{}/checkpoint", leased["id"].as_str().unwrap());
    let body = json!({"leaseToken": leased["leaseToken"], "checkpoint": fits, "leaseSeconds": 600});
    let extended = chain.call(Method::PUT, &path, body).await.assert_status(200).json();
    let end = |value: &Value| -> chrono::DateTime<chrono::Utc> {
        value["leasedUntil"].as_str().unwrap().parse().unwrap()
    };
    assert!(end(&extended) - end(&leased) > chrono::TimeDelta::seconds(500));
    end_leases(&context).await;
    assert_eq!(chain.lease(1).await[0]["checkpoint"], fits);
}

#[tokio::test]
async fn a_result_is_the_same_again_and_no_other() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let chain = Connector::new(&context, "chain", &["payout.send"]).await;
    command(&context, &acme, PAYOUT, "a", None, to("chain")).await;
    let leased = chain.lease(1).await.remove(0);
    let result = json!({"transactionId": "0x1", "fee": {"b": 1, "a": 2}});
    let first = chain.report(&leased, "done", result.clone()).await.assert_status(200).json();
    assert_eq!(first, json!({"state": "done", "retryAt": null}));
    assert_eq!(chain.report(&leased, "done", result).await.assert_status(200).json(), first);
    let reordered = json!({"fee": {"a": 2, "b": 1}, "transactionId": "0x1"});
    chain.report(&leased, "done", reordered).await.assert_status(200);
    chain.report(&leased, "rejected", Value::Null).await.assert_status(409);
    assert!(chain.lease(1).await.is_empty());
    let many = (0..8).map(|_| {
        let (chain, leased) = (chain.clone(), leased.clone());
        tokio::spawn(async move { chain.report(&leased, "rejected", json!(null)).await.status() })
    });
    let statuses = futures::future::join_all(many.collect::<Vec<_>>()).await;
    assert!(statuses.into_iter().all(|status| status.unwrap() == 409));
}

#[tokio::test]
async fn a_retry_backs_off_until_the_attempts_are_used_up() {
    let context = TestContext::with(|settings| settings.connectors.attempts_max = 3).await;
    let acme = context.partner("acme").await;
    let chain = Connector::new(&context, "chain", &["payout.send"]).await;
    command(&context, &acme, PAYOUT, "a", None, to("chain")).await;
    for attempt in 1..=2 {
        let leased = chain.lease(1).await.remove(0);
        assert_eq!(leased["attempt"], attempt);
        let retry = chain.report(&leased, "retry", Value::Null).await.assert_status(200).json();
        assert_eq!(retry["state"], "open");
        assert!(retry["retryAt"].is_string());
        let again = chain.report(&leased, "retry", Value::Null).await.assert_status(200).json();
        assert_eq!(again, retry, "the same result again");
        assert!(chain.lease(1).await.is_empty(), "it backs off");
        sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
    }
    let last = chain.lease(1).await.remove(0);
    let end = chain.report(&last, "retry", Value::Null).await.assert_status(200).json();
    assert_eq!(end, json!({"state": "rejected", "retryAt": null}));
    assert!(chain.lease(1).await.is_empty());
}

/// Reports that a command, which is due at once, is to be tried again; its state.
pub(super) async fn retried(context: &TestContext, connector: &Connector) -> Value {
    sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
    let leased = connector.lease(1).await.remove(0);
    let retry = connector.report(&leased, "retry", Value::Null).await;
    retry.assert_status(200).json()["state"].take()
}

#[tokio::test]
async fn no_number_of_retries_ends_what_an_attempt_may_have_sent() {
    let context = TestContext::with(|settings| settings.connectors.attempts_max = 2).await;
    let acme = context.partner("acme").await;
    for (name, kind) in [
        ("chain", PAYOUT),
        ("bank", CommandKind::TransferSend),
        ("cards", CommandKind::PaymentRefund),
    ] {
        let connector = Connector::new(&context, name, &[kind.as_str()]).await;
        command(&context, &acme, kind, name, None, to(name)).await;
        assert_eq!(retried(&context, &connector).await, "open");
        assert_eq!(connector.lease(1).await, Vec::<Value>::new(), "it backs off");
        sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
        assert_eq!(connector.lease(1).await.len(), 1, "this attempt reports nothing");
        end_leases(&context).await;
        for _ in 0..3 {
            assert_eq!(retried(&context, &connector).await, "open", "{name}");
        }
        sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
        let last = connector.lease(1).await.remove(0);
        let end = connector.report(&last, "rejected", Value::Null).await.assert_status(200).json();
        assert_eq!(end["state"], "rejected", "its connector knows");
    }
}

#[tokio::test]
async fn retries_end_what_sends_nothing_although_an_attempt_was_lost() {
    let context = TestContext::with(|settings| settings.connectors.attempts_max = 2).await;
    let acme = context.partner("acme").await;
    let cards = Connector::new(&context, "cards", &["payment.create"]).await;
    command(&context, &acme, CommandKind::PaymentCreate, "a", None, to("cards")).await;
    assert_eq!(cards.lease(1).await.len(), 1);
    end_leases(&context).await;
    assert_eq!(retried(&context, &cards).await, "open");
    assert_eq!(retried(&context, &cards).await, "rejected");
}

/// A lease of a new connector that has been heard, and waits for a command.
async fn waiting(context: &TestContext, name: &str) -> JoinHandle<Value> {
    let connector = Connector::new(context, name, &["payout.send"]).await;
    let waiting = tokio::spawn(async move {
        let lease = json!({"max": 1, "waitSeconds": 30, "leaseSeconds": 60});
        connector.call(Method::POST, "/connectors/v1/commands/lease", lease).await.json()
    });
    until("the connector is heard", SOON, async || {
        let heard = "select last_contact_at is not null from connector where name = $1";
        let heard = sqlx::query_scalar::<_, bool>(heard).bind(name).fetch_one(context.db()).await;
        heard.unwrap().then_some(())
    })
    .await;
    waiting
}

#[tokio::test]
async fn a_lease_waits_for_a_command() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let leasing = waiting(&context, "chain").await;
    command(&context, &acme, PAYOUT, "a", None, to("chain")).await;
    let leased = timeout(WAITED_MAX, leasing).await.unwrap().unwrap();
    assert_eq!(leased[0]["body"]["key"], "a");
    let leasing = waiting(&context, "other").await;
    context.core().lease_waits.end();
    let ended = timeout(WAITED_MAX, leasing).await.unwrap().unwrap();
    assert_eq!(ended, json!([]), "an edge that stops keeps nobody waiting");
}
