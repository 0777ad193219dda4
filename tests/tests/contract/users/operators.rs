//! Users in the admin API: operators read them and decide about them.

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::passkey::challenge;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use super::{SIGNED_OUT, Visit};

async fn change(context: &TestContext, user: &Value, body: Value) -> Answer {
    let path = format!("/admin/v1/users/{}", user.as_str().unwrap());
    context.admin(Method::PATCH, &path, body).await
}

#[tokio::test]
async fn decisions_show_in_the_profile_and_in_the_log() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let uuid = ada.log_in().await["uuid"].clone();
    let decided = change(
        &context,
        &uuid,
        json!({
            "level": "silver", "dac8Status": "present",
            "verification": {"email": "verified", "identity": "verified", "amld5": "verified",
                "residentialAddress": "verified"},
            "limitOverrides": {"user_day_limit": 250.5},
        }),
    )
    .await;
    decided.assert_status(200);
    assert_eq!(decided.json()["profile"]["status"]["status"], "validated");
    assert_eq!(decided.json()["limitOverrides"]["user_day_limit"].to_string(), "250.5");
    assert_eq!(decided.json()["personal"]["city"], "Amsterdam");
    let profile = ada.get("/api/v1/user/info").await.json();
    assert_eq!(profile["verificationLevel"]["identifier"], "silver");
    assert_eq!(profile["status"]["details"]["dac8Status"], "present");
    change(&context, &uuid, json!({"disabled": true})).await.assert_status(200);
    let events: Vec<String> = sqlx::query_scalar("select type from event order by event_id")
        .fetch_all(context.db())
        .await
        .unwrap();
    assert_eq!(events[2..], ["user.verified", "user.disabled"]);
    // A changed name takes the identity check back.
    ada.patch("/api/v2/user", &json!({"lastName": "King"})).await.assert_status(200);
    let details = &ada.get("/api/v1/user/info").await.json()["status"]["details"];
    assert_eq!(details["identityVerificationStatus"], "pending");
    let path = format!("/admin/v1/audit?target={}", uuid.as_str().unwrap());
    let audit = context.admin(Method::GET, &path, json!({})).await.json();
    assert_eq!(audit.as_array().unwrap().len(), 2);
    assert_eq!(audit[0]["detail"], json!({"disabled": true}));
}

#[tokio::test]
async fn a_block_is_not_lifted_by_a_change_of_the_profile() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let uuid = ada.log_in().await["uuid"].clone();
    let judge = async |status: &str| {
        let checks = json!({"privacyAgreement": status, "residentialAddress": status});
        change(&context, &uuid, json!({"verification": checks})).await.assert_status(200);
    };
    let statuses = async || {
        let details = ada.get("/api/v1/user/info").await.json()["status"]["details"].take();
        let text = |name: &str| details[name].as_str().unwrap().to_owned();
        [text("privacyAgreementVerificationStatus"), text("residentialAddressStatus")]
    };
    judge("blocked").await;
    for (agreed, street) in [(true, "Herengracht"), (false, "Prinsengracht")] {
        let sent = json!({"privacyAgreement": agreed, "address": street});
        ada.patch("/api/v2/user", &sent).await.assert_status(200);
        assert_eq!(statuses().await, ["blocked", "blocked"]);
    }
    // An address that has failed can be replaced.
    judge("failed").await;
    let sent = json!({"privacyAgreement": true, "address": "Singel"});
    ada.patch("/api/v2/user", &sent).await.assert_status(200);
    assert_eq!(statuses().await, ["verified", "present"]);
}

#[tokio::test]
async fn a_blocked_email_address_is_not_proven_by_a_code() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let uuid = ada.log_in().await["uuid"].clone();
    let judge = async |status: &str| {
        let checks = json!({"verification": {"email": status}});
        change(&context, &uuid, checks).await.assert_status(200);
    };
    let status = async || {
        let profile = ada.get("/api/v1/user/info").await.json();
        profile["status"]["details"]["emailAddressVerificationStatus"].clone()
    };
    judge("blocked").await;
    let code = json!({"emailCode": "000000"});
    let other = json!({"email": "other@mail.example.com", "oldPassword": ada.password});
    for sent in [&code, &other, &code] {
        ada.patch("/api/v2/user", sent).await.assert_status(200);
        assert_eq!(status().await, "blocked");
    }
    assert_eq!(ada.get("/api/v1/user/info").await.json()["activationDate"], Value::Null);
    // One that has failed can be proven, and so can another one that an operator has set.
    judge("failed").await;
    ada.patch("/api/v2/user", &code).await.assert_status(200);
    assert_eq!(status().await, "verified");
    judge("blocked").await;
    let third = json!({"emailAddress": "third@mail.example.com"});
    change(&context, &uuid, third).await.assert_status(200);
    assert_eq!(status().await, "pending");
}

#[tokio::test]
async fn the_state_that_comes_with_another_email_address_is_of_that_one() {
    let visit = Visit::of_proven_address().await;
    for (number, status) in ["blocked", "verified", "failed"].into_iter().enumerate() {
        let address = format!("other{number}@mail.example.com");
        let body = json!({"emailAddress": address, "verification": {"email": status}});
        let changed = change(&visit.context, &json!(visit.id), body).await;
        let profile = changed.assert_status(200).json()["profile"].clone();
        let details = &profile["status"]["details"];
        assert_eq!(
            (&profile["emailAddress"], &details["emailAddressVerificationStatus"]),
            (&json!(address), &json!(status))
        );
    }
    // The first and the third address were proven, and heard of it.
    assert_eq!(visit.notices().await, 2);
}

#[tokio::test]
async fn a_typing_error_changes_nothing() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let uuid = ada.log_in().await["uuid"].clone();
    for body in [
        json!({"level": "platinum"}),
        json!({"verification": {"mail": "verified"}}),
        json!({"verification": {"email": "perhaps"}}),
        json!({"deleted": false}),
        json!({"limitOverrides": {"year_limit": 1}}),
        json!({"limitOverrides": {"user_day_limit": -1}}),
        json!({"documents": [{"type": "passport", "side": "", "status": "verified"}]}),
        json!({"nickname": "x"}),
    ] {
        change(&context, &uuid, body).await.assert_status(422);
    }
    let nobody = json!("0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c");
    change(&context, &nobody, json!({})).await.assert_status(404);
    change(&context, &json!("nobody"), json!({})).await.assert_status(404);
    let path = format!("/admin/v1/audit?target={}", uuid.as_str().unwrap());
    let audit = context.admin(Method::GET, &path, json!({})).await.json();
    assert_eq!(audit, json!([]));
}

#[tokio::test]
async fn an_erased_user_is_gone_and_its_address_is_free() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let session = ada.log_in().await;
    let uuid = &session["uuid"];
    let erased = change(&context, uuid, json!({"deleted": true})).await;
    assert_eq!(erased.assert_status(200).json()["personal"]["email"], Value::Null);
    assert_eq!(erased.json()["profile"]["country"], "NL");
    change(&context, uuid, json!({"disabled": true})).await.assert_status(409);
    ada.get("/api/v1/user/info").await.assert_codes(&["ER709"]);
    let bearer = format!("Bearer {}", session["token"].as_str().unwrap());
    let request = acme.request(Method::GET, "/api/v1/user/info");
    request.header("user-authorization", &bearer).send().await.assert_codes(&["ER709"]);
    let exists = acme.get("/api/v1/user/exists?emailAddress=ada@mail.example.com").await;
    exists.assert_status(404);
    let sealed: i64 = sqlx::query_scalar(
        "select count(*) from end_user where sealed_key is not null or personal is not null",
    )
    .fetch_one(context.db())
    .await
    .unwrap();
    assert_eq!(sealed, 0);
    let mut again = registration("ada");
    acme.post("/api/v2/user", again.clone()).await.assert_codes(&["ER706"]);
    again["identifier"] = json!("another".repeat(6));
    acme.post("/api/v2/user", again).await.assert_status(200);
}

#[tokio::test]
async fn who_is_disabled_has_no_login_left_when_enabled_again() {
    let visit = Visit::start().await;
    let session = visit.user.log_in().await;
    visit.later(60);
    let page = visit.password().await;
    let token = visit.user.get("/api/v1/user/login-token").await.assert_status(200).json();
    let token = token["token"].as_str().unwrap().to_owned();
    let link = format!("/nl-nl/account/verify-bank-account?token={token}&uuid={}", visit.id);
    let opened = visit.partner.anonymous(Method::GET, &link).send().await;
    let cookie = opened.assert_status(200).header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let secured = async || {
        let request = visit.partner.anonymous(Method::GET, &link).header("cookie", cookie);
        request.send().await.status()
    };
    assert_eq!(secured().await, 200);
    for disabled in [true, false] {
        let body = json!({ "disabled": disabled });
        change(&visit.context, &json!(visit.id), body).await.assert_status(200);
        assert_eq!(secured().await, 404);
        let form = format!("action=language&challenge={}", challenge(&page));
        let answer = visit.submit(&form).await;
        assert!(answer.assert_status(400).text().contains(SIGNED_OUT), "{}", answer.text());
        let body = json!({"refreshToken": session["refreshToken"]});
        let renewed = visit.partner.anonymous(Method::POST, "/api/v1/refresh").json(&body);
        renewed.send().await.assert_codes(&["ER036"]);
    }
    visit.later(60);
    visit.user.log_in().await;
}

#[tokio::test]
async fn a_login_token_of_who_is_disabled_opens_nothing() {
    let visit = Visit::start().await;
    let disabled = json!({"disabled": true});
    change(&visit.context, &json!(visit.id), disabled).await.assert_status(200);
    let token = visit.user.get("/api/v1/user/login-token").await.assert_status(200).json();
    let token = token["token"].as_str().unwrap();
    for page in ["verify-bank-account", "dca"] {
        let link = format!("/nl-nl/account/{page}?token={token}&uuid={}", visit.id);
        visit.partner.anonymous(Method::GET, &link).send().await.assert_status(404);
    }
    let offer = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
        "paymentMethod": "creditCard", "loginToken": token});
    visit.partner.post("/api/v2/buy/offer", offer).await.assert_codes(&["ER335"]);
}
