//! `PATCH /api/v2/user`, e-mail codes and the profile.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::cluster::lose_first_change;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::registration;
use serde_json::{Map, json};

use super::mailed_code;

const PATH: &str = "/api/v2/user";
const INFO: &str = "/api/v1/user/info";

#[tokio::test]
async fn a_mailed_code_proves_the_address_once() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let code = mailed_code(&context, &ada.email).await;
    assert!(code.len() == 6 && !code.starts_with('0'), "{code}");
    ada.patch(PATH, &json!({"emailCode": "999"})).await.assert_codes(&["ER090"]);
    let proven = ada.patch(PATH, &json!({"emailCode": code})).await;
    assert!(proven.assert_status(200).json()["activationDate"].is_string());
    let profile = ada.get(INFO).await.json();
    assert_eq!(profile["status"]["details"]["emailAddressVerificationStatus"], "verified");
    ada.patch(PATH, &json!({"emailCode": code})).await.assert_codes(&["ER090"]);
}

#[tokio::test]
async fn of_racing_changes_one_uses_the_code() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let code = mailed_code(&context, &ada.email).await;
    let bodies: Vec<_> = (0..4)
        .map(|n| json!({"emailCode": code, "password": format!("password-number-{n}")}))
        .collect();
    let answers = futures::future::join_all(bodies.iter().map(|body| ada.patch(PATH, body))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status() == 200).count(), 1);
    for answer in answers.iter().filter(|answer| answer.status() != 200) {
        answer.assert_codes(&["ER090"]);
    }
}

#[tokio::test]
async fn a_code_ends_after_five_tries_and_after_a_day() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let code = mailed_code(&context, &ada.email).await;
    for _ in 0..5 {
        ada.patch(PATH, &json!({"emailCode": "111"})).await.assert_codes(&["ER090"]);
    }
    ada.patch(PATH, &json!({"emailCode": code})).await.assert_codes(&["ER090"]);
    // Naming the address again mails a new code.
    ada.patch(PATH, &json!({"email": ada.email})).await.assert_status(200);
    let next = mailed_code(&context, &ada.email).await;
    context.clock().advance(TimeDelta::hours(25));
    ada.patch(PATH, &json!({"emailCode": next})).await.assert_codes(&["ER090"]);
}

#[tokio::test]
async fn codes_are_mailed_and_tried_as_often_as_an_hour_allows() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let again = json!({"email": ada.email});
    let mails = async || {
        let count = "select count(*) from mail_outbox where kind = 'email-code'";
        sqlx::query_scalar::<_, i64>(count).fetch_one(context.db()).await.unwrap()
    };
    for _ in 0..7 {
        ada.patch(PATH, &again).await.assert_status(200);
    }
    assert_eq!(mails().await, 5);
    let tried = json!({"emailCode": "111111"});
    for _ in 0..5 {
        ada.patch(PATH, &tried).await.assert_codes(&["ER090"]);
    }
    // A new code brings no more attempts than those left of the address.
    context.clock().advance(TimeDelta::minutes(13));
    ada.patch(PATH, &again).await.assert_status(200);
    assert_eq!(mails().await, 6);
    for _ in 0..5 {
        ada.patch(PATH, &tried).await.assert_codes(&["ER090"]);
    }
    context.clock().advance(TimeDelta::minutes(13));
    ada.patch(PATH, &again).await.assert_status(200);
    let code = json!({"emailCode": mailed_code(&context, &ada.email).await});
    ada.patch(PATH, &code).await.assert_codes(&["ER090"]);
    context.clock().advance(TimeDelta::hours(1));
    ada.patch(PATH, &code).await.assert_status(200);
}

#[tokio::test]
async fn a_code_that_was_mailed_before_the_limit_works() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    for _ in 0..6 {
        ada.patch(PATH, &json!({"email": ada.email})).await.assert_status(200);
    }
    let code = mailed_code(&context, &ada.email).await;
    ada.patch(PATH, &json!({"emailCode": code})).await.assert_status(200);
}

#[tokio::test]
async fn a_change_keeps_what_it_does_not_name() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let changed = ada.patch(PATH, &json!({"lastName": "King", "firstName": null})).await;
    changed.assert_status(200);
    assert_eq!(changed.json()["lastName"], "King");
    assert_eq!(changed.json()["firstName"], "Ada");
    let profile = ada.get(INFO).await.json();
    assert_eq!(profile["phoneNumber"], "+31612345678");
    assert_eq!(profile["region"], "nl-nl");
    for (body, code) in [
        (json!({"email": ""}), "ER003"),
        (json!({"email": "x"}), "ER001"),
        (json!({"country": ""}), "ER062"),
        (json!({"country": "NLD"}), "ER061"),
        (json!({"identifier": ""}), "ER053"),
        (json!({"identifier": "x"}), "ER102"),
        (json!({"firstName": "<"}), "ER126"),
        (json!({"chamberOfCommerce": "123456789"}), "ER121"),
    ] {
        assert_eq!(ada.patch(PATH, &body).await.codes(), [code], "{body}");
    }
    ada.partner.patch(PATH, json!({"lastName": "King"})).await.assert_codes(&["ER700"]);
}

#[tokio::test]
async fn a_new_address_is_proven_anew_and_is_nobody_elses() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (ada, bob) = (acme.user("ada").await, acme.user("bob").await);
    ada.patch(PATH, &json!({"emailCode": "000000"})).await.assert_status(200);
    let taken = json!({"email": bob.email, "oldPassword": ada.password});
    let answer = ada.patch(PATH, &taken).await;
    answer.assert_codes(&["ER002"]);
    assert_eq!(answer.json()["errors"]["ER002"]["field"], "email");
    let other = json!({"identifier": bob.identifier, "firstName": "Eve"});
    let answer = ada.patch(PATH, &other).await;
    answer.assert_codes(&["ER706"]);
    assert_eq!(answer.json()["errors"]["ER706"]["field"], "identifier");
    assert_eq!(ada.get(INFO).await.json()["firstName"], "Ada");
    let named = json!({"email": "new@mail.example.com", "oldPassword": ada.password});
    ada.patch(PATH, &named).await.assert_status(200);
    let profile = ada.get(INFO).await.json();
    assert_eq!(profile["emailAddress"], "new@mail.example.com");
    assert_eq!(profile["status"]["details"]["emailAddressVerificationStatus"], "pending");
    let old = json!({"emailAddress": ada.email, "password": ada.password});
    acme.post("/api/v1/user/login", old).await.assert_codes(&["ER005"]);
    let new = json!({"emailAddress": "new@mail.example.com", "password": ada.password});
    acme.post("/api/v1/user/login", new).await.assert_status(200);
    let code = mailed_code(&context, "new@mail.example.com").await;
    ada.patch(PATH, &json!({"emailCode": code})).await.assert_status(200);
}

#[tokio::test]
async fn a_second_identifier_names_the_same_user() {
    let context = TestContext::start().await;
    let mut ada = context.partner("acme").await.user("ada").await;
    let second = "s".repeat(40);
    for _ in 0..2 {
        ada.patch(PATH, &json!({"identifier": second})).await.assert_status(200);
    }
    ada.get(INFO).await.assert_status(200);
    ada.identifier = second;
    assert_eq!(ada.get(INFO).await.json()["emailAddress"], ada.email);
}

#[tokio::test]
async fn a_side_under_review_is_not_replaced() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";
    let side = json!({"identityDocument":
        [{"documentType": "passport", "documentSide": "front", "data": png}]});
    ada.patch(PATH, &side).await.assert_status(200);
    ada.patch(PATH, &side).await.assert_codes(&["ER708"]);
    let documents = &ada.get(INFO).await.json()["status"]["details"]["documents"];
    assert_eq!(*documents, json!([{"type": "passport", "side": "front", "status": "pending"}]));
}

#[tokio::test]
async fn the_profile_has_every_member_of_the_contract() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let mut profile = ada.get(INFO).await.assert_status(200).json();
    assert!(profile["registrationDate"].take().is_string());
    let level = profile["verificationLevel"]["uuid"].take();
    assert!(level.as_str().unwrap().parse::<uuid::Uuid>().is_ok());
    let amount = json!({"amount": 1000, "currencyCode": "EUR"});
    let limit = json!({"limit": amount, "remaining": amount, "interval": "P1D"});
    let expected = json!({
        "emailAddress": "ada@mail.example.com", "firstName": "Ada", "lastName": "Lovelace",
        "region": "nl-nl", "country": "NL", "phoneNumber": "+31612345678",
        "registrationDate": null, "activationDate": null, "isBusiness": false,
        "limits": {"buy": limit, "sell": limit},
        "enabledIbanAccounts": [], "enabledAccounts": [], "enabledWalletAddresses": [],
        "status": {
            "status": "pending", "description": "The user has not shown everything yet.",
            "details": {
                "amld5VerificationStatus": "pending", "emailAddressVerificationStatus": "pending",
                "identityVerificationStatus": "pending",
                "privacyAgreementVerificationStatus": "verified", "documents": [],
                "residentialAddressStatus": "present", "dac8Status": "unknown",
            },
        },
        "verificationLevel":
            {"uuid": null, "identifier": "bronze", "limits": {"buy": amount, "sell": amount}},
    });
    assert_eq!(profile, expected);
}

#[tokio::test]
async fn half_a_region_is_completed_by_the_one_that_is_stored() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let belgian = json!({"websiteLanguage": "nl", "websiteCountry": "BE"});
    ada.patch(PATH, &belgian).await.assert_status(200);
    let region = async || ada.get(INFO).await.json()["region"].clone();
    ada.patch(PATH, &json!({"websiteLanguage": "fr"})).await.assert_status(200);
    assert_eq!(region().await, "fr-be");
    let refused = ada.patch(PATH, &json!({"websiteCountry": "NL"})).await;
    refused.assert_status(400).assert_codes(&["ER084"]);
    ada.patch(PATH, &json!({"websiteLanguage": "xx"})).await.assert_codes(&["ER081"]);
    ada.patch(PATH, &json!({"websiteLanguage": "nl"})).await.assert_status(200);
    ada.patch(PATH, &json!({"websiteCountry": "NL"})).await.assert_status(200);
    assert_eq!(region().await, "nl-nl");
}

#[tokio::test]
async fn half_a_region_of_a_user_without_one_is_completed_by_the_country() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let minimal = json!({"email": "bob@mail.example.com", "country": "BE",
        "identifier": "b".repeat(36)});
    acme.post(PATH, minimal).await.assert_status(200);
    let as_bob = |method, path| {
        let request = acme.request(method, path);
        request.header("user-identifier", &"b".repeat(36))
    };
    let french = json!({"websiteLanguage": "fr"});
    as_bob(Method::PATCH, PATH).json(&french).send().await.assert_status(200);
    let profile = as_bob(Method::GET, INFO).send().await.json();
    assert_eq!(profile["region"], "fr-be");
}

#[tokio::test]
async fn a_change_that_lost_to_a_deadlock_may_be_sent_again() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    lose_first_change(context.db(), "end_user").await;
    let moved = json!({"city": "Delft"});
    ada.patch(PATH, &moved).await.assert_status(503).assert_codes(&["ER999"]);
    ada.patch(PATH, &moved).await.assert_status(200);
}

#[tokio::test]
async fn a_user_has_64_answers_at_most() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let answered = |topics: std::ops::Range<usize>| {
        let answer = |topic| (format!("kyc-amld5-topic-{topic}"), json!("an answer"));
        json!({"amld5QuestionAnswers": topics.map(answer).collect::<Map<_, _>>()})
    };
    ada.patch(PATH, &answered(0..32)).await.assert_status(200);
    ada.patch(PATH, &answered(32..64)).await.assert_status(200);
    ada.patch(PATH, &answered(64..65)).await.assert_status(400).assert_codes(&["ER048"]);
    ada.patch(PATH, &answered(63..64)).await.assert_status(200);
}

/// Members of a profile that follow from what the service knows, and some that no request has.
#[tokio::test]
async fn what_is_not_the_callers_to_say_changes_nothing() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let claimed = json!({
        "uuid": "0199a000-0000-7000-8000-000000000001", "disabled": true, "verified": true,
        "registrationDate": "2001-01-01T00:00:00Z", "activationDate": "2001-01-01T00:00:00Z",
        "status": "verified", "verificationLevel": "gold", "limits": {"buy": null, "sell": null},
        "enabledAccounts": ["411111******1111"], "enabledWalletAddresses": ["nowhere"],
    });
    let before = ada.get(INFO).await.json();
    let mut change = claimed.clone();
    change["phoneNumber"] = before["phoneNumber"].clone();
    let changed = ada.request(Method::PATCH, PATH).json(&change).undocumented();
    changed.send().await.assert_status(200);
    assert_eq!(ada.get(INFO).await.json(), before);

    let mut bob = registration("bob");
    bob.as_object_mut().unwrap().extend(claimed.as_object().unwrap().clone());
    let identifier = bob["identifier"].as_str().unwrap().to_owned();
    let registered = acme.request(Method::POST, PATH).json(&bob).undocumented();
    registered.send().await.assert_status(200);
    let profile = acme.request(Method::GET, INFO).header("user-identifier", &identifier);
    let profile = profile.send().await.assert_status(200).json();
    for (name, value) in claimed.as_object().unwrap() {
        assert_ne!(profile.get(name), Some(value), "{name}");
    }
    for name in ["activationDate", "status", "verificationLevel", "limits", "enabledAccounts"] {
        assert_eq!(profile[name], before[name], "{name}");
    }
}
