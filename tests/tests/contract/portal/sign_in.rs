//! Invitations, passwords and sessions.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::outbox;
use rampart_tests::staff::{PASSWORD, Staff};
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

const STAFF: &str = "/admin/v1/partners/acme/staff";

async fn invite(context: &TestContext, email: &str, role: &str) -> u16 {
    let body = json!({"email": email, "role": role});
    context.admin(Method::POST, STAFF, body).await.status()
}

async fn listed(context: &TestContext) -> Vec<Value> {
    let list = context.admin(Method::GET, STAFF, Value::Null).await;
    list.assert_status(200).json().as_array().unwrap().clone()
}

#[tokio::test]
async fn the_form_that_signs_in_suits_a_telephone() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let page = Staff::stranger(&acme, "nobody@acme.example").get("/portal/sign-in").await;
    for attributes in [
        "autocomplete=\"one-time-code\" inputmode=\"numeric\"",
        "autocomplete=\"organization\" autocapitalize=\"none\" spellcheck=\"false\"",
    ] {
        assert!(page.text().contains(attributes), "{attributes}: {}", page.text());
    }
}

#[tokio::test]
async fn forms_that_are_open_side_by_side_all_work() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut ada = Staff::stranger(&acme, "ada@acme.example");
    ada.invited(&context, "owner").await;
    ada.joins(&context).await.assert_status(200);
    let mut tokens = Vec::new();
    for path in ["/portal/sign-in", "/portal/forgot-password", "/portal/sign-in"] {
        ada.get(path).await.assert_status(200);
        tokens.push(ada.form_token().to_owned());
    }
    let email = ada.email.clone();
    let fields = [("partner", "acme"), ("email", &*email), ("password", PASSWORD)];
    let mut other = Staff::stranger(&acme, &email);
    other.get("/portal/sign-in").await.assert_status(200);
    for token in [&tokens[0], &tokens[2]] {
        other.submit_with("/portal/sign-in", token, &fields).await.assert_status(403);
        ada.submit_with("/portal/sign-in", token, &fields).await.assert_status(303);
    }
    let asked = ada.submit_with("/portal/forgot-password", &tokens[1], &fields[..2]).await;
    asked.assert_status(303);
}

#[tokio::test]
async fn an_invitation_is_used_once() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut ada = Staff::stranger(&acme, "ada@acme.example");
    ada.invited(&context, "developer").await;
    assert_eq!(listed(&context).await[0]["joined"], json!(false));
    ada.signs_in(PASSWORD).await.assert_status(401);
    let mail = outbox::newest(&context, &ada.email).await.text;
    assert!(mail.contains("(slug: acme)"), "the form asks for it: {mail}");
    let link = ada.mailed_link(&context).await;
    ada.get(&link).await.assert_status(200);
    let refused = ada.submit(&link, &[("password", "too short")]).await;
    let text = refused.assert_status(400).text();
    assert!(text.contains("<a href=\"#field-password\">A password has 12"), "{text}");
    ada.joins(&context).await.assert_status(200);
    let newest = outbox::newest(&context, &ada.email).await.text;
    assert_eq!(newest, mail, "a first password is no change");
    for _ in 0..2 {
        let dead = ada.get(&link).await;
        let text = dead.assert_status(404).text();
        for way in ["href=\"/portal/forgot-password\"", "href=\"/portal/sign-in\""] {
            assert!(text.contains(way), "{text}");
        }
        ada.submit(&link, &[("password", "another password")]).await.assert_status(404);
    }
    let answer = ada.signs_in(PASSWORD).await;
    assert_eq!((answer.status(), answer.header("location")), (303, Some("/portal")));
    let overview = ada.get("/portal").await;
    assert!(overview.assert_status(200).text().contains("ada@acme.example"));
    let members = listed(&context).await;
    assert_eq!((&members[0]["joined"], &members[0]["role"]), (&json!(true), &json!("developer")));
    // The link stands in the mail alone, not in what operators see of it.
    let mails = context.admin(Method::GET, "/admin/v1/mail", Value::Null).await;
    assert!(!mails.text().contains(link.rsplit('/').next().unwrap()), "{}", mails.text());
}

#[tokio::test]
async fn of_two_passwords_at_once_one_is_set() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = Staff::stranger(&acme, "ada@acme.example");
    ada.invited(&context, "owner").await;
    let link = ada.mailed_link(&context).await;
    let attempts = (0..4).map(|number| {
        let (mut ada, link) = (ada.clone(), link.clone());
        async move {
            let password = format!("password number {number}");
            ada.get(&link).await;
            let status = ada.submit(&link, &[("password", &password)]).await.status();
            (status == 200).then_some(password)
        }
    });
    let set: Vec<_> = futures::future::join_all(attempts).await.into_iter().flatten().collect();
    assert_eq!(set.len(), 1, "{set:?}");
    ada.clone().signs_in(&set[0]).await.assert_status(303);
}

#[tokio::test]
async fn of_links_to_a_new_password_that_are_asked_for_at_once_one_works() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let owner = Staff::signed_in(&context, &acme, "owner").await;
    let asked = (0..4).map(|_| {
        let mut somebody = Staff::stranger(&acme, &owner.email);
        async move {
            somebody.get("/portal/forgot-password").await;
            let fields = [("partner", "acme"), ("email", "owner@acme.example")];
            somebody.submit("/portal/forgot-password", &fields).await.assert_status(303);
        }
    });
    futures::future::join_all(asked).await;
    let unused = "select count(*) from staff_token where used_at is null";
    let unused: i64 = sqlx::query_scalar(unused).fetch_one(context.db()).await.unwrap();
    assert_eq!(unused, 1);
}

#[tokio::test]
async fn a_sign_in_that_began_before_a_change_of_password_begins_no_session() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut ada = Staff::stranger(&acme, "ada@acme.example");
    ada.invited(&context, "owner").await;
    ada.joins(&context).await.assert_status(200);
    let mut somebody = context.db().begin().await.unwrap();
    let change = "update staff_member set password_hash = 'that of another password'";
    sqlx::query(change).execute(&mut *somebody).await.unwrap();
    let verified = "select exists (select from staff_session) \
        or exists (select from pg_stat_activity \
            where datname = current_database() and wait_event_type = 'Lock')";
    let commit = async {
        until("the sign-in is verified", SOON, async || {
            let is_there: bool =
                sqlx::query_scalar(verified).fetch_one(context.db()).await.unwrap();
            is_there.then_some(())
        })
        .await;
        somebody.commit().await.unwrap();
    };
    let (answer, ()) = futures::join!(ada.signs_in(PASSWORD), commit);
    answer.assert_status(401);
    let begun = "select count(*) from staff_session";
    let begun: i64 = sqlx::query_scalar(begun).fetch_one(context.db()).await.unwrap();
    assert_eq!(begun, 0);
}

#[tokio::test]
async fn an_invitation_ends_after_three_days_and_with_the_next_one() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut ada = Staff::stranger(&acme, "ada@acme.example");
    ada.invited(&context, "owner").await;
    let first = ada.mailed_link(&context).await;
    ada.invited(&context, "support").await;
    let second = ada.mailed_link(&context).await;
    ada.get(&first).await.assert_status(404);
    ada.get(&second).await.assert_status(200);
    assert_eq!(listed(&context).await.len(), 1);
    assert_eq!(listed(&context).await[0]["role"], "support");
    context.clock().advance(TimeDelta::days(3));
    ada.get(&second).await.assert_status(404);
    ada.submit(&second, &[("password", PASSWORD)]).await.assert_status(404);
    ada.invited(&context, "owner").await;
    ada.joins(&context).await.assert_status(200);
}

#[tokio::test]
async fn operators_invite_list_and_remove() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (email, role, status) in [
        ("ada@acme.example", "owner", 201),
        ("not an address", "owner", 422),
        ("bob@acme.example", "emperor", 422),
    ] {
        assert_eq!(invite(&context, email, role).await, status, "{email} {role}");
    }
    let mut ada = Staff::stranger(&acme, "ada@acme.example");
    ada.joins(&context).await.assert_status(200);
    assert_eq!(invite(&context, "ada@acme.example", "owner").await, 409, "she has joined");
    ada.signs_in(PASSWORD).await.assert_status(303);
    let id = listed(&context).await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("{STAFF}/{id}");
    context.admin(Method::DELETE, &path, Value::Null).await.assert_status(204);
    context.admin(Method::DELETE, &path, Value::Null).await.assert_status(404);
    assert_eq!(ada.get("/portal").await.status(), 303, "her session has ended");
    ada.signs_in(PASSWORD).await.assert_status(401);
    assert!(listed(&context).await.is_empty());
}

#[tokio::test]
async fn an_owner_invites_and_removes_others_but_not_herself() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut owner = Staff::signed_in(&context, &acme, "owner").await;
    let mut bob = Staff::stranger(&acme, "bob@acme.example");
    let invited = owner.submit("/portal/team", &[("email", &bob.email), ("role", "support")]).await;
    assert_eq!(invited.header("location"), Some("/portal/team?done=invited"));
    bob.joins(&context).await.assert_status(200);
    bob.signs_in(PASSWORD).await.assert_status(303);
    let wrong = owner.submit("/portal/team", &[("email", "bob"), ("role", "support")]).await;
    assert!(wrong.assert_status(400).text().contains("value=\"bob\""), "what was typed stays");
    let members = listed(&context).await;
    let remove = |member: &Value| format!("/portal/team/{}/remove", member["id"].as_str().unwrap());
    owner.submit(&remove(&members[0]), &[]).await.assert_status(404);
    owner.submit(&remove(&members[1]), &[]).await.assert_status(303);
    assert_eq!(bob.get("/portal").await.status(), 303);
    let actions = super::audited(&context).await;
    let expected = ["staff.remove", "staff.invite"].map(|one| (one.to_owned(), "acme".to_owned()));
    assert_eq!(actions, expected);
}

#[tokio::test]
async fn one_address_is_mailed_five_invitations_an_hour() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut owner = Staff::signed_in(&context, &acme, "owner").await;
    let mut statuses = Vec::new();
    for name in ["bob", "bob", "bob", "bob", "bob", "bob", "eve"] {
        let email = format!("{name}@acme.example");
        let fields = [("email", &*email), ("role", "support")];
        statuses.push(owner.submit("/portal/team", &fields).await.status());
    }
    assert_eq!(statuses, [303, 303, 303, 303, 303, 429, 303]);
    let typed = [("email", "bob@acme.example"), ("role", "support")];
    let refused = owner.submit("/portal/team", &typed).await;
    let text = refused.assert_status(429).text();
    assert!(refused.header("retry-after").is_some());
    for part in [
        "href=\"#field-email\"",
        "value=\"bob@acme.example\"",
        "<option value=\"support\" selected>",
    ] {
        assert!(text.contains(part), "what was typed stays: {part} in {text}");
    }
}

#[tokio::test]
async fn nobody_learns_from_the_answer_who_works_for_a_partner() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let rival = context.partner("rival").await;
    let owner = Staff::signed_in(&context, &acme, "owner").await;
    for (partner, email) in [
        (&acme, "owner@acme.example"),
        (&acme, "nobody@acme.example"),
        (&rival, "owner@acme.example"),
    ] {
        let mut stranger = Staff::stranger(partner, email);
        let answer = stranger.signs_in("a wrong password").await;
        answer.assert_status(401);
        assert!(answer.text().contains("Partner, address, password or code is wrong."));
        stranger.get("/portal/forgot-password").await.assert_status(200);
        let wrong = [("partner", &*partner.slug), ("email", "nobody")];
        let refused = stranger.submit("/portal/forgot-password", &wrong).await;
        assert!(refused.assert_status(400).text().contains("href=\"#field-email\""));
        stranger.get("/portal/forgot-password").await.assert_status(200);
        let fields = [("partner", &*partner.slug), ("email", email)];
        let mailed = stranger.submit("/portal/forgot-password", &fields).await;
        let sent = mailed.assert_status(303).header("location").unwrap();
        let page = stranger.get(sent).await;
        assert!(page.assert_status(200).text().contains("a link is on its way"));
    }
    assert_eq!(outbox::newest(&context, "nobody@acme.example").await.state, "withheld");
    let mut owner = owner;
    let link = {
        owner.get("/portal/forgot-password").await;
        owner
            .submit(
                "/portal/forgot-password",
                &[("partner", "acme"), ("email", "owner@acme.example")],
            )
            .await
            .assert_status(303);
        owner.mailed_link(&context).await
    };
    owner.get(&link).await.assert_status(200);
    owner.submit(&link, &[("password", "another password")]).await.assert_status(200);
    let told = outbox::newest(&context, &owner.email).await;
    let said = "Your account has a new password.\nIf this was not you, tell acme at once.\n";
    assert_eq!((&*told.text, &*told.state), (said, "pending"));
    assert_eq!(owner.get("/portal").await.status(), 303, "every session has ended");
    owner.signs_in(PASSWORD).await.assert_status(401);
    owner.signs_in("another password").await.assert_status(303);
    let changed = [("staff.password".to_owned(), "acme".to_owned())];
    assert_eq!(super::audited(&context).await, changed);
}

#[tokio::test]
async fn a_session_ends_after_twelve_hours_and_with_its_partner() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut owner = Staff::signed_in(&context, &acme, "owner").await;
    let suspend = |status: &'static str| {
        context.admin(Method::PATCH, "/admin/v1/partners/acme", json!({ "status": status }))
    };
    suspend("suspended").await.assert_status(200);
    assert_eq!(owner.get("/portal").await.status(), 303);
    owner.signs_in(PASSWORD).await.assert_status(401);
    suspend("active").await.assert_status(200);
    owner.get("/portal").await.assert_status(200);
    context.clock().advance(TimeDelta::hours(12));
    assert_eq!(owner.get("/portal").await.status(), 303);
    context.core().delete_expired_sessions_of_staff().await.unwrap();
    let left: i64 = sqlx::query_scalar("select count(*) from staff_session")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(left, 0);
}
