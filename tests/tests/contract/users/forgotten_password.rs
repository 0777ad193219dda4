//! The ways to a new password: from each sign-in, and from a link that does not work any more. What a
//! new password leaves of passkeys, the app and identifiers: nothing, if it is the first proof of the
//! address. Who tries on a page keeps nobody else out.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::outbox;
use rampart_tests::passkey::{Ceremony, challenge};
use serde_json::{Value, json};

use super::{Visit, page_path, submit, until_stored_or_waiting};

/// The page in the language of a browser that names none.
const ENGLISH: &str = "href=\"/en-gb/forgot-password?client=acme\"";

impl Visit {
    /// Sets a password by a link that is mailed to this address; a minute goes by.
    async fn reset_password(&self, email: &str, password: &str) {
        let asked = json!({ "emailAddress": email });
        self.partner.post("/api/v1/user/reset-password", asked).await.assert_status(200);
        let mail = outbox::newest(&self.context, email).await.text;
        let link = mail.lines().find_map(|line| line.split_once("/reset-password/")).unwrap().1;
        let form = format!("password={password}");
        let set = submit(&self.partner, &format!("/reset-password/{link}"), &form).await;
        set.assert_status(200);
        self.later(60);
    }

    /// The state of the check of the user's address.
    async fn email_status(&self) -> Value {
        let path = format!("/admin/v1/users/{}", self.id);
        let user = self.context.admin(Method::GET, &path, Value::Null).await;
        user.json()["profile"]["status"]["details"]["emailAddressVerificationStatus"].clone()
    }
}

fn path(url: &Value) -> String {
    url.as_str().unwrap().strip_prefix("https://pay.example.com").unwrap().to_owned()
}

#[tokio::test]
async fn every_sign_in_leads_to_a_new_password() {
    let visit = Visit::start().await;
    let partner = &visit.partner;
    let guests = json!({"guestOrders": {"allowed": false}});
    let patched = visit.context.admin(Method::PATCH, "/admin/v1/partners/acme", guests).await;
    patched.assert_status(200);
    let checkout =
        json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"});
    let checkout = partner.post("/api/v2/buy/checkout", checkout).await.assert_status(200).json();
    let sale = json!({"returnUrl": "https://shop.example/back"});
    let sale = partner.post("/api/v2/sell/onboarding", sale).await.assert_status(200).json();
    let dutch = "href=\"/nl-nl/forgot-password?client=acme\"";
    let form = "action=log-in&email=ada%40mail.example.com&password=wrong-one";
    for (path, expected) in [
        (path(&checkout["checkoutUrl"]), ENGLISH),
        (path(&sale["onboardingUrl"]), ENGLISH),
        (page_path(partner, &"x".repeat(36)).await, dutch),
        (visit.path.clone(), dutch),
    ] {
        let shown = partner.anonymous(Method::GET, &path).send().await;
        assert!(shown.assert_status(200).text().contains(expected), "{}", shown.text());
        let refused = submit(partner, &path, form).await;
        assert!(refused.text().contains(expected), "{path}: {}", refused.text());
    }
    for page in ["/en-gb/forgot-password?client=acme", "/nl-nl/forgot-password?client=acme"] {
        let page = partner.anonymous(Method::GET, page).send().await;
        // The script sends one of two clicks: each would mail a link.
        assert!(page.assert_status(200).text().contains("lastSubmit"), "{}", page.text());
    }
}

#[tokio::test]
async fn a_link_that_does_not_work_any_more_leads_to_another() {
    let visit = Visit::start().await;
    let email = &*visit.user.email;
    let asked = json!({ "emailAddress": email });
    visit.partner.post("/api/v1/user/reset-password", asked).await.assert_status(200);
    let mail = outbox::newest(&visit.context, email).await.text;
    let link = mail.lines().find_map(|line| line.split_once("/reset-password/")).unwrap().1;
    let path = format!("/reset-password/{link}");
    // A browser would cut off what is pasted, and a login with all of it would be refused.
    let form = visit.partner.anonymous(Method::GET, &path).send().await;
    let text = form.assert_status(200).text();
    assert!(text.contains("minlength=\"8\"") && !text.contains("maxlength"), "{text}");
    // The link is good once: the script sends one of two clicks.
    assert!(text.contains("lastSubmit"), "{text}");
    let policy = form.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'sha256-"), "{policy}");
    let long = submit(&visit.partner, &path, &format!("password={}", "x".repeat(65))).await;
    assert!(long.assert_status(400).text().contains("aria-invalid=\"true\""), "{}", long.text());
    submit(&visit.partner, &path, "password=password-of-eve").await.assert_status(200);
    let again = submit(&visit.partner, &path, "password=password-of-bob").await;
    assert!(again.assert_status(404).text().contains(ENGLISH), "{}", again.text());
    // As after a second click of the button: the first one has counted.
    let set = "If you have just set your password with it, you can log in.";
    assert!(again.text().contains(set), "{}", again.text());
    let show = async |path: &str| visit.partner.anonymous(Method::GET, path).send().await;
    let shown = show(&path).await;
    assert!(shown.assert_status(404).text().contains(ENGLISH), "{}", shown.text());
    let foreign = show("/reset-password/AAAA").await;
    assert!(!foreign.assert_status(404).text().contains("forgot-password"), "{}", foreign.text());
}

#[tokio::test]
async fn the_first_proof_of_an_address_removes_what_was_added_before() {
    let visit = Visit::start().await;
    let laptop = visit.add("Laptop").await;
    visit.later(60);
    let step = visit.password().await;
    let page = visit.submit(&laptop.answer(&Ceremony::get(&challenge(&step), 1))).await;
    visit.set_up_app_on(page.assert_status(200).text()).await;
    assert_eq!(visit.email_status().await, "pending");
    visit.reset_password(&visit.user.email, "password-of-bob").await;
    assert_eq!(visit.email_status().await, "verified");
    assert_eq!(visit.notices().await, 3, "the passkey, the app and the password");
    let form = "action=log-in&email=ada%40mail.example.com&password=password-of-bob";
    let page = visit.submit(form).await.assert_status(200).text().to_owned();
    assert!(page.contains("<dd>ada@mail.example.com") && !page.contains("Laptop"), "{page}");
    let step = visit.submit("action=passkey").await.assert_status(200).text().to_owned();
    visit.submit(&laptop.answer(&Ceremony::get(&challenge(&step), 2))).await.assert_status(400);
}

#[tokio::test]
async fn the_first_proof_of_an_address_unlinks_identifiers_until_the_user_signs_in() {
    let visit = Visit::start().await;
    let read = async || visit.user.get("/api/v1/user/info").await;
    read().await.assert_status(200);
    visit.reset_password(&visit.user.email, "password-of-bob").await;
    read().await.assert_status(400).assert_codes(&["ER705"]);
    let unlinked = page_path(&visit.partner, &visit.user.identifier).await;
    assert!(unlinked.starts_with("/nl-nl/register/"), "{unlinked}");
    // The page that was open before links it to whoever signs in there.
    let form = "action=log-in&email=ada%40mail.example.com&password=password-of-bob";
    visit.submit(form).await.assert_status(200);
    read().await.assert_status(200);
    visit.reset_password(&visit.user.email, "password-of-eve").await;
    read().await.assert_status(200);
}

/// The answer to a request during which the user's logins end and its identifiers are unlinked.
async fn unlinked_during(visit: &Visit, request: impl Future<Output = Answer>) -> Answer {
    let mut reset = visit.context.db().begin().await.unwrap();
    sqlx::query("update end_user set tokens_valid_from = $1")
        .bind(visit.context.clock().now() + TimeDelta::minutes(1))
        .execute(&mut *reset)
        .await
        .unwrap();
    sqlx::query("delete from user_identifier").execute(&mut *reset).await.unwrap();
    let commit = async {
        until_stored_or_waiting(&visit.context, "select false").await;
        reset.commit().await.unwrap();
    };
    let (answer, ()) = futures::join!(request, commit);
    visit.later(120);
    answer
}

#[tokio::test]
async fn a_request_under_way_does_not_link_what_is_unlinked_meanwhile() {
    let visit = Visit::start().await;
    let (partner, user) = (&visit.partner, &visit.user);
    let identifier = json!({"identifier": "y".repeat(36)});
    let change = user.patch("/api/v2/user", &identifier);
    unlinked_during(&visit, change).await.assert_codes(&["ER705"]);
    for (method, path) in
        [(Method::PATCH, "/api/v2/user"), (Method::POST, "/api/v2/user/link-identifier")]
    {
        let bearer = format!("Bearer {}", user.log_in().await["token"].as_str().unwrap());
        let request = partner.request(method, path).header("user-authorization", &bearer);
        let linked = unlinked_during(&visit, request.json(&identifier).send()).await;
        linked.assert_codes(&["ER702"]);
    }
    let page = page_path(partner, &"y".repeat(36)).await;
    let form = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";
    unlinked_during(&visit, submit(partner, &page, form)).await.assert_status(400);
    let linked: i64 = sqlx::query_scalar("select count(*) from user_identifier")
        .fetch_one(visit.context.db())
        .await
        .unwrap();
    assert_eq!(linked, 0);
    submit(partner, &page, form).await.assert_status(303);
}

#[tokio::test]
async fn another_address_is_proven_anew() {
    let visit = Visit::of_proven_address().await;
    visit.add("Laptop").await;
    let change = json!({"oldPassword": visit.user.password, "email": "bob@mail.example.com"});
    visit.user.patch("/api/v2/user", &change).await.assert_status(200);
    visit.reset_password("bob@mail.example.com", "password-of-bob").await;
    let form = "action=log-in&email=bob%40mail.example.com&password=password-of-bob";
    let page = visit.submit(form).await.assert_status(200).text().to_owned();
    assert!(page.contains("<dd>bob@mail.example.com") && !page.contains("Laptop"), "{page}");
}

#[tokio::test]
async fn a_reset_of_a_proven_address_leaves_passkeys() {
    let (by_operator, by_link) = (Visit::of_proven_address().await, Visit::start().await);
    by_link.reset_password(&by_link.user.email, &by_link.user.password).await;
    for visit in [by_operator, by_link] {
        visit.add("Laptop").await;
        visit.reset_password(&visit.user.email, &visit.user.password).await;
        let step = visit.password().await;
        assert!(step.contains("data-ceremony=\"get\"") && !step.contains("<dd>ada"), "{step}");
    }
}

#[tokio::test]
async fn a_reset_does_not_lift_the_block_of_an_address() {
    let visit = Visit::start().await;
    visit.add("Laptop").await;
    visit.change_by_operator(r#"{"verification": {"email": "blocked"}}"#).await;
    visit.reset_password(&visit.user.email, &visit.user.password).await;
    assert_eq!(visit.email_status().await, "blocked");
    let page = visit.password().await;
    assert!(page.contains("<dd>ada@mail.example.com") && !page.contains("Laptop"), "{page}");
}

#[tokio::test]
async fn strangers_at_the_page_keep_nobody_from_logging_in() {
    let visit = Visit::start().await;
    let ask = async |network: u8, email: &str| {
        let path = "/en-gb/forgot-password?client=acme";
        let form = visit.partner.anonymous(Method::POST, path).body(format!("email={email}"));
        form.from([192, 0, network, 1].into()).send().await.status()
    };
    let mut mailed = Vec::new();
    for network in 0..8 {
        let mut of_network = 0;
        for number in 0..15 {
            let email = format!("n{network}-{number}@mail.example.com");
            of_network += usize::from(ask(network, &email).await == 303);
        }
        mailed.push(of_network);
    }
    // A few more fit in the time that these took.
    assert!(mailed.iter().all(|of_network| *of_network < 15), "{mailed:?}");
    for _ in 0..6 {
        ask(9, &visit.user.email).await;
    }
    visit.user.log_in().await;
    let asked = json!({"emailAddress": "bob@mail.example.com"});
    visit.partner.post("/api/v1/user/reset-password", asked).await.assert_status(200);
    let form = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";
    visit.submit(form).await.assert_status(200);
}

#[tokio::test]
async fn visitors_of_one_network_keep_no_other_from_signing_in() {
    let visit = Visit::start().await;
    let mut limited = 0;
    for number in 0..70 {
        let form = format!("action=log-in&email=n{number}%40mail.example.com&password=guessed-it");
        let tried = visit.partner.anonymous(Method::POST, &visit.path).body(form);
        let answer = tried.from([192, 0, 2, 1].into()).send().await;
        limited += usize::from(answer.status() == 429);
    }
    assert_ne!(limited, 0);
    let form = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";
    visit.submit(form).await.assert_status(200);
}
