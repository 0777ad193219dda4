//! Client credentials: `authenticate`, the tokens it gives, and how often it may be tried
//! (sections 2 and 4 of the contract).

mod known_networks;
mod refresh;

use std::net::IpAddr;
use std::time::Duration;

use chrono::TimeDelta;
use http::Method;
use rampart_core::platform::db::PoolKind;
use rampart_tests::answer::Answer;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use crate::users::until_stored_or_waiting;

const AUTHENTICATE: &str = "/api/v1/authenticate";
/// A route that any proven client may read.
const READ: &str = "/api/v2/system/errors";

async fn authenticate(partner: &Partner, username: &str, password: &str) -> Answer {
    let body = json!({"username": username, "password": password});
    partner.anonymous(Method::POST, AUTHENTICATE).json(&body).send().await
}

async fn read_with(partner: &Partner, token: &str) -> Answer {
    let request = partner.anonymous(Method::GET, READ);
    request.header("authorization", &format!("Bearer {token}")).send().await
}

async fn set(context: &TestContext, partner: &Partner, change: Value) {
    let path = format!("/admin/v1/partners/{}", partner.slug);
    context.admin(Method::PATCH, &path, change).await.assert_status(200);
}

fn text(answer: &Answer, member: &str) -> String {
    answer.assert_status(200);
    answer.json()[member].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_secret_that_cannot_be_opened_keeps_no_change_of_others_back() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    let broken = "update client_secret set sealed = sealed || '\\x00' where sealed is not null \
        and client_id = (select client_id from client where slug = 'acme')";
    assert!(sqlx::query(broken).execute(context.db()).await.unwrap().rows_affected() > 0);
    set(&context, &acme, json!({"walletAddressRequired": true})).await;
    let token = text(&authenticate(&other, &other.username, &other.password).await, "token");
    read_with(&other, &token).await.assert_status(200);
    set(&context, &other, json!({"status": "suspended"})).await;
    read_with(&other, &token).await.assert_codes(&["ER800"]);
}

#[tokio::test]
async fn a_name_and_its_password_give_a_pair_of_tokens() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let answer = authenticate(&acme, &acme.username, &acme.password).await;
    answer.assert_status(200);
    let members: Vec<_> = answer.json().as_object().unwrap().keys().cloned().collect();
    assert_eq!(members, ["token", "refreshToken"]);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let token = text(&answer, "token");
    read_with(&acme, &token).await.assert_status(200);
    read_with(&acme.at(&context.second_edge().await), &token).await.assert_status(200);
    let refresh_token = text(&answer, "refreshToken");
    read_with(&acme, &refresh_token).await.assert_status(400).assert_codes(&["ER800"]);
}

#[tokio::test]
async fn requests_that_hold_every_connection_leave_logins_and_registrations_theirs() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (db, settings) = (&context.core().db, &context.core().settings.database);
    let mut held = Vec::new();
    for _ in 0..settings.connections_max {
        held.push(PoolKind::Requests.run(db.acquire()).await.unwrap());
    }
    authenticate(&acme, &acme.username, &acme.password).await.assert_status(200);
    acme.user("ada").await;
}

#[tokio::test]
async fn nothing_tells_a_wrong_password_from_an_unknown_name() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let other = context.partner("other").await;
    let mut bodies = Vec::new();
    for (username, password) in [
        (acme.username.as_str(), "wrong"),
        (&acme.username, &other.password),
        (&acme.username.to_uppercase(), &acme.password),
        (&acme.username, &format!("{} ", acme.password)),
        ("nobody", &acme.password),
        ("nobody\0", &acme.password),
    ] {
        let answer = authenticate(&acme, username, password).await;
        answer.assert_status(400).assert_codes(&["ER038"]);
        bodies.push(answer.text().to_owned());
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
}

#[tokio::test]
async fn a_name_or_password_that_is_not_there_is_er038() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for body in [
        json!({}),
        json!({"username": acme.username}),
        json!({"password": acme.password}),
        json!({"username": "", "password": acme.password}),
        json!({"username": acme.username, "password": ""}),
        json!({"username": acme.username, "password": null}),
        json!({"username": acme.username, "password": 12345678}),
        json!({"username": [acme.username], "password": acme.password}),
    ] {
        let answer = acme.anonymous(Method::POST, AUTHENTICATE).json(&body).send().await;
        answer.assert_status(400).assert_codes(&["ER038"]);
    }
    let answer = acme.anonymous(Method::POST, AUTHENTICATE).body("[]").send().await;
    answer.assert_status(400).assert_codes(&["ER048"]);
}

#[tokio::test]
async fn a_token_is_good_for_an_hour() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let token = acme.token().await;
    context.clock().advance(TimeDelta::seconds(3_590));
    read_with(&acme, &token).await.assert_status(200);
    context.clock().advance(TimeDelta::seconds(16));
    read_with(&acme, &token).await.assert_status(400).assert_codes(&["ER801"]);
    context.clock().advance(TimeDelta::days(3));
    read_with(&acme, &token).await.assert_status(400).assert_codes(&["ER801"]);
    let fresh_edge = context.second_edge().await;
    read_with(&acme.at(&fresh_edge), &token).await.assert_status(400).assert_codes(&["ER801"]);
}

#[tokio::test]
async fn a_token_that_is_none_is_er800() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let token = acme.token().await;
    let (message, _) = token.rsplit_once('.').unwrap();
    for bad in ["a.b.c", "x", message, &format!("{message}."), &token[1..], &"x".repeat(8_000)] {
        read_with(&acme, bad).await.assert_status(400).assert_codes(&["ER800"]);
    }
    let both = acme.request(Method::GET, READ).header("authorization", &format!("Bearer {token}"));
    both.send().await.assert_status(400).assert_codes(&["ER803"]);
    let authorization = format!("Bearer {token}");
    let twice = acme.anonymous(Method::GET, READ).header("authorization", &authorization);
    let twice = twice.header("authorization", &authorization).send().await;
    twice.assert_status(400).assert_codes(&["ER803"]);
}

#[tokio::test]
async fn a_suspended_client_gets_nothing_until_it_is_let_in_again() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let token = acme.token().await;
    set(&context, &acme, json!({"status": "suspended"})).await;
    read_with(&acme, &token).await.assert_codes(&["ER800"]);
    let refused = authenticate(&acme, &acme.username, &acme.password).await;
    let unknown = authenticate(&acme, "nobody", &acme.password).await;
    assert_eq!((refused.status(), refused.text()), (400, unknown.text()));
    set(&context, &acme, json!({"status": "active"})).await;
    authenticate(&acme, &acme.username, &acme.password).await.assert_status(200);
}

#[tokio::test]
async fn both_passwords_are_good_while_a_rotation_lasts() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let rotate = json!({"kind": "password", "overlapSeconds": 600});
    let path = format!("/admin/v1/partners/{}/secrets/rotate", acme.slug);
    let next = text(&context.admin(Method::POST, &path, rotate).await, "secret");
    for password in [&acme.password, &next] {
        authenticate(&acme, &acme.username, password).await.assert_status(200);
    }
    context.clock().advance(TimeDelta::seconds(601));
    authenticate(&acme, &acme.username, &next).await.assert_status(200);
    let old = authenticate(&acme, &acme.username, &acme.password).await;
    old.assert_status(400).assert_codes(&["ER038"]);
}

#[tokio::test]
async fn a_login_that_began_before_its_password_ended_gives_no_tokens() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut rotation = context.db().begin().await.unwrap();
    let end = "update client_secret set valid_until = now() - interval '1 second' \
        where kind = 'password'";
    sqlx::query(end).execute(&mut *rotation).await.unwrap();
    let commit = async {
        until_stored_or_waiting(&context, "select exists (select from refresh_family)").await;
        rotation.commit().await.unwrap();
    };
    let login = authenticate(&acme, &acme.username, &acme.password);
    let (answer, ()) = futures::join!(login, commit);
    answer.assert_status(400).assert_codes(&["ER038"]);
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

async fn try_from(partner: &Partner, from: IpAddr, username: &str) -> Answer {
    let body = json!({"username": username, "password": "wrong"});
    partner.anonymous(Method::POST, AUTHENTICATE).from(from).json(&body).send().await
}

#[track_caller]
fn assert_limited(answer: &Answer) {
    answer.assert_status(429).assert_codes(&["920"]);
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=6).contains(&seconds), "{seconds}");
}

/// Tries in vain until it is told to wait: after ten times, and one more for each six seconds that
/// they took.
async fn assert_ten_tries(context: &TestContext, attempt: impl AsyncFn(u8) -> Answer) {
    let began = context.clock().monotonic_ns();
    for number in 0..=u8::MAX {
        let answer = attempt(number).await;
        if answer.status() == 429 {
            assert_limited(&answer);
            let took = Duration::from_nanos(context.clock().monotonic_ns() - began);
            assert!((10..=10 + took.as_secs() / 6).contains(&number.into()), "{number} tries");
            return;
        }
        answer.assert_codes(&["ER038"]);
    }
    panic!("nobody was told to wait");
}

#[tokio::test]
async fn a_name_is_tried_ten_times_a_minute_from_wherever() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    assert_ten_tries(&context, async |last| try_from(&acme, address(last), &acme.username).await)
        .await;
    assert_limited(&authenticate(&acme, &acme.username, &acme.password).await);
    try_from(&acme, address(10), "another").await.assert_codes(&["ER038"]);
    let metrics = context.core().metrics.render();
    let counted = r#"rampart_rate_limited_total{bucket="credentials",partner="acme"} 2"#;
    assert!(metrics.contains(counted), "{metrics}");
    context.clock().advance(TimeDelta::seconds(6));
    authenticate(&acme, &acme.username, &acme.password).await.assert_status(200);
}

#[tokio::test]
async fn tries_from_where_no_login_is_accepted_take_nothing_from_the_others() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    set(&context, &acme, json!({"allowedAddresses": ["198.51.100.0/24"]})).await;
    assert_ten_tries(&context, async |last| try_from(&acme, address(last), &acme.username).await)
        .await;
    let login = json!({"username": &acme.username, "password": &acme.password});
    let own = IpAddr::from([198, 51, 100, 7]);
    let answer = acme.anonymous(Method::POST, AUTHENTICATE).from(own).json(&login).send().await;
    answer.assert_status(200);
}

#[tokio::test]
async fn an_address_tries_ten_times_a_minute_whatever_the_name() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    assert_ten_tries(&context, async |number| {
        try_from(&acme, address(1), &format!("name{number}")).await
    })
    .await;
    for _ in 0..20 {
        assert_limited(&try_from(&acme, address(1), &acme.username).await);
    }
    // What an address cannot try any more takes nothing of the name's own tries.
    authenticate(&acme, &acme.username, &acme.password).await.assert_status(200);
}

#[tokio::test]
async fn a_partner_may_have_a_rate_of_its_own() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    set(&context, &acme, json!({"rateLimits": {"credentials": "1000/min"}})).await;
    for _ in 0..12 {
        try_from(&acme, address(1), &acme.username).await.assert_codes(&["ER038"]);
    }
    set(&context, &acme, json!({"rateLimits": {"credentials": "10/min burst 1"}})).await;
    context.clock().advance(TimeDelta::minutes(2));
    try_from(&acme, address(2), &acme.username).await.assert_codes(&["ER038"]);
    assert_limited(&try_from(&acme, address(2), &acme.username).await);
}

#[tokio::test]
async fn a_raised_rate_waits_for_nothing_taken_at_the_old_one() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let slow = "1/h burst 2";
    set(&context, &acme, json!({"rateLimits": {"client": slow, "credentials": slow}})).await;
    for _ in 0..2 {
        acme.get(READ).await.assert_status(200);
        authenticate(&acme, &acme.username, &acme.password).await.assert_status(200);
    }
    acme.get(READ).await.assert_status(429);
    authenticate(&acme, &acme.username, &acme.password).await.assert_status(429);
    // A change of anything else refills nothing.
    set(&context, &acme, json!({"walletAddressRequired": true})).await;
    acme.get(READ).await.assert_status(429);
    authenticate(&acme, &acme.username, &acme.password).await.assert_status(429);
    let fast = "100/s burst 200";
    set(&context, &acme, json!({"rateLimits": {"client": fast, "credentials": fast}})).await;
    for _ in 0..3 {
        acme.get(READ).await.assert_status(200);
        authenticate(&acme, &acme.username, &acme.password).await.assert_status(200);
    }
}

#[tokio::test]
async fn a_partners_networks_hold_for_every_credential() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let pair = authenticate(&acme, &acme.username, &acme.password).await;
    let (token, refresh) = (text(&pair, "token"), text(&pair, "refreshToken"));
    set(&context, &acme, json!({"allowedAddresses": ["192.0.2.0/24", "2001:db8::/32"]})).await;
    let from = |address: &str| {
        let (peer, acme) = (address.parse::<IpAddr>().unwrap(), acme.clone());
        let (token, refresh) = (format!("Bearer {token}"), json!({"refreshToken": &refresh}));
        async move {
            let read = || acme.anonymous(Method::GET, READ).from(peer);
            let post =
                |path: &str, body: &Value| acme.anonymous(Method::POST, path).from(peer).json(body);
            let login = json!({"username": &acme.username, "password": &acme.password});
            [
                read().header("x-api-key", &acme.api_key).send().await,
                read().header("authorization", &token).send().await,
                post(AUTHENTICATE, &login).send().await,
                post("/api/v1/refresh", &refresh).send().await,
            ]
        }
    };
    for (answer, code) in
        from("198.51.100.1").await.iter().zip(["ER805", "ER800", "ER038", "ER036"])
    {
        answer.assert_codes(&[code]);
    }
    for address in ["192.0.2.7", "2001:db8::7"] {
        for answer in from(address).await {
            answer.assert_status(200);
        }
    }
    let path = format!("/admin/v1/partners/{}", acme.slug);
    let read = context.admin(Method::GET, &path, json!({})).await.json();
    assert_eq!(read["allowedAddresses"], json!(["192.0.2.0/24", "2001:db8::/32"]));
    set(&context, &acme, json!({"allowedAddresses": ["::ffff:192.0.2.0/120"]})).await;
    for answer in from("192.0.2.7").await {
        answer.assert_status(200);
    }
    set(&context, &acme, json!({"allowedAddresses": []})).await;
    acme.get(READ).await.assert_status(200);
    for bad in [json!(["nowhere"]), json!(vec!["192.0.2.0/24"; 65])] {
        let change = json!({ "allowedAddresses": bad });
        context.admin(Method::PATCH, &path, change).await.assert_status(422);
    }
    let alone = json!({"allowedAddresses": ["192.0.2.7"]});
    let refused = context.admin(Method::PATCH, &path, alone).await.assert_status(422).json();
    let sentence = "allowedAddresses[0]: not a network in CIDR notation, such as 192.0.2.7/32";
    assert_eq!(refused["error"], sentence);
    let made = json!({
        "slug": "bound", "name": "bound", "mode": "test", "allowedAddresses": ["192.0.2.0/24"],
    });
    let bound = context.partner_of(made).await;
    bound.get(READ).await.assert_codes(&["ER805"]);
}

#[tokio::test]
async fn a_pinned_subject_is_taken_away_by_null() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    set(&context, &acme, json!({"certificateSubject": "CN=acme"})).await;
    acme.get(READ).await.assert_codes(&["ER805"]);
    set(&context, &acme, json!({"name": "Acme"})).await;
    acme.get(READ).await.assert_codes(&["ER805"]);
    set(&context, &acme, json!({"certificateSubject": null})).await;
    acme.get(READ).await.assert_status(200);
    let path = format!("/admin/v1/partners/{}", acme.slug);
    let read = context.admin(Method::GET, &path, json!({})).await;
    assert_eq!(read.assert_status(200).json()["certificateSubject"], Value::Null);
}
