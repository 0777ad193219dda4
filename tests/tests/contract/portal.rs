//! The portal of partners' staff: who gets in, what each role and each partner sees, and what its
//! forms do.

mod attempts;
mod branding;
mod forms;
mod keys;
mod links;
mod policies;
mod second_factor;
mod shoppers;
mod sign_in;
mod strangers;
mod webhooks;

use chrono::TimeDelta;
use http::Method;
use rampart_tests::cluster::{commit_once_awaited, lose_first_change};
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::staff::{PASSWORD, Staff};
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use crate::sweeps::copy_order;

const ROLES: [&str; 3] = ["owner", "developer", "support"];

/// Pages and the roles that see them.
const PAGES: &[(&str, &[&str])] = &[
    ("/portal", &ROLES),
    ("/portal/account", &ROLES),
    ("/portal/keys", &["owner", "developer"]),
    ("/portal/orders", &ROLES),
    ("/portal/users", &["owner", "support"]),
    ("/portal/webhooks", &["owner", "developer"]),
    ("/portal/events", &["owner", "developer"]),
    ("/portal/policies", &ROLES),
    ("/portal/sandbox", &["owner", "developer"]),
    ("/portal/branding", &["owner"]),
    ("/portal/team", &["owner"]),
];

/// Actions and the roles that may send them.
const ACTIONS: &[(&str, &[&str])] = &[
    ("/portal/keys", &["owner", "developer"]),
    ("/portal/keys/0199a000-0000-7000-8000-000000000001/revoke", &["owner", "developer"]),
    ("/portal/webhooks", &["owner", "developer"]),
    ("/portal/webhooks/0199a000-0000-7000-8000-000000000001/test", &["owner", "developer"]),
    ("/portal/webhooks/0199a000-0000-7000-8000-000000000001/secret", &["owner", "developer"]),
    ("/portal/webhooks/0199a000-0000-7000-8000-000000000001/resend", &["owner", "developer"]),
    ("/portal/webhooks/0199a000-0000-7000-8000-000000000001/remove", &["owner", "developer"]),
    ("/portal/deliveries/0199a000-0000-7000-8000-000000000001/resend", &["owner", "developer"]),
    ("/portal/events/0199a000-0000-7000-8000-000000000001/redeliver", &["owner", "developer"]),
    ("/portal/users", &["owner", "support"]),
    ("/portal/users/0199a000-0000-7000-8000-000000000001/identity", &["owner", "support"]),
    ("/portal/sandbox/orders", &["owner", "developer"]),
    ("/portal/sandbox/orders/1234567890123456/hold", &["owner", "developer"]),
    ("/portal/sandbox/identity", &["owner", "developer"]),
    ("/portal/policies", &["owner", "developer"]),
    ("/portal/policies/fee/versions/1/dry-run", &["owner", "developer"]),
    ("/portal/branding", &["owner"]),
    ("/portal/team", &["owner"]),
    ("/portal/team/0199a000-0000-7000-8000-000000000001/remove", &["owner"]),
    ("/portal/account/second-factor", &ROLES),
    ("/portal/account/second-factor/confirm", &ROLES),
    ("/portal/account/second-factor/remove", &ROLES),
    ("/portal/sign-out", &ROLES),
];

/// Actions and targets of the audit's rows by a staff member, newest first.
async fn audited(context: &TestContext) -> Vec<(String, String)> {
    let list = context.admin(Method::GET, "/admin/v1/audit", Value::Null).await.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = list.as_array().unwrap().iter();
    let rows = rows.filter(|row| row["actor"].as_str().unwrap().starts_with("staff:"));
    rows.map(|row| (text(&row["action"]), text(&row["target"]))).collect()
}

#[tokio::test]
async fn every_page_and_action_is_of_its_roles() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for role in ROLES {
        let mut staff = Staff::signed_in(&context, &acme, role).await;
        for (path, roles) in PAGES {
            let expected = if roles.contains(&role) { 200 } else { 403 };
            assert_eq!(staff.get(path).await.status(), expected, "{role} {path}");
        }
        let overview = staff.get("/portal").await;
        for (path, roles) in PAGES {
            let link = format!("href=\"{path}\"");
            assert_eq!(overview.text().contains(&link), roles.contains(&role), "{role} {path}");
        }
        for (path, roles) in ACTIONS {
            let status = staff.submit(path, &[]).await.status();
            assert_eq!(status == 403, !roles.contains(&role), "{role} {path}: {status}");
        }
        assert_eq!(staff.get("/portal").await.header("location"), Some("/portal/sign-in"));
    }
}

#[tokio::test]
async fn a_page_that_fails_says_when_to_try_again() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut owner = Staff::signed_in(&context, &acme, "owner").await;
    Staff::signed_in(&context, &acme, "support").await;
    let team = owner.get("/portal/team").await;
    let path = team.text().split("action=\"").find(|path| path.starts_with("/portal/team/"));
    let path = path.unwrap().split('"').next().unwrap().to_owned();
    lose_first_change(context.db(), "staff_member").await;
    let failed = owner.submit(&path, &[]).await;
    assert_eq!(failed.assert_status(503).header("retry-after"), Some("2"));
    for part in ["This does not work at the moment", "try again in 2 s. Request: test-request"] {
        assert!(failed.text().contains(part), "{part}: {}", failed.text());
    }
    owner.submit(&path, &[]).await.assert_status(303);
    let nothing = owner.submit(&path, &[]).await;
    assert!(nothing.assert_status(404).text().contains("<h1>Not found</h1>"));
}

#[tokio::test]
async fn a_form_counts_with_the_token_of_its_session_alone() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let mut staff = Staff::signed_in(&context, &acme, "owner").await;
    let other = Staff::signed_in(&context, &rival, "owner").await;
    let mut again = staff.clone();
    again.signs_in(PASSWORD).await.assert_status(303);
    again.get("/portal").await.assert_status(200);
    for token in ["", "wrong", other.form_token(), again.form_token()] {
        for (path, _) in ACTIONS {
            staff.submit_with(path, token, &[("name", "a")]).await.assert_status(403);
        }
    }
    assert_eq!(audited(&context).await, []);
    // A stranger gets the form that signs in, and no action is carried out.
    let mut stranger = Staff::stranger(&acme, "nobody@acme.example");
    for (path, _) in ACTIONS.iter().filter(|(path, _)| *path != "/portal/sign-out") {
        let answer = stranger.submit_with(path, staff.form_token(), &[]).await;
        let text = answer.assert_status(401).text();
        assert!(text.contains("nothing was done") && text.contains("name=\"password\""), "{text}");
    }
    let left = stranger.submit_with("/portal/sign-out", staff.form_token(), &[]).await;
    assert_eq!((left.status(), left.header("location")), (303, Some("/portal/sign-in")));
    staff.get("/portal").await.assert_status(200);
}

#[tokio::test]
async fn what_was_typed_before_another_sign_in_is_sent_again() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let before = Staff::signed_in(&context, &acme, "owner").await;
    let mut staff = before.clone();
    context.clock().advance(TimeDelta::hours(13));
    let typed = [("name", "Till <1>"), ("networks", "192.0.2.0/24")];
    let ended = staff.submit("/portal/keys", &typed).await;
    assert!(ended.assert_status(401).text().contains("nothing was done"), "{}", ended.text());
    assert!(!ended.text().contains("choose the file"), "{}", ended.text());
    let ended = staff.submit_file("/portal/branding", "logo", b"x", &[]).await;
    let text = ended.assert_status(401).text();
    assert!(text.contains("choose the file once more"), "{text}");
    staff.signs_in(PASSWORD).await.assert_status(303);
    let file = staff.submit_file("/portal/branding", "logo", b"x", &[("name", "Shop")]).await;
    let text = file.assert_status(403).text();
    for part in ["choose the file once more", "href=\"/portal/branding\"", "<dd>Shop</dd>"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("Send it again"), "{text}");
    staff.get("/portal").await.assert_status(200);
    let kept = staff.submit_with("/portal/keys", before.form_token(), &typed).await;
    let text = kept.assert_status(403).text();
    for part in [
        "action=\"/portal/keys\"",
        "name=\"name\" value=\"Till &lt;1&gt;\"",
        "name=\"networks\" value=\"192.0.2.0/24\"",
        &format!("value=\"{}\"", staff.form_token()),
        "<h2>Create an API key</h2>",
        "Send it again",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(before.form_token()), "{text}");
    let planted = staff.next_door().submit_with("/portal/keys", "", &typed).await;
    let text = planted.assert_status(403).text();
    assert!(text.contains("nothing was done"), "{text}");
    assert!(!text.contains("Send it again") && !text.contains("192.0.2.0"), "{text}");
    assert_eq!(audited(&context).await, []);
    staff.submit("/portal/keys", &typed).await.assert_status(200);
    let issued = ("api-key.issue".to_owned(), "acme".to_owned());
    assert_eq!(audited(&context).await, [issued]);
}

#[tokio::test]
async fn an_action_that_its_fields_do_not_tell_is_not_offered_again() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let before = Staff::signed_in(&context, &acme, "owner").await;
    let mut staff = before.clone();
    staff.signs_in(PASSWORD).await.assert_status(303);
    let id = "0199a000-0000-7000-8000-000000000001";
    let nothing: &[(&str, &str)] = &[];
    let overlap: &[(&str, &str)] = &[("overlap", "24")];
    for (path, fields, page) in [
        (format!("/portal/keys/{id}/revoke"), nothing, "/portal/keys"),
        (format!("/portal/team/{id}/remove"), nothing, "/portal/team"),
        (format!("/portal/webhooks/{id}/secret"), overlap, "/portal/webhooks"),
        (format!("/portal/deliveries/{id}/resend"), nothing, "/portal"),
        ("/portal/keys".to_owned(), nothing, "/portal/keys"),
    ] {
        let answer = staff.submit_with(&path, before.form_token(), fields).await;
        let text = answer.assert_status(403).text();
        assert!(!text.contains("Send it again"), "{path}: {text}");
        assert!(!text.contains(&format!("action=\"{path}\"")), "{path}: {text}");
        assert!(text.contains(&format!("Open <a href=\"{page}\">")), "{path}: {text}");
    }
}

#[tokio::test]
async fn the_pages_let_nothing_in_from_elsewhere() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "owner").await;
    let open = ["/portal/sign-in", "/portal/forgot-password"];
    for path in PAGES.iter().map(|(path, _)| *path).chain(open) {
        let page = staff.get(path).await;
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        for inline in ["style=\"", "onclick", "javascript:", "src=\"http"] {
            assert!(!page.text().contains(inline), "{path}: {inline}");
        }
        assert_eq!(page.header("cache-control"), Some("no-store"), "{path}");
    }
}

#[tokio::test]
async fn another_partners_session_sees_and_moves_nothing() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let owner = Staff::signed_in(&context, &acme, "owner").await;
    let mut stranger = Staff::signed_in(&context, &rival, "owner").await;
    for (path, _) in PAGES {
        let page = stranger.get(path).await;
        assert!(!page.text().contains("acme"), "{path}: {}", page.text());
    }
    let staff = context.admin(Method::GET, "/admin/v1/partners/acme/staff", json!({})).await.json();
    let partner = context.admin(Method::GET, "/admin/v1/partners/acme", json!({})).await.json();
    let (member, key) = (&staff[0]["id"], &partner["apiKeys"][0]["id"]);
    for path in [
        format!("/portal/team/{}/remove", member.as_str().unwrap()),
        format!("/portal/keys/{}/revoke", key.as_str().unwrap()),
    ] {
        stranger.submit(&path, &[]).await.assert_status(404);
    }
    acme.get("/api/v2/prices").await.assert_status(200);
    owner.clone().get("/portal").await.assert_status(200);
}

#[tokio::test]
async fn a_member_whose_address_no_key_opens_is_listed_without_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut owner = Staff::signed_in(&context, &acme, "owner").await;
    Staff::stranger(&acme, "eve@acme.example").invited(&context, "support").await;
    let altered = "update staff_member set sealed_email = sealed_email || 'x'::bytea \
         where role = 'support'";
    sqlx::query(altered).execute(context.db()).await.unwrap();
    let path = "/admin/v1/partners/acme/staff";
    let list = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    let emails = (&list[0]["email"], &list[1]["email"]);
    assert_eq!(emails, (&json!("owner@acme.example"), &Value::Null));
    let page = owner.get("/portal/team").await;
    assert!(page.assert_status(200).text().contains("unknown address"), "{}", page.text());
    let eve = format!("{path}/{}", list[1]["id"].as_str().unwrap());
    context.admin(Method::DELETE, &eve, Value::Null).await.assert_status(204);
}

#[tokio::test]
async fn an_action_of_a_member_who_is_removed_or_loses_the_role_meanwhile_is_not_done() {
    let context = TestContext::start().await;
    let key: &[(&str, &str)] = &[("name", "Till")];
    let invitation: &[(&str, &str)] = &[("email", "eve@acme.example"), ("role", "owner")];
    let nothing: &[(&str, &str)] = &[];
    let password: &[(&str, &str)] = &[("password", PASSWORD)];
    let code: &[(&str, &str)] = &[("code", "000000")];
    let scenario: &[(&str, &str)] = &[("scenario", "completed")];
    let webhook = "/portal/webhooks/0199a000-0000-7000-8000-000000000001/remove";
    let event = "/portal/sandbox/orders/1234567890123456/hold";
    let sign_out = "delete from staff_session";
    for (slug, change, path, fields) in [
        ("acme", "delete from staff_member", "/portal/keys", key),
        ("bell", "update staff_member set role = 'support'", "/portal/team", invitation),
        ("corp", sign_out, webhook, nothing),
        ("dune", sign_out, "/portal/account/second-factor", password),
        ("echo", sign_out, "/portal/account/second-factor/confirm", code),
        ("fern", sign_out, "/portal/account/second-factor/remove", code),
        ("gulf", sign_out, "/portal/sandbox/orders", scenario),
        ("hill", sign_out, event, nothing),
    ] {
        let partner = context.partner(slug).await;
        let mut staff = Staff::signed_in(&context, &partner, "owner").await;
        let mut somebody = context.db().begin().await.unwrap();
        sqlx::query("select from client for update").execute(&mut *somebody).await.unwrap();
        sqlx::query(change).execute(&mut *somebody).await.unwrap();
        let commit = commit_once_awaited(context.db(), somebody);
        let (refused, ()) = futures::join!(staff.submit(path, fields), commit);
        let text = refused.assert_status(403).text();
        assert!(text.contains("nothing was done"), "{change}: {path}: {text}");
    }
    let ordered = "select exists (select from buy_order)";
    let ordered: bool = sqlx::query_scalar(ordered).fetch_one(context.db()).await.unwrap();
    assert!(!ordered);
    assert_eq!(audited(&context).await, []);
}

#[tokio::test]
async fn the_overview_counts_no_more_orders_than_it_says() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    OrderFixture::order(&context, &acme, None, None).await;
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    let page = staff.get("/portal").await;
    assert!(!page.assert_status(200).text().contains("10,000"), "{}", page.text());
    copy_order(&context, "pending", 10_000).await;
    let page = staff.get("/portal").await;
    for text in ["10,000 or more", ", of the newest 10,000"] {
        assert!(page.assert_status(200).text().contains(text), "{text}: {}", page.text());
    }
}
