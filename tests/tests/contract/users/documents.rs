//! Images of identity documents: kept sealed, shown to operators, gone with the user.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::{User, image, registration};
use serde_json::{Value, json};

pub(super) fn side(side: &str, image: &[u8]) -> Value {
    json!({"documentType": "passport", "documentSide": side, "data": STANDARD.encode(image)})
}

pub(super) async fn admin(
    context: &TestContext,
    user: &str,
    method: Method,
    path: &str,
    body: Value,
) -> Answer {
    context.admin(method, &format!("/admin/v1/users/{user}{path}"), body).await
}

/// Registers a user and gives its id.
pub(super) async fn registered(partner: &Partner, body: Value) -> String {
    let login = json!({"emailAddress": body["email"], "password": body["password"]});
    partner.post("/api/v2/user", body).await.assert_status(200);
    let session = partner.post("/api/v1/user/login", login).await.assert_status(200).json();
    session["uuid"].as_str().unwrap().to_owned()
}

/// The side's row as operators see it.
pub(super) async fn shown(context: &TestContext, user: &str, side: &str) -> Value {
    let user = admin(context, user, Method::GET, "", json!({})).await.assert_status(200).json();
    let rows = user["documents"].as_array().unwrap();
    rows.iter().find(|row| row["side"] == side).unwrap().clone()
}

/// The object's file, if it is there.
fn stored(context: &TestContext, id: &Value) -> Option<Vec<u8>> {
    let folder = context.core().settings.documents.folder.clone().unwrap();
    std::fs::read(folder.join(id.as_str().unwrap())).ok()
}

#[tokio::test]
async fn images_of_a_registration_are_sealed_and_shown_to_operators_until_the_user_is_erased() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    // One within an ordinary body, one beyond: the second comes as an upload.
    for (name, size) in [("small", 1_000), ("large", 700_000)] {
        let (front, back) = (image(size), image(size + 1));
        let mut body = registration(name);
        body["identityDocument"] = json!([side("front", &front), side("back", &back)]);
        let user = &registered(&acme, body).await;
        let mut ids = Vec::new();
        for (side, image) in [("front", &front), ("back", &back)] {
            let row = shown(&context, user, side).await;
            assert_eq!((&row["status"], &row["size"]), (&json!("pending"), &json!(image.len())));
            let sealed = stored(&context, &row["id"]).expect("the image is in the store");
            assert!(!sealed.windows(16).any(|piece| piece == [7; 16]), "it is stored in clear");
            let path = format!("/documents/{}", row["id"].as_str().unwrap());
            let seen = admin(&context, user, Method::GET, &path, json!({})).await;
            assert_eq!(seen.assert_status(200).header("content-type"), Some("image/png"));
            assert_eq!(seen.header("x-content-type-options"), Some("nosniff"));
            assert!(seen.bytes() == image);
            ids.push(row["id"].clone());
        }
        admin(&context, user, Method::PATCH, "", json!({"deleted": true})).await.assert_status(200);
        let path = format!("/documents/{}", ids[0].as_str().unwrap());
        admin(&context, user, Method::GET, &path, json!({})).await.assert_status(404);
        context.core().remove_documents().await.unwrap();
        assert!(ids.iter().all(|id| stored(&context, id).is_none()), "the images are gone");
        assert_eq!(
            shown(&context, user, "front").await["status"],
            json!("pending"),
            "AML keeps it"
        );
    }
}

#[tokio::test]
async fn images_count_against_the_rate_of_uploads() {
    let context =
        TestContext::with(|settings| settings.ratelimit.uploads = "2/h".parse().unwrap()).await;
    let acme = context.partner("acme").await;
    let (ada, eve) = (acme.user("ada").await, acme.user("eve").await);
    let images = |name: &str| json!({"identityDocument": [side(name, &image(64))]});
    for name in ["front", "back"] {
        ada.patch("/api/v2/user", &images(name)).await.assert_status(200);
    }
    ada.patch("/api/v2/user", &images("selfie")).await.assert_status(429).assert_codes(&["920"]);
    ada.patch("/api/v2/user", &json!({"city": "Delft"})).await.assert_status(200);
    eve.patch("/api/v2/user", &images("front")).await.assert_status(200);
}

#[tokio::test]
async fn a_user_has_32_sides_at_most() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let announced = |kind: &str, count: usize| {
        let side = |n| json!({"documentType": kind, "documentSide": format!("page-{n}")});
        json!({"identityDocument": (0..count).map(side).collect::<Vec<_>>()})
    };
    for kind in ["one", "two", "three", "four"] {
        ada.patch("/api/v2/user", &announced(kind, 8)).await.assert_status(200);
    }
    ada.patch("/api/v2/user", &announced("five", 1)).await.assert_codes(&["ER048"]);
    ada.patch("/api/v2/user", &announced("four", 8)).await.assert_status(200);
}

#[tokio::test]
async fn no_image_is_stored_with_a_code_that_is_wrong() {
    let folder = format!("rampart-documents-of-wrong-codes-{}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    let context =
        TestContext::with(|settings| settings.documents.folder = Some(folder.clone())).await;
    let acme = context.partner("acme").await;
    let images = json!([side("front", &image(64))]);
    let mut body = registration("ada");
    body["identityDocument"] = images.clone();
    body["emailCode"] = json!("111111");
    acme.post("/api/v2/user", body).await.assert_status(400).assert_codes(&["ER090"]);
    let ada = acme.user("ada").await;
    let body = json!({"identityDocument": images, "emailCode": "111111"});
    ada.patch("/api/v2/user", &body).await.assert_status(400).assert_codes(&["ER090"]);
    assert!(!folder.exists(), "the store is made with its first object");
    let body = json!({"identityDocument": images, "emailCode": "000000"});
    ada.patch("/api/v2/user", &body).await.assert_status(200);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn no_image_is_stored_for_an_address_or_an_identifier_that_is_taken() {
    let folder = format!("rampart-documents-of-taken-addresses-{}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    let context =
        TestContext::with(|settings| settings.documents.folder = Some(folder.clone())).await;
    let acme = context.partner("acme").await;
    registered(&acme, registration("ada")).await;
    let mut body = registration("ada");
    body["identityDocument"] = json!([side("front", &image(64))]);
    let refused = async |body: &Value, codes: &[&str]| {
        let answer = acme.post("/api/v2/user", body.clone()).await;
        answer.assert_status(400).assert_codes(codes);
        assert!(!folder.exists(), "the store is made with its first object");
    };
    refused(&body, &["ER002", "ER706"]).await;
    body["emailCode"] = json!("111111");
    refused(&body, &["ER090", "ER002", "ER706"]).await;
    body.as_object_mut().unwrap().remove("emailCode");
    body["email"] = json!("eve@mail.example.com");
    refused(&body, &["ER706"]).await;
    body["identifier"] = registration("eve")["identifier"].clone();
    acme.post("/api/v2/user", body).await.assert_status(200);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_side_that_failed_may_come_again_and_takes_the_place_of_the_other() {
    // A store of this test's own, whose objects it can count.
    let folder = format!("rampart-documents-again-{}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    let context =
        TestContext::with(|settings| settings.documents.folder = Some(folder.clone())).await;
    let ada = context.partner("acme").await.user("ada").await;
    let user = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let send = async |size| {
        let body = json!({"identityDocument": [side("front", &image(size))]});
        ada.patch("/api/v2/user", &body).await
    };
    send(500_000).await.assert_status(200);
    let first = shown(&context, &user, "front").await["id"].clone();
    let objects = || std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(objects(), 1);
    send(500_001).await.assert_codes(&["ER708"]);
    assert_eq!(objects(), 1, "what was refused is not kept");
    let failed = json!({"documents": [{"type": "passport", "side": "front", "status": "failed"}]});
    admin(&context, &user, Method::PATCH, "", failed).await.assert_status(200);
    send(500_002).await.assert_status(200);
    let second = shown(&context, &user, "front").await;
    assert_eq!(second["size"], json!(500_002));
    context.core().remove_documents().await.unwrap();
    assert!(stored(&context, &first).is_none() && stored(&context, &second["id"]).is_some());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn verified_images_are_wanted_anew_after_a_change_of_what_they_prove() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let user = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let change = async |body: Value| ada.patch("/api/v2/user", &body).await;
    let proof = json!({"documentType": "proof-of-address", "documentSide": "front",
        "data": STANDARD.encode(image(70))});
    let sent = json!({"identityDocument": [side("front", &image(64)), proof]});
    change(sent).await.assert_status(200);
    let verified = json!({
        "verification": {"identity": "verified", "residentialAddress": "verified"},
        "documents": [{"type": "passport", "side": "front", "status": "verified"},
            {"type": "proof-of-address", "side": "front", "status": "verified"}],
    });
    admin(&context, &user, Method::PATCH, "", verified).await.assert_status(200);
    let states = async || {
        let seen = admin(&context, &user, Method::GET, "", json!({})).await;
        let seen = seen.assert_status(200).json();
        [0, 1].map(|row| seen["documents"][row]["status"].as_str().unwrap().to_owned())
    };
    let same = json!({"lastName": "Lovelace", "city": "Amsterdam"});
    change(same).await.assert_status(200);
    assert_eq!(states().await, ["verified", "verified"]);
    let first = shown(&context, &user, "front").await["id"].clone();

    change(json!({"lastName": "King"})).await.assert_status(200);
    assert_eq!(states().await, ["missing", "verified"]);
    let open = ada.get("/api/v2/user/verification-status").await.assert_status(200).json();
    let item = open.as_array().unwrap().iter().find(|item| item["name"] == "idDocument");
    assert_eq!(item.unwrap()["status"], "missing");
    assert!(stored(&context, &first).is_some(), "it stays until another one comes");
    let passport = json!({"lastName": "Byron", "identityDocument": [side("front", &image(65))]});
    change(passport).await.assert_status(200);
    assert_eq!(states().await, ["pending", "verified"]);
    context.core().remove_documents().await.unwrap();
    assert!(stored(&context, &first).is_none(), "another one has taken its place");

    change(json!({"city": "Delft"})).await.assert_status(200);
    assert_eq!(states().await, ["pending", "missing"]);
}

#[tokio::test]
async fn an_announcement_takes_the_place_of_no_image() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let user = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let send =
        async |side: Value| ada.patch("/api/v2/user", &json!({"identityDocument": [side]})).await;
    send(side("front", &image(64))).await.assert_status(200);
    let first = shown(&context, &user, "front").await["id"].clone();
    let announced = json!({"documentType": "passport", "documentSide": "front"});
    send(announced.clone()).await.assert_codes(&["ER708"]);
    for status in ["failed", "missing"] {
        let decided = json!({"type": "passport", "side": "front", "status": status});
        let decided = json!({"documents": [decided]});
        admin(&context, &user, Method::PATCH, "", decided).await.assert_status(200);
        send(announced.clone()).await.assert_status(200);
        context.core().remove_documents().await.unwrap();
        let left = shown(&context, &user, "front").await;
        assert_eq!((&left["status"], &left["id"]), (&json!(status), &first));
        assert!(stored(&context, &first).is_some(), "{status}: the image is gone");
    }
}

#[tokio::test]
async fn a_birth_date_that_was_missing_leaves_verified_images() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut body = registration("eve");
    body.as_object_mut().unwrap().remove("dateOfBirth");
    body["identityDocument"] = json!([side("front", &image(64))]);
    let user = &registered(&acme, body.clone()).await;
    let verified =
        json!({"documents": [{"type": "passport", "side": "front", "status": "verified"}]});
    admin(&context, user, Method::PATCH, "", verified).await.assert_status(200);
    let identifier = body["identifier"].as_str().unwrap().to_owned();
    let eve = User { identifier, ..acme.user("ada").await };
    for (born, status) in [("1990-02-03", "verified"), ("1991-02-03", "missing")] {
        eve.patch("/api/v2/user", &json!({"dateOfBirth": born})).await.assert_status(200);
        assert_eq!(shown(&context, user, "front").await["status"], status);
    }
}

#[tokio::test]
async fn another_country_takes_the_check_of_the_address_back_and_no_other() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let proof = json!({"documentType": "proof-of-address", "documentSide": "front",
        "data": STANDARD.encode(image(70))});
    // Of an address that an operator alone has seen there is nothing left.
    for (name, has_address, left) in [("ada", true, "present"), ("bob", false, "missing")] {
        let mut body = registration(name);
        body["identityDocument"] = json!([&proof]);
        if !has_address {
            for part in ["address", "addressNo", "postalCode", "city"] {
                body.as_object_mut().unwrap().remove(part);
            }
        }
        let identifier = body["identifier"].as_str().unwrap().to_owned();
        let user = registered(&acme, body).await;
        let verified = json!({
            "verification": {"identity": "verified", "residentialAddress": "verified"},
            "documents": [{"type": "proof-of-address", "side": "front", "status": "verified"}],
        });
        admin(&context, &user, Method::PATCH, "", verified).await.assert_status(200);
        let request =
            |method, path| acme.request(method, path).header("user-identifier", &identifier);
        for (country, address, document) in
            [("NL", "verified", "verified"), ("BE", left, "missing")]
        {
            let change = json!({ "country": country });
            let changed = request(Method::PATCH, "/api/v2/user").json(&change);
            changed.send().await.assert_status(200);
            let profile = request(Method::GET, "/api/v1/user/info").send().await;
            let profile = profile.assert_status(200).json();
            let details = &profile["status"]["details"];
            assert_eq!(details["residentialAddressStatus"], address, "{name} {country}");
            assert_eq!(details["documents"][0]["status"], document, "{name} {country}");
            assert_eq!(details["identityVerificationStatus"], "verified");
        }
    }
}

#[tokio::test]
async fn an_image_of_another_user_or_partner_is_not_found() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut body = registration("ada");
    body["identityDocument"] = json!([side("front", &image(100))]);
    let ada = registered(&acme, body).await;
    let id = shown(&context, &ada, "front").await["id"].as_str().unwrap().to_owned();
    let bob = acme.user("bob").await.log_in().await["uuid"].as_str().unwrap().to_owned();
    let path = format!("/documents/{id}");
    admin(&context, &bob, Method::GET, &path, json!({})).await.assert_status(404);
    admin(&context, &ada, Method::GET, "/documents/none", json!({})).await.assert_status(404);
    admin(&context, &ada, Method::GET, &path, json!({})).await.assert_status(200);
}

async fn run(context: &TestContext, statements: &'static str) {
    sqlx::raw_sql(statements).execute(context.db()).await.unwrap();
}

/// Names of the files in the store.
fn files(context: &TestContext) -> Vec<String> {
    let folder = context.core().settings.documents.folder.clone().unwrap();
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn an_image_whose_commit_failed_is_removed_after_an_hour_and_another_stays() {
    let folder = format!("rampart-documents-of-failed-commits-{}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    let context =
        TestContext::with(|settings| settings.documents.folder = Some(folder.clone())).await;
    let ada = context.partner("acme").await.user("ada").await;
    let send = async |name: &str| {
        let body = json!({"identityDocument": [side(name, &image(64))]});
        ada.patch("/api/v2/user", &body).await
    };
    send("front").await.assert_status(200);
    let kept = files(&context);
    run(
        &context,
        "create function fail() returns trigger language plpgsql as $$ begin
            raise exception using errcode = 'disk_full';
        end $$;
        create constraint trigger fail after insert on user_document
            deferrable initially deferred for each row execute function fail();",
    )
    .await;
    send("back").await.assert_status(503);
    assert_eq!(files(&context).len(), 2, "the commit may have been done");
    context.core().remove_documents().await.unwrap();
    assert_eq!(files(&context).len(), 2, "its request may still run");
    context.clock().advance(TimeDelta::hours(1));
    context.core().remove_documents().await.unwrap();
    assert_eq!(files(&context), kept);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn an_image_that_was_given_up_gets_no_row() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    run(
        &context,
        "create function give_up() returns trigger language plpgsql security definer as $$ begin
            delete from document_upload;
            return new;
        end $$;
        create trigger give_up before insert on user_document
            for each row execute function give_up();",
    )
    .await;
    let body = json!({"identityDocument": [side("front", &image(64))]});
    ada.patch("/api/v2/user", &body).await.assert_status(503);
    let rows: i64 = sqlx::query_scalar("select count(*) from user_document")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(rows, 0);
}
