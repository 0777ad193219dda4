//! The AMLD5 questionnaire.

use http::Method;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::{User, registration};
use serde_json::{Value, json};

const PATH: &str = "/api/v1/user/verify/amld5";

/// The questions that a user is asked in a language, with the first option of each as its answer.
async fn first_answers(user: &User, locale: &str) -> Vec<Value> {
    let asked = user.get(&format!("{PATH}?locale={locale}")).await;
    let asked = asked.assert_status(200).json()["questions"].clone();
    let answer = |q: &Value| json!({"key": q["key"], "answer": q["answerOptions"][0]});
    asked.as_array().unwrap().iter().map(answer).collect()
}

#[tokio::test]
async fn questions_come_in_five_languages() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut labels = Vec::new();
    for locale in ["nl", "en", "de-AT", "FR", "es-419"] {
        let answer = acme.get(&format!("{PATH}?locale={locale}")).await;
        let questions = answer.assert_status(200).json()["questions"].clone();
        assert_eq!(questions.as_array().unwrap().len(), 6);
        assert_eq!(questions[0]["key"], "kyc-amld5-annual-net-income");
        assert!(questions[2]["answerOptions"].as_array().unwrap().len() > 1);
        labels.push(questions[0]["label"].to_string());
    }
    labels.sort();
    labels.dedup();
    assert_eq!(labels.len(), 5);
    let english = acme.get(&format!("{PATH}?locale=en")).await.json();
    assert_eq!(acme.get(PATH).await.json(), english);
    for bad in ["", "it", "english"] {
        acme.get(&format!("{PATH}?locale={bad}")).await.assert_codes(&["ER099"]);
    }
}

#[tokio::test]
async fn people_and_businesses_have_sets_of_their_own() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let mut shop = registration("shop");
    shop["isBusiness"] = json!(true);
    acme.post("/api/v2/user", shop.clone()).await.assert_status(200);
    let shop = User { identifier: shop["identifier"].as_str().unwrap().to_owned(), ..ada.clone() };
    let keys = async |user: &User| {
        let asked = first_answers(user, "en").await;
        asked.iter().map(|answer| answer["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (people, businesses) = (keys(&ada).await, keys(&shop).await);
    assert!(people.iter().any(|key| key == "kyc-amld5-employment-status"));
    assert!(!people.iter().any(|key| key == "kyc-amld5-annual-net-profit"));
    assert!(businesses.iter().any(|key| key == "kyc-amld5-annual-net-profit"));
    assert!(!businesses.iter().any(|key| key == "kyc-amld5-annual-net-income"));
}

#[tokio::test]
async fn the_last_answer_completes_the_questionnaire() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let answers = first_answers(&ada, "nl").await;
    let (last, others) = answers.split_last().unwrap();
    let profile = ada.post(PATH, &json!(others)).await.assert_status(200).json();
    assert_eq!(profile["emailAddress"], json!(ada.email));
    assert_eq!(profile["status"]["details"]["amld5VerificationStatus"], "pending");
    let profile = ada.post(PATH, &json!([last])).await.assert_status(200).json();
    assert_eq!(profile["status"]["details"]["amld5VerificationStatus"], "verified");
    assert_eq!(profile, ada.get("/api/v1/user/info").await.json());
    let uuid = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let seen = context.admin(Method::GET, &format!("/admin/v1/users/{uuid}"), json!({})).await;
    let kept = &seen.assert_status(200).json()["personal"]["amld5Answers"];
    assert_eq!(kept["kyc-amld5-employment-status"], "employed");
    assert_eq!(kept.as_object().unwrap().len(), answers.len());
}

#[tokio::test]
async fn a_person_who_becomes_a_business_is_asked_its_questions() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let state = async || {
        let profile = ada.get("/api/v1/user/info").await.assert_status(200).json();
        profile["status"]["details"]["amld5VerificationStatus"].clone()
    };
    let becomes = async |business: bool| {
        let change = json!({"isBusiness": business});
        ada.patch("/api/v2/user", &change).await.assert_status(200);
    };
    let answers = first_answers(&ada, "en").await;
    ada.post(PATH, &json!(answers)).await.assert_status(200);
    becomes(false).await;
    assert_eq!(state().await, "verified", "nothing has changed");
    becomes(true).await;
    assert_eq!(state().await, "pending");
    let open = ada.get("/api/v2/user/verification-status").await.assert_status(200).json();
    let item = open.as_array().unwrap().iter().find(|item| item["name"] == "AMLD5Questions");
    let asked = item.unwrap()["data"].to_string();
    assert!(asked.contains("kyc-amld5-annual-net-profit"), "{asked}");
    let answers = first_answers(&ada, "en").await;
    ada.post(PATH, &json!(answers)).await.assert_status(200);
    assert_eq!(state().await, "verified");
    becomes(false).await;
    assert_eq!(state().await, "verified", "a person's are answered");
}

#[tokio::test]
async fn answers_of_a_registration_count() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let asked = first_answers(&ada, "fr").await;
    let answers =
        asked.iter().map(|item| (item["key"].as_str().unwrap().to_owned(), item["answer"].clone()));
    let mut eve = registration("eve");
    eve["amld5QuestionAnswers"] = Value::Object(answers.collect());
    acme.post("/api/v2/user", eve.clone()).await.assert_status(200);
    let eve = User { identifier: eve["identifier"].as_str().unwrap().to_owned(), ..ada };
    let profile = eve.get("/api/v1/user/info").await.json();
    assert_eq!(profile["status"]["details"]["amld5VerificationStatus"], "verified");
}

#[tokio::test]
async fn what_is_no_answer_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let valid = json!({"key": "kyc-amld5-employment-status", "answer": "Employed"});
    let (key, shoes) = (&valid["key"], json!({"key": "kyc-amld5-shoe-size", "answer": "42"}));
    for (body, codes, field) in [
        (json!({}), &["ER100"][..], Value::Null),
        (json!([]), &["ER100"], Value::Null),
        (json!(null), &["ER100"], Value::Null),
        (json!([{"key": key}]), &["ER100"], json!("answer")),
        (json!([{"answer": "Employed"}]), &["ER100"], json!("key")),
        (json!([valid, valid]), &["ER100"], json!("key")),
        (json!([[key, "Employed"]]), &["ER100"], json!("key")),
        (json!([{"key": key, "answer": "Astronaut"}]), &["ER101"], json!("answer")),
        (json!([shoes]), &["ER101"], json!("key")),
        (json!([shoes, {}]), &["ER100", "ER101"], json!("key")),
    ] {
        let answer = ada.post(PATH, &body).await;
        answer.assert_status(400).assert_codes(codes);
        assert_eq!(answer.json()["errors"][codes[0]]["field"], field, "{body}");
    }
    acme.post(PATH, json!([valid])).await.assert_codes(&["ER700"]);
}
