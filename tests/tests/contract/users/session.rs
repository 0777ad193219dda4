//! Login, logout, renewal, login tokens, and what may be asked about an address.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::cluster::until_a_lock_is_awaited;
use rampart_tests::outbox;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{Visit, until_stored_or_waiting};

const LOGIN: &str = "/api/v1/user/login";
const INFO: &str = "/api/v1/user/info";

async fn info(partner: &Partner, token: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    partner.request(Method::GET, INFO).header("user-authorization", &bearer).send().await
}

async fn log_out(partner: &Partner, token: &str) -> Answer {
    let request = partner.request(Method::POST, "/api/v1/user/logout");
    request.header("user-authorization", &format!("Bearer {token}")).send().await
}

async fn renew(partner: &Partner, session: &Value) -> Answer {
    let body = json!({"refreshToken": session["refreshToken"]});
    partner.anonymous(Method::POST, "/api/v1/refresh").json(&body).send().await
}

#[tokio::test]
async fn a_login_gives_a_session_of_that_user() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let session = ada.log_in().await;
    let members: Vec<_> = session.as_object().unwrap().keys().cloned().collect();
    assert_eq!(members, ["uuid", "token", "refreshToken"]);
    let profile = info(&ada.partner, session["token"].as_str().unwrap()).await;
    assert_eq!(profile.assert_status(200).json()["emailAddress"], ada.email);
    let renewed = renew(&ada.partner, &session).await;
    let token = renewed.assert_status(200).json()["token"].as_str().unwrap().to_owned();
    info(&ada.partner, &token).await.assert_status(200);
}

#[tokio::test]
async fn a_login_that_fails_says_why_only_where_it_may() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    acme.user("ada").await;
    let other = context.partner("other").await;
    let right = json!({"emailAddress": "ada@mail.example.com", "password": "password-of-ada"});
    for (body, codes) in [
        (json!({}), &["ER003", "ER004"][..]),
        (json!({"emailAddress": "ada", "password": ""}), &["ER001", "ER004"]),
        (json!({"emailAddress": "ada@mail.example.com", "password": "wrong"}), &["ER005"]),
        (json!({"emailAddress": "bob@mail.example.com", "password": "wrong"}), &["ER005"]),
    ] {
        acme.post(LOGIN, body).await.assert_status(400).assert_codes(codes);
    }
    other.post(LOGIN, right.clone()).await.assert_codes(&["ER005"]);
    sqlx::query("update end_user set disabled_at = now()").execute(context.db()).await.unwrap();
    acme.post(LOGIN, right).await.assert_codes(&["ER005"]);
}

#[tokio::test]
async fn tries_of_one_address_are_counted_known_or_not() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    acme.user("ada").await;
    for email in ["ada@mail.example.com", "nobody@mail.example.com"] {
        for _ in 0..5 {
            let exists = acme.get(&format!("/api/v1/user/exists?emailAddress={email}")).await;
            assert!(exists.json()["exists"].is_boolean());
        }
        let body = json!({"emailAddress": email, "password": "password-of-ada"});
        let limited = acme.post(LOGIN, body).await;
        limited.assert_status(429).assert_codes(&["920"]);
        assert!(limited.header("retry-after").is_some());
    }
    context.clock().advance(TimeDelta::minutes(1));
    let body = json!({"emailAddress": "ada@mail.example.com", "password": "password-of-ada"});
    acme.post(LOGIN, body).await.assert_status(200);
}

#[tokio::test]
async fn a_client_tries_sixty_addresses_a_minute_and_no_more() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (began, mut tried) = (context.clock().monotonic_ns(), 0);
    let limited = loop {
        let path = format!("/api/v1/user/exists?emailAddress=u{tried}@mail.example.com");
        let answer = acme.get(&path).await;
        if answer.status() != 404 {
            break answer;
        }
        tried += 1;
        assert!(tried < 600, "nobody was told to wait");
    };
    limited.assert_status(429).assert_codes(&["920"]);
    // One more fits for each second that these took.
    let seconds = (context.clock().monotonic_ns() - began) / 1_000_000_000;
    assert!((60..=60 + seconds).contains(&tried), "{tried} tries in {seconds} s");
}

#[tokio::test]
async fn refused_tries_of_one_address_take_nothing_from_its_client() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for tried in 0..70 {
        let answer = acme.get("/api/v1/user/exists?emailAddress=ada@mail.example.com").await;
        answer.assert_status(if tried < 5 { 404 } else { 429 });
    }
    let other = acme.get("/api/v1/user/exists?emailAddress=eve@mail.example.com").await;
    other.assert_status(404);
}

#[tokio::test]
async fn the_tries_of_a_clients_addresses_are_a_setting_of_the_partner() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    let rates = json!({"rateLimits": {"clientLogin": "2/min"}});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", rates).await.assert_status(200);
    let exists = async |partner: &Partner, n: u32| {
        partner.get(&format!("/api/v1/user/exists?emailAddress=u{n}@mail.example.com")).await
    };
    for n in 0..2 {
        exists(&acme, n).await.assert_status(404);
    }
    exists(&acme, 2).await.assert_status(429).assert_codes(&["920"]);
    for n in 0..3 {
        exists(&other, n).await.assert_status(404);
    }
    for raised in ["clientLogin", "login"] {
        let mut rates = json!({"rateLimits": {"clientLogin": null, "login": null}});
        rates["rateLimits"][raised] = json!("1000/min");
        context.admin(Method::PATCH, "/admin/v1/partners/acme", rates).await.assert_status(200);
        context.clock().advance(TimeDelta::minutes(1));
        for n in 0..70 {
            exists(&acme, n).await.assert_status(404);
        }
    }
}

#[tokio::test]
async fn logging_out_ends_every_session_on_every_edge_at_once() {
    let context = TestContext::start().await;
    let edge = context.second_edge().await;
    let ada = context.partner("acme").await.user("ada").await;
    edge.core().refresh().await.unwrap();
    let there = ada.partner.at(&edge);
    let (first, second) = (ada.log_in().await, ada.log_in().await);
    let (one, two) = (first["token"].as_str().unwrap(), second["token"].as_str().unwrap());
    info(&there, one).await.assert_status(200);
    info(&there, two).await.assert_status(200);
    assert_eq!(log_out(&ada.partner, one).await.assert_status(200).text(), "{}");
    for token in [one, two] {
        info(&there, token).await.assert_codes(&["ER702"]);
        info(&ada.partner, token).await.assert_codes(&["ER702"]);
    }
    renew(&there, &second).await.assert_codes(&["ER036"]);
    log_out(&ada.partner, one).await.assert_codes(&["ER702"]);
    context.clock().advance(TimeDelta::seconds(30));
    let next = ada.log_in().await;
    info(&there, next["token"].as_str().unwrap()).await.assert_status(200);
    // The identifier is no session: it goes on.
    ada.get(INFO).await.assert_status(200);
}

#[tokio::test]
async fn a_logout_ends_a_login_that_it_has_waited_for() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let before = ada.log_in().await;
    let mut login = context.db().begin().await.unwrap();
    sqlx::query("select from end_user for share").execute(&mut *login).await.unwrap();
    let log_in = async {
        until_a_lock_is_awaited(context.db()).await;
        context.clock().advance(TimeDelta::minutes(1));
        let session = ada.log_in().await;
        login.commit().await.unwrap();
        session
    };
    let log_out = log_out(&ada.partner, before["token"].as_str().unwrap());
    let (ended, session) = futures::join!(log_out, log_in);
    ended.assert_status(200);
    info(&ada.partner, session["token"].as_str().unwrap()).await.assert_codes(&["ER702"]);
    renew(&ada.partner, &session).await.assert_codes(&["ER036"]);
}

#[tokio::test]
async fn a_renewal_waits_for_what_ends_its_login() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let session = ada.log_in().await;
    context.clock().advance(TimeDelta::minutes(1));
    let mut log_out = context.db().begin().await.unwrap();
    sqlx::query("update end_user set tokens_valid_from = $1")
        .bind(context.clock().now())
        .execute(&mut *log_out)
        .await
        .unwrap();
    let end = async {
        until_stored_or_waiting(&context, "select count(*) > 1 from refresh_token").await;
        log_out.commit().await.unwrap();
    };
    let (renewed, ()) = futures::join!(renew(&ada.partner, &session), end);
    renewed.assert_codes(&["ER036"]);
}

#[tokio::test]
async fn a_login_token_is_not_made_for_a_session_that_ends_meanwhile() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let session = ada.log_in().await;
    let bearer = format!("Bearer {}", session["token"].as_str().unwrap());
    context.clock().advance(TimeDelta::minutes(1));
    let mut log_out = context.db().begin().await.unwrap();
    sqlx::query("update end_user set tokens_valid_from = $1")
        .bind(context.clock().now())
        .execute(&mut *log_out)
        .await
        .unwrap();
    let end = async {
        until_stored_or_waiting(&context, "select exists (select from one_time_token)").await;
        log_out.commit().await.unwrap();
    };
    let make = ada.partner.request(Method::GET, "/api/v1/user/login-token");
    let make = make.header("user-authorization", &bearer).send();
    let (made, ()) = futures::join!(make, end);
    made.assert_codes(&["ER702"]);
}

#[tokio::test]
async fn logging_out_voids_login_tokens_and_no_mailed_link() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let acme = &ada.partner;
    let session = ada.log_in().await;
    let login_token = ada.get("/api/v1/user/login-token").await.assert_status(200).json();
    let reset = json!({"emailAddress": ada.email});
    acme.post("/api/v1/user/reset-password", reset).await.assert_status(200);
    log_out(acme, session["token"].as_str().unwrap()).await.assert_status(200);
    let offer = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
        "paymentMethod": "creditCard", "loginToken": login_token["token"]});
    acme.post("/api/v2/buy/offer", offer).await.assert_codes(&["ER333"]);
    let mail = outbox::newest(&context, &ada.email).await;
    let path =
        mail.text.lines().find_map(|line| line.strip_prefix("https://pay.example.com")).unwrap();
    acme.anonymous(Method::GET, path).send().await.assert_status(200);
}

#[tokio::test]
async fn logging_out_needs_the_token_itself() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let out = "/api/v1/user/logout";
    let identified = ada.request(Method::POST, out).send().await;
    assert!(identified.assert_codes(&["ER700"]).text().contains("an identifier is no login"));
    log_out(&ada.partner, "a.b.c").await.assert_codes(&["ER702"]);
    let session = ada.log_in().await;
    let token = session["token"].as_str().unwrap();
    let bare = ada.partner.request(Method::POST, out).header("user-authorization", token);
    let refused = bare.send().await.assert_codes(&["ER702"]).text().to_owned();
    assert!(refused.contains("not of the form Bearer and token"), "{refused}");
    let other = context.partner("other").await;
    log_out(&other, token).await.assert_codes(&["ER702"]);
    context.clock().advance(TimeDelta::seconds(3_610));
    log_out(&ada.partner, token).await.assert_codes(&["ER701"]);
}

#[tokio::test]
async fn a_login_token_is_new_each_time() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let uuid = ada.log_in().await["uuid"].clone();
    let token = ada.get("/api/v1/user/login-token").await;
    let (token, other) =
        (token.assert_status(200).json(), ada.get("/api/v1/user/login-token").await.json());
    assert_eq!(token["uuid"], uuid);
    assert_ne!(token["token"], other["token"]);
    let expiry: chrono::DateTime<chrono::Utc> =
        token["expiryDate"].as_str().unwrap().parse().unwrap();
    let left = expiry - context.clock().now();
    assert!(left <= TimeDelta::seconds(300) && left > TimeDelta::seconds(240));
    ada.partner.get("/api/v1/user/login-token").await.assert_codes(&["ER700"]);
}

#[tokio::test]
async fn existence_is_told_to_the_client_it_concerns() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    acme.user("ada").await;
    let path = "/api/v1/user/exists?emailAddress=ADA%40mail.example.com";
    assert_eq!(acme.get(path).await.assert_status(200).text(), r#"{"exists":true}"#);
    assert_eq!(other.get(path).await.assert_status(404).text(), r#"{"exists":false}"#);
    acme.get("/api/v1/user/exists").await.assert_codes(&["ER003"]);
    acme.get("/api/v1/user/exists?emailAddress=ada").await.assert_codes(&["ER001"]);
}

#[tokio::test]
async fn a_forgotten_password_is_replaced_once_by_mail() {
    let context = TestContext::start().await;
    let mut ada = context.partner("acme").await.user("ada").await;
    let acme = ada.partner.clone();
    let session = ada.log_in().await;
    let ask =
        |email: &str| acme.post("/api/v1/user/reset-password", json!({"emailAddress": email}));
    let known = ask(&ada.email).await;
    let unknown = ask("nobody@mail.example.com").await;
    assert_eq!((known.status(), known.text()), (200, unknown.text()));
    assert_eq!(outbox::newest(&context, "nobody@mail.example.com").await.state, "withheld");
    let mail = outbox::newest(&context, &ada.email).await;
    let listed = context.admin(Method::GET, "/admin/v1/mail", Value::Null).await.json();
    let shown = listed.as_array().unwrap().iter().find(|shown| shown["to"] == *ada.email).unwrap();
    let state = (&shown["state"], &shown["kind"]);
    assert_eq!(state, (&json!("pending"), &json!("reset-password")));
    // Operators see the mail, and not what it lets its reader do.
    assert!(shown["text"].as_str().unwrap().contains("/reset-password/…\n"), "{shown}");
    let path =
        mail.text.lines().find_map(|line| line.strip_prefix("https://pay.example.com")).unwrap();
    let german = acme.anonymous(Method::GET, path).header("accept-language", "de").send().await;
    let text = german.assert_status(200).text();
    assert!(text.contains("Kies een nieuw wachtwoord"), "the account's language: {text}");
    let set = |password: &str| {
        acme.anonymous(Method::POST, path).body(format!("password={password}")).send()
    };
    let short = set("short").await;
    let text = short.assert_status(400).text();
    for part in ["href=\"#field-password\"", "aria-invalid=\"true\"", "class=\"field-error\""] {
        assert!(text.contains(part) && !text.contains("value=\"short\""), "{part}: {text}");
    }
    set("another-password").await.assert_status(200);
    set("a-third-password").await.assert_status(404);
    acme.anonymous(Method::GET, path).send().await.assert_status(404);
    info(&acme, session["token"].as_str().unwrap()).await.assert_codes(&["ER702"]);
    context.clock().advance(TimeDelta::minutes(2));
    ada.password = "another-password".to_owned();
    ada.log_in().await;
}

#[tokio::test]
async fn no_link_goes_to_an_address_that_is_changed_meanwhile() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let mut change = context.db().begin().await.unwrap();
    let other = "update end_user set email_index = 'that of another address'";
    sqlx::query(other).execute(&mut *change).await.unwrap();
    let commit = async {
        until_stored_or_waiting(&context, "select exists (select from one_time_token)").await;
        change.commit().await.unwrap();
    };
    let ask = json!({"emailAddress": ada.email});
    let ask = ada.partner.post("/api/v1/user/reset-password", ask);
    let (asked, ()) = futures::join!(ask, commit);
    asked.assert_status(200);
    assert_eq!(outbox::newest(&context, &ada.email).await.state, "withheld");
    let stored = "select exists (select from one_time_token)";
    let stored: bool = sqlx::query_scalar(stored).fetch_one(context.db()).await.unwrap();
    assert!(!stored);
}

#[tokio::test]
async fn resets_are_refused_as_documented() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = "/api/v1/user/reset-password";
    acme.post(path, json!({})).await.assert_codes(&["ER003"]);
    acme.post(path, json!({"emailAddress": "a@b"})).await.assert_codes(&["ER001"]);
    let body = json!({"emailAddress": "nobody@mail.example.com"});
    for _ in 0..5 {
        acme.post(path, body.clone()).await.assert_status(200);
        context.clock().advance(TimeDelta::seconds(15));
    }
    acme.post(path, body).await.assert_status(400).assert_codes(&["ER354"]);
}

#[tokio::test]
async fn a_visit_is_ended_and_the_sessions_go_on() {
    let visit = Visit::start().await;
    let session = visit.user.log_in().await;
    let page = visit.sign_in().await;
    let (_, here) = page.split_once("Deze pagina").unwrap();
    let (here, _) = here.split_once("</form>").unwrap();
    assert!(here.contains("value=\"visit-end\">Uitloggen"), "{here}");
    let ended = visit.act(&page, "visit-end").await;
    let text = ended.assert_status(200).text();
    assert!(text.contains("De sessie is uitgelogd.") && !text.contains("ada@mail"), "{text}");
    for action in ["show", "download", "visit-end"] {
        visit.act(&page, action).await.assert_status(400);
    }
    let body = json!({"refreshToken": session["refreshToken"]});
    let renewal = visit.partner.anonymous(Method::POST, "/api/v1/refresh").json(&body);
    renewal.send().await.assert_status(200);
}
