//! `refresh`: rotation, the lost answer, the stolen token, and what ends a login.

use std::net::IpAddr;

use chrono::TimeDelta;
use futures::future::join_all;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use super::{authenticate, read_with, set, text};

const REFRESH: &str = "/api/v1/refresh";

async fn refresh(partner: &Partner, token: &str) -> Answer {
    let body = json!({"refreshToken": token});
    partner.anonymous(Method::POST, REFRESH).json(&body).send().await
}

#[track_caller]
fn assert_ended(answer: &Answer) {
    answer.assert_status(400).assert_codes(&["ER036"]);
}

/// The refresh token of a login just now.
async fn log_in(partner: &Partner) -> String {
    text(&authenticate(partner, &partner.username, &partner.password).await, "refreshToken")
}

async fn rows(db: &PgPool, table: &'static str) -> i64 {
    let statement = match table {
        "refresh_family" => "select count(*) from refresh_family",
        _ => "select count(*) from refresh_token",
    };
    sqlx::query_scalar(statement).fetch_one(db).await.unwrap()
}

#[tokio::test]
async fn a_refresh_token_gives_the_next_pair() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let first = log_in(&acme).await;
    context.clock().advance(TimeDelta::hours(2));
    let answer = refresh(&acme, &first).await;
    let members: Vec<_> = answer.json().as_object().unwrap().keys().cloned().collect();
    assert_eq!(members, ["token", "refreshToken"]);
    read_with(&acme, &text(&answer, "token")).await.assert_status(200);
    let second = text(&answer, "refreshToken");
    assert_ne!(first, second);
    refresh(&acme.at(&context.second_edge().await), &second).await.assert_status(200);
    assert_eq!(rows(context.db(), "refresh_family").await, 1);
}

#[tokio::test]
async fn no_refresh_token_is_stored_as_it_is() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let token = log_in(&acme).await;
    let (_, secret) = token.split_at(token.len() - 43);
    let stored: Vec<String> = sqlx::query_scalar("select t::text from refresh_token t")
        .fetch_all(context.db())
        .await
        .unwrap();
    let in_hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(stored.len(), 1);
    assert!(!stored[0].contains(secret) && !stored[0].contains(&in_hex), "{stored:?}");
}

#[tokio::test]
async fn a_lost_answer_can_be_asked_for_again() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let first = log_in(&acme).await;
    refresh(&acme, &first).await.assert_status(200);
    context.clock().advance(TimeDelta::seconds(20));
    let again = text(&refresh(&acme, &first).await, "refreshToken");
    context.clock().advance(TimeDelta::minutes(10));
    refresh(&acme, &again).await.assert_status(200);
}

#[tokio::test]
async fn a_used_token_that_comes_late_ends_the_login() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let other_login = log_in(&acme).await;
    let first = log_in(&acme).await;
    let second = text(&refresh(&acme, &first).await, "refreshToken");
    context.clock().advance(TimeDelta::seconds(31));
    assert_ended(&refresh(&acme, &first).await);
    assert_ended(&refresh(&acme, &second).await);
    refresh(&acme, &other_login).await.assert_status(200);
    refresh(&acme, &log_in(&acme).await).await.assert_status(200);
}

#[tokio::test]
async fn of_racing_refreshes_none_starts_a_login_of_its_own() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let there = acme.at(&context.second_edge().await);
    let first = log_in(&acme).await;
    let racing = (0..8).map(|number| {
        let edge = if number % 2 == 0 { &acme } else { &there };
        refresh(edge, &first)
    });
    let mut successors = Vec::new();
    for answer in join_all(racing).await {
        successors.push(text(&answer, "refreshToken"));
    }
    successors.sort();
    successors.dedup();
    assert_eq!(successors.len(), 8, "each has an answer of its own");
    assert_eq!(rows(context.db(), "refresh_family").await, 1);
    // Whoever brings the first one again, later, ends them all.
    context.clock().advance(TimeDelta::minutes(2));
    assert_ended(&refresh(&acme, &first).await);
    for successor in &successors {
        assert_ended(&refresh(&there, successor).await);
        context.clock().advance(TimeDelta::seconds(6));
    }
}

#[tokio::test]
async fn a_refresh_token_lives_a_month_from_its_last_use() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut token = log_in(&acme).await;
    for _ in 0..3 {
        context.clock().advance(TimeDelta::days(29));
        token = text(&refresh(&acme, &token).await, "refreshToken");
    }
    context.clock().advance(TimeDelta::days(30));
    assert_ended(&refresh(&acme, &token).await);
    context.core().delete_expired_refresh_tokens().await.unwrap();
    assert_eq!(rows(context.db(), "refresh_token").await, 0);
    assert_eq!(rows(context.db(), "refresh_family").await, 0);
}

#[tokio::test]
async fn only_what_has_ended_is_forgotten() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let first = log_in(&acme).await;
    context.clock().advance(TimeDelta::days(20));
    let second = text(&refresh(&acme, &first).await, "refreshToken");
    context.clock().advance(TimeDelta::days(20));
    context.core().delete_expired_refresh_tokens().await.unwrap();
    assert_eq!(rows(context.db(), "refresh_token").await, 1);
    refresh(&acme, &second).await.assert_status(200);
}

#[tokio::test]
async fn what_is_not_there_is_er037_and_what_is_none_er036() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    for body in [
        json!({}),
        json!({"refreshToken": ""}),
        json!({"refreshToken": null}),
        json!({"refreshToken": 7}),
        json!({"refresh_token": "x"}),
    ] {
        let answer = acme.anonymous(Method::POST, REFRESH).json(&body).send().await;
        answer.assert_status(400).assert_codes(&["ER037"]);
    }
    let answer = authenticate(&acme, &acme.username, &acme.password).await;
    let token = text(&answer, "refreshToken");
    let simple = |partner: &Partner| partner.id.replace('-', "");
    for bad in [
        "x".to_owned(),
        "é\0".to_owned(),
        text(&answer, "token"),
        format!("{token}A"),
        token.replace(&simple(&acme), &simple(&other)),
        format!("rr_{}_{}", simple(&acme), "A".repeat(43)),
        "rr_".repeat(10_000),
    ] {
        assert_ended(&refresh(&acme, &bad).await);
    }
    refresh(&acme, &token).await.assert_status(200);
}

#[tokio::test]
async fn an_address_refreshes_ten_times_a_minute() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for _ in 0..10 {
        assert_ended(&refresh(&acme, "guess").await);
    }
    let answer = refresh(&acme, "guess").await;
    answer.assert_status(429).assert_codes(&["920"]);
    assert!(answer.header("retry-after").is_some());
    log_in(&acme).await;
}

#[tokio::test]
async fn an_address_refreshes_ten_times_a_minute_on_all_edges_together() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let there = acme.at(&context.second_edge().await);
    for _ in 0..5 {
        assert_ended(&refresh(&acme, "guess").await);
        assert_ended(&refresh(&there, "guess").await);
    }
    let mut admitted = 0;
    while refresh(&there, "guess").await.status() != 429 {
        admitted += 1;
        // One more fits for each six seconds that these took; the edge alone has five left.
        assert!(admitted < 5, "each edge counts alone");
    }
}

async fn refresh_from(partner: &Partner, last: u8, token: &str) -> Answer {
    let body = json!({"refreshToken": token});
    let from = IpAddr::from([192, 0, 2, last]);
    partner.anonymous(Method::POST, REFRESH).from(from).json(&body).send().await
}

#[tokio::test]
async fn a_client_refreshes_ten_times_a_minute_from_wherever_and_its_users_besides() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let there = acme.at(&context.second_edge().await);
    let mut token = log_in(&acme).await;
    let mut renewed = 0_u8;
    loop {
        let edge = if renewed.is_multiple_of(2) { &acme } else { &there };
        let answer = refresh_from(edge, renewed, &token).await;
        if answer.status() == 429 {
            answer.assert_codes(&["920"]);
            break;
        }
        token = text(&answer, "refreshToken");
        renewed += 1;
        assert!(renewed < 30, "nobody was told to wait");
    }
    assert!(renewed >= 10, "{renewed} times");
    let made_up = format!("rr_{}_{}", acme.id.replace('-', ""), "A".repeat(43));
    assert_ended(&refresh_from(&acme, 100, &made_up).await);
    let (_, pair) = user(&acme, "ada").await;
    let users = pair["refreshToken"].as_str().unwrap();
    refresh_from(&acme, 101, users).await.assert_status(200);
    context.clock().advance(TimeDelta::seconds(6));
    refresh_from(&there, 102, &token).await.assert_status(200);
}

#[tokio::test]
async fn a_suspended_client_refreshes_nothing() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let token = log_in(&acme).await;
    set(&context, &acme, json!({"status": "suspended"})).await;
    assert_ended(&refresh(&acme, &token).await);
}

#[tokio::test]
async fn a_password_that_is_rotated_without_overlap_ends_the_logins_of_its_client() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    let (_, of_user) = user(&acme, "ada").await;
    let others = log_in(&other).await;
    let pair = authenticate(&acme, &acme.username, &acme.password).await;
    let (token, refresh_token) = (text(&pair, "token"), text(&pair, "refreshToken"));
    context.clock().advance(TimeDelta::seconds(1));
    let rotate = async |kind: &str, overlap: u32| {
        let body = json!({"kind": kind, "overlapSeconds": overlap});
        let path = "/admin/v1/partners/acme/secrets/rotate";
        text(&context.admin(Method::POST, path, body).await, "secret")
    };
    for (kind, overlap) in [("signing", 0), ("password", 600)] {
        rotate(kind, overlap).await;
        read_with(&acme, &token).await.assert_status(200);
    }
    let password = rotate("password", 0).await;
    read_with(&acme, &token).await.assert_status(400).assert_codes(&["ER800"]);
    assert_ended(&refresh(&acme, &refresh_token).await);
    context.clock().advance(TimeDelta::seconds(1));
    let next = authenticate(&acme, &acme.username, &password).await;
    read_with(&acme, &text(&next, "token")).await.assert_status(200);
    refresh(&acme, &text(&next, "refreshToken")).await.assert_status(200);
    let users = of_user["refreshToken"].as_str().unwrap();
    refresh(&acme, users).await.assert_status(200);
    refresh(&other, &others).await.assert_status(200);
}

/// A user of the partner, and the pair of tokens of a login.
async fn user(partner: &Partner, name: &str) -> (Uuid, Value) {
    let session = partner.user(name).await.log_in().await;
    (session["uuid"].as_str().unwrap().parse().unwrap(), session)
}

async fn read_as_user(partner: &Partner, token: &str) -> Answer {
    let request = partner.request(Method::GET, "/api/v2/buy/orders/1");
    request.header("user-authorization", &format!("Bearer {token}")).send().await
}

#[tokio::test]
async fn a_users_refresh_token_gives_a_users_pair() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (_, pair) = user(&acme, "ada").await;
    let refreshed = refresh(&acme, pair["refreshToken"].as_str().unwrap()).await;
    for token in [pair["token"].as_str().unwrap(), &text(&refreshed, "token")] {
        read_with(&acme, token).await.assert_status(400).assert_codes(&["ER800"]);
        read_as_user(&acme, token).await.assert_codes(&["ER035"]);
    }
    read_as_user(&acme, &acme.token().await).await.assert_status(400).assert_codes(&["ER702"]);
    context.clock().advance(TimeDelta::seconds(3_606));
    read_as_user(&acme, &text(&refreshed, "token")).await.assert_codes(&["ER701"]);
}

#[tokio::test]
async fn a_logout_or_the_end_of_an_account_ends_its_refresh_tokens() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (name, ended) in [
        ("ada", "update end_user set tokens_valid_from = $1 where user_id = $2"),
        ("bob", "update end_user set disabled_at = $1 where user_id = $2"),
        ("eve", "update end_user set deleted_at = $1 where user_id = $2"),
    ] {
        let (id, pair) = user(&acme, name).await;
        let first = refresh(&acme, pair["refreshToken"].as_str().unwrap()).await;
        let second = text(&first, "refreshToken");
        context.clock().advance(TimeDelta::milliseconds(1));
        let now = context.clock().now();
        sqlx::query(ended).bind(now).bind(id).execute(context.db()).await.unwrap();
        assert_ended(&refresh(&acme, &second).await);
    }
}

#[tokio::test]
async fn two_successors_of_one_token_end_the_login() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let other_login = log_in(&acme).await;
    let first = log_in(&acme).await;
    let mine = text(&refresh(&acme, &first).await, "refreshToken");
    let stolen = text(&refresh(&acme, &first).await, "refreshToken");
    // However much later, and however often the other one was renewed since.
    let mut newest = text(&refresh(&acme, &mine).await, "refreshToken");
    for _ in 0..2 {
        context.clock().advance(TimeDelta::days(9));
        newest = text(&refresh(&acme, &newest).await, "refreshToken");
    }
    assert_ended(&refresh(&acme, &stolen).await);
    assert_ended(&refresh(&acme, &newest).await);
    refresh(&acme, &other_login).await.assert_status(200);
}

#[tokio::test]
async fn of_two_successors_that_race_one_renews_at_most_and_the_login_ends() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let there = acme.at(&context.second_edge().await);
    for _ in 0..5 {
        let first = log_in(&acme).await;
        let one = text(&refresh(&acme, &first).await, "refreshToken");
        let other = text(&refresh(&there, &first).await, "refreshToken");
        let (one, other) = tokio::join!(refresh(&acme, &one), refresh(&there, &other));
        let renewed: Vec<_> = [one, other].into_iter().filter(|a| a.status() == 200).collect();
        assert!(renewed.len() <= 1);
        for answer in renewed {
            assert_ended(&refresh(&acme, &text(&answer, "refreshToken")).await);
        }
        context.clock().advance(TimeDelta::minutes(1));
    }
}
