//! A partner's own identifiers: where a user is sent with one, and who gets it.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use futures::future::join_all;
use http::Method;
use rampart_core::users::identifiers;
use rampart_tests::answer::Answer;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

const REGISTER: &str = "/api/v1/user/register-identifier";
const LINK: &str = "/api/v2/user/link-identifier";
const INFO: &str = "/api/v1/user/info";
const IDENTIFIER: &str = "0123456789abcdefABCDEF0123456789wxyz";
const RETURN_URL: &str = "https://shop.example/back?cart=7";
/// Said to the user of another account than the one that has the identifier.
const OTHER_ACCOUNT: &str = "De winkel heeft je hier aan een ander account gekoppeld.";

async fn redirect(partner: &Partner, identifier: &str) -> Value {
    let body = json!({"identifier": identifier, "returnUrl": RETURN_URL});
    partner.post(REGISTER, body).await.assert_status(200).json()["redirectUrl"].clone()
}

/// Path of the page for Dutch users.
async fn page_path(partner: &Partner, identifier: &str) -> String {
    let urls = redirect(partner, identifier).await;
    urls["nl-nl"].as_str().unwrap().strip_prefix("https://pay.example.com").unwrap().to_owned()
}

async fn show(partner: &Partner, path: &str) -> Answer {
    partner.anonymous(Method::GET, path).send().await
}

async fn submit(partner: &Partner, path: &str, form: &str) -> Answer {
    partner.anonymous(Method::POST, path).body(form.to_owned()).send().await
}

/// The user's login, as `User-Authorization` wants it.
async fn bearer(user: &User) -> String {
    format!("Bearer {}", user.log_in().await["token"].as_str().unwrap())
}

/// Links with a new login of the user.
async fn link(user: &User, identifier: &Value) -> Answer {
    link_with(user, &bearer(user).await, identifier).await
}

async fn link_with(user: &User, bearer: &str, identifier: &Value) -> Answer {
    let request = user.partner.request(Method::POST, LINK).header("user-authorization", bearer);
    request.json(&json!({"identifier": identifier})).send().await
}

/// Whom the identifier proves, by e-mail address.
async fn proves(partner: &Partner, identifier: &str) -> Value {
    let request = partner.request(Method::GET, INFO).header("user-identifier", identifier);
    request.send().await.json()["emailAddress"].clone()
}

async fn linked_events(partner: &Partner) -> usize {
    let events = partner.get("/api/v2/events?type=identifier.linked").await.json();
    events.as_array().unwrap().len()
}

#[tokio::test]
async fn an_unknown_identifier_leads_to_registration_and_a_linked_one_to_the_account() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let regions = acme.get("/api/v1/system/info").await.json()["supportedRegions"].clone();
    let urls = redirect(&acme, IDENTIFIER).await;
    let named: BTreeSet<_> = urls.as_object().unwrap().keys().cloned().collect();
    let regions: BTreeSet<_> =
        regions.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect();
    assert_eq!(named, regions);
    for (region, url) in urls.as_object().unwrap() {
        let start = format!("https://pay.example.com/{region}/register/");
        assert!(url.as_str().unwrap().starts_with(&start), "{url}");
        assert!(!url.as_str().unwrap().contains(IDENTIFIER), "{url}");
    }
    link(&acme.user("ada").await, &json!(IDENTIFIER)).await.assert_status(200);
    let known = page_path(&acme, IDENTIFIER).await;
    assert!(known.starts_with("/nl-nl/dashboard/"), "{known}");
    // Another client's link is as unlinked as none.
    let foreign = page_path(&context.partner("rival").await, IDENTIFIER).await;
    assert!(foreign.starts_with("/nl-nl/register/"), "{foreign}");
}

#[tokio::test]
async fn what_is_no_identifier_or_no_way_back_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (body, codes) in [
        (json!({}), &["ER047", "ER053"][..]),
        (json!({"identifier": null, "returnUrl": null}), &["ER047", "ER053"]),
        (json!({"identifier": "", "returnUrl": RETURN_URL}), &["ER053"]),
        (json!({"identifier": "short", "returnUrl": "back"}), &["ER047", "ER102"]),
        (json!({"identifier": 7, "returnUrl": "javascript:alert(1)"}), &["ER047", "ER102"]),
        (json!({"identifier": "a".repeat(256), "returnUrl": RETURN_URL}), &["ER102"]),
    ] {
        acme.post(REGISTER, body).await.assert_status(400).assert_codes(codes);
    }
}

#[tokio::test]
async fn a_user_registers_on_the_page_and_is_linked() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = page_path(&acme, IDENTIFIER).await;
    let page = show(&acme, &path).await;
    page.assert_status(200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("form-action 'self' https://shop.example"), "{policy}");
    let wrong = "action=register&email=ada&password=short&country=XQ1";
    let complaint = submit(&acme, &path, wrong).await;
    complaint.assert_status(400);
    assert!(complaint.text().contains("role=\"alert\"") && complaint.text().contains("8 tot 64"));
    let form = "action=register&email=ada%40mail.example.com&password=password-of-ada&country=nl\
                &privacy=yes";
    let left = submit(&acme, &path, form).await;
    assert_eq!(left.assert_status(303).header("location"), Some(RETURN_URL));
    assert_eq!(proves(&acme, IDENTIFIER).await, "ada@mail.example.com");
    let request = acme.request(Method::GET, INFO).header("user-identifier", IDENTIFIER);
    let profile = request.send().await.json();
    assert_eq!((&profile["country"], &profile["region"]), (&json!("NL"), &json!("nl-nl")));
    assert_eq!(linked_events(&acme).await, 1);
    // Once more: the address is somebody's now.
    submit(&acme, &path, form).await.assert_status(400);
    assert_eq!(linked_events(&acme).await, 1);
}

#[tokio::test]
async fn who_lives_in_a_country_that_is_not_served_is_told_so() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let served = json!({"allowedCountries": ["NL"]});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", served).await.assert_status(200);
    let path = page_path(&acme, IDENTIFIER).await;
    let form = "action=register&email=eve%40mail.example.com&password=password-of-eve&country=us\
                &privacy=yes";
    let refused = submit(&acme, &path, form).await;
    let text = refused.assert_status(400).text();
    for part in ["href=\"#field-register-country\"", "niet beschikbaar in dit land"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn a_user_registers_on_a_page_in_a_language_of_no_supported_region() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = page_path(&acme, IDENTIFIER).await.replace("/nl-nl/", "/it-it/");
    let page = show(&acme, &path).await;
    assert!(page.assert_status(200).text().contains("<html lang=\"it\""), "{}", page.text());
    let form = "action=register&email=ada%40mail.example.com&password=password-of-ada&country=nl\
                &privacy=yes";
    submit(&acme, &path, form).await.assert_status(303);
    let stored: Option<String> =
        sqlx::query_scalar("select region from end_user").fetch_one(context.db()).await.unwrap();
    assert_eq!(stored.as_deref(), Some("it-it"));
    let request = acme.request(Method::GET, INFO).header("user-identifier", IDENTIFIER);
    assert_eq!(request.send().await.json()["region"], Value::Null);
}

#[tokio::test]
async fn a_user_signs_in_on_the_page_and_is_linked_once() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    acme.user("ada").await;
    let before = linked_events(&acme).await;
    let path = page_path(&acme, IDENTIFIER).await;
    submit(&acme, &path, "email=ada%40mail.example.com&password=wrong-one")
        .await
        .assert_status(400);
    assert_eq!(proves(&acme, IDENTIFIER).await, Value::Null);
    let form = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";
    for _ in 0..2 {
        submit(&acme, &path, form).await.assert_status(303);
    }
    assert_eq!(proves(&acme, IDENTIFIER).await, "ada@mail.example.com");
    assert_eq!(linked_events(&acme).await, before + 1);
    acme.user("bob").await;
    let taken = "email=bob%40mail.example.com&password=password-of-bob";
    let refused = submit(&acme, &path, taken).await;
    assert!(refused.assert_status(400).text().contains(OTHER_ACCOUNT), "{}", refused.text());
    assert_eq!(proves(&acme, IDENTIFIER).await, "ada@mail.example.com");
}

#[tokio::test]
async fn the_account_is_shown_to_its_own_user_alone() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    acme.user("bob").await;
    let path = page_path(&acme, &ada.identifier).await;
    let asked = show(&acme, &path).await;
    assert!(!asked.assert_status(200).text().contains("ada@mail"), "{}", asked.text());
    let bob = submit(&acme, &path, "email=bob%40mail.example.com&password=password-of-bob").await;
    // The form keeps the address that was typed, and shows nothing of the account.
    assert!(!bob.assert_status(400).text().contains("ada@mail"), "{}", bob.text());
    assert!(bob.text().contains(OTHER_ACCOUNT), "{}", bob.text());
    let form = "email=ada%40mail.example.com&password=password-of-ada";
    let quote =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let quote = ada.post("/api/v1/buy/quote", &quote).await.assert_status(200).json();
    let wallet = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq";
    let confirm =
        json!({"quote": quote["quote"], "walletAddress": wallet, "returnUrl": RETURN_URL});
    let order = ada.post("/api/v1/buy/confirm", &confirm).await.assert_status(200).json();
    let shown = submit(&acme, &path, form).await;
    let text = shown.assert_status(200).text();
    let page = order["paymentUrl"].as_str().unwrap();
    assert!(text.contains(&format!("<a href=\"{page}\">{}</a>", order["orderId"])), "{text}");
    assert!(text.contains("ada@mail.example.com") && text.contains("niveau brons"), "{text}");
    assert!(text.contains(&format!("href=\"{RETURN_URL}\"")), "{text}");
    assert_eq!(shown.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn tries_on_a_page_are_counted_like_those_of_a_login() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = page_path(&acme, IDENTIFIER).await;
    let form = "email=ada%40mail.example.com&password=password-of-eve";
    for _ in 0..5 {
        submit(&acme, &path, form).await.assert_status(400);
    }
    let limited = submit(&acme, &path, form).await;
    assert!(limited.assert_status(429).header("retry-after").is_some());
    let register = format!("{form}&action=register&country=nl&privacy=yes");
    submit(&acme, &path, &register).await.assert_status(429);
}

#[tokio::test]
async fn a_link_that_is_altered_old_or_of_a_suspended_partner_leads_nowhere() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = page_path(&acme, IDENTIFIER).await;
    let (start, session) = path.rsplit_once('/').unwrap();
    for at in [0, 8, 31, 32, 40, session.len() / 2, session.len() - 2] {
        let mut altered = session.to_owned().into_bytes();
        altered[at] = if altered[at] == b'7' { b'8' } else { b'7' };
        let altered = format!("{start}/{}", String::from_utf8(altered).unwrap());
        show(&acme, &altered).await.assert_status(404);
        submit(&acme, &altered, "action=register").await.assert_status(404);
    }
    for other in [format!("/xx-xx/register/{session}"), format!("{start}/"), format!("{start}/é")]
    {
        show(&acme, &other).await.assert_status(404);
    }
    context.clock().advance(TimeDelta::hours(23));
    show(&acme, &path).await.assert_status(200);
    context.clock().advance(TimeDelta::hours(1));
    show(&acme, &path).await.assert_status(404);
    let path = page_path(&acme, IDENTIFIER).await;
    let suspended = json!({"status": "suspended"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", suspended).await.assert_status(200);
    show(&acme, &path).await.assert_status(404);
}

#[tokio::test]
async fn linking_makes_the_identifier_prove_the_user() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ada, eve) = (acme.user("ada").await, rival.user("eve").await);
    let before = linked_events(&acme).await;
    assert_eq!(link(&ada, &json!(IDENTIFIER)).await.assert_status(200).text(), "{}");
    link(&ada, &json!(IDENTIFIER)).await.assert_status(200);
    assert_eq!(proves(&acme, IDENTIFIER).await, "ada@mail.example.com");
    assert_eq!(linked_events(&acme).await, before + 1);
    let other = rival.request(Method::GET, INFO).header("user-identifier", IDENTIFIER);
    other.send().await.assert_status(400).assert_codes(&["ER705"]);
    // The other client may give the same name to a user of its own.
    link(&eve, &json!(IDENTIFIER)).await.assert_status(200);
    assert_eq!(proves(&rival, IDENTIFIER).await, "eve@mail.example.com");
    link(&acme.user("bob").await, &json!(IDENTIFIER)).await.assert_codes(&["ER706"]);
}

#[tokio::test]
async fn a_sealed_identifier_is_linked_as_received() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ada, eve) = (acme.user("ada").await, rival.user("eve").await);
    let body = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard",
        "identifier": IDENTIFIER});
    let checkout = acme.post("/api/v2/buy/checkout", body).await.assert_status(200).json();
    let url = checkout["checkoutUrl"].as_str().unwrap();
    let sealed = url.split_once("?identifier=").unwrap().1.to_owned();
    link(&eve, &json!(sealed)).await.assert_status(400).assert_codes(&["ER707"]);
    link(&ada, &json!(format!("{sealed}A"))).await.assert_codes(&["ER707"]);
    link(&ada, &json!(sealed)).await.assert_status(200);
    assert_eq!(proves(&acme, IDENTIFIER).await, "ada@mail.example.com");
    // The longest raw one, sealed, is still read.
    let longest = "z".repeat(255);
    let client = acme.id.parse().unwrap();
    let sealed = identifiers::seal(context.core(), client, &longest.parse().unwrap()).unwrap();
    link(&ada, &json!(sealed)).await.assert_status(200);
    assert_eq!(proves(&acme, &longest).await, "ada@mail.example.com");
}

#[tokio::test]
async fn what_cannot_be_linked_says_why() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let login = bearer(&ada).await;
    for (identifier, code) in [
        (json!(null), "ER053"),
        (json!(""), "ER053"),
        (json!(7), "ER102"),
        (json!("a".repeat(35)), "ER102"),
        (json!("a".repeat(256)), "ER102"),
        (json!("too-short"), "ER102"),
        (json!("s1.".repeat(400)), "ER102"),
        (json!("0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c"), "ER707"),
        (json!("é".repeat(36)), "ER707"),
    ] {
        let refused = link_with(&ada, &login, &identifier).await;
        refused.assert_status(400).assert_codes(&[code]);
        let solution = refused.json()["errors"][code]["solution"].to_string();
        assert!(code == "ER053" || solution.contains("a UUID with dashes is not alphanumeric"));
    }
    link_with(&ada, &login, &json!("a".repeat(255))).await.assert_status(200);
    acme.post(LINK, json!({"identifier": IDENTIFIER})).await.assert_codes(&["ER700"]);
    // An identifier is no login, linked or not.
    ada.post(LINK, &json!({"identifier": IDENTIFIER})).await.assert_codes(&["ER700"]);
    let unlinked = acme.request(Method::POST, LINK).header("user-identifier", IDENTIFIER);
    let refused = unlinked.json(&json!({"identifier": IDENTIFIER})).send().await;
    assert!(refused.assert_codes(&["ER700"]).text().contains("an identifier is no login"));
    let bob = acme.user("bob").await;
    let both = ada.request(Method::POST, LINK).header("user-authorization", &bearer(&bob).await);
    both.json(&json!({"identifier": IDENTIFIER})).send().await.assert_codes(&["ER703"]);
}

#[tokio::test]
async fn of_many_users_who_race_for_an_identifier_one_gets_it() {
    let context = TestContext::start().await;
    let second = context.second_edge().await;
    let acme = context.partner("acme").await;
    second.core().refresh().await.unwrap();
    let mut users = Vec::new();
    for name in ["ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal"] {
        users.push(acme.user(name).await);
    }
    let before = linked_events(&acme).await;
    let tries = users.iter().enumerate().map(async |(n, user)| {
        let partner = if n % 2 == 0 { acme.clone() } else { acme.at(&second) };
        let user = User { partner, ..user.clone() };
        link(&user, &json!(IDENTIFIER)).await
    });
    let answers = join_all(tries).await;
    let winners: Vec<_> =
        (0..users.len()).filter(|n| answers[*n].status() == 200).map(|n| &users[n]).collect();
    assert_eq!(winners.len(), 1);
    for answer in answers.iter().filter(|answer| answer.status() != 200) {
        answer.assert_status(400).assert_codes(&["ER706"]);
    }
    assert_eq!(proves(&acme, IDENTIFIER).await, winners[0].email);
    assert_eq!(linked_events(&acme).await, before + 1);
}

#[tokio::test]
async fn two_credentials_that_are_wrong_are_told_together() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let asked = async |identifier: &str| {
        let request = acme.request(Method::GET, INFO).header("user-authorization", "Bearer none");
        request.header("user-identifier", identifier).send().await
    };
    asked("short").await.assert_codes(&["ER702", "ER707"]);
    asked(IDENTIFIER).await.assert_codes(&["ER702", "ER705"]);
}
