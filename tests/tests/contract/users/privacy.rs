//! Nothing that identifies a person stands in clear in any table, nor in an answer to others.

use http::Method;
use rampart_core::platform::crypto::sha256;
use rampart_tests::dump;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::registration;
use serde_json::{Value, json};

/// Members of the registration that identify a person.
const PLANTED: [&str; 12] = [
    "email",
    "identifier",
    "password",
    "firstName",
    "lastName",
    "dateOfBirth",
    "phoneNumber",
    "address",
    "addressNo",
    "postalCode",
    "city",
    "businessName",
];

fn planted() -> Value {
    let mut body = registration("plantedada");
    body["firstName"] = json!("Plantedfirst");
    body["lastName"] = json!("Plantedlast");
    body["dateOfBirth"] = json!("1987-06-05");
    body["phoneNumber"] = json!("+31687654321");
    body["address"] = json!("Plantedstraat");
    body["addressNo"] = json!("98765-P");
    body["postalCode"] = json!("9876 ZX");
    body["city"] = json!("Plantedcity");
    body["businessName"] = json!("Plantedbusiness");
    body["chamberOfCommerce"] = json!("98765432");
    body["amld5QuestionAnswers"] = json!({"kyc-amld5-employment-status": "Plantedanswer"});
    body["shareToken"] = json!("Plantedtoken");
    body
}

#[tokio::test]
async fn no_table_has_a_personal_value_in_clear() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let body = planted();
    let request = acme.request(Method::POST, "/api/v2/user").header("idempotency-key", "k-1");
    request.json(&body).send().await.assert_status(200);
    let email = body["email"].as_str().unwrap();
    let login = json!({"emailAddress": email, "password": body["password"]});
    let session = acme.post("/api/v1/user/login", login).await.assert_status(200).json();
    let reset = json!({"emailAddress": email});
    acme.post("/api/v1/user/reset-password", reset).await.assert_status(200);
    let identifier = body["identifier"].as_str().unwrap();
    let named = |method, path| acme.request(method, path).header("user-identifier", identifier);
    let token = named(Method::GET, "/api/v1/user/login-token").send().await.json();
    let change = json!({"lastName": "Plantedchange", "identityDocument":
        [{"documentType": "passport", "documentSide": "front",
          "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"}]});
    named(Method::PATCH, "/api/v2/user").json(&change).send().await.assert_status(200);
    let uuid = session["uuid"].as_str().unwrap();
    let path = format!("/admin/v1/users/{uuid}");
    context.admin(Method::PATCH, &path, json!({"level": "gold"})).await.assert_status(200);

    let dump = dump::of(context.db()).await;
    let has = |dump: &str, text| dump::found(dump, text).is_some();
    assert!(has(&dump, "acme") && has(&dump, uuid) && has(&dump, "gold"), "the dump is a dump");
    for member in PLANTED {
        assert!(!has(&dump, body[member].as_str().unwrap()), "{member} is in clear");
    }
    for text in ["Planted", "planted", "98765432", "1987-06-05"] {
        assert!(!has(&dump, text), "{text} is in clear");
    }
    for secret in [&session["token"], &session["refreshToken"], &token["token"]] {
        assert!(!has(&dump, secret.as_str().unwrap()));
    }
}

#[tokio::test]
async fn no_bucket_of_attempts_is_found_by_an_address_without_our_key() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let bucket = sha256(&format!("code-mails/{}/{}", acme.id, ada.email));
    // Five mails an hour, in nanoseconds of one and of all.
    let plain = sha256(&format!("{bucket:02x?}/720000000000/3600000000000"));
    let found = "select count(*) filter (where bucket_digest = $1), count(*) from attempt_bucket";
    let (found, all): (i64, i64) =
        sqlx::query_as(found).bind(&plain[..]).fetch_one(context.db()).await.unwrap();
    assert!(found == 0 && all > 0, "{found} of {all}");
}

#[tokio::test]
async fn answers_tell_no_more_than_they_must() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let body = planted();
    let registered = acme.post("/api/v2/user", body.clone()).await;
    registered.assert_status(200);
    let email = body["email"].as_str().unwrap();
    let login = json!({"emailAddress": email, "password": body["password"]});
    let session = acme.post("/api/v1/user/login", login).await;
    let taken = acme.post("/api/v2/user", body.clone()).await;
    let exists = acme.get(&format!("/api/v1/user/exists?emailAddress={email}")).await;
    let wrong = json!({"email": "Planted@", "firstName": "<Planted>", "identifier": "Planted-1"});
    let refused = acme.post("/api/v2/user", wrong).await;
    for (answer, status) in [(session, 200), (taken, 400), (exists, 200), (refused, 400)] {
        let text = answer.assert_status(status).text();
        assert!(!text.contains("Planted") && !text.contains("planted"), "{text}");
    }
    for member in ["password", "dateOfBirth", "address", "postalCode", "identifier"] {
        let text = registered.text();
        assert!(!text.contains(body[member].as_str().unwrap()), "{member} in {text}");
    }
    let audit = context.admin(Method::GET, "/admin/v1/audit", json!({})).await;
    assert!(!audit.text().contains("lanted"));
}

#[tokio::test]
async fn a_row_of_one_user_does_not_open_for_another() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (ada, bob) = (acme.user("ada").await, acme.user("bob").await);
    ada.get("/api/v1/user/info").await.assert_status(200);
    sqlx::query(
        "update end_user e set sealed_key = o.sealed_key, personal = o.personal from end_user o \
         where o.client_id = e.client_id and o.user_id <> e.user_id",
    )
    .execute(context.db())
    .await
    .unwrap();
    for user in [ada, bob] {
        user.get("/api/v1/user/info").await.assert_status(500).assert_codes(&["ER999"]);
    }
}
