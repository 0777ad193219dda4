//! Maintenance windows: what they close, for how long, and who makes them.

use chrono::{DateTime, TimeDelta, Utc};
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use sqlx::query_scalar;

use super::{METHODS, PAIRS, change, pair};

const WINDOWS: &str = "/admin/v1/maintenance-windows";

/// Makes a window of what this member names. It starts after the first time, if there is one, and
/// ends after the second.
async fn plan(
    context: &TestContext,
    member: &str,
    code: &str,
    starts: Option<TimeDelta>,
    ends: TimeDelta,
) -> Answer {
    let now = context.clock().now();
    let mut body = json!({"endsAt": now + ends, "reason": "upgrade of the node"});
    body[member] = json!(code);
    if let Some(starts) = starts {
        body["startsAt"] = json!(now + starts);
    }
    context.admin(Method::POST, WINDOWS, body).await
}

/// A turn of the workers of this edge.
async fn turn(context: &TestContext) {
    context.core().follow_maintenance_windows().await.unwrap();
    context.core().refresh().await.unwrap();
}

async fn bought(partner: &Partner, pair: &str, method: &str) -> Answer {
    let ask = json!({"currencyPair": pair, "paymentMethod": method, "fiatAmount": 100});
    partner.post("/api/v1/buy/quote", ask).await
}

async fn sold(partner: &Partner, pair: &str) -> Answer {
    let ask = json!({"currencyPair": pair, "cryptoAmount": 1});
    partner.post("/api/v1/sell/quote", ask).await
}

async fn windows(context: &TestContext) -> Value {
    context.admin(Method::GET, WINDOWS, Value::Null).await.assert_status(200).json()
}

async fn revision(context: &TestContext) -> i64 {
    let revision = "select revision from change_counter where scope = 'catalogue'";
    query_scalar(revision).fetch_one(context.db()).await.unwrap()
}

#[tokio::test]
async fn a_window_closes_both_sides_of_its_pair_and_opens_them_again() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = "/admin/v1/pairs/ETH-EUR";
    change(&context, Method::PATCH, path, json!({"sell": {"status": "disabled"}})).await;
    let (minute, hour) = (TimeDelta::minutes(1), TimeDelta::hours(1));
    for code in ["BTC-EUR", "ETH-EUR"] {
        let made = plan(&context, "pair", code, Some(minute), hour).await;
        let made = made.assert_status(201).json();
        assert_eq!((&made["status"], &made["pair"]), (&json!("upcoming"), &json!(code)), "{made}");
    }
    turn(&context).await;
    bought(&acme, "BTC-EUR", "creditCard").await.assert_status(200);
    let before = revision(&context).await;
    turn(&context).await;
    assert_eq!(revision(&context).await, before, "nothing has begun");

    context.clock().advance(minute);
    turn(&context).await;
    assert_eq!(revision(&context).await, before + 1);
    bought(&acme, "BTC-EUR", "creditCard").await.assert_status(400).assert_codes(&["ER008"]);
    sold(&acme, "BTC-EUR").await.assert_status(400).assert_codes(&["ER016"]);
    sold(&acme, "ETH-EUR").await.assert_codes(&["ER010"]);
    bought(&acme, "LTC-EUR", "creditCard").await.assert_status(200);
    let pairs = acme.get(PAIRS).await.json();
    for (code, buy, sell) in [
        ("BTC-EUR", "maintenance", "maintenance"),
        ("ETH-EUR", "maintenance", "disabled"),
        ("LTC-EUR", "enabled", "enabled"),
    ] {
        let pair = pair(&pairs, code);
        let sides = (&pair["buy"]["status"], &pair["sell"]["status"]);
        assert_eq!(sides, (&json!(buy), &json!(sell)), "{code}");
    }
    assert!(acme.get("/api/v2/prices").await.json().get("BTC-EUR").is_none());
    // The own status is what it was.
    let own = context.admin(Method::GET, "/admin/v1/pairs", Value::Null).await.json();
    assert_eq!(pair_of(&own, "BTC-EUR")["terms"]["buy"]["status"], "enabled");
    assert_eq!(windows(&context).await[0]["status"], "running");

    context.clock().advance(hour);
    turn(&context).await;
    assert_eq!(revision(&context).await, before + 2);
    bought(&acme, "BTC-EUR", "creditCard").await.assert_status(200);
    sold(&acme, "BTC-EUR").await.assert_status(200);
    sold(&acme, "ETH-EUR").await.assert_codes(&["ER010"]);
    assert_eq!(windows(&context).await[0]["status"], "past");
    turn(&context).await;
    assert_eq!(revision(&context).await, before + 2, "it has ended once");
}

fn pair_of<'a>(pairs: &'a Value, code: &str) -> &'a Value {
    pairs.as_array().unwrap().iter().find(|pair| pair["pair"] == code).unwrap()
}

#[tokio::test]
async fn a_method_is_not_offered_until_its_window_is_ended() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let offered = async || acme.get(METHODS).await.text().contains("\"creditCard\"");
    assert!(offered().await);
    let made = plan(&context, "paymentMethod", "creditCard", None, TimeDelta::hours(1)).await;
    let made = made.assert_status(201).json();
    let named = (&made["status"], &made["createdBy"], &made["reason"]);
    assert_eq!(named, (&json!("running"), &json!("admin"), &json!("upgrade of the node")));
    assert!(!offered().await, "it begins with the answer");
    bought(&acme, "BTC-EUR", "creditCard").await.assert_codes(&["ER055"]);
    bought(&acme, "BTC-EUR", "walletpay").await.assert_status(200);
    let own = context.admin(Method::GET, "/admin/v1/payment-methods", Value::Null).await.json();
    let own = own.as_array().unwrap().iter().find(|method| method["code"] == "creditCard");
    assert_eq!(own.unwrap()["enabled"], true);

    context.clock().advance(TimeDelta::minutes(1));
    let path = format!("{WINDOWS}/{}", made["id"].as_str().unwrap());
    context.admin(Method::DELETE, &path, Value::Null).await.assert_status(204);
    assert!(offered().await, "it ends with the answer");
    bought(&acme, "BTC-EUR", "creditCard").await.assert_status(200);
    let listed = windows(&context).await;
    let window = &listed[0];
    let ended: DateTime<Utc> = window["endsAt"].as_str().unwrap().parse().unwrap();
    assert!(window["status"] == "past" && ended <= context.clock().now(), "{window}");
    let again = context.admin(Method::DELETE, &path, Value::Null).await;
    assert!(again.assert_status(409).text().contains("over"), "{}", again.text());

    let audit = "/admin/v1/audit?target=creditCard";
    let audit = context.admin(Method::GET, audit, Value::Null).await.json();
    let actions: Vec<_> = audit.as_array().unwrap().iter().map(|row| &row["action"]).collect();
    assert_eq!(actions, ["maintenance-window.end", "maintenance-window.create"]);
    assert_eq!(audit[1]["detail"]["reason"], "upgrade of the node");
}

#[tokio::test]
async fn an_upcoming_window_is_withdrawn() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (day, week) = (TimeDelta::days(1), TimeDelta::weeks(1));
    let made = plan(&context, "pair", "BTC-EUR", Some(day), week).await;
    let made = made.assert_status(201).json();
    let path = format!("{WINDOWS}/{}", made["id"].as_str().unwrap());
    context.admin(Method::DELETE, &path, Value::Null).await.assert_status(204);
    assert_eq!(windows(&context).await, json!([]));
    context.admin(Method::DELETE, &path, Value::Null).await.assert_status(404);
    context.clock().advance(day);
    turn(&context).await;
    bought(&acme, "BTC-EUR", "creditCard").await.assert_status(200);
}

#[tokio::test]
async fn of_edges_that_look_at_once_one_raises_the_revision_and_all_follow() {
    let context = TestContext::start().await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    other.core().refresh().await.unwrap();
    let (minute, hour) = (TimeDelta::minutes(1), TimeDelta::hours(1));
    plan(&context, "pair", "BTC-EUR", Some(minute), hour).await.assert_status(201);
    let there = acme.at(&other);
    for (wait, status) in [(minute, 400), (hour, 200)] {
        let before = revision(&context).await;
        context.clock().advance(wait);
        let (one, two) = tokio::join!(
            context.core().follow_maintenance_windows(),
            other.core().follow_maintenance_windows(),
        );
        one.and(two).unwrap();
        assert_eq!(revision(&context).await, before + 1);
        context.core().refresh().await.unwrap();
        other.core().refresh().await.unwrap();
        bought(&acme, "BTC-EUR", "creditCard").await.assert_status(status);
        bought(&there, "BTC-EUR", "creditCard").await.assert_status(status);
    }
}

#[tokio::test]
async fn what_is_no_window_is_refused() {
    let context = TestContext::start().await;
    let now = context.clock().now();
    let (soon, later) = (now + TimeDelta::minutes(1), now + TimeDelta::hours(1));
    let valid = json!({"pair": "BTC-EUR", "startsAt": soon, "endsAt": later, "reason": "upgrade"});
    for (member, value, named) in [
        ("pair", json!("ZZZ-EUR"), "pair"),
        ("pair", json!("BTC"), "pair"),
        ("pair", Value::Null, "pair"),
        ("paymentMethod", json!("creditCard"), "pair"),
        ("endsAt", json!(soon), "endsAt"),
        ("endsAt", json!(now - TimeDelta::hours(1)), "endsAt"),
        ("endsAt", json!("tomorrow"), "endsAt: not a date or time"),
        ("endsAt", Value::Null, "null"),
        ("reason", json!(" "), "reason"),
        ("reason", json!("x".repeat(256)), "reason"),
        ("side", json!("buy"), "side"),
    ] {
        let mut body = valid.clone();
        body[member] = value;
        let refused = context.admin(Method::POST, WINDOWS, body.clone()).await;
        assert_eq!(refused.status(), 422, "{body}: {}", refused.text());
        assert!(refused.text().contains(named), "{body}: {}", refused.text());
    }
    // One that would be over at once is none, whenever it is said to have begun.
    let over = json!({"pair": "BTC-EUR", "startsAt": now - TimeDelta::hours(2),
        "endsAt": now - TimeDelta::hours(1), "reason": "late"});
    context.admin(Method::POST, WINDOWS, over).await.assert_status(422);
    let mut unknown = valid.clone();
    unknown["pair"] = Value::Null;
    unknown["paymentMethod"] = json!("cowries");
    let refused = context.admin(Method::POST, WINDOWS, unknown).await;
    assert!(refused.assert_status(422).text().contains("paymentMethod"), "{}", refused.text());
    let wrong = format!("{WINDOWS}/nothing");
    context.admin(Method::DELETE, &wrong, Value::Null).await.assert_status(404);
    assert_eq!(windows(&context).await, json!([]));
}

#[tokio::test]
async fn at_most_a_hundred_windows_have_not_ended() {
    let context = TestContext::start().await;
    let many = "insert into maintenance_window \
         (window_id, pair, starts_at, ends_at, reason, created_by) \
         select gen_random_uuid(), 'BTC-EUR', now() + interval '1 day', \
             now() + n * interval '2 days', 'upgrade', 'ada' from generate_series(1, 99) n";
    sqlx::query(many).execute(context.db()).await.unwrap();
    let new = async || plan(&context, "pair", "ETH-EUR", None, TimeDelta::hours(1)).await;
    let (one, two) = tokio::join!(new(), new());
    let mut statuses = [one.status(), two.status()];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409], "each counts the other");
    context.clock().advance(TimeDelta::hours(1));
    new().await.assert_status(201);
}
