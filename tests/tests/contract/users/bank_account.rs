//! The secured page on which a user states a bank account, and the account page that leads there.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

use super::{Visit, until_stored_or_waiting};

/// Path and query of the page for a new login token.
async fn link(user: &User) -> (String, Value) {
    let info = user.partner.get("/api/v1/system/info").await.json();
    let url = info["privateUrls"]["verifyBankAccount"]["nl-nl"].as_str().unwrap().to_owned();
    let login = user.get("/api/v1/user/login-token").await.assert_status(200).json();
    let path = url.strip_prefix("https://pay.example.com").unwrap();
    let (token, uuid) = (login["token"].as_str().unwrap(), login["uuid"].as_str().unwrap());
    (format!("{path}?token={token}&uuid={uuid}"), login["token"].clone())
}

async fn submit(user: &User, link: &str, token: &str, iban: &str) -> Answer {
    let form = format!("token={token}&iban={iban}&holder=Ada+Lovelace");
    user.partner.anonymous(Method::POST, link).body(form).send().await
}

async fn show(user: &User, link: &str) -> u16 {
    user.partner.anonymous(Method::GET, link).send().await.status()
}

/// The token of the form on the page that the link opens, and the cookie of the visit that it begins.
async fn open(user: &User, link: &str) -> (String, String) {
    let page = user.partner.anonymous(Method::GET, link).send().await;
    let (_, rest) = page.assert_status(200).text().split_once("name=\"token\" value=\"").unwrap();
    (rest.split('"').next().unwrap().to_owned(), visit_cookie(&page))
}

/// The cookie of a visit as the browser sends it.
fn visit_cookie(page: &Answer) -> String {
    let line = page.header("set-cookie").unwrap();
    assert!(line.contains("; HttpOnly; SameSite=Lax; Secure"), "{line}");
    line.split(';').next().unwrap().to_owned()
}

async fn reload(user: &User, link: &str, cookie: &str) -> Answer {
    user.partner.anonymous(Method::GET, link).header("cookie", cookie).send().await
}

#[tokio::test]
async fn a_login_token_opens_the_page_once_and_its_form_adds_one_account() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let (link, spent) = link(&ada).await;
    let (token, cookie) = open(&ada, &link).await;
    assert_eq!(show(&ada, &link).await, 404);
    let spent = spent.as_str().unwrap();
    submit(&ada, &link, spent, "NL20INGB0001234567").await.assert_status(404);
    let added = submit(&ada, &link, &token, "NL91+ABNA+0417+1643+00").await;
    assert!(added.assert_status(200).text().contains("4300, wacht op onze controle"));
    let accounts = ada.get("/api/v1/user/info").await.json()["enabledIbanAccounts"].clone();
    let account = json!([{"number": "NL91ABNA0417164300", "holder": "Ada Lovelace",
        "verified": false}]);
    assert_eq!(accounts, account);
    submit(&ada, &link, &token, "NL20INGB0001234567").await.assert_status(404);
    // The browser that has opened the page may reload it, and send the form that it gets then.
    let again = reload(&ada, &link, &cookie).await;
    // A form's token is good once: the script sends one of two clicks.
    assert!(again.assert_status(200).text().contains("lastSubmit"), "{}", again.text());
    let policy = again.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'sha256-"), "{policy}");
    assert_eq!(again.header("set-cookie"), None);
    context.clock().advance(TimeDelta::seconds(301));
    reload(&ada, &link, &cookie).await.assert_status(404);
}

#[tokio::test]
async fn a_login_token_opens_the_savings_plans_once() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let (link, _) = link(&ada).await;
    let plans = link.replace("/verify-bank-account?", "/dca?");
    // It asks for no page.
    ada.partner.anonymous(Method::HEAD, &plans).send().await.assert_status(404);
    let page = ada.partner.anonymous(Method::GET, &plans).send().await;
    let cookie = visit_cookie(page.assert_status(200));
    assert_eq!((show(&ada, &plans).await, show(&ada, &link).await), (404, 404));
    reload(&ada, &plans, &cookie).await.assert_status(200);
}

#[tokio::test]
async fn one_of_two_simultaneous_visits_gets_the_login_token() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let (link, _) = link(&ada).await;
    let (one, two) = tokio::join!(show(&ada, &link), show(&ada, &link));
    let mut statuses = [one, two];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 404]);
}

#[tokio::test]
async fn a_login_token_waits_for_what_ends_it() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let (link, _) = link(&ada).await;
    let mut log_out = context.db().begin().await.unwrap();
    let end = "update end_user set tokens_valid_from = now()";
    sqlx::query(end).execute(&mut *log_out).await.unwrap();
    let end = async {
        until_stored_or_waiting(&context, "select count(*) > 1 from one_time_token").await;
        let void = "update one_time_token set used_at = now() where used_at is null";
        sqlx::query(void).execute(&mut *log_out).await.unwrap();
        log_out.commit().await.unwrap();
    };
    assert_eq!(futures::join!(show(&ada, &link), end).0, 404);
}

#[tokio::test]
async fn a_visit_gets_no_form_while_it_is_ended() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let (link, _) = link(&ada).await;
    let (_, cookie) = open(&ada, &link).await;
    let mut log_out = context.db().begin().await.unwrap();
    let end = "update end_user set tokens_valid_from = now()";
    sqlx::query(end).execute(&mut *log_out).await.unwrap();
    let end = async {
        // The tokens of the link, of the visit and of the first form.
        until_stored_or_waiting(&context, "select count(*) > 3 from one_time_token").await;
        let void = "update one_time_token set used_at = now() where used_at is null";
        sqlx::query(void).execute(&mut *log_out).await.unwrap();
        log_out.commit().await.unwrap();
    };
    futures::join!(reload(&ada, &link, &cookie), end).0.assert_status(404);
}

#[tokio::test]
async fn a_visit_opens_the_pages_of_its_user_alone_until_it_is_ended() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ada, bob, eve) = (acme.user("ada").await, acme.user("bob").await, rival.user("eve").await);
    let (hers, _) = link(&ada).await;
    let (form, cookie) = open(&ada, &hers).await;
    reload(&ada, &hers, &cookie).await.assert_status(200);
    for other in [&bob, &eve] {
        let (link, _) = link(other).await;
        open(other, &link).await;
        reload(other, &link, &cookie).await.assert_status(404);
    }
    let (address, _) = hers.split_once('?').unwrap();
    let alone = reload(&ada, address, &cookie).await;
    assert!(!alone.assert_status(200).text().contains("<form"), "{}", alone.text());
    let session = ada.log_in().await;
    let bearer = format!("Bearer {}", session["token"].as_str().unwrap());
    let out = ada.partner.request(Method::POST, "/api/v1/user/logout");
    out.header("user-authorization", &bearer).send().await.assert_status(200);
    reload(&ada, &hers, &cookie).await.assert_status(404);
    submit(&ada, &hers, &form, "NL91ABNA0417164300").await.assert_status(404);
}

#[tokio::test]
async fn the_tokens_of_a_visit_and_of_its_form_are_no_login_tokens() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let (hers, _) = link(&ada).await;
    let (form, cookie) = open(&ada, &hers).await;
    let (name, visit) = cookie.split_once('=').unwrap();
    let (page, _) = hers.split_once("?token=").unwrap();
    let (_, uuid) = hers.split_once("&uuid=").unwrap();
    for token in [visit, &form] {
        assert_eq!(show(&ada, &format!("{page}?token={token}&uuid={uuid}")).await, 404);
        let offer = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
            "paymentMethod": "creditCard", "loginToken": token});
        ada.partner.post("/api/v2/buy/offer", offer).await.assert_codes(&["ER333"]);
    }
    // Nor is a login token one of them, nor either the other.
    let (next, login) = link(&ada).await;
    let login = login.as_str().unwrap();
    for wrong in [login, &form] {
        reload(&ada, &hers, &format!("{name}={wrong}")).await.assert_status(404);
    }
    for wrong in [login, visit] {
        submit(&ada, &hers, wrong, "NL91ABNA0417164300").await.assert_status(404);
    }
    // None was spent.
    reload(&ada, &hers, &cookie).await.assert_status(200);
    submit(&ada, &hers, &form, "NL91ABNA0417164300").await.assert_status(200);
    open(&ada, &next).await;
}

#[tokio::test]
async fn a_visit_that_the_database_does_not_let_begin_leaves_the_login_token() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let run = async |sql: &'static str| {
        sqlx::query(sql).execute(context.db()).await.unwrap();
    };
    let mended = "alter table one_time_token drop constraint broken";
    for (page, broken, mended) in [
        (
            "verify-bank-account",
            "alter table one_time_token add constraint broken check (purpose <> 'visit') not valid",
            mended,
        ),
        (
            "verify-bank-account",
            "alter table one_time_token add constraint broken check (purpose <> 'form') not valid",
            mended,
        ),
        ("dca", "alter table dca_plan rename to away", "alter table away rename to dca_plan"),
    ] {
        let (link, _) = link(&ada).await;
        let link = link.replace("/verify-bank-account?", &format!("/{page}?"));
        run(broken).await;
        assert_eq!(show(&ada, &link).await, 500, "{broken}");
        run(mended).await;
        assert_eq!(show(&ada, &link).await, 200, "{broken}");
    }
}

#[tokio::test]
async fn the_page_of_an_account_leads_there() {
    let visit = Visit::start().await;
    let account = async || {
        visit.later(60);
        let form = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";
        visit.submit(form).await.assert_status(200).text().to_owned()
    };
    let page = account().await;
    let led = visit.act(&page, "bank-add").await;
    let link = led.assert_status(303).header("location").unwrap();
    assert!(link.starts_with("/nl-nl/account/verify-bank-account?token="), "{link}");
    let (token, _) = open(&visit.user, link).await;
    submit(&visit.user, link, &token, "NL91ABNA0417164300").await.assert_status(200);
    assert!(account().await.contains("4300, wacht op onze controle"));
}

#[tokio::test]
async fn a_card_is_verified_on_the_page_of_the_account() {
    let visit = Visit::start().await;
    let card = json!({"sessionIdentifier": "session-1", "cardHolderName": "Ada Lovelace",
        "currencyCode": "EUR"});
    let added = visit.user.post("/api/v2/user/accounts/cards/processor", &card).await;
    let card = added.assert_status(200).json()["accountIdentifier"].clone();
    visit.later(60);
    let form = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";
    let page = visit.submit(form).await.assert_status(200).text().to_owned();
    assert!(page.contains("Kaart verifiëren"), "{page}");
    let unknown = visit.act(&page, "card&card=411111******0000").await;
    let page = unknown.assert_status(200).text().to_owned();
    assert!(page.contains("Kaart verifiëren"), "{page}");
    let verified = visit.act(&page, &format!("card&card={}", card.as_str().unwrap())).await;
    let page = verified.assert_status(200).text();
    assert!(!page.contains("Kaart verifiëren"), "{page}");
    let cards = "select verified_at is not null from payment_account";
    let is_verified: bool = sqlx::query_scalar(cards).fetch_one(visit.context.db()).await.unwrap();
    assert!(is_verified);
}

#[tokio::test]
async fn a_form_that_is_sent_twice_keeps_what_was_typed_and_leads_back() {
    let visit = Visit::start().await;
    let form = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";
    let page = visit.submit(form).await.assert_status(200).text().to_owned();
    let led = visit.act(&page, "bank-add").await;
    let link = led.assert_status(303).header("location").unwrap();
    let (token, cookie) = open(&visit.user, link).await;
    let back = format!("href=\"{}\"", visit.path.replace("/register/", "/dashboard/"));
    let plans = link.replace("/verify-bank-account?", "/dca?");
    for path in [link, plans.as_str()] {
        let shown = reload(&visit.user, path, &cookie).await;
        assert!(shown.assert_status(200).text().contains(&back), "{back}: {}", shown.text());
    }
    let added = submit(&visit.user, link, &token, "NL91ABNA0417164300").await;
    assert!(added.assert_status(200).text().contains(&back), "{back}: {}", added.text());
    let again = submit(&visit.user, link, &token, "NL91ABNA0417164300").await;
    let text = again.assert_status(404).text();
    for part in
        ["twee keer op de knop", "value=\"NL91ABNA0417164300\"", "value=\"Ada Lovelace\"", &back]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let dead = visit.partner.anonymous(Method::GET, link).send().await;
    assert!(dead.assert_status(404).text().contains(&back), "{back}: {}", dead.text());
    let forged = link.replace("&back=", "&back=A");
    let forged = visit.partner.anonymous(Method::GET, &forged).send().await;
    assert!(!forged.assert_status(404).text().contains("/dashboard/"), "{}", forged.text());
}

#[tokio::test]
async fn what_is_no_live_token_of_that_user_opens_nothing() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (ada, bob) = (acme.user("ada").await, acme.user("bob").await);
    let (hers, token) = link(&ada).await;
    let (his, _) = link(&bob).await;
    let (page, _) = hers.split_once('?').unwrap();
    let (_, his_uuid) = his.split_once("&uuid=").unwrap();
    let token_text = token.as_str().unwrap();
    for wrong in [
        format!("{page}?token={token_text}"),
        format!("{page}?token={token_text}A&uuid=0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c"),
        hers.replace("/nl-nl/", "/xx-xx/"),
    ] {
        assert_eq!(show(&ada, &wrong).await, 404, "{wrong}");
    }
    let mixed = format!("{page}?token={token_text}&uuid={his_uuid}");
    let (other, _) = link(&ada).await;
    let (form, _) = open(&ada, &other).await;
    submit(&ada, &mixed, &form, "NL91ABNA0417164300").await.assert_status(404);
    assert_eq!(show(&ada, &mixed).await, 404);
    // The token is as it was.
    let (token, _) = open(&ada, &hers).await;
    context.clock().advance(TimeDelta::seconds(301));
    assert_eq!(show(&ada, &hers).await, 404);
    let late = submit(&ada, &hers, &token, "NL91ABNA0417164300").await;
    let text = late.assert_status(404).text();
    assert!(text.contains("stond te lang open") && text.contains("vanuit de winkel"), "{text}");
    assert!(text.contains("value=\"NL91ABNA0417164300\""), "it is kept: {text}");
    assert_eq!(ada.get("/api/v1/user/info").await.json()["enabledIbanAccounts"], json!([]));
}
