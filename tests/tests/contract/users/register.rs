//! `POST /api/v2/user`.

use rampart_tests::test_context::TestContext;
use rampart_tests::user::registration;
use serde_json::{Value, json};

const PATH: &str = "/api/v2/user";
/// The first bytes of a PNG, in base64.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";

/// A registration with these members in the place of its own; null takes one away.
fn with(members: Value) -> Value {
    let mut body = registration("ada");
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn a_registered_user_is_answered_as_documented() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let answer = acme.post(PATH, with(json!({"email": "Ada@Mail.Example.com"}))).await;
    answer.assert_status(200);
    let mut user = answer.json();
    let registered = user["registrationDate"].take();
    assert!(registered.as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().is_ok());
    let expected = json!({
        "email": "ada@mail.example.com", "firstName": "Ada", "lastName": "Lovelace",
        "phoneNumber": "+31612345678", "country": "NL", "isBusiness": false,
        "registrationDate": null, "activationDate": null,
    });
    assert_eq!(user, expected);
    let minimal = json!({
        "email": "bob@mail.example.com", "country": "de", "identifier": "B0b".repeat(12),
    });
    let answer = acme.post(PATH, minimal).await;
    assert_eq!(answer.assert_status(200).json()["country"], "DE");
    let events: Vec<String> = sqlx::query_scalar("select type from event order by event_id")
        .fetch_all(context.db())
        .await
        .unwrap();
    assert_eq!(events[..2], ["user.created", "identifier.linked"]);
}

#[tokio::test]
async fn every_violation_has_its_code() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let side = json!({"documentType": "passport", "documentSide": "front", "data": PNG});
    let twice = json!([side, {"document_type": "passport", "document_side": "front"}]);
    for (members, code) in [
        (json!({"email": "ada@b"}), "ER001"),
        (json!({"email": 7}), "ER001"),
        (json!({"email": null}), "ER003"),
        (json!({"email": ""}), "ER003"),
        (json!({"identifier": null}), "ER053"),
        (json!({"identifier": ""}), "ER053"),
        (json!({"identifier": "short"}), "ER102"),
        (json!({"identifier": "a".repeat(256)}), "ER102"),
        (json!({"identifier": "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c"}), "ER102"),
        (json!({"phoneNumber": "0612345678"}), "ER059"),
        (json!({"phoneNumber": "+31 612345678"}), "ER059"),
        (json!({"country": "NLD"}), "ER061"),
        (json!({"country": ""}), "ER062"),
        (json!({"country": null}), "ER062"),
        (json!({"country": "XX"}), "ER063"),
        (json!({"country": "N1"}), "ER061"),
        (json!({"businessCountry": "XX"}), "ER064"),
        (json!({"websiteLanguage": "xx"}), "ER081"),
        (json!({"websiteLanguage": null}), "ER081"),
        (json!({"websiteCountry": "JP"}), "ER083"),
        (json!({"websiteCountry": null}), "ER083"),
        (json!({"websiteLanguage": "nl", "websiteCountry": "GB"}), "ER084"),
        (json!({"dateOfBirth": "2015-01-01"}), "ER085"),
        (json!({"dateOfBirth": "10-12-1990"}), "ER085"),
        (json!({"emailCode": "123456"}), "ER090"),
        (json!({"emailCode": 123456}), "ER090"),
        (json!({"chamberOfCommerce": "1234567"}), "ER121"),
        (json!({"chamberOfCommerce": "0202239952", "businessCountry": "BE"}), "ER121"),
        (json!({"password": "seven77"}), "ER122"),
        (json!({"password": "p".repeat(65)}), "ER123"),
        (json!({"businessName": "<b>"}), "ER125"),
        (json!({"firstName": "Ada 🦀"}), "ER126"),
        (json!({"firstName": "a".repeat(101)}), "ER126"),
        (json!({"lastName": ">"}), "ER127"),
        (json!({"address": ""}), "ER181"),
        (json!({"addressNo": "<7>"}), "ER182"),
        (json!({"city": 7}), "ER183"),
        (json!({"postalCode": "1".repeat(21)}), "ER184"),
        (json!({"isBusiness": "yes"}), "ER048"),
        (json!({"amld5QuestionAnswers": ["a"]}), "ER048"),
        (json!({"amld5QuestionAnswers": {"shoe-size": "44"}}), "ER048"),
        (json!({"identityDocument": [{"documentSide": "front"}]}), "ER048"),
        (json!({"identityDocument": twice}), "ER048"),
        (
            json!({"identityDocument":
                [{"documentType": "passport", "documentSide": "front", "data": "AAAA"}]}),
            "ER078",
        ),
    ] {
        let answer = acme.post(PATH, with(members.clone())).await;
        assert_eq!(answer.codes(), [code], "{members}");
        answer.assert_status(400);
    }
    let count: i64 =
        sqlx::query_scalar("select count(*) from end_user").fetch_one(context.db()).await.unwrap();
    assert_eq!(count, 0);
}

/// A registration without a region.
fn without_region(name: &str) -> Value {
    let mut body = registration(name);
    for half in ["websiteLanguage", "websiteCountry"] {
        body.as_object_mut().unwrap().remove(half);
    }
    body
}

#[tokio::test]
async fn half_a_region_of_none_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (name, value, code) in
        [("websiteLanguage", "xx", "ER081"), ("websiteCountry", "JP", "ER083")]
    {
        let mut body = without_region("ada");
        body[name] = value.into();
        let answer = acme.post(PATH, body).await;
        answer.assert_status(400).assert_codes(&[code]);
        assert_eq!(answer.json()["errors"][code]["field"], name);
    }
}

#[tokio::test]
async fn half_a_region_is_completed_by_the_country_or_the_first_one() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (user, country, name, value, region) in [
        ("ada", "LU", "websiteLanguage", "fr", "fr-lu"),
        ("bob", "JP", "websiteLanguage", "FR", "fr-be"),
        ("cas", "NL", "websiteCountry", "CH", "fr-ch"),
        ("dan", "DE", "websiteCountry", "nl", "nl-nl"),
    ] {
        let mut body = without_region(user);
        body["country"] = country.into();
        body[name] = value.into();
        acme.post(PATH, body.clone()).await.assert_status(200);
        let identifier = body["identifier"].as_str().unwrap();
        let profile = acme.request(http::Method::GET, "/api/v1/user/info");
        let profile = profile.header("user-identifier", identifier).send().await;
        assert_eq!(profile.assert_status(200).json()["region"], region, "{value} in {country}");
    }
}

#[tokio::test]
async fn all_violations_of_a_stage_are_told_together() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let wrong = json!({
        "email": "x", "country": "", "phoneNumber": "x", "dateOfBirth": "x", "password": "x",
        "firstName": "<", "lastName": "<", "address": "<", "websiteLanguage": "xx",
        "websiteCountry": "xx", "chamberOfCommerce": "?",
    });
    acme.post(PATH, wrong).await.assert_status(400).assert_codes(&[
        "ER001", "ER053", "ER059", "ER062", "ER081", "ER083", "ER085", "ER121", "ER122", "ER126",
        "ER127", "ER181",
    ]);
    acme.post(PATH, registration("ada")).await.assert_status(200);
    let again = acme.post(PATH, with(json!({"emailCode": "123456"}))).await;
    again.assert_status(400).assert_codes(&["ER002", "ER090", "ER706"]);
}

#[tokio::test]
async fn an_address_and_an_identifier_belong_to_one_user_of_a_client() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    acme.post(PATH, registration("ada")).await.assert_status(200);
    let bob = with(json!({"email": "bob@mail.example.com"}));
    acme.post(PATH, bob.clone()).await.assert_codes(&["ER706"]);
    let twin = with(json!({"email": "ADA@mail.example.com", "identifier": "b".repeat(36)}));
    acme.post(PATH, twin).await.assert_codes(&["ER002"]);
    other.post(PATH, registration("ada")).await.assert_status(200);
    // What was refused has left nothing behind.
    let free = with(json!({"email": "bob@mail.example.com", "identifier": "b".repeat(36)}));
    acme.post(PATH, free).await.assert_status(200);
}

#[tokio::test]
async fn of_racing_registrations_one_wins() {
    let context = TestContext::start().await;
    let edge = context.second_edge().await;
    let acme = context.partner("acme").await;
    edge.core().refresh().await.unwrap();
    let there = acme.at(&edge);
    let bodies: Vec<_> = (0..8)
        .map(|n| with(json!({"identifier": format!("{n:z<36}"), "password": null})))
        .collect();
    let tries = bodies.into_iter().enumerate().map(|(n, body)| {
        let partner = if n % 2 == 0 { &acme } else { &there };
        partner.post(PATH, body)
    });
    let answers = futures::future::join_all(tries).await;
    let won = answers.iter().filter(|answer| answer.status() == 200).count();
    assert_eq!(won, 1);
    for answer in answers.iter().filter(|answer| answer.status() != 200) {
        answer.assert_codes(&["ER002"]);
    }
}

#[tokio::test]
async fn a_repeated_registration_answers_the_saved_bytes() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let send = || {
        let request = acme.request(http::Method::POST, PATH).header("idempotency-key", "once");
        request.json(&registration("ada")).send()
    };
    let first = send().await;
    first.assert_status(200);
    let again = send().await;
    assert_eq!((again.status(), again.text()), (200, first.text()));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
}

#[tokio::test]
async fn a_country_that_the_partner_does_not_serve_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let served = json!({"allowedCountries": ["DE"]});
    context.admin(http::Method::PATCH, "/admin/v1/partners/acme", served).await.assert_status(200);
    acme.post(PATH, registration("ada")).await.assert_codes(&["ER063"]);
    // The case in which an operator writes a country does not count.
    let served = json!({"allowedCountries": ["nl"]});
    context.admin(http::Method::PATCH, "/admin/v1/partners/acme", served).await.assert_status(200);
    acme.post(PATH, registration("ada")).await.assert_status(200);
}

#[tokio::test]
async fn a_business_and_its_documents_are_taken() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let business = with(json!({
        "isBusiness": true, "businessName": "Acme™ B.V.", "businessCountry": "NL",
        "chamberOfCommerce": "12345678", "emailCode": "000000",
        "amld5QuestionAnswers": {"kyc-amld5-annual-net-profit": "< 100000"},
        "identityDocument": [
            {"documentType": "passport", "documentSide": "front", "data": PNG},
            {"document_type": "passport", "document_side": "back",
             "uploaded_file": {"test": true, "original_name": "back.png"}},
        ],
    }));
    let user = acme.post(PATH, business).await;
    user.assert_status(200);
    assert_eq!(user.json()["isBusiness"], true);
    assert!(user.json()["activationDate"].is_string());
    let kept: Vec<(String, String)> =
        sqlx::query_as("select side, status from user_document order by side")
            .fetch_all(context.db())
            .await
            .unwrap();
    let expected = [("back", "missing"), ("front", "pending")];
    assert_eq!(kept, expected.map(|(side, status)| (side.to_owned(), status.to_owned())));
}
