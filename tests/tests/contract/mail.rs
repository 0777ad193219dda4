//! Mail by SMTP: sent once it is due, tried again, given up.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::mail_server::MailServer;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

async fn ground() -> (TestContext, MailServer) {
    let server = MailServer::start().await;
    let url = server.url();
    let context = TestContext::with(|settings| {
        settings.mail.smtp_url = Some(rampart_core::platform::crypto::Secret::new(url));
    })
    .await;
    (context, server)
}

async fn states(context: &TestContext) -> Vec<Value> {
    let mails = context.admin(Method::GET, "/admin/v1/mail", json!({})).await.json();
    mails.as_array().unwrap().iter().map(|mail| mail["state"].clone()).collect()
}

#[tokio::test]
async fn a_mail_is_sent_once_by_whichever_edge() {
    let (context, server) = ground().await;
    let beside = context.second_edge().await;
    let acme = context.partner("acme").await;
    for name in ["ada", "bob", "eve"] {
        acme.user(name).await;
    }
    let (one, other) = tokio::join!(context.core().send_mail(), beside.core().send_mail());
    assert_eq!(one.unwrap() + other.unwrap(), 3);
    let mut mails = server.mails();
    mails.sort_by(|a, b| a.to.cmp(&b.to));
    let to: Vec<_> = mails.iter().map(|mail| &*mail.to).collect();
    assert_eq!(to, ["ada@mail.example.com", "bob@mail.example.com", "eve@mail.example.com"]);
    let from = mails[0].content.lines().find(|line| line.starts_with("From: ")).unwrap();
    assert!(from.contains("acme") && from.contains("<no-reply@pay.example.com>"), "{from}");
    for part in ["Message-ID: <", "Subject: Je code voor acme", "Je code is "] {
        assert!(mails[0].content.contains(part), "{part}: {}", mails[0].content);
    }
    assert_eq!(states(&context).await, ["sent", "sent", "sent"]);
    assert_eq!(context.core().send_mail().await.unwrap(), 0);
}

#[tokio::test]
async fn mail_is_sent_from_an_edge_whose_public_host_is_an_ip_address() {
    let (context, server) = ground().await;
    let on_address = context
        .edge_with(|settings| settings.public_url = "https://127.0.0.1:8443".to_owned())
        .await;
    context.partner("acme").await.user("ada").await;
    assert_eq!(on_address.core().send_mail().await.unwrap(), 1);
    assert!(server.mails()[0].content.contains("<no-reply@localhost>"));
    assert_eq!(states(&context).await, ["sent"]);
}

#[tokio::test]
async fn a_partner_with_many_mails_delays_no_other_and_no_password_link() {
    let (context, server) = ground().await;
    let (acme, beta) = (context.partner("acme").await, context.partner("beta").await);
    for number in 0..20 {
        acme.user(&format!("ada{number}")).await;
    }
    beta.user("bob").await;
    let forgotten = json!({"emailAddress": "ada7@mail.example.com"});
    acme.post("/api/v1/user/reset-password", forgotten).await.assert_status(200);
    let oldest_first = "update mail_outbox set next_attempt_at = now() - interval '2 hours' \
         where kind = 'email-code' \
             and client_id = (select client_id from client where slug = 'acme')";
    sqlx::query(oldest_first).execute(context.db()).await.unwrap();
    let others = "update mail_outbox set next_attempt_at = now() - interval '1 hour' \
         where next_attempt_at < '1980-01-01'";
    sqlx::query(others).execute(context.db()).await.unwrap();
    assert_eq!(context.core().send_mail().await.unwrap(), 16);
    assert!(server.mails().iter().any(|mail| mail.to == "bob@mail.example.com"));
    let links = "select state from mail_outbox where kind = 'reset-password'";
    let links: Vec<String> = sqlx::query_scalar(links).fetch_all(context.db()).await.unwrap();
    assert_eq!(links, ["sent"]);
    assert_eq!(context.core().send_mail().await.unwrap(), 6);
}

#[tokio::test]
async fn a_mail_that_cannot_be_sent_now_is_tried_later_and_one_that_never_can_is_given_up() {
    let (context, server) = ground().await;
    context.partner("acme").await.user("ada").await;
    server.refuse(vec!["451 later", "451 later"]);
    for (wait, tried) in [(0, 1), (1, 0), (5, 1), (6, 0), (5, 1)] {
        context.clock().advance(TimeDelta::seconds(wait));
        assert_eq!(context.core().send_mail().await.unwrap(), tried, "after {wait} s");
    }
    assert_eq!(server.mails().len(), 1);
    context.partner("beta").await.user("bob").await;
    server.refuse(vec!["550 5.1.1 nobody"]);
    assert_eq!(context.core().send_mail().await.unwrap(), 1);
    assert_eq!(states(&context).await, ["failed", "sent"]);
    context.clock().advance(TimeDelta::hours(2));
    assert_eq!(context.core().send_mail().await.unwrap(), 0);
}

#[tokio::test]
async fn mail_waits_for_a_server_that_takes_none() {
    let (context, server) = ground().await;
    context.partner("acme").await.user("ada").await;
    let mut answers = [["421 too busy"; 6], ["550 5.7.1 relaying denied"; 6]].concat();
    answers.push("451 later");
    server.refuse(answers);
    for attempt in 1..=13 {
        assert_eq!(context.core().send_mail().await.unwrap(), 1, "{attempt}");
        assert_eq!(states(&context).await, ["pending"], "{attempt}");
        context.clock().advance(TimeDelta::minutes(11));
    }
    assert_eq!(context.core().send_mail().await.unwrap(), 1);
    assert_eq!(server.mails().len(), 1);
    let attempts = &context.core().metrics.mail_attempts;
    let counted = ["sent", "deferred", "unavailable"]
        .map(|outcome| attempts.with_label_values(&[outcome]).get());
    assert_eq!(counted, [1, 1, 12]);
}

#[tokio::test]
async fn a_mail_that_cannot_be_opened_now_is_tried_later() {
    let (context, server) = ground().await;
    context.partner("acme").await.user("ada").await;
    let change = async |sealed: &'static str| {
        sqlx::query(sealed).execute(context.db()).await.unwrap();
    };
    // As to an edge that has not loaded the key.
    change("update mail_outbox set sealed = sealed || 'x'::bytea").await;
    assert_eq!(context.core().send_mail().await.unwrap(), 1);
    let metrics = context.core().metrics_text();
    let passed_over = r#"rampart_worker_rows_failed_total{worker="mail"} 1"#;
    assert!(metrics.contains(passed_over), "{metrics}");
    change("update mail_outbox set sealed = substr(sealed, 1, length(sealed) - 1)").await;
    assert_eq!(states(&context).await, ["pending"]);
    context.clock().advance(TimeDelta::seconds(6));
    assert_eq!(context.core().send_mail().await.unwrap(), 1);
    assert_eq!(states(&context).await, ["sent"]);
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn a_mail_that_no_key_opens_is_listed_without_its_text() {
    let (context, _server) = ground().await;
    let (acme, beta) = (context.partner("acme").await, context.partner("beta").await);
    acme.user("ada").await;
    beta.user("bob").await;
    let altered = "update mail_outbox set sealed = sealed || 'x'::bytea \
         where client_id = (select client_id from client where slug = 'acme')";
    sqlx::query(altered).execute(context.db()).await.unwrap();
    let listed = context.admin(Method::GET, "/admin/v1/mail", json!({})).await;
    let mails = listed.assert_status(200).json();
    let mail_of = |slug: &str| {
        let mut mails = mails.as_array().unwrap().iter();
        mails.find(|mail| mail["partner"] == slug).unwrap().clone()
    };
    let (unread, read) = (mail_of("acme"), mail_of("beta"));
    for member in ["to", "subject", "text"] {
        assert_eq!(unread[member], Value::Null, "{member}");
    }
    assert_eq!((&unread["kind"], &unread["state"]), (&json!("email-code"), &json!("pending")));
    assert_eq!(read["to"], "bob@mail.example.com");
}

#[tokio::test]
async fn what_an_edge_died_with_is_sent_by_another() {
    let (context, server) = ground().await;
    context.partner("acme").await.user("ada").await;
    // Claimed, and then nothing.
    sqlx::query("update mail_outbox set attempts = 1, next_attempt_at = now() + interval '10 min'")
        .execute(context.db())
        .await
        .unwrap();
    assert_eq!(context.core().send_mail().await.unwrap(), 0);
    context.clock().advance(TimeDelta::minutes(11));
    assert_eq!(context.core().send_mail().await.unwrap(), 1);
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn mail_to_nobody_stays_and_mail_that_is_too_old_has_failed() {
    let (context, server) = ground().await;
    let acme = context.partner("acme").await;
    let nobody = json!({"emailAddress": "nobody@mail.example.com"});
    acme.post("/api/v1/user/reset-password", nobody).await.assert_status(200);
    acme.user("ada").await;
    context.clock().advance(TimeDelta::hours(25));
    let without_server = context.edge_with(|settings| settings.mail.smtp_url = None).await;
    for edge in [&context, &without_server] {
        assert_eq!(edge.core().send_mail().await.unwrap(), 0);
        assert_eq!(states(&context).await, ["failed", "withheld"]);
    }
    assert!(server.mails().is_empty());
}

#[tokio::test]
async fn a_mail_that_is_being_sent_does_not_become_too_old() {
    let (context, server) = ground().await;
    context.partner("acme").await.user("ada").await;
    context.clock().advance(TimeDelta::hours(24));
    let claim = "update mail_outbox set next_attempt_at = rampart_now() + interval '25 hours'";
    sqlx::query(claim).execute(context.db()).await.unwrap();
    assert_eq!(context.core().send_mail().await.unwrap(), 0);
    assert_eq!(states(&context).await, ["pending"]);
    context.clock().advance(TimeDelta::hours(2));
    assert_eq!(context.core().send_mail().await.unwrap(), 0);
    assert_eq!(states(&context).await, ["failed"]);
    assert!(server.mails().is_empty());
}
