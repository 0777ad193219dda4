//! Open items of a verification, level by level.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

use super::admin_path;

const PATH: &str = "/api/v2/user/verification-status";

async fn open(user: &User, level: &str) -> Vec<Value> {
    let answer = user.get(&format!("{PATH}{level}")).await.assert_status(200).json();
    answer.as_array().unwrap().clone()
}

fn find<'a>(items: &'a [Value], name: &str) -> &'a Value {
    items.iter().find(|item| item["name"] == name).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn a_level_asks_for_what_it_needs_and_all_below() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let new =
        json!({"email": "new@mail.example.com", "country": "NL", "identifier": "n".repeat(40)});
    acme.post("/api/v2/user", new).await.assert_status(200);
    let user = User { identifier: "n".repeat(40), ..acme.user("ada").await };
    let names = async |level: &str| {
        let items = open(&user, level).await;
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let bronze = names("?level=bronze").await;
    assert_eq!(bronze, ["emailCode", "privacyAgreement", "firstName", "lastName", "dateOfBirth"]);
    let silver = names("?level=silver").await;
    assert_eq!(silver[..5], bronze);
    assert_eq!(silver[5..], ["AMLD5Questions", "nationality", "idDocument"]);
    let gold = names("?level=gold").await;
    assert_eq!(gold[..8], silver);
    assert_eq!(gold[8..], ["address", "addressNo", "postalCode", "city", "proofOfAddress"]);
    assert_eq!(names("").await, gold);
    user.get(&format!("{PATH}?level=platinum")).await.assert_status(400).assert_codes(&["ER404"]);
}

#[tokio::test]
async fn items_say_what_can_be_sent() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let items = open(&ada, "?level=gold").await;
    let of_type = |name: &str| find(&items, name)["type"].clone();
    assert_eq!(of_type("emailCode"), "string");
    assert_eq!(of_type("proofOfAddress"), "file");
    let questions = find(&items, "AMLD5Questions");
    assert_eq!(
        (&questions["type"], questions["data"].as_array().unwrap().len()),
        (&json!("question"), 5)
    );
    // In the language of the user's region.
    assert_eq!(questions["data"][0]["label"], "Wat is uw jaarlijkse netto-inkomen?");
    let nationality = find(&items, "nationality");
    assert_eq!(
        (&nationality["type"], &nationality["data"]["Netherlands"]),
        (&json!("choice"), &json!("NL"))
    );
    let document = find(&items, "idDocument");
    assert_eq!(document["type"], "document");
    let passport = json!({"type": "passport", "data": [{"name": "front", "type": "file"}]});
    assert_eq!(document["data"][0], passport);
}

#[tokio::test]
async fn what_is_sent_in_waits_and_what_is_decided_is_gone() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let image = STANDARD.encode([&b"%PDF-1.7"[..], &[7; 64]].concat());
    let side =
        |kind: &str, side: &str| json!({"documentType": kind, "documentSide": side, "data": image});
    let send = async |documents: Value| {
        let body = json!({"identityDocument": documents, "nationality": "NL"});
        ada.patch("/api/v2/user", &body).await.assert_status(200);
    };
    send(json!([side("id-card", "front")])).await;
    assert_eq!(find(&open(&ada, "").await, "idDocument")["status"], "missing");
    send(json!([side("id-card", "back"), side("proof-of-address", "front")])).await;
    let items = open(&ada, "").await;
    for name in ["idDocument", "verificationFlag", "proofOfAddress"] {
        assert_eq!(find(&items, name)["status"], "pending", "{name}");
    }
    assert_eq!(find(&items, "nationality"), &Value::Null);
    let all = json!({"verification": {"email": "verified", "identity": "verified",
        "amld5": "verified", "privacyAgreement": "verified", "residentialAddress": "verified"}});
    context.admin(Method::PATCH, &admin_path(&ada).await, all).await.assert_status(200);
    assert_eq!(open(&ada, "").await, Vec::<Value>::new());
}
