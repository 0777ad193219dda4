//! The link by which a shopper goes on with a checkout, mailed to another device or after a sign-in.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::outbox;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

use super::purchase::{buy, hidden, post, sign_in_link};
use super::{ADDRESS, BASE, IDENTIFIER, checkout, link, page};
use crate::users::until_stored_or_waiting;

const EMAIL: &str = "shopper@mail.example.com";
const PASSWORD: &str = "password-of-shopper";

/// A partner that wants a user.
async fn shop(context: &TestContext) -> Partner {
    let acme = context.partner("acme").await;
    let guests = json!({"guestOrders": {"allowed": false}});
    let path = format!("/admin/v1/partners/{}", acme.slug);
    context.admin(Method::PATCH, &path, guests).await.assert_status(200);
    acme
}

/// A checkout of two hours, with an identifier of the shop's, to be paid by an amount that is chosen.
async fn made(acme: &Partner) -> Value {
    let members = json!({"identifier": IDENTIFIER, "expireTime": 7200});
    acme.post("/api/v2/buy/checkout", checkout(members)).await.assert_status(200).json()
}

/// Signs a user in on the page; the sealed shopper.
async fn signed_in(acme: &Partner, link: &str, user: &User) -> String {
    let form = [("action", "log-in"), ("email", &*user.email), ("password", &*user.password)];
    hidden(post(acme, link, &form).await.assert_status(200), "shopper")
}

/// Registers on the page; the sealed shopper.
async fn register(acme: &Partner, link: &str) -> String {
    register_in(acme, link, "en").await
}

/// Registers with a browser of this language.
async fn register_in(acme: &Partner, link: &str, language: &str) -> String {
    let form = format!(
        "action=register&email=shopper%40mail.example.com&password={PASSWORD}&country=NL\
         &privacy=yes"
    );
    let request = acme.anonymous(Method::POST, link).header("accept-language", language);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let known = request.body(form).send().await;
    assert!(known.assert_status(200).text().contains("value=\"mail-link\""), "{}", known.text());
    hidden(&known, "shopper")
}

async fn log_in(acme: &Partner, link: &str, password: &str) -> Answer {
    post(acme, link, &[("action", "log-in"), ("email", EMAIL), ("password", password)]).await
}

/// Asks for a link at this step; the answer.
async fn ask(acme: &Partner, link: &str, shopper: &str, step: &str) -> Answer {
    let members = [
        ("action", "mail-link"),
        ("shopper", shopper),
        ("step", step),
        ("amount", "80"),
        ("wallet", ADDRESS),
    ];
    post(acme, link, &members).await
}

/// Path and query of the link that was mailed last.
async fn mailed(context: &TestContext) -> String {
    let text = outbox::newest(context, EMAIL).await.text;
    let url = text.lines().find(|line| line.starts_with(BASE)).unwrap().to_owned();
    url.strip_prefix(BASE).unwrap().to_owned()
}

#[tokio::test]
async fn a_mailed_link_goes_on_at_its_step_once_the_shopper_has_signed_in() {
    let context = TestContext::start().await;
    let acme = shop(&context).await;
    let made = made(&acme).await;
    let shopper = register(&acme, link(&made)).await;
    let filled = format!("value=\"{ADDRESS}\"");
    for (step, shown) in [("details", filled.as_str()), ("confirm", "Check and confirm")] {
        let asked = ask(&acme, link(&made), &shopper, step).await;
        let text = asked.assert_status(200).text();
        assert!(text.contains("We have mailed you a link") && text.contains(shown), "{text}");
        let resumed = mailed(&context).await;
        assert!(resumed.starts_with(link(&made)), "{resumed}");
        for kept in [ADDRESS, IDENTIFIER, EMAIL] {
            assert!(!resumed.contains(kept), "{resumed}");
        }
        // The link alone shows nothing that was typed, and nobody is signed in.
        let stranger = page(&acme, &resumed).await;
        let text = stranger.assert_status(200).text();
        assert!(text.contains("value=\"log-in\"") && text.contains("you go on where you were"));
        for kept in [ADDRESS, EMAIL, "name=\"shopper\"", shown] {
            assert!(!text.contains(kept), "{kept}: {text}");
        }
        log_in(&acme, &resumed, "wrong-password").await.assert_status(400);
        let known = log_in(&acme, &resumed, PASSWORD).await;
        assert!(known.assert_status(200).text().contains(shown), "{}", known.text());
        assert!(known.text().contains(ADDRESS) && known.text().contains("80"));
    }
}

#[tokio::test]
async fn links_of_a_purchase_lead_its_buyer_to_the_payment() {
    let context = TestContext::start().await;
    let acme = shop(&context).await;
    let made = made(&acme).await;
    let shopper = register(&acme, link(&made)).await;
    ask(&acme, link(&made), &shopper, "confirm").await.assert_status(200);
    let resumed = mailed(&context).await;
    let inputs = [("amount", "80"), ("wallet", ADDRESS), ("shopper", shopper.as_str())];
    let bought = buy(&acme, link(&made), &inputs).await;
    let to = bought.assert_status(303).header("location");
    for opened in [&resumed, link(&made)] {
        let stranger = page(&acme, opened).await;
        let text = stranger.assert_status(200).text();
        assert!(
            text.contains("value=\"log-in\"") && !text.contains("value=\"register\""),
            "{text}"
        );
        assert!(!text.contains("/pay/") && !text.contains(ADDRESS), "{text}");
        log_in(&acme, opened, "wrong-password").await.assert_status(400);
        let known = log_in(&acme, opened, PASSWORD).await;
        assert_eq!(known.assert_status(303).header("location"), to);
    }
    // Nobody else is led there.
    let bob = acme.user("bob").await;
    let known = [("action", "log-in"), ("email", &*bob.email), ("password", &*bob.password)];
    let other = post(&acme, link(&made), &known).await;
    assert!(!other.assert_status(400).text().contains("/pay/"), "{}", other.text());
}

#[tokio::test]
async fn the_mail_is_in_the_shoppers_language() {
    let context = TestContext::start().await;
    let acme = shop(&context).await;
    let made = made(&acme).await;
    let shopper = register_in(&acme, link(&made), "nl").await;
    let body = format!("action=mail-link&shopper={shopper}&step=details");
    // The account speaks the language in which it was made, whatever the next browser's is.
    let request = acme.anonymous(Method::POST, link(&made)).header("accept-language", "de");
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let asked = request.body(body).send().await;
    assert!(asked.assert_status(200).text().contains("Hij werkt een uur."), "{}", asked.text());
    let mail = outbox::newest(&context, EMAIL).await;
    let url = mailed(&context).await;
    let text = format!(
        "Ga binnen een uur hier verder met je aankoop bij acme:\n{BASE}{url}\n\
         Heb je hier niet om gevraagd? Negeer dan deze mail.\n"
    );
    assert_eq!((mail.text, mail.state.as_str()), (text, "pending"));
    // Operators see that it was sent, and not the link.
    let mails = context.admin(Method::GET, "/admin/v1/mail", json!({})).await;
    let shown = mails.assert_status(200).text();
    assert!(shown.contains("checkout-link") && !shown.contains(&url), "{shown}");
}

#[tokio::test]
async fn a_link_that_is_old_altered_or_of_another_checkout_is_dead() {
    let context = TestContext::start().await;
    let acme = shop(&context).await;
    let (made, other) = (made(&acme).await, made(&acme).await);
    let shopper = register(&acme, link(&made)).await;
    ask(&acme, link(&made), &shopper, "confirm").await.assert_status(200);
    let resumed = mailed(&context).await;
    let sealed = resumed.split_once("&resume=").unwrap().1;
    for dead in [
        format!("{}&resume={sealed}", link(&other)),
        format!("{}&resume={}", link(&made), &sealed[1..]),
        format!("{}&resume=", link(&made)),
        format!("{}&resume={}", link(&made), "A".repeat(5_000)),
    ] {
        let answer = page(&acme, &dead).await;
        let text = answer.assert_status(404).text();
        assert!(text.contains("open it again from the shop"), "{text}");
    }
    page(&acme, &resumed).await.assert_status(200);
    context.clock().advance(TimeDelta::minutes(61));
    page(&acme, &resumed).await.assert_status(404);
    page(&acme, link(&made)).await.assert_status(200);
}

#[tokio::test]
async fn links_are_mailed_to_who_is_signed_in_and_not_without_end() {
    let context = TestContext::start().await;
    let acme = shop(&context).await;
    let made = made(&acme).await;
    for shopper in ["", "AAAA"] {
        let refused = ask(&acme, link(&made), shopper, "details").await;
        sign_in_link(link(&made), &refused);
    }
    let shopper = register(&acme, link(&made)).await;
    for _ in 0..5 {
        ask(&acme, link(&made), &shopper, "details").await.assert_status(200);
    }
    for step in ["details", "confirm"] {
        let refused = ask(&acme, link(&made), &shopper, step).await;
        assert!(refused.assert_status(429).text().contains("enough mail"), "{}", refused.text());
    }
    let count: i64 =
        sqlx::query_scalar("select count(*) from mail_outbox where kind = 'checkout-link'")
            .fetch_one(context.db())
            .await
            .unwrap();
    assert_eq!(count, 5);
}

#[tokio::test]
async fn no_link_is_mailed_beside_an_erasure() {
    let context = TestContext::start().await;
    let acme = shop(&context).await;
    let made = made(&acme).await;
    let shopper = register(&acme, link(&made)).await;
    let mut erasure = context.db().begin().await.unwrap();
    for statement in ["update end_user set deleted_at = now()", "delete from mail_outbox"] {
        sqlx::query(statement).execute(&mut *erasure).await.unwrap();
    }
    let commit = async {
        let mailed = "exists (select from mail_outbox where kind = 'checkout-link')";
        until_stored_or_waiting(&context, mailed).await;
        erasure.commit().await.unwrap();
    };
    futures::join!(ask(&acme, link(&made), &shopper, "details"), commit);
    let mails: i64 = sqlx::query_scalar("select count(*) from mail_outbox")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(mails, 0);
}

#[tokio::test]
async fn a_guest_is_offered_no_link() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let made = made(&acme).await;
    let shown = page(&acme, link(&made)).await;
    assert!(!shown.assert_status(200).text().contains("mail-link"), "{}", shown.text());
    sign_in_link(link(&made), &ask(&acme, link(&made), "", "details").await);
}

#[tokio::test]
async fn a_step_whose_sign_in_is_over_goes_on_after_the_next_one() {
    let context = TestContext::start().await;
    let acme = shop(&context).await;
    let made = made(&acme).await;
    let shopper = register(&acme, link(&made)).await;
    context.clock().advance(TimeDelta::minutes(31));
    let filled = format!("value=\"{ADDRESS}\"");
    for (action, shown) in
        [("quote", "Check and confirm"), ("confirm", "Check and confirm"), ("change", &*filled)]
    {
        let members = [
            ("action", action),
            ("shopper", shopper.as_str()),
            ("amount", "80"),
            ("wallet", ADDRESS),
            ("consent", "yes"),
        ];
        let sent = post(&acme, link(&made), &members).await;
        let resumed = sign_in_link(link(&made), &sent);
        let asked = page(&acme, &resumed).await;
        let text = asked.assert_status(200).text();
        assert!(text.contains("you go on where you were") && !text.contains(ADDRESS), "{text}");
        // Attempts are counted by the minute.
        context.clock().advance(TimeDelta::minutes(1));
        let known = log_in(&acme, &resumed, PASSWORD).await;
        let text = known.assert_status(200).text();
        assert!(text.contains(shown) && text.contains("value=\"80\""), "{action}: {text}");
    }
}

#[tokio::test]
async fn who_was_signed_in_is_no_guest_afterwards() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let made = super::made(&acme, json!({"expireTime": 7200})).await;
    let shopper = signed_in(&acme, link(&made), &ada).await;
    context.clock().advance(TimeDelta::minutes(31));
    let typed = [("amount", "80"), ("wallet", ADDRESS), ("shopper", &*shopper)];
    for action in ["change", "quote", "confirm"] {
        let form = [&typed[..], &[("action", action), ("consent", "yes")]].concat();
        sign_in_link(link(&made), &post(&acme, link(&made), &form).await);
    }
    let form = [&typed[..], &[("action", "quote")]].concat();
    let resumed = sign_in_link(link(&made), &post(&acme, link(&made), &form).await);
    let shopper = signed_in(&acme, &resumed, &ada).await;
    let inputs = [("amount", "80"), ("wallet", ADDRESS), ("shopper", &*shopper)];
    buy(&acme, &resumed, &inputs).await.assert_status(303);
    let guests: i64 = sqlx::query_scalar("select count(*) from buy_order where user_id is null")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(guests, 0);
}

#[tokio::test]
async fn a_sign_in_ends_with_the_sessions_of_the_user() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let made = super::made(&acme, json!({"expireTime": 7200})).await;
    let sign_in = async |password: &str| {
        let form = [("action", "log-in"), ("email", &*ada.email), ("password", password)];
        hidden(post(&acme, link(&made), &form).await.assert_status(200), "shopper")
    };
    let typed = [("amount", "80"), ("wallet", ADDRESS), ("consent", "yes")];
    let shopper = sign_in(&ada.password).await;
    context.clock().advance(TimeDelta::minutes(1));
    let form = [&typed[..], &[("action", "change"), ("shopper", &*shopper)]].concat();
    let again = post(&acme, link(&made), &form).await;
    let sealed_again = hidden(again.assert_status(200), "shopper");
    let change = json!({"password": "another-password", "oldPassword": ada.password});
    ada.patch("/api/v2/user", &change).await.assert_status(200);
    for shopper in [&shopper, &sealed_again] {
        for action in ["quote", "confirm", "mail-link"] {
            let form = [&typed[..], &[("action", action), ("shopper", shopper)]].concat();
            sign_in_link(link(&made), &post(&acme, link(&made), &form).await);
        }
    }
    // Attempts are counted by the minute.
    context.clock().advance(TimeDelta::minutes(1));
    let shopper = sign_in("another-password").await;
    let inputs = [("amount", "80"), ("wallet", ADDRESS), ("shopper", &*shopper)];
    buy(&acme, link(&made), &inputs).await.assert_status(303);
}

#[tokio::test]
async fn a_sign_in_ends_when_the_user_is_disabled() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let made = super::made(&acme, json!({"expireTime": 7200})).await;
    let shopper = signed_in(&acme, link(&made), &ada).await;
    let typed = [("amount", "80"), ("wallet", ADDRESS), ("shopper", &*shopper)];
    sqlx::query("update end_user set disabled_at = now()").execute(context.db()).await.unwrap();
    for action in ["quote", "confirm", "mail-link"] {
        let form = [&typed[..], &[("action", action), ("consent", "yes")]].concat();
        sign_in_link(link(&made), &post(&acme, link(&made), &form).await);
    }
}

#[tokio::test]
async fn a_guest_who_signs_in_keeps_what_was_typed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let made = super::made(&acme, json!({})).await;
    let shown = page(&acme, link(&made)).await;
    assert!(shown.assert_status(200).text().contains("value=\"account\""), "{}", shown.text());
    let typed = [("action", "account"), ("amount", "120.50"), ("wallet", ADDRESS)];
    let resumed = sign_in_link(link(&made), &post(&acme, link(&made), &typed).await);
    let asked = page(&acme, &resumed).await;
    let text = asked.assert_status(200).text();
    assert!(text.contains("value=\"log-in\"") && !text.contains("The shop asks you"), "{text}");
    let log_in = [("action", "log-in"), ("email", &*ada.email), ("password", &*ada.password)];
    let known = post(&acme, &resumed, &log_in).await;
    let text = known.assert_status(200).text();
    for kept in ["value=\"120.50\"", &format!("value=\"{ADDRESS}\""), "name=\"shopper\""] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

#[tokio::test]
async fn who_registers_is_written_to_in_the_language_of_the_page() {
    for (language, region) in [("nl", "nl-nl"), ("pl", "pl-pl")] {
        let context = TestContext::start().await;
        let acme = shop(&context).await;
        let made = made(&acme).await;
        register_in(&acme, link(&made), language).await;
        let stored: Option<String> = sqlx::query_scalar("select region from end_user")
            .fetch_one(context.db())
            .await
            .unwrap();
        assert_eq!(stored.as_deref(), Some(region));
    }
}
