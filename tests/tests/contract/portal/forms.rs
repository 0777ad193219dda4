//! Forms that are sent twice, as by a double click: they count once, and both answers are the first's.

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::partner::Partner;
use rampart_tests::staff::Staff;
use rampart_tests::test_context::TestContext;
use serde_json::json;

use super::audited;

/// The text of a page between two others.
fn between<'a>(page: &'a Answer, before: &str, after: &str) -> &'a str {
    let (_, rest) = page.text().split_once(before).unwrap_or_else(|| panic!("{}", page.text()));
    rest.split_once(after).unwrap().0
}

/// The path that an answer leads to.
fn location(answer: &Answer) -> String {
    answer.assert_status(303).header("location").unwrap().to_owned()
}

/// The id of a page's forms.
fn form_id(page: &Answer) -> String {
    between(page, "name=\"formId\" value=\"", "\"").to_owned()
}

async fn started() -> (TestContext, Partner, Staff) {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let staff = Staff::signed_in(&context, &acme, "owner").await;
    (context, acme, staff)
}

/// Opens a page, and sends its form to this path twice at once.
async fn sends_twice(
    staff: &mut Staff,
    page: &str,
    action: &str,
    fields: &[(&str, &str)],
) -> [Answer; 2] {
    let page = staff.get(page).await;
    let id = form_id(&page);
    let fields: Vec<_> = [("formId", &*id)].iter().chain(fields).copied().collect();
    let mut other = staff.clone();
    let answers = tokio::join!(staff.submit(action, &fields), other.submit(action, &fields));
    answers.into()
}

/// The number of audited actions of this name.
async fn count(context: &TestContext, action: &str) -> usize {
    audited(context).await.iter().filter(|(known, _)| known == action).count()
}

#[tokio::test]
async fn one_key_is_made_and_both_answers_show_it() {
    let (context, acme, mut staff) = started().await;
    let path = "/portal/keys";
    let answers = sends_twice(&mut staff, path, path, &[("name", "Till")]).await;
    let [first, second] =
        answers.each_ref().map(|page| between(page.assert_status(200), "id=\"new-key\">", "<"));
    assert_eq!(first, second);
    acme.with_key(first.to_owned()).get("/api/v2/prices").await.assert_status(200);
    assert_eq!(count(&context, "api-key.issue").await, 1);
    // The form of a page that was opened anew is another one.
    let again = sends_twice(&mut staff, path, path, &[("name", "Till")]).await;
    assert_ne!(between(&again[0], "id=\"new-key\">", "<"), first);
    assert_eq!(count(&context, "api-key.issue").await, 2);
}

#[tokio::test]
async fn a_key_is_shown_to_its_form_for_ten_minutes() {
    let (context, _, mut staff) = started().await;
    let page = staff.get("/portal/keys").await;
    let id = form_id(&page);
    let fields = [("formId", &*id), ("name", "Till")];
    let mut shown = Vec::new();
    for minutes in [0, 9, 1] {
        let age = "update idempotency_key set expires_at = expires_at - make_interval(mins => $1)";
        sqlx::query(age).bind(minutes).execute(context.db()).await.unwrap();
        let page = staff.submit("/portal/keys", &fields).await;
        shown.push(between(page.assert_status(200), "id=\"new-key\">", "<").to_owned());
    }
    assert_eq!(shown[0], shown[1]);
    assert_ne!(shown[0], shown[2], "the first one was kept longer");
    assert_eq!(count(&context, "api-key.issue").await, 2);
}

#[tokio::test]
async fn a_changed_form_and_a_refused_one_are_not_used_up() {
    let (context, _, mut staff) = started().await;
    let page = staff.get("/portal/keys").await;
    let id = form_id(&page);
    for (name, status) in [("", 400), ("One", 200), ("Other", 200), ("One", 200)] {
        let fields = [("formId", &*id), ("name", name)];
        staff.submit("/portal/keys", &fields).await.assert_status(status);
    }
    assert_eq!(count(&context, "api-key.issue").await, 2);
}

#[tokio::test]
async fn one_endpoint_and_one_new_secret_are_made() {
    let (context, acme, mut staff) = started().await;
    let path = "/portal/webhooks";
    let url = [("url", "https://shop.example/hook")];
    let registered = sends_twice(&mut staff, path, path, &url).await;
    let secret =
        |page: &Answer| between(page.assert_status(200), "id=\"new-secret\">", "<").to_owned();
    assert_eq!(secret(&registered[0]), secret(&registered[1]));
    let listed = acme.get("/api/v2/webhooks").await.json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    let path = format!("{path}/{}", between(&registered[1], "href=\"/portal/webhooks/", "\""));
    let action = format!("{path}/secret");
    let rotated = sends_twice(&mut staff, &path, &action, &[("overlap", "24")]).await;
    assert_eq!(secret(&rotated[0]), secret(&rotated[1]));
    assert_ne!(secret(&rotated[0]), secret(&registered[0]));
    assert_eq!(count(&context, "webhook.register").await, 1);
    assert_eq!(count(&context, "webhook.rotate-secret").await, 1);
    let tested = sends_twice(&mut staff, &path, &format!("{path}/test"), &[]).await;
    for answer in &tested {
        assert_eq!(answer.header("location"), Some(&*format!("{path}?done=tested")));
    }
    assert_eq!(count(&context, "webhook.test").await, 1);
    let page = staff.get(&path).await;
    assert_eq!(page.text().matches("href=\"/portal/deliveries/").count(), 1, "{}", page.text());
}

#[tokio::test]
async fn one_test_order_is_made_and_a_form_sent_again_leads_to_it() {
    let (context, _, mut staff) = started().await;
    let path = "/portal/sandbox/orders";
    let shown = staff.get("/portal/sandbox").await;
    let id = form_id(&shown);
    let fields = [("formId", &*id), ("scenario", "held")];
    let mut other = staff.clone();
    // Of two at once the second one may find the first without its number yet.
    let (first, second) = tokio::join!(staff.submit(path, &fields), other.submit(path, &fields));
    let found = [location(&first), location(&second)];
    let is_order = |path: &&String| path.starts_with("/portal/orders/");
    let order = found.iter().find(is_order).unwrap();
    assert!(found.iter().all(|path| path == order || path == "/portal/orders"), "{found:?}");
    let again = staff.submit(path, &fields).await;
    assert_eq!(location(&again), *order);
    let count = sqlx::query_scalar("select count(*) from buy_order");
    let count: i64 = count.fetch_one(context.db()).await.unwrap();
    assert_eq!(count, 1);
    // Another scenario of the same page is another order.
    let fields = [("formId", &*id), ("scenario", "completed")];
    assert_ne!(location(&staff.submit(path, &fields).await), *order);
}

#[tokio::test]
async fn a_form_whose_test_order_was_refused_may_be_sent_again() {
    let (context, _, mut staff) = started().await;
    let shown = staff.get("/portal/sandbox").await;
    let id = form_id(&shown);
    let fields = [("formId", &*id), ("scenario", "held")];
    let set = async |status: &str| {
        let body = json!({"buy": {"status": status}});
        let answer = context.admin(Method::PATCH, "/admin/v1/pairs/BTC-EUR", body).await;
        answer.assert_status(200);
        context.core().refresh().await.unwrap();
    };
    set("maintenance").await;
    let refused = staff.submit("/portal/sandbox/orders", &fields).await;
    assert!((400..500).contains(&refused.status()), "{}", refused.status());
    set("enabled").await;
    let made = staff.submit("/portal/sandbox/orders", &fields).await;
    let location = made.assert_status(303).header("location").unwrap();
    assert!(location.starts_with("/portal/orders/"), "{location}");
}

#[tokio::test]
async fn an_event_is_simulated_once_and_others_of_its_page_besides() {
    let (_context, _, mut staff) = started().await;
    let order = location(&staff.submit("/portal/sandbox/orders", &[("scenario", "held")]).await);
    let event = |name: &str| format!("{}/{name}", order.replace("/portal", "/portal/sandbox"));
    let shown = staff.get(&order).await;
    let id = form_id(&shown);
    let (cancel, fields) = (event("cancel"), [("formId", &*id)]);
    let mut other = staff.clone();
    let answers = tokio::join!(staff.submit(&cancel, &fields), other.submit(&cancel, &fields));
    for answer in <[Answer; 2]>::from(answers) {
        assert_eq!(location(&answer), format!("{order}?done=simulated"));
    }
    // A cancelled order does not take it.
    staff.submit(&event("release"), &fields).await.assert_status(409);
    staff.submit(&event("release"), &fields).await.assert_status(409);
}

#[tokio::test]
async fn one_identity_check_is_ended() {
    let (context, acme, mut staff) = started().await;
    let ada = acme.user("ada").await;
    let (path, fields) = ("/portal/sandbox", [("user", &*ada.identifier), ("outcome", "failed")]);
    for answer in sends_twice(&mut staff, path, "/portal/sandbox/identity", &fields).await {
        assert_eq!(location(&answer), "/portal/sandbox?done=simulated");
    }
    assert_eq!(count(&context, "sandbox.identity").await, 1);
}

#[tokio::test]
async fn one_upload_is_examined_and_a_form_sent_again_leads_to_its_result() {
    let (context, _, mut staff) = started().await;
    let allow = json!({"policyUploadAllowed": true});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", allow).await.assert_status(200);
    let path = "/portal/policies";
    let id = form_id(&staff.get(path).await);
    let fields = [("formId", &*id), ("kind", "fee")];
    let mut other = staff.clone();
    // Of two at once the second one may find the first under examination.
    let (first, second) = tokio::join!(
        staff.submit_file(path, "component", b"nonsense", &fields),
        other.submit_file(path, "component", b"nonsense", &fields),
    );
    let found = [location(&first), location(&second)];
    let is_result = |found: &&String| found.starts_with("/portal/policies/uploads/");
    let result = found.iter().find(is_result).unwrap();
    let examining = "/portal/policies?done=examining";
    assert!(found.iter().all(|path| path == result || path == examining), "{found:?}");
    let again = staff.submit_file(path, "component", b"nonsense", &fields).await;
    assert_eq!(location(&again), *result);
    let uploads = async || -> i64 {
        let count = sqlx::query_scalar("select count(*) from policy_upload");
        count.fetch_one(context.db()).await.unwrap()
    };
    assert_eq!(uploads().await, 1);
    // Another file of the same page is another upload.
    staff.submit_file(path, "component", b"other", &fields).await.assert_status(303);
    assert_eq!(uploads().await, 2);
}

#[tokio::test]
async fn one_invitation_is_mailed() {
    let (context, _, mut staff) = started().await;
    let mails = async || -> i64 {
        let count = sqlx::query_scalar("select count(*) from mail_outbox");
        count.fetch_one(context.db()).await.unwrap()
    };
    let before = mails().await;
    let fields = [("email", "eve@acme.example"), ("role", "support")];
    for answer in sends_twice(&mut staff, "/portal/team", "/portal/team", &fields).await {
        assert_eq!(answer.header("location"), Some("/portal/team?done=invited"));
    }
    assert_eq!(count(&context, "staff.invite").await, 1);
    assert_eq!(mails().await, before + 1);
}

#[tokio::test]
async fn one_link_to_a_new_password_is_mailed() {
    let (context, acme, owner) = started().await;
    let links = async || -> i64 {
        let count = sqlx::query_scalar("select count(*) from staff_token");
        count.fetch_one(context.db()).await.unwrap()
    };
    let before = links().await;
    let path = "/portal/forgot-password";
    let mut somebody = Staff::stranger(&acme, &owner.email);
    somebody.get(path).await.assert_status(200);
    let fields = [("partner", "acme"), ("email", &*owner.email)];
    let mut other = somebody.clone();
    let answers = tokio::join!(somebody.submit(path, &fields), other.submit(path, &fields));
    for answer in <[Answer; 2]>::from(answers) {
        assert_eq!(location(&answer), format!("{path}?sent=yes"));
    }
    assert_eq!(links().await, before + 1);
    // The form of a page that was opened anew is another one.
    somebody.get(path).await.assert_status(200);
    somebody.submit(path, &fields).await.assert_status(303);
    assert_eq!(links().await, before + 2);
}

#[tokio::test]
async fn a_link_for_nobody_takes_the_statements_of_one_for_a_member() {
    let (context, acme, owner) = started().await;
    let count = "create sequence statements;
        create function count_statement() returns trigger language plpgsql security definer as $$
        begin
            perform nextval('statements');
            return null;
        end $$;
        create trigger count_statement before insert or update on staff_token
            for each statement execute function count_statement();";
    sqlx::raw_sql(count).execute(context.db()).await.unwrap();
    let path = "/portal/forgot-password";
    let mut counts = Vec::new();
    for email in [&*owner.email, "nobody@acme.example"] {
        let mut somebody = Staff::stranger(&acme, email);
        somebody.get(path).await.assert_status(200);
        let fields = [("partner", "acme"), ("email", email)];
        somebody.submit(path, &fields).await.assert_status(303);
        let counted = sqlx::query_scalar::<_, i64>("select last_value from statements");
        counts.push(counted.fetch_one(context.db()).await.unwrap());
    }
    assert_eq!(counts, [2, 4]);
}

#[tokio::test]
async fn a_mail_that_one_form_asks_for_twice_counts_once() {
    let (_context, acme, mut staff) = started().await;
    let (path, fields) = ("/portal/team", [("email", "eve@acme.example"), ("role", "support")]);
    for _ in 0..5 {
        for answer in sends_twice(&mut staff, path, path, &fields).await {
            answer.assert_status(303);
        }
    }
    staff.submit(path, &fields).await.assert_status(429);

    let path = "/portal/forgot-password";
    let mut somebody = Staff::stranger(&acme, &staff.email);
    let fields = [("partner", "acme"), ("email", &*staff.email)];
    for _ in 0..5 {
        somebody.get(path).await.assert_status(200);
        let mut other = somebody.clone();
        let answers = tokio::join!(somebody.submit(path, &fields), other.submit(path, &fields));
        for answer in <[Answer; 2]>::from(answers) {
            answer.assert_status(303);
        }
    }
    somebody.get(path).await.assert_status(200);
    somebody.submit(path, &fields).await.assert_status(429);
}

#[tokio::test]
async fn what_is_taken_away_by_a_form_that_is_sent_twice_is_gone_for_both() {
    type Form = &'static [(&'static str, &'static str)];
    let (context, _, mut staff) = started().await;
    let made: [(&str, Form, &str, &str); 3] = [
        ("/portal/keys", &[("name", "Till")], "revoked", "api-key.revoke"),
        ("/portal/webhooks", &[("url", "https://shop.example/hook")], "removed", "webhook.remove"),
        (
            "/portal/team",
            &[("email", "eve@acme.example"), ("role", "support")],
            "removed",
            "staff.remove",
        ),
    ];
    for (list, fields, word, action) in made {
        let answer = staff.submit(list, fields).await;
        assert!(answer.status() < 400, "{list}: {}", answer.text());
        let mut page = list.to_owned();
        if list == "/portal/webhooks" {
            let shown = staff.get(list).await;
            page = format!("{list}/{}", between(&shown, "href=\"/portal/webhooks/", "\""));
        }
        let shown = staff.get(&page).await;
        let mut paths = shown.text().split("action=\"").filter_map(|rest| rest.split('"').next());
        let path = paths.find(|path| path.ends_with("/revoke") || path.ends_with("/remove"));
        let path = path.unwrap_or_else(|| panic!("{}", shown.text()));
        for answer in sends_twice(&mut staff, &page, path, &[]).await {
            let location = format!("{list}?done={word}");
            assert_eq!(answer.header("location"), Some(&*location), "{}", answer.text());
        }
        assert_eq!(count(&context, action).await, 1);
    }
}
