//! Operators' decisions on sides of identity documents, sent or not.

use http::Method;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::image;
use serde_json::{Value, json};

use super::documents::{admin, shown, side};

#[tokio::test]
async fn an_operator_asks_for_a_side_and_verifies_one_seen_elsewhere() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let user = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let decide = async |side: &str, status: &str| {
        let decided = json!({"type": "passport", "side": side, "status": status});
        admin(&context, &user, Method::PATCH, "", json!({"documents": [decided]})).await
    };
    let left = json!({"type": "passport", "side": "back", "status": "missing"});
    decide("back", "missing").await.assert_status(200);
    decide("front", "verified").await.assert_status(200);
    let profile = ada.get("/api/v1/user/info").await.assert_status(200).json();
    let right = json!({"type": "passport", "side": "front", "status": "verified"});
    assert_eq!(profile["status"]["details"]["documents"], json!([left, right]));
    let send =
        async |side: Value| ada.patch("/api/v2/user", &json!({"identityDocument": [side]})).await;
    send(side("front", &image(64))).await.assert_codes(&["ER708"]);
    send(side("back", &image(64))).await.assert_status(200);
    assert_eq!(shown(&context, &user, "back").await["status"], "pending");

    for number in 2..32 {
        decide(&number.to_string(), "missing").await.assert_status(200);
    }
    decide("32", "missing").await.assert_status(422);
    decide("31", "failed").await.assert_status(200);
}
