//! A bank account by a photo.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{admin_path, changed, opened, seen};

const PATH: &str = "/api/v1/user/verify/iban/photo";
const IBAN: &str = "NL91ABNA0417164300";

fn image(start: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = start.to_vec();
    bytes.resize(size, 7);
    bytes
}

fn body(proof: &[u8]) -> Value {
    json!({"name": "Ada Lovelace", "iban": IBAN, "proof": STANDARD.encode(proof)})
}

#[tokio::test]
async fn a_proof_is_sealed_seen_and_decided_by_an_operator() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    // More than one piece, and more than an ordinary body.
    let photo = image(b"\x89PNG\r\n\x1a\n", 300_000);
    let started = ada.post(PATH, &body(&photo)).await.assert_status(200).json();
    assert_eq!(started, json!({"type": "photo", "status": "initiated", "data": {}}));
    let account = seen(&context, &ada).await.remove(0);
    assert_eq!(
        (&account["accountIdentifier"], &account["verified"]),
        (&json!(IBAN), &json!(false))
    );
    let proof = &account["proofs"][0];
    assert_eq!((&proof["mediaType"], &proof["size"]), (&json!("image/png"), &json!(300_000)));
    let id = proof["id"].as_str().unwrap();
    let path = format!("{}/proofs/{id}", admin_path(&ada).await);
    let shown = context.admin(Method::GET, &path, json!({})).await;
    assert_eq!(shown.assert_status(200).header("content-type"), Some("image/png"));
    assert_eq!(shown.bytes(), &photo);
    let folder = context.core().settings.documents.folder.clone().unwrap();
    let stored = std::fs::read(folder.join(id)).unwrap();
    assert!(!stored.windows(16).any(|piece| piece == [7; 16]), "the image is stored in clear");
    assert_eq!(
        changed(&context, &ada, IBAN, json!({"verified": true})).await["verified"],
        json!(true)
    );
}

#[tokio::test]
async fn the_newest_holder_counts_until_the_account_is_verified() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let named = |name: &str| {
        let mut body = body(&image(b"%PDF-1.7", 64));
        body["name"] = json!(name);
        body
    };
    for name in ["Ada Lovelac", "Ada Lovelace"] {
        ada.post(PATH, &named(name)).await.assert_status(200);
        assert_eq!(seen(&context, &ada).await[0]["name"], json!(name));
    }
    changed(&context, &ada, IBAN, json!({"verified": true})).await;
    ada.post(PATH, &named("Eve")).await.assert_status(200);
    let accounts = seen(&context, &ada).await;
    assert_eq!(accounts.len(), 1);
    assert_eq!(accounts[0]["name"], "Ada Lovelace", "it was verified under this name");
    assert_eq!(accounts[0]["proofs"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn an_account_is_verified_under_the_name_that_the_operator_has_seen() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let named = async |name: &str| {
        let mut body = body(&image(b"%PDF-1.7", 64));
        body["name"] = json!(name);
        ada.post(PATH, &body).await.assert_status(200);
        seen(&context, &ada).await.remove(0)
    };
    let (before, after) = (named("Ada Lovelace").await, named("Eve").await);
    let path = format!("{}/accounts/{IBAN}", admin_path(&ada).await);
    let verified = |account: &Value| json!({"verified": true, "version": account["version"]});
    let refused = context.admin(Method::PATCH, &path, verified(&before)).await;
    assert!(refused.assert_status(409).text().contains("another holder"), "{}", refused.text());
    assert_eq!(seen(&context, &ada).await[0]["verified"], json!(false));
    let done = changed(&context, &ada, IBAN, verified(&after)).await;
    assert_eq!((&done["name"], &done["verified"]), (&json!("Eve"), &json!(true)));
    assert_eq!(done["version"], after["version"], "the name is as it was");
}

#[tokio::test]
async fn every_image_type_is_told_by_its_first_bytes() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    for start in [&b"\xff\xd8\xff\xe0"[..], b"%PDF-1.7", b"\x89PNG\r\n\x1a\n"] {
        ada.post(PATH, &body(&image(start, 64))).await.assert_status(200);
    }
    assert_eq!(seen(&context, &ada).await[0]["proofs"].as_array().unwrap().len(), 3);
    let at_once = json!({"name": "Ada", "iban": "NL58ABNA0000000001",
        "proof": STANDARD.encode(image(b"%PDF-1.7", 64))});
    ada.post(PATH, &at_once).await.assert_status(200);
    assert_eq!(seen(&context, &ada).await[1]["verified"], json!(true));
}

#[tokio::test]
async fn every_mistake_has_its_code() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let valid = body(&image(b"%PDF-1.7", 64));
    for (member, value, code) in [
        ("name", None, "ER057"),
        ("name", Some(json!(null)), "ER057"),
        ("name", Some(json!("")), "ER185"),
        ("iban", None, "ER088"),
        ("iban", Some(json!("")), "ER113"),
        ("iban", Some(json!("NL91ABNA0417164301")), "ER056"),
        ("iban", Some(json!(7)), "ER056"),
        ("iban", Some(json!("NL64ABNA0000000087")), "ER087"),
        ("proof", None, "ER186"),
        ("proof", Some(json!(null)), "ER077"),
        ("proof", Some(json!("")), "ER077"),
        ("proof", Some(json!("not base64!")), "ER078"),
        ("proof", Some(json!(STANDARD.encode("<html></html>"))), "ER078"),
    ] {
        let mut body = valid.clone();
        match &value {
            Some(value) => body[member] = value.clone(),
            None => _ = body.as_object_mut().unwrap().remove(member),
        }
        let answer = ada.post(PATH, &body).await;
        assert_eq!(answer.codes(), [code], "{member} {value:?}");
    }
    ada.post(PATH, &json!({})).await.assert_codes(&["ER057", "ER088", "ER186"]);
    let account =
        json!({"type": "bankTransfer", "identifier": IBAN, "name": "A", "disabled": true});
    opened(&context, &ada, account).await;
    ada.post(PATH, &valid).await.assert_codes(&["ER086"]);
    let large = ada.request(Method::POST, PATH).body(vec![b' '; 64 * 1024 * 1024 + 1]).send().await;
    large.assert_status(413).assert_codes(&["ER078"]);
}

#[tokio::test]
async fn no_proof_of_a_disabled_account_is_stored() {
    let folder = format!("rampart-proofs-of-disabled-accounts-{}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    let context =
        TestContext::with(|settings| settings.documents.folder = Some(folder.clone())).await;
    let ada = context.partner("acme").await.user("ada").await;
    let account =
        json!({"type": "bankTransfer", "identifier": IBAN, "name": "A", "disabled": true});
    opened(&context, &ada, account).await;
    let mut valid = body(&image(b"%PDF-1.7", 64));
    ada.post(PATH, &valid).await.assert_status(400).assert_codes(&["ER086"]);
    assert!(!folder.exists(), "the store is made with its first object");
    valid["iban"] = json!("NL58ABNA0000000001");
    ada.post(PATH, &valid).await.assert_status(200);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn uploads_have_a_rate_of_their_own() {
    let context =
        TestContext::with(|settings| settings.ratelimit.uploads = "2/h".parse().unwrap()).await;
    let acme = context.partner("acme").await;
    let (ada, eve) = (acme.user("ada").await, acme.user("eve").await);
    let valid = body(&image(b"%PDF-1.7", 64));
    for _ in 0..2 {
        ada.post(PATH, &valid).await.assert_status(200);
    }
    ada.post(PATH, &valid).await.assert_status(429).assert_codes(&["920"]);
    eve.post(PATH, &valid).await.assert_status(200);
}

#[tokio::test]
async fn an_account_has_32_proofs_at_most() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let mut valid = body(&image(b"%PDF-1.7", 64));
    ada.post(PATH, &valid).await.assert_status(200);
    let more = "insert into ownership_proof (client_id, user_id, account_id, proof_id, \
                media_type, size, created_at) \
                select client_id, user_id, account_id, gen_random_uuid(), media_type, size, \
                created_at from ownership_proof, generate_series(1, 30)";
    sqlx::query(more).execute(context.db()).await.unwrap();
    ada.post(PATH, &valid).await.assert_status(200);
    ada.post(PATH, &valid).await.assert_status(400).assert_codes(&["ER708"]);
    valid["iban"] = json!("NL58ABNA0000000001");
    ada.post(PATH, &valid).await.assert_status(200);
}

#[tokio::test]
async fn the_database_has_no_iban_and_no_name() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    ada.post(PATH, &body(&image(b"%PDF-1.7", 64))).await.assert_status(200);
    let rows: Vec<String> = sqlx::query_scalar("select to_jsonb(a)::text from payment_account a")
        .fetch_all(context.db())
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    assert!(!rows[0].contains(IBAN) && !rows[0].contains("Lovelace"));
    let hex: String = IBAN.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!rows[0].contains(&hex));
    let path = admin_path(&ada).await;
    context.admin(Method::PATCH, &path, json!({"deleted": true})).await.assert_status(200);
    let left: i64 =
        sqlx::query_scalar("select count(*) from payment_account where sealed is not null")
            .fetch_one(context.db())
            .await
            .unwrap();
    assert_eq!(left, 0);
}
