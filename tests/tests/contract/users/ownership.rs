//! Changes of password and address: who may make them, and what they end.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::cluster::until_locks_are_awaited;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::outbox;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::{Visit, mailed_code, until_stored_or_waiting};

const PATH: &str = "/api/v2/user";
const LOGIN: &str = "/api/v1/user/login";

async fn log_in(acme: &Partner, email: &str, password: &str) -> Answer {
    acme.post(LOGIN, json!({"emailAddress": email, "password": password})).await
}

/// A session, and what else would open the user's pages.
struct Opened {
    session: Value,
    login_token: Value,
}

impl Opened {
    async fn of(ada: &User) -> Self {
        let login_token = ada.get("/api/v1/user/login-token").await.assert_status(200).json();
        Self { session: ada.log_in().await, login_token: login_token["token"].clone() }
    }

    /// Everything of it has ended.
    async fn assert_ended(&self, acme: &Partner) {
        let token = format!("Bearer {}", self.session["token"].as_str().unwrap());
        let read = acme.request(Method::GET, "/api/v1/user/info");
        let read = read.header("user-authorization", &token).send().await;
        read.assert_codes(&["ER702"]);
        let renew = json!({"refreshToken": self.session["refreshToken"]});
        let renewed = acme.anonymous(Method::POST, "/api/v1/refresh").json(&renew).send().await;
        renewed.assert_codes(&["ER036"]);
        let offer = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
            "paymentMethod": "creditCard", "loginToken": self.login_token});
        acme.post("/api/v2/buy/offer", offer).await.assert_codes(&["ER333"]);
    }
}

#[tokio::test]
async fn a_session_alone_changes_neither_password_nor_address() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let bearer = format!("Bearer {}", ada.log_in().await["token"].as_str().unwrap());
    let changes =
        [json!({"password": "another-password"}), json!({"email": "eve@mail.example.com"})];
    for change in changes {
        for (proof, code) in [
            (json!({}), "ER004"),
            (json!({"oldPassword": ""}), "ER004"),
            (json!({"oldPassword": "a-wrong-password"}), "ER005"),
            (json!({"emailCode": "111111"}), "ER090"),
        ] {
            let mut body = change.clone();
            body.as_object_mut().unwrap().extend(proof.as_object().unwrap().clone());
            let request = ada.partner.request(Method::PATCH, PATH);
            let request = request.header("user-authorization", &bearer).json(&body);
            assert_eq!(request.send().await.codes(), [code], "{body}");
        }
    }
    log_in(&ada.partner, &ada.email, &ada.password).await.assert_status(200);
}

#[tokio::test]
async fn a_wrong_password_and_a_wrong_code_are_told_together() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let body = json!({"password": "another-password", "oldPassword": "a-wrong-password",
        "emailCode": "111111"});
    ada.patch(PATH, &body).await.assert_status(400).assert_codes(&["ER005", "ER090"]);
    log_in(&ada.partner, &ada.email, &ada.password).await.assert_status(200);
}

#[tokio::test]
async fn a_new_password_ends_every_session() {
    let context = TestContext::start().await;
    let mut ada = context.partner("acme").await.user("ada").await;
    let opened = Opened::of(&ada).await;
    let body = json!({"password": "another-password", "oldPassword": ada.password});
    ada.patch(PATH, &body).await.assert_status(200);
    opened.assert_ended(&ada.partner).await;
    log_in(&ada.partner, &ada.email, &ada.password).await.assert_codes(&["ER005"]);
    ada.password = "another-password".to_owned();
    context.clock().advance(TimeDelta::minutes(1));
    // Without the password by a code, asked for by naming the address.
    let opened = Opened::of(&ada).await;
    let code = mailed_code(&context, &ada.email).await;
    let body = json!({"password": "a-third-password", "emailCode": code});
    ada.patch(PATH, &body).await.assert_status(200);
    opened.assert_ended(&ada.partner).await;
    ada.patch(PATH, &body).await.assert_codes(&["ER090"]);
    ada.patch(PATH, &json!({"email": ada.email})).await.assert_status(200);
    let code = mailed_code(&context, &ada.email).await;
    let body = json!({"password": "a-fourth-password", "emailCode": code});
    ada.patch(PATH, &body).await.assert_status(200);
    log_in(&ada.partner, &ada.email, "a-fourth-password").await.assert_status(200);
}

#[tokio::test]
async fn a_new_address_ends_every_session() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let opened = Opened::of(&ada).await;
    let email = "new@mail.example.com";
    let body = json!({"email": email, "oldPassword": ada.password});
    ada.patch(PATH, &body).await.assert_status(200);
    opened.assert_ended(&ada.partner).await;
    assert!(outbox::newest(&context, email).await.text.contains("Je code is"));
    log_in(&ada.partner, email, &ada.password).await.assert_status(200);
    // The same address is no change: it asks for a code, and ends nothing.
    let session = log_in(&ada.partner, email, &ada.password).await.json();
    ada.patch(PATH, &json!({"email": email})).await.assert_status(200);
    let renew = json!({"refreshToken": session["refreshToken"]});
    let renewed = ada.partner.anonymous(Method::POST, "/api/v1/refresh").json(&renew).send().await;
    renewed.assert_status(200);
}

#[tokio::test]
async fn an_address_that_is_replaced_meanwhile_does_not_come_back_without_a_proof() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let mut locked = context.db().begin().await.unwrap();
    sqlx::query("select from end_user for update").execute(&mut *locked).await.unwrap();
    let body = json!({"email": "new@mail.example.com", "oldPassword": ada.password});
    let change = ada.patch(PATH, &body);
    let name_known = async {
        until_locks_are_awaited(context.db(), 1).await;
        ada.patch(PATH, &json!({"email": ada.email})).await
    };
    let unlock = async {
        until_locks_are_awaited(context.db(), 2).await;
        locked.commit().await.unwrap();
    };
    let (changed, named, ()) = futures::join!(change, name_known, unlock);
    changed.assert_status(200);
    named.assert_status(400).assert_codes(&["ER004"]);
    let profile = ada.get("/api/v1/user/info").await.json();
    assert_eq!(profile["emailAddress"], "new@mail.example.com");
}

/// Returns once a login has begun a session, or waits for the user's row.
async fn until_login_is_verified(context: &TestContext) {
    let query = "select exists (select from refresh_family) \
        or exists (select from pg_stat_activity \
            where datname = current_database() and wait_event_type = 'Lock')";
    until("the login is verified", SOON, async || {
        let is_there: bool = sqlx::query_scalar(query).fetch_one(context.db()).await.unwrap();
        is_there.then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_login_that_began_before_a_change_of_password_or_address_begins_no_session() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (name, change) in [
        ("ada", "password_hash = 'that of another password'"),
        ("bob", "email_index = 'that of another address'"),
    ] {
        let user = acme.user(name).await;
        let mut somebody = context.db().begin().await.unwrap();
        let newest = "user_id = (select user_id from end_user order by user_id desc limit 1)";
        let change = format!("update end_user set {change} where {newest}");
        sqlx::query(AssertSqlSafe(change)).execute(&mut *somebody).await.unwrap();
        let commit = async {
            until_login_is_verified(&context).await;
            somebody.commit().await.unwrap();
        };
        let (answer, ()) =
            futures::join!(log_in(&user.partner, &user.email, &user.password), commit);
        answer.assert_status(400).assert_codes(&["ER005"]);
    }
    let begun = "select count(*) from refresh_family";
    let begun: i64 = sqlx::query_scalar(begun).fetch_one(context.db()).await.unwrap();
    assert_eq!(begun, 0);
}

#[tokio::test]
async fn no_visit_begins_by_a_password_that_is_changed_meanwhile() {
    let visit = Visit::start().await;
    visit.later(60);
    let mut change = visit.context.db().begin().await.unwrap();
    sqlx::query("update end_user set password_hash = 'that of another', tokens_valid_from = $1")
        .bind(visit.context.clock().now())
        .execute(&mut *change)
        .await
        .unwrap();
    let commit = async {
        let begun = "select exists (select from passkey_challenge where purpose = 'account')";
        until_stored_or_waiting(&visit.context, begun).await;
        change.commit().await.unwrap();
    };
    let form = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";
    let (refused, ()) = futures::join!(visit.submit(form), commit);
    refused.assert_status(400);
}

#[tokio::test]
async fn an_operator_changes_an_address_and_the_audit_does_not_name_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (ada, bob) = (acme.user("ada").await, acme.user("bob").await);
    let opened = Opened::of(&ada).await;
    let uuid = opened.session["uuid"].as_str().unwrap();
    let path = format!("/admin/v1/users/{uuid}");
    let change = async |email: &str| {
        context.admin(Method::PATCH, &path, json!({"emailAddress": email})).await
    };
    change("nobody").await.assert_status(422);
    change(&bob.email).await.assert_status(409);
    change("new@mail.example.com").await.assert_status(200);
    opened.assert_ended(&acme).await;
    log_in(&acme, "new@mail.example.com", &ada.password).await.assert_status(200);
    let mail = outbox::newest(&context, "new@mail.example.com").await;
    assert!(mail.text.contains("Je code is"));
    let path = format!("/admin/v1/audit?target={uuid}");
    let audit = context.admin(Method::GET, &path, json!({})).await;
    assert_eq!(audit.json()[0]["detail"], json!({"emailAddress": "changed"}));
    assert!(!audit.text().contains("new@mail"));
}

#[tokio::test]
async fn tries_of_a_login_are_counted_across_edges() {
    let context = TestContext::start().await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    other.core().refresh().await.unwrap();
    let edges = [acme.clone(), acme.at(&other)];
    for attempt in 0..5 {
        log_in(&edges[attempt % 2], &ada.email, "a-wrong-password").await.assert_codes(&["ER005"]);
    }
    for edge in &edges {
        let limited = log_in(edge, &ada.email, &ada.password).await;
        limited.assert_status(429).assert_codes(&["920"]);
        let wait: u64 = limited.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=12).contains(&wait), "{wait}");
    }
    context.clock().advance(TimeDelta::seconds(12));
    log_in(&edges[1], &ada.email, &ada.password).await.assert_status(200);
}

#[tokio::test]
async fn tries_of_a_partners_password_are_counted_across_edges() {
    // One more fits after six minutes, which no machine takes for ten passwords.
    let quota = "10/h burst 10".parse().unwrap();
    let context = TestContext::with(|settings| settings.ratelimit.credentials = quota).await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    other.core().refresh().await.unwrap();
    let edges = [acme.clone(), acme.at(&other)];
    let authenticate = async |edge: &Partner, last: u8| {
        let body = json!({"username": acme.username, "password": "a-wrong-password"});
        let request = edge.anonymous(Method::POST, "/api/v1/authenticate").json(&body);
        request.from(std::net::IpAddr::from([192, 0, 2, last])).send().await
    };
    for attempt in 0..10 {
        let answer = authenticate(&edges[usize::from(attempt % 2)], attempt).await;
        answer.assert_codes(&["ER038"]);
    }
    for edge in &edges {
        authenticate(edge, 11).await.assert_status(429).assert_codes(&["920"]);
    }
}
