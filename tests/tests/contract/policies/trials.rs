//! A version beside the active one: in its shadow, and for a share of the users.

use std::sync::Arc;

use chrono::TimeDelta;
use http::Method;
use rampart_tests::cluster::until_locks_are_awaited;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

use super::{FEE, METHOD_ORDER, context, history, push, stage};

const QUOTE: &str = "/api/v1/buy/quote";

fn question(country: &str) -> Value {
    json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer", "fiatAmount": 100,
        "countryCode": country})
}

pub(super) async fn fee(partner: &Partner, country: &str) -> String {
    let quote = partner.post(QUOTE, question(country)).await;
    quote.assert_status(200).json()["partnerFee"].to_string()
}

async fn fee_of(user: &User) -> String {
    user.post(QUOTE, &question("DE")).await.assert_status(200).json()["partnerFee"].to_string()
}

async fn post(context: &TestContext, path: &str, body: Value) {
    context.admin(Method::POST, path, body).await.assert_status(200);
}

#[tokio::test]
async fn a_shadow_run_counts_differences_and_changes_no_answer() {
    let context = context().await;
    let acme = context.partner("shop").await;
    let path = "/admin/v1/partners/shop/policies/fee";
    push(&context, path, "hostile").await.assert_status(200);
    let members = json!({"config": {"mode": "panic@FR"}, "reason": "a try"});
    stage(&context, path, "hostile", members).await.assert_status(201);
    stage(&context, path, "tiered-fee", json!({"config": {}})).await.assert_status(201);
    post(&context, &format!("{path}/versions/2/shadow"), json!({"reason": "before Monday"})).await;

    for country in ["DE", "NL", "FR"] {
        assert_eq!(fee(&acme, country).await, "1");
    }
    let trial = async || {
        context.core().run_policy_shadows().await.unwrap();
        let trial = context.admin(Method::GET, &format!("{path}/trial"), json!({})).await;
        trial.assert_status(200).json()
    };
    let counts = |trial: &Value| {
        ["calls", "same", "different", "failed", "skipped"]
            .map(|name| trial[name].as_i64().unwrap())
    };
    let shown = trial().await;
    assert_eq!(counts(&shown), [3, 2, 0, 1, 0]);
    assert_eq!((&shown["version"], &shown["percentage"]), (&json!(2), &Value::Null));
    assert_eq!((&shown["startedBy"], &shown["reason"]), (&json!("admin"), &json!("before Monday")));
    let failed = &shown["differences"][0];
    assert_eq!(failed["input"]["country"], "FR");
    assert_eq!(failed["active"]["rule"], "behaved");
    assert_eq!(failed["candidate"]["failure"]["cause"], "trap");

    post(&context, &format!("{path}/versions/3/shadow"), json!({})).await;
    assert_eq!(fee(&acme, "DE").await, "1");
    let shown = trial().await;
    assert_eq!(counts(&shown), [1, 0, 1, 0, 0], "another trial counts from nothing");
    assert_eq!(shown["differences"].as_array().unwrap().len(), 1);
    assert_eq!(shown["differences"][0]["candidate"]["rule"], "tier-1");
    let metrics = context.core().metrics_text();
    let line = r#"rampart_policy_shadow_total{kind="fee",outcome="different",partner="shop"} 1"#;
    assert!(metrics.contains(line), "{metrics}");

    // What serves ends the trial.
    post(&context, &format!("{path}/versions/3/activate"), json!({})).await;
    assert_eq!(fee(&acme, "DE").await, "1.5");
    assert_eq!(history(&context, path).await["trial"], Value::Null);
    let left: i64 = sqlx::query_scalar("select count(*) from policy_difference")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_shadow_is_told_the_time_of_the_call_that_it_follows() {
    let context = context().await;
    let acme = context.partner("shop").await;
    let path = "/admin/v1/partners/shop/policies/fee";
    push(&context, &format!("{path}?config={{%22mode%22:%22time%22}}"), "hostile").await;
    stage(&context, path, "hostile", json!({"config": {"mode": "time"}})).await.assert_status(201);
    post(&context, &format!("{path}/versions/2/shadow"), json!({})).await;
    // Who reads the clock once more is a second off, every other time.
    let running = Arc::new(());
    let (clock, test) = (context.clock().clone(), Arc::downgrade(&running));
    let restless = std::thread::spawn(move || {
        while test.strong_count() > 0 {
            clock.misset(TimeDelta::seconds(1));
            clock.misset(-TimeDelta::seconds(1));
        }
    });
    for _ in 0..20 {
        fee(&acme, "DE").await;
    }
    drop(running);
    restless.join().unwrap();
    context.core().run_policy_shadows().await.unwrap();
    let shown = context.admin(Method::GET, &format!("{path}/trial"), json!({})).await.json();
    assert_eq!((&shown["same"], &shown["differences"]), (&json!(20), &json!([])), "{shown}");
}

#[tokio::test]
async fn what_a_shadow_has_no_room_for_is_counted_and_costs_the_caller_nothing() {
    let context = context().await;
    let shop = context.partner_of(json!({"slug": "shop", "name": "shop", "mode": "test"})).await;
    let rates = json!({"rateLimits": {"client": "1000000/s burst 1000000",
        "quotes": "1000000/s burst 1000000"}});
    context.admin(Method::PATCH, "/admin/v1/partners/shop", rates).await.assert_status(200);
    let path = "/admin/v1/partners/shop/policies/method-order";
    push(&context, path, "country-order").await.assert_status(200);
    stage(&context, path, "country-order", json!({})).await.assert_status(201);
    post(&context, &format!("{path}/versions/2/shadow"), json!({})).await;
    // A busy partner leaves room for others.
    let other = context.partner("other").await;
    let others = "/admin/v1/partners/other/policies/method-order";
    push(&context, others, "country-order").await.assert_status(200);
    stage(&context, others, "country-order", json!({})).await.assert_status(201);
    post(&context, &format!("{others}/versions/2/shadow"), json!({})).await;
    for _ in 0..520 {
        shop.get("/api/v2/buy/payment-methods").await.assert_status(200);
    }
    other.get("/api/v2/buy/payment-methods").await.assert_status(200);
    context.core().run_policy_shadows().await.unwrap();
    let shown = context.admin(Method::GET, &format!("{path}/trial"), json!({})).await.json();
    assert_eq!((&shown["same"], &shown["skipped"]), (&json!(128), &json!(392)));
    assert_eq!(shown["calls"], 520);
    let shown = context.admin(Method::GET, &format!("{others}/trial"), json!({})).await.json();
    assert_eq!((&shown["same"], &shown["skipped"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn what_edges_record_of_calls_takes_no_place_that_is_taken_while_others_are_free() {
    let context = context().await;
    let shop = context.partner("shop").await;
    let path = "/admin/v1/partners/shop/policies/fee";
    let chatty = format!("{path}?config={{%22mode%22:%22chatter@FR%22}}");
    push(&context, &chatty, "hostile").await.assert_status(200);
    stage(&context, path, "tiered-fee", json!({"config": {}})).await.assert_status(201);
    let other = context.second_edge().await;
    let there = shop.at(&other);
    let quote_on_both = async || {
        for partner in [&shop, &there] {
            fee(partner, "FR").await;
        }
        for edge in [&context, &other] {
            edge.core().run_policy_shadows().await.unwrap();
        }
    };
    let count = async |statement: &'static str| -> i64 {
        sqlx::query_scalar(statement).fetch_one(context.db()).await.unwrap()
    };
    quote_on_both().await;
    assert_eq!(count("select count(*) from policy_sample").await, 2);
    assert_eq!(count("select count(*) from policy_log").await, 2);

    post(&context, &format!("{path}/versions/2/shadow"), json!({})).await;
    other.core().refresh().await.unwrap();
    quote_on_both().await;
    assert_eq!(count("select different from policy_trial").await, 2);
    assert_eq!(count("select count(*) from policy_difference").await, 2);
}

#[tokio::test]
async fn shadow_runs_over_the_fuel_of_a_second_are_skipped() {
    let context = TestContext::with(|settings| settings.policy.fuel_per_second_max = 1).await;
    let shop = context.partner("shop").await;
    let path = "/admin/v1/partners/shop/policies/fee";
    push(&context, path, "tiered-fee").await.assert_status(200);
    stage(&context, path, "hostile", json!({"config": {}})).await.assert_status(201);
    post(&context, &format!("{path}/versions/2/shadow"), json!({})).await;
    for _ in 0..20 {
        fee(&shop, "DE").await;
    }
    context.core().run_policy_shadows().await.unwrap();
    let shown = context.admin(Method::GET, &format!("{path}/trial"), json!({})).await.json();
    let count = |name: &str| shown[name].as_i64().unwrap();
    // The first run of each second is within the budget and overdraws it.
    assert!(count("different") > 0 && count("skipped") > 0, "{shown}");
    assert_eq!((count("calls"), count("different") + count("skipped")), (20, 20));
}

#[tokio::test]
async fn shadows_run_although_there_is_room_for_the_code_of_one() {
    let context = TestContext::with(|settings| settings.policy.memory_bytes = 1).await;
    let paths = ["acme", "other"].map(|slug| format!("/admin/v1/partners/{slug}/policies/fee"));
    let guests = [("acme", "tiered-fee", "hostile"), ("other", "hostile", "tiered-fee")];
    for (path, (slug, active, shadow)) in paths.iter().zip(guests) {
        let partner = context.partner(slug).await;
        push(&context, path, active).await.assert_status(200);
        stage(&context, path, shadow, json!({"config": {}})).await.assert_status(201);
        post(&context, &format!("{path}/versions/2/shadow"), json!({})).await;
        fee(&partner, "DE").await;
    }
    context.core().run_policy_shadows().await.unwrap();
    for path in paths {
        let shown = context.admin(Method::GET, &format!("{path}/trial"), json!({})).await.json();
        assert_eq!((&shown["different"], &shown["skipped"]), (&json!(1), &json!(0)), "{shown}");
    }
}

#[tokio::test]
async fn a_share_answers_the_same_users_on_every_edge_and_grows() {
    let context = context().await;
    let other = context.second_edge().await;
    let acme = context.partner("shop").await;
    let path = "/admin/v1/partners/shop/policies/fee";
    push(&context, path, "tiered-fee").await.assert_status(200);
    stage(&context, path, "hostile", json!({"config": {}})).await.assert_status(201);
    let mut users = Vec::new();
    for number in 0..12 {
        users.push(acme.user(&format!("user{number}")).await);
    }
    let mut before: Vec<usize> = Vec::new();
    for percentage in [25, 60, 99] {
        let body = json!({ "percentage": percentage });
        post(&context, &format!("{path}/versions/2/activate"), body).await;
        other.core().refresh().await.unwrap();
        let mut now = Vec::new();
        for (number, user) in users.iter().enumerate() {
            let here = fee_of(user).await;
            let there = User { partner: acme.at(&other), ..user.clone() };
            assert_eq!(fee_of(&there).await, here);
            assert!(here == "1" || here == "1.5", "{here}");
            if here == "1" {
                now.push(number);
            }
        }
        assert!(before.iter().all(|user| now.contains(user)), "{percentage} %");
        before = now;
    }
    assert!(!before.is_empty());
    assert_eq!(history(&context, path).await["trial"]["percentage"], 99);

    // One step back is everybody on the version that was active all the time.
    let back = context.admin(Method::POST, &format!("{path}/rollback"), json!({})).await;
    assert_eq!(back.assert_status(200).json()["version"], 1);
    for user in &users {
        assert_eq!(fee_of(user).await, "1.5");
    }
}

#[tokio::test]
async fn a_canary_of_two_persons_is_not_ended_by_a_shadow_run_of_one() {
    let context = context().await;
    context.partner("shop").await;
    let (partner, path) = ("/admin/v1/partners/shop", "/admin/v1/partners/shop/policies/fee");
    push(&context, path, "tiered-fee").await.assert_status(200);
    stage(&context, path, "hostile", json!({"config": {}})).await.assert_status(201);
    let demand = json!({"policyApprovalRequired": true});
    context.admin(Method::PATCH, partner, demand).await.assert_status(200);
    let ada = context.operator("ada", &["platform"]).await;
    let (shadow, canary) =
        (format!("{path}/versions/2/shadow"), format!("{path}/versions/2/activate"));
    let run = async || context.admin_as(Some(&ada), Method::POST, &shadow, "{}".into()).await;
    run().await.assert_status(200);
    post(&context, &canary, json!({"percentage": 5})).await;
    run().await.assert_status(202);
    assert_eq!(history(&context, path).await["trial"]["percentage"], 5);

    // Nor is one that begins once the shadow run is let in.
    context.admin(Method::DELETE, &format!("{path}/trial"), json!({})).await.assert_status(204);
    let mut somebody = context.db().begin().await.unwrap();
    let row = "select from client where slug = 'shop' for update";
    sqlx::query(row).execute(&mut *somebody).await.unwrap();
    let late = async {
        until_locks_are_awaited(context.db(), 1).await;
        run().await.assert_status(409);
    };
    let free = async {
        until_locks_are_awaited(context.db(), 2).await;
        somebody.rollback().await.unwrap();
    };
    futures::join!(post(&context, &canary, json!({"percentage": 5})), late, free);
    assert_eq!(history(&context, path).await["trial"]["percentage"], 5);
}

#[tokio::test]
async fn a_version_on_trial_that_fails_gives_way_to_the_active_one() {
    let context = context().await;
    let acme = context.partner("shop").await;
    let path = "/admin/v1/partners/shop/policies/fee";
    push(&context, path, "tiered-fee").await.assert_status(200);
    let members = json!({"config": {"mode": "panic@FR"}, "failClosed": true});
    stage(&context, path, "hostile", members).await.assert_status(201);
    let body = json!({"percentage": 99});
    post(&context, &format!("{path}/versions/2/activate"), body).await;
    let mut users = Vec::new();
    for number in 0..6 {
        users.push(acme.user(&format!("user{number}")).await);
    }
    let mut tried = 0;
    for user in &users {
        tried += usize::from(fee_of(user).await == "1");
        let in_france = user.post(QUOTE, &question("FR")).await.assert_status(200).json();
        assert_eq!(in_france["partnerFee"].to_string(), "1.5");
    }
    assert!(tried > 0);
    assert!(
        context
            .core()
            .metrics_text()
            .contains(r#"rampart_policy_calls_total{kind="fee",outcome="trap",partner="shop"}"#)
    );
}

#[tokio::test]
async fn a_dry_run_asks_a_version_what_live_requests_asked() {
    let context = context().await;
    let shop = context.partner("shop").await;
    let path = "/admin/v1/partners/shop/policies/fee";
    push(&context, path, "tiered-fee").await.assert_status(200);
    stage(&context, path, "hostile", json!({"config": {}})).await.assert_status(201);
    let recorded = async |version: i64| {
        context.core().run_policy_shadows().await.unwrap();
        let body = json!({"recorded": true, "version": version});
        context.admin(Method::POST, &format!("{path}/dry-run"), body).await
    };
    recorded(2).await.assert_status(409);
    for country in ["DE", "NL"] {
        fee(&shop, country).await;
        context.clock().advance(TimeDelta::seconds(1));
    }
    let shown = recorded(2).await.assert_status(200).json();
    let decisions = shown["decisions"].as_array().unwrap();
    assert_eq!(decisions.len(), 2, "one a second is kept");
    assert_eq!(decisions[0]["decision"]["rule"], "behaved");
    assert_eq!(recorded(1).await.json()["decisions"][0]["decision"]["rule"], "tier-1");
    let kept: Value = sqlx::query_scalar("select input from policy_sample")
        .fetch_one(context.db())
        .await
        .unwrap();
    let members: Vec<_> = kept.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = [
        "country",
        "midRate",
        "pay",
        "paymentMethod",
        "receiveCurrency",
        "side",
        "stage",
        "userTier",
    ];
    expected.sort_unstable();
    let mut members = members;
    members.sort_unstable();
    assert_eq!(members, expected, "nothing that names anybody");
}

#[tokio::test]
async fn several_inputs_are_answered_in_order_and_alike_on_every_edge() {
    let context = context().await;
    let other = context.second_edge().await;
    let dry_run = format!("{FEE}/dry-run");
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    let inputs: Vec<_> =
        [10, 600, 10].map(|n| json!({"pay": {"amount": n, "currency": "EUR"}})).into();
    let body = json!({"inputs": inputs, "now": 1_767_225_600});
    let here = context.admin(Method::POST, &dry_run, body.clone()).await;
    let there = other.admin(Method::POST, &dry_run, body).await;
    assert_eq!(here.assert_status(200).text(), there.text());
    let rules: Vec<_> = here.json()["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["decision"]["rule"].clone())
        .collect();
    assert_eq!(rules, ["tier-1", "tier-2", "tier-1"]);
    for body in
        [json!({}), json!({"input": {}, "inputs": []}), json!({"inputs": vec![json!({}); 1_001]})]
    {
        context.admin(Method::POST, &dry_run, body).await.assert_status(422);
    }
    let nobody = format!("{METHOD_ORDER}/dry-run");
    context.admin(Method::POST, &nobody, json!({"inputs": []})).await.assert_status(404);
}
