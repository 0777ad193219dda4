//! Money that waits and the check of the books, as operators see them from outside.

use chrono::TimeDelta;
use rampart_tests::cluster::until_a_lock_is_awaited;
use rampart_tests::connector::Connector;

use super::*;
use crate::sweeps::copy_order;

/// The value of a series.
fn shown(context: &TestContext, series: &str) -> f64 {
    let text = context.core().metrics.render();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("rampart_{series} ")));
    line.unwrap_or_else(|| panic!("{series}: {text}")).parse().unwrap()
}

#[tokio::test]
async fn what_waits_is_measured_with_its_age() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    pay(&context, "bank-1", json!({"orderId": order.id})).await.assert_status(201);
    let stray = json!({"orderId": null, "amount": 5});
    let stray = pay(&context, "bank-2", stray).await.assert_status(201).json();
    let chain = Connector::new(&context, "chain", &["payout.send"]).await;
    let route =
        json!({"partner": "acme", "asset": "BTC", "direction": "out", "connector": "chain"});
    let routes = json!({ "routes": [route] });
    context.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    for late in [
        "update buy_order set updated_at = now() - interval '2 hours'",
        "insert into command (client_id, command_id, kind, idempotency_key, connector, sealed_body, \
             due_at, created_at) \
         select client_id, gen_random_uuid(), 'payout.send', 'late', 'chain', '', now(), \
             now() - interval '500 seconds' from client where slug = 'acme'",
        "update connector set created_at = now() - interval '300 seconds'",
    ] {
        sqlx::query(late).execute(context.db()).await.unwrap();
    }
    context.core().measure_money().await.unwrap();
    let in_progress = r#"order_age_seconds{partner_class="test",side="buy",status="in progress"}"#;
    assert!((7_200.0..7_300.0).contains(&shown(&context, in_progress)));
    assert_eq!(shown(&context, r#"orders_open{side="buy",status="in progress"}"#), 1.0);
    assert_eq!(shown(&context, r#"orders_open{side="sell",status="in progress"}"#), 0.0);
    assert!(shown(&context, r#"command_age_seconds{kind="payout.send"}"#) >= 500.0);
    assert_eq!(shown(&context, r#"commands_open{kind="payout.send"}"#), 1.0);
    assert_eq!(shown(&context, r#"payments_waiting{state="unmatched"}"#), 1.0);
    assert!(shown(&context, r#"connector_silence_seconds{connector="chain"}"#) >= 300.0);

    let path = format!("{PAYMENTS}/{}/refund", stray["id"].as_str().unwrap());
    context.admin(Method::POST, &path, json!({"reason": "nobody's"})).await.assert_status(200);
    let balance = json!({"id": "h-1", "kind": "health", "occurredAt": "2026-03-01T12:00:00Z",
        "asset": "BTC", "amount": 1.5});
    chain.event(balance).await.assert_status(200);
    context.core().measure_money().await.unwrap();
    // Nobody but an operator gives it back.
    assert_eq!(shown(&context, r#"payments_waiting{state="unmatched"}"#), 1.0);
    let back = json!({"orderId": null, "kind": "refunded", "amount": 5});
    pay(&context, "bank-3", back).await.assert_status(201);
    context.core().measure_money().await.unwrap();
    assert_eq!(shown(&context, r#"payments_waiting{state="unmatched"}"#), 0.0);
    assert!(shown(&context, r#"connector_silence_seconds{connector="chain"}"#) < 300.0);
    let held = r#"treasury_balance{asset="BTC",source="chain"}"#;
    assert_eq!(shown(&context, held), 1.5);
    let nothing = json!({"id": "h-2", "kind": "health", "occurredAt": "2026-03-01T12:01:00Z",
        "asset": "BTC", "amount": 0});
    chain.event(nothing).await.assert_status(200);
    context.core().measure_money().await.unwrap();
    assert_eq!(shown(&context, held), 0.0);
}

#[tokio::test]
async fn a_command_is_measured_beside_older_ones_of_another_kind() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for waiting in [
        // More than are counted.
        "insert into command (client_id, command_id, kind, idempotency_key, connector, \
             sealed_body, due_at, created_at) \
         select client_id, gen_random_uuid(), 'payment.create', 'create-' || n, 'cards', '', \
             now(), now() - interval '1 day' \
         from client, generate_series(1, 10001) n where slug = 'acme'",
        "insert into command (client_id, command_id, kind, idempotency_key, connector, \
             sealed_body, due_at, created_at) \
         select client_id, gen_random_uuid(), 'payout.send', 'send', 'chain', '', now(), \
             now() - interval '500 seconds' from client where slug = 'acme'",
    ] {
        sqlx::query(waiting).execute(context.db()).await.unwrap();
    }
    context.core().measure_money().await.unwrap();
    assert_eq!(shown(&context, r#"commands_open{kind="payment.create"}"#), 10_000.0);
    assert!(shown(&context, r#"command_age_seconds{kind="payment.create"}"#) >= 86_400.0);
    assert_eq!(shown(&context, r#"commands_open{kind="payout.send"}"#), 1.0);
    assert!(shown(&context, r#"command_age_seconds{kind="payout.send"}"#) >= 500.0);
    assert_eq!(shown(&context, r#"commands_open{kind="transfer.send"}"#), 0.0);
    assert_eq!(shown(&context, r#"command_age_seconds{kind="transfer.send"}"#), 0.0);
}

#[tokio::test]
async fn a_payment_in_suspense_is_measured_beside_older_ones_without_an_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    for reference in ["first", "second"] {
        pay(&context, reference, json!({"orderId": order.id})).await.assert_status(201);
    }
    for waiting in [
        // More than are counted.
        "with of_acme as (select client_id from client where slug = 'acme'), \
         paid as ( \
             insert into payment (client_id, payment_id, connector, provider_reference, kind, \
                 amount, currency, suspense, actor, occurred_at, recorded_at) \
             select client_id, gen_random_uuid(), 'bank', 'old-' || n, 'received', 1, 'EUR', true, \
                 'bank', now(), now() - interval '1 day' \
             from of_acme, generate_series(1, 10001) n), \
         account as ( \
             insert into ledger_account (client_id, account_id, kind, currency, holder) \
             select client_id, gen_random_uuid(), kind, 'EUR', 'old' \
             from of_acme, unnest(array['provider', 'suspense']) kind \
             returning client_id, account_id, kind), \
         entry as ( \
             insert into ledger_entry (client_id, entry_id, kind, occurred_at) \
             select client_id, gen_random_uuid(), 'received', now() from of_acme \
             returning client_id, entry_id) \
         insert into ledger_posting (client_id, entry_id, line, account_id, amount) \
         select client_id, entry_id, case kind when 'provider' then 1 else 2 end, account_id, \
             case kind when 'provider' then 10001 else -10001 end \
         from entry join account using (client_id)",
        "analyze",
    ] {
        sqlx::query(waiting).execute(context.db()).await.unwrap();
    }
    context.core().measure_money().await.unwrap();
    assert_eq!(shown(&context, r#"payments_waiting{state="unmatched"}"#), 10_000.0);
    assert!(shown(&context, r#"payment_age_seconds{state="unmatched"}"#) >= 86_400.0);
    assert_eq!(shown(&context, r#"payments_waiting{state="suspense"}"#), 1.0);
}

#[tokio::test]
async fn the_oldest_order_is_looked_for_among_so_many() {
    /// Orders of a class and side whose gate is asked.
    const ASKED: u32 = 5_000;
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    OrderFixture::order(&context, &acme, None, None).await;
    copy_order(&context, "in progress", ASKED).await;
    let stuck = OrderFixture::order(&context, &rival, None, None).await;
    for change in [
        "update client set compliance_gate = 'before-payout' where slug = 'acme'",
        // They wait for their user alone.
        "update buy_order set wallet_type = 'unhosted', fiat_amount = 2000, crypto_amount = 0.04, \
             updated_at = now() - interval '3 hours' where status = 'in progress'",
    ] {
        sqlx::query(change).execute(context.db()).await.unwrap();
    }
    let late = "update buy_order set status = 'in progress', \
        updated_at = now() - interval '2 hours' where order_id = $1";
    sqlx::query(late).bind(stuck.id).execute(context.db()).await.unwrap();
    let age = async || {
        context.core().measure_money().await.unwrap();
        let series = r#"order_age_seconds{partner_class="test",side="buy",status="in progress"}"#;
        shown(&context, series)
    };
    assert_eq!(age().await, 0.0, "it is behind those that are asked");
    let one = "update buy_order set updated_at = now() where order_id = 1";
    sqlx::query(one).execute(context.db()).await.unwrap();
    assert!(age().await >= 7_200.0);
}

#[tokio::test]
async fn the_books_are_checked_by_one_edge_in_turn_and_readyz_tells() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    pay(&context, "bank-1", json!({"orderId": order.id})).await.assert_status(201);
    let sent = json!({"orderId": order.id, "kind": "payout-sent", "amount": 0.002,
        "currency": "BTC"});
    pay(&context, "ab12", sent).await.assert_status(201);
    let books = async || {
        context.core().measure_money().await.unwrap();
        let checks = context.core().readiness().await.checks;
        let check = checks.into_iter().find(|check| check.name == "books").unwrap();
        assert!(check.ok, "an edge serves all the same");
        check.detail.into_owned()
    };
    sqlx::query("update ledger_check set created_at = now() - interval '7 hours'")
        .execute(context.db())
        .await
        .unwrap();
    assert!(books().await.contains("last checked"));
    let edges = [context.core(), context.second_edge().await.core()].map(std::sync::Arc::clone);
    let runs = edges.iter().flat_map(|core| [core, core]).map(|core| core.check_books());
    for run in futures::future::join_all(runs).await {
        run.unwrap();
    }
    assert_eq!(books().await, "");
    let checked = "select finished_checked from ledger_check";
    assert!(count(&context, checked).await >= 2, "the order and its entries");
    assert!(shown(&context, "ledger_check_age_seconds") < 60.0);
    assert_eq!(shown(&context, r#"treasury_balance{asset="BTC",source="books"}"#), -0.002);

    sqlx::query("update buy_order set status = 'refunded'").execute(context.db()).await.unwrap();
    context.core().check_books().await.unwrap();
    assert_eq!(books().await, "", "the next round is not due");
    sqlx::query("update ledger_check set due_at = now()").execute(context.db()).await.unwrap();
    context.core().check_books().await.unwrap();
    assert_eq!(books().await, "degraded: the books are off in 1 place");
    assert_eq!(shown(&context, "ledger_problems"), 1.0);
}

#[tokio::test]
async fn an_edge_whose_claim_has_ended_leaves_the_books_round_to_the_next_one() {
    let context = TestContext::start().await;
    let mut held = context.db().begin().await.unwrap();
    sqlx::query("lock table buy_order").execute(&mut *held).await.unwrap();
    let next = "update ledger_check set claimed_until = now() + interval '1 hour', \
        finished_problems = 3";
    let (checked, ()) = tokio::join!(context.core().check_books(), async {
        until_a_lock_is_awaited(context.db()).await;
        sqlx::query(next).execute(&mut *held).await.unwrap();
        held.commit().await.unwrap();
    });
    checked.unwrap();
    let left = "select count(*) from ledger_check \
        where claimed_until > now() and finished_problems = 3";
    assert_eq!(count(&context, left).await, 1);
}

#[tokio::test]
async fn what_cannot_be_measured_leaves_the_books_measured() {
    let context = TestContext::start().await;
    for change in [
        "alter function money_waiting() rename to money_away",
        "update ledger_check set finished_problems = 3",
    ] {
        sqlx::query(change).execute(context.db()).await.unwrap();
    }
    assert!(context.core().measure_money().await.is_err());
    assert_eq!(shown(&context, "ledger_problems"), 3.0);
}

#[tokio::test]
async fn what_is_no_longer_measured_is_no_longer_shown() {
    let context = TestContext::start().await;
    let core = context.core();
    core.measure_backlogs().await.unwrap();
    core.measure_money().await.unwrap();
    let away = "alter function money_waiting() rename to money_away";
    sqlx::query(away).execute(context.db()).await.unwrap();
    let shown = || {
        let text = core.metrics_text();
        ["backlog{", "payments_waiting{", "payment_age_seconds{", "ledger_problems "]
            .map(|series| text.contains(&format!("\nrampart_{series}")))
    };
    context.clock().advance(TimeDelta::minutes(19));
    assert!(core.measure_money().await.is_err());
    assert_eq!(shown(), [true; 4], "one that fails for a moment");
    context.clock().advance(TimeDelta::minutes(2));
    core.readiness().await;
    assert_eq!(shown(), [false, false, false, true]);
    core.measure_backlogs().await.unwrap();
    assert_eq!(shown(), [true, false, false, true]);
}

#[tokio::test]
async fn readyz_tells_what_was_found_though_it_is_no_longer_measured() {
    let context = TestContext::start().await;
    let core = context.core();
    for found in [
        "update ledger_check set finished_at = now(), finished_problems = 3",
        "update audit_check set finished_at = now(), broken_position = 7, broken_reason = 'x'",
    ] {
        sqlx::query(found).execute(context.db()).await.unwrap();
    }
    core.look_once().await.unwrap();
    context.clock().advance(TimeDelta::minutes(21));
    let text = core.metrics_text();
    for gone in ["ledger_problems", "audit_broken"] {
        assert!(!text.contains(&format!("\nrampart_{gone} ")), "{gone}");
    }
    let checks = core.readiness().await.checks;
    let told = |name: &str| {
        checks.iter().find(|check| check.name == name).unwrap().detail.clone().into_owned()
    };
    assert_eq!(told("books"), "degraded: the books are off in 3 places");
    assert_eq!(told("audit"), "degraded: the audit's chain is broken");
}

#[tokio::test]
async fn the_treasury_is_the_settled_sum_and_what_came_since() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let settled = "select trim_scale(coalesce(sum(s.amount), 0))::text \
        from ledger_settled s join ledger_account a using (client_id, account_id) \
        where a.kind = 'treasury' and a.currency = 'BTC'";
    let books = async || {
        sqlx::query("update ledger_check set due_at = now()").execute(context.db()).await.unwrap();
        context.core().check_books().await.unwrap();
        context.core().measure_money().await.unwrap();
        let settled: String = sqlx::query_scalar(settled).fetch_one(context.db()).await.unwrap();
        (shown(&context, r#"treasury_balance{asset="BTC",source="books"}"#), settled)
    };
    let send = async |reference: &str| {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        let paid = format!("bank-{reference}");
        pay(&context, &paid, json!({"orderId": order.id})).await.assert_status(201);
        let sent = json!({"orderId": order.id, "kind": "payout-sent", "amount": 0.002,
            "currency": "BTC"});
        pay(&context, reference, sent).await.assert_status(201);
    };
    send("ab12").await;
    assert_eq!(books().await, (-0.002, "0".to_owned()), "it is too young to be settled");
    context.clock().advance(TimeDelta::minutes(11));
    assert_eq!(books().await, (-0.002, "-0.002".to_owned()));
    assert_eq!(books().await, (-0.002, "-0.002".to_owned()), "it was settled twice");
    send("ab13").await;
    assert_eq!(books().await, (-0.004, "-0.002".to_owned()));
    context.clock().advance(TimeDelta::minutes(11));
    sqlx::query("update ledger_check set due_at = now()").execute(context.db()).await.unwrap();
    let edges = [context.core(), context.second_edge().await.core()].map(std::sync::Arc::clone);
    let rounds = edges.iter().flat_map(|core| [core, core]).map(|core| core.check_books());
    futures::future::join_all(rounds).await.into_iter().for_each(Result::unwrap);
    let settled: String = sqlx::query_scalar(settled).fetch_one(context.db()).await.unwrap();
    assert_eq!(settled, "-0.004");
    assert_eq!(books().await, (-0.004, settled));
}
