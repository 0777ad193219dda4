//! Requirements of the verification that are open, on the page of an account, and the pages that they
//! lead to.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::passkey::challenge;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

use super::{Visit, mailed_code, page_path, submit};

const EMAIL: &str = "eve@mail.example.com";
const SIGN_IN: &str = "action=log-in&email=eve%40mail.example.com&password=password-of-eve";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n of a letter";

/// A user of whom nothing but the address and the country is known, at the page of the account.
async fn newcomer() -> Visit {
    let context = TestContext::start().await;
    let partner = context.partner("acme").await;
    let (identifier, password) = ("e".repeat(36), "password-of-eve".to_owned());
    let body = json!({"email": EMAIL, "country": "NL", "identifier": identifier,
        "password": password});
    partner.post("/api/v2/user", body).await.assert_status(200);
    let user = User { partner: partner.clone(), identifier, email: EMAIL.to_owned(), password };
    let id = user.log_in().await["uuid"].as_str().unwrap().to_owned();
    let path = page_path(&partner, &user.identifier).await;
    Visit { context, partner, user, id, path }
}

/// The account's page after a sign-in.
async fn account(visit: &Visit) -> String {
    visit.later(60);
    visit.submit(SIGN_IN).await.assert_status(200).text().to_owned()
}

/// The paths of the pages that the account's page leads to, by their names.
fn links(page: &str) -> BTreeMap<String, String> {
    let paths = page.split("href=\"https://pay.example.com/checks/").skip(1);
    let paths = paths.map(|rest| format!("/checks/{}", rest.split('"').next().unwrap()));
    let name = |path: &str| {
        let path = path.split('?').next().unwrap();
        path.rsplit('/').next().unwrap().to_owned()
    };
    paths.map(|path| (name(&path), path)).collect()
}

async fn open(visit: &Visit, path: &str) -> Answer {
    visit.partner.anonymous(Method::GET, path).send().await
}

/// The page that an answer leads to, or the answer itself.
async fn shown(visit: &Visit, answer: Answer) -> Answer {
    match answer.header("location") {
        Some(path) => {
            answer.assert_status(303);
            open(visit, path).await
        }
        None => answer,
    }
}

/// Sends the page's form; what is shown afterwards.
async fn send(visit: &Visit, path: &str, form: &str) -> Answer {
    shown(visit, submit(&visit.partner, path, form).await).await
}

/// Sends the page's form with a file.
async fn upload(visit: &Visit, path: &str, name: &str, content: &[u8]) -> Answer {
    let head = format!(
        "--b1\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a.png\"\r\n\r\n"
    );
    let body = [head.as_bytes(), content, b"\r\n--b1--\r\n"].concat();
    let request = visit.partner.anonymous(Method::POST, path);
    let request = request.header("content-type", "multipart/form-data; boundary=b1");
    shown(visit, request.body(body).send().await).await
}

/// The status of an item of the verification status; null if it is not open.
async fn status(visit: &Visit, name: &str) -> Value {
    let items = visit.user.get("/api/v2/user/verification-status").await;
    let items = items.assert_status(200).json();
    let item = items.as_array().unwrap().iter().find(|item| item["name"] == name);
    item.map_or(Value::Null, |item| item["status"].clone())
}

#[tokio::test]
async fn what_the_page_leads_to_ends_with_its_visit() {
    let visit = newcomer().await;
    let page = account(&visit).await;
    let (_, path) = links(&page).pop_first().unwrap();
    open(&visit, &path).await.assert_status(200);
    visit.act(&page, "visit-end").await.assert_status(200);
    open(&visit, &path).await.assert_status(404);
}

#[tokio::test]
async fn nothing_is_taken_by_a_page_whose_visit_is_ended_meanwhile() {
    let visit = newcomer().await;
    let person = "firstName=Eve&lastName=Holt&dateOfBirth=1990-02-03";
    let forms = [
        ("person", Some(person)),
        ("nationality", Some("nationality=NL")),
        ("email-code", Some("action=mail")),
        // The page itself begins the check.
        ("identity", None),
    ];
    for (name, form) in forms {
        let page = links(&account(&visit).await).remove(name).unwrap();
        let hold = "update end_user set newsletter = true";
        let end = "update one_time_token set used_at = now() where used_at is null";
        let request = async {
            match form {
                Some(form) => submit(&visit.partner, &page, form).await,
                None => open(&visit, &page).await,
            }
        };
        let refused = visit.ended_beside(hold, end, request).await;
        assert_eq!(refused.status(), 404, "{name}");
    }
    assert_eq!(status(&visit, "firstName").await, "missing");
    assert_eq!(status(&visit, "nationality").await, "missing");
}

#[tokio::test]
async fn every_item_of_the_verification_has_a_page_without_an_order() {
    let visit = newcomer().await;
    let links = links(&account(&visit).await);
    let names = [
        "address",
        "amld5",
        "email-code",
        "identity",
        "nationality",
        "person",
        "proof-of-address",
        "registration",
    ];
    assert_eq!(links.keys().collect::<Vec<_>>(), names);
    let mut titles = BTreeSet::new();
    for (name, path) in &links {
        let page = open(&visit, path).await;
        let text = page.assert_status(200).text();
        assert!(text.contains("<form method=\"post\""), "{name}: {text}");
        assert!(text.contains("<h1>Je verificatie</h1>"), "{name}: {text}");
        let title = text.split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
        assert!(title.ends_with(" · Je verificatie"), "{name}: {title}");
        assert!(titles.insert(title.to_owned()), "{name}: {title} is another page's");
        let back = format!("href=\"{}\"", visit.path);
        assert!(text.contains(&back), "{name}: {text}");
        // An account or a wallet is an order's.
        for other in ["wallet", "account", "screening"] {
            let path = path.replace(&format!("/{name}?"), &format!("/{other}?"));
            open(&visit, &path).await.assert_status(404);
        }
        open(&visit, &path.replace("/checks/", "/checks/A")).await.assert_status(404);
    }
    // The token of an order opens the same pages.
    let order = visit.user.buy(30).await.assert_status(200).json();
    let path = format!("/api/v1/user/buy/orders/{}", order["orderId"]);
    let reasons = visit.user.get(&path).await.json()["orderNotCompletedReasons"].take();
    let url = reasons[0]["url"].as_str().unwrap();
    let path = url.strip_prefix("https://pay.example.com").unwrap();
    let (path, _) = path.rsplit_once('/').unwrap();
    for name in names {
        let page = open(&visit, &format!("{path}/{name}")).await;
        assert!(page.assert_status(200).text().contains("<form method=\"post\""), "{name}");
    }
}

#[tokio::test]
async fn the_address_is_confirmed_by_the_code_that_was_mailed() {
    let visit = newcomer().await;
    let page = links(&account(&visit).await).remove("email-code").unwrap();
    let first = mailed_code(&visit.context, EMAIL).await;
    let wrong = send(&visit, &page, "code=111").await;
    let text = wrong.assert_status(400).text();
    for part in ["href=\"#field-code\"", "class=\"field-error\"", "value=\"111\""] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let mailed = submit(&visit.partner, &page, "action=mail").await;
    let mailed = mailed.assert_status(303).header("location").unwrap();
    let code = mailed_code(&visit.context, EMAIL).await;
    assert_ne!(code, first);
    // A reload mails nothing.
    for _ in 0..2 {
        let shown = open(&visit, mailed).await;
        let text = shown.assert_status(200).text();
        assert!(text.contains("Er is een code onderweg."), "{text}");
        assert_eq!(mailed_code(&visit.context, EMAIL).await, code);
    }
    send(&visit, &page, &format!("code={first}")).await.assert_status(400);
    assert_eq!(status(&visit, "emailCode").await, "missing");
    let done = send(&visit, &page, &format!("action=confirm&code={code}")).await;
    let text = done.assert_status(200).text();
    assert!(text.contains("deze stap is klaar") && text.contains("/checks/"), "{text}");
    assert_eq!(status(&visit, "emailCode").await, Value::Null);
    assert!(!links(&account(&visit).await).contains_key("email-code"));
}

#[tokio::test]
async fn names_birth_date_and_nationality_are_given_once() {
    let visit = newcomer().await;
    let pages = links(&account(&visit).await);
    let (person, nationality) = (&pages["person"], &pages["nationality"]);
    let typed = "firstName=Eve&lastName=%3Cb%3E&dateOfBirth=2020-01-01";
    let refused = send(&visit, person, typed).await;
    let text = refused.assert_status(400).text();
    for part in ["href=\"#field-lastName\"", "href=\"#field-dateOfBirth\"", "value=\"Eve\""] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("href=\"#field-firstName\""), "{text}");
    assert_eq!(status(&visit, "firstName").await, "missing");
    let typed = "firstName=Eve&lastName=Holt&dateOfBirth=1990-02-03";
    send(&visit, person, typed).await.assert_status(200);
    let again = "firstName=Mallory&lastName=Holt&dateOfBirth=1990-02-03";
    send(&visit, person, again).await.assert_status(200);
    let profile = visit.user.get("/api/v1/user/info").await.json();
    assert_eq!((&profile["firstName"], &profile["lastName"]), (&json!("Eve"), &json!("Holt")));
    let shown = open(&visit, person).await;
    assert!(!shown.assert_status(200).text().contains("Holt"), "{}", shown.text());
    let asked = open(&visit, nationality).await;
    // Without a script the names are those of the catalogue, in English.
    let form = "<form method=\"post\" data-regions>";
    for part in [form, "<option value=\"DE\">Germany", "new Intl.DisplayNames("] {
        assert!(asked.assert_status(200).text().contains(part), "{part} in {}", asked.text());
    }
    for wrong in ["", "nationality=", "nationality=XX"] {
        let refused = send(&visit, nationality, wrong).await;
        assert!(refused.assert_status(400).text().contains("href=\"#field-nationality\""));
    }
    send(&visit, nationality, "nationality=NL").await.assert_status(200);
    let open = links(&account(&visit).await);
    assert!(!open.contains_key("person") && !open.contains_key("nationality"), "{open:?}");
}

#[tokio::test]
async fn a_proof_of_address_is_taken_as_a_file_and_again_if_it_was_refused() {
    let visit = newcomer().await;
    let page = links(&account(&visit).await).remove("proof-of-address").unwrap();
    for content in [&b""[..], b"no image"] {
        let refused = upload(&visit, &page, "proof", content).await;
        assert!(refused.assert_status(400).text().contains("href=\"#field-proof\""));
    }
    let sent = upload(&visit, &page, "proof", PNG).await;
    let text = sent.assert_status(200).text();
    assert!(text.contains("hebben je document") && !text.contains("type=\"file\""), "{text}");
    assert_eq!(status(&visit, "proofOfAddress").await, "pending");
    assert!(account(&visit).await.contains("wordt bekeken"));
    let path = format!("/admin/v1/users/{}", visit.id);
    let documents = json!([{"type": "proof-of-address", "side": "front", "status": "failed"}]);
    let change = json!({ "documents": documents });
    visit.context.admin(Method::PATCH, &path, change).await.assert_status(200);
    let shown = account(&visit).await;
    assert!(shown.contains("afgewezen"), "{shown}");
    let page = links(&shown).remove("proof-of-address").unwrap();
    upload(&visit, &page, "proof", PNG).await.assert_status(200);
    assert_eq!(status(&visit, "proofOfAddress").await, "pending");
}

#[tokio::test]
async fn the_pages_are_open_for_an_hour_and_until_the_user_is_signed_out() {
    let visit = newcomer().await;
    let person = async || links(&account(&visit).await).remove("person").unwrap();
    let page = person().await;
    visit.later(3_500);
    open(&visit, &page).await.assert_status(200);
    visit.later(101);
    open(&visit, &page).await.assert_status(404);
    send(&visit, &page, "firstName=Eve").await.assert_status(404);
    let page = person().await;
    let shown = account(&visit).await;
    let form = format!("action=sessions-end&challenge={}", challenge(&shown));
    visit.submit(&form).await.assert_status(200);
    open(&visit, &page).await.assert_status(404);
    let page = person().await;
    let path = format!("/admin/v1/users/{}", visit.id);
    visit.context.admin(Method::PATCH, &path, json!({"disabled": true})).await.assert_status(200);
    open(&visit, &page).await.assert_status(404);
}

#[tokio::test]
async fn the_privacy_statement_can_be_read_where_it_is_agreed_to() {
    let visit = newcomer().await;
    let page = links(&account(&visit).await).remove("registration").unwrap();
    let register = page_path(&visit.partner, &"y".repeat(36)).await;
    let link = ">privacyverklaring</a>";
    for (url, is_linked) in [(Value::Null, false), (json!("https://acme.example/privacy"), true)] {
        let change = json!({"branding": {"privacyUrl": url}});
        let path = "/admin/v1/partners/acme";
        visit.context.admin(Method::PATCH, path, change).await.assert_status(200);
        for path in [&page, &register] {
            let shown = open(&visit, path).await;
            let text = shown.assert_status(200).text();
            assert!(text.contains("Ik ga akkoord met de "), "{path}: {text}");
            assert_eq!(text.contains(link), is_linked, "{path}: {text}");
        }
    }
}

#[tokio::test]
async fn an_agreement_that_comes_last_is_told_once() {
    let visit = newcomer().await;
    let page = links(&account(&visit).await).remove("registration").unwrap();
    let path = format!("/admin/v1/users/{}", visit.id);
    let checks = json!({"email": "verified", "identity": "verified", "amld5": "verified"});
    let change = json!({ "verification": checks });
    visit.context.admin(Method::PATCH, &path, change).await.assert_status(200);
    let told = async || -> i64 {
        let count = "select count(*) from event where type = 'user.verified'";
        sqlx::query_scalar(count).fetch_one(visit.context.db()).await.unwrap()
    };
    let refused = send(&visit, &page, "").await;
    let text = refused.assert_status(400).text();
    for part in ["href=\"#field-privacy\"", "aria-describedby=\"field-privacy-about\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(told().await, 0);
    for _ in 0..2 {
        send(&visit, &page, "privacy=yes").await.assert_status(200);
        assert_eq!(told().await, 1);
    }
    let shown = visit.context.admin(Method::GET, &path, Value::Null).await.json();
    assert_eq!(shown["profile"]["status"]["status"], "validated");
}
