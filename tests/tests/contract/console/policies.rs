//! Policies: uploads, dry runs, and what an operator signs with a key of their own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rampart_tests::guests::component;
use rampart_tests::keys::ed25519;
use ring::signature::Ed25519KeyPair;

use super::*;

const POLICY: &str = "/console/partners/acme/policies/fee";
const CALL: &str = "/admin/v1/partners/acme/policies/fee";
const KEYS: &str = "/console/operators/~/keys";
const QUOTE: &str = "/api/v1/buy/quote";

impl Shown {
    /// The bytes that a form shows to be signed.
    fn to_be_signed(&self) -> String {
        let (_, rest) = self.text.split_once("To be signed").unwrap();
        let (_, rest) = rest.split_once("<pre tabindex=\"0\">").unwrap();
        rest.split("</pre>").next().unwrap().replace("&quot;", "\"")
    }

    /// The text in a field of several lines.
    fn lines(&self, name: &str) -> String {
        let (_, rest) = self.text.split_once(&format!("name=\"{name}\" rows")).unwrap();
        let (_, rest) = rest.split_once('>').unwrap();
        rest.split("</textarea>").next().unwrap().replace("&quot;", "\"")
    }
}

/// Sends the form of an upload with these members and a component, as a browser does.
async fn upload(browser: &Browser<'_>, members: &[(&str, &str)]) -> Shown {
    let path = format!("{POLICY}/upload");
    let form = browser.get(&path).await.assert(200, "enctype=\"multipart/form-data\"");
    let token = form.csrf_token();
    let mut body = Vec::new();
    for (name, value) in members.iter().copied().chain([("csrfToken", &*token)]) {
        let head = format!("--b1\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend_from_slice(format!("{head}{value}\r\n").as_bytes());
    }
    let head = "--b1\r\nContent-Disposition: form-data; name=\"component\"; filename=\"a.wasm\"\
                \r\n\r\n";
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(&component("tiered-fee"));
    body.extend_from_slice(b"\r\n--b1--\r\n");
    let media_type = ("content-type", "multipart/form-data; boundary=b1");
    browser.send(Method::POST, &path, &[media_type], body.into()).await
}

async fn history(context: &TestContext) -> Value {
    context.admin(Method::GET, CALL, Value::Null).await.assert_status(200).json()
}

fn sign(pair: &Ed25519KeyPair, text: &str) -> String {
    STANDARD.encode(pair.sign(text.as_bytes()))
}

#[tokio::test]
async fn a_call_whose_body_is_not_kept_is_made_again_where_it_was_made() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let demand = json!({"policyApprovalRequired": true});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", demand).await.assert_status(200);
    let token = context.operator("ada", &["platform"]).await;
    let ada = Browser::new(&context);
    ada.sign_in(&token).await.assert(303, "");
    let bob = Browser::of(&context, "bob", &["platform"]).await;
    let key = "/admin/v1/partners/acme/verification-keys/shared";
    let secret = json!({"algorithm": "hmac-sha256", "key": STANDARD.encode([7; 32])});
    let calls: [(&str, Bytes, &str); 2] = [
        (CALL, Bytes::from_static(b"a component"), "sha256"),
        (key, secret.to_string().into(), "fingerprint"),
    ];
    for (path, body, digest) in calls {
        let waits = context.admin_as(Some(&token), Method::PUT, path, body).await;
        let waits = waits.assert_status(202).json();
        let approval = format!("/console/approvals/{}", waits["approval"].as_str().unwrap());
        bob.submit(&format!("{approval}/grant"), &[]).await.assert(303, "");
        let listed = ada.get("/console/approvals").await.assert(200, digest);
        let listed = listed.assert(200, "make the same call again");
        assert!(!listed.text.contains("/carry-out"), "{}", listed.text);
        let carry_out = format!("{approval}/carry-out");
        ada.get(&carry_out).await.assert(409, "make the same call again");
    }
}

#[tokio::test]
async fn a_version_is_uploaded_and_runs_on_recorded_requests() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    upload(&ada, &[]).await.assert(422, "Reason is missing");
    let wrong = [("reason", "tariff"), ("config", "{\"colour\": 1}")];
    upload(&ada, &wrong).await.assert(422, "no configuration `colour`");
    assert_eq!(history(&context).await["versions"], json!([]));
    let members = [("reason", "new tariff"), ("config", "{\"tiers\": [\"0=20000\"]}")];
    let made = upload(&ada, &members).await.assert(303, "");
    let shown = ada.get(made.header("location")).await.assert(200, "Done: Upload a version.");
    assert!(shown.text.contains("new tariff"), "{}", shown.text);
    let version = &history(&context).await["versions"][0];
    assert_eq!((&version["version"], &version["active"]), (&json!(1), &json!(false)));
    assert_eq!(version["config"], json!({"tiers": ["0=20000"]}));

    let activate = format!("{POLICY}/versions/1/activate");
    ada.submit(&activate, &[("reason", "go")]).await.assert(303, "");
    let dry_run = format!("{POLICY}/versions/1/dry-run");
    let link = format!("{dry_run}?version=1");
    ada.get(POLICY).await.assert(200, &format!("href=\"{link}\""));
    ada.get(&link).await.assert(200, "value=\"1\"");
    let nothing = ada.submit(&dry_run, &[("version", "1")]).await;
    nothing.assert(409, "nothing has been recorded yet");
    let asked = json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer",
        "fiatAmount": 100, "countryCode": "DE"});
    acme.post(QUOTE, asked).await.assert_status(200);
    context.core().run_policy_shadows().await.unwrap();
    let ran = ada.submit(&dry_run, &[("version", "1")]).await.assert(200, "Done: Dry run.");
    assert!(ran.text.contains("&quot;rule&quot;: &quot;tier-"), "{}", ran.text);
    let viewer = Browser::of(&context, "eve", &["viewer"]).await;
    let page = viewer.get(POLICY).await.assert(200, "Versions");
    assert!(!page.text.contains("/upload") && !page.text.contains("/dry-run"), "{}", page.text);
}

#[tokio::test]
async fn a_shadow_run_is_seen_beside_the_active_version_field_by_field() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    context.admin_bytes(Method::PUT, CALL, component("hostile")).await.assert_status(200);
    upload(&ada, &[("reason", "tariff"), ("config", "{}")]).await.assert(303, "");
    let shadow = format!("{POLICY}/versions/2/shadow");
    ada.submit(&shadow, &[("reason", "look")]).await.assert(303, "");
    let asked = json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer",
        "fiatAmount": 100, "countryCode": "DE"});
    acme.post(QUOTE, asked).await.assert_status(200);
    context.core().run_policy_shadows().await.unwrap();
    let page = ada.get(POLICY).await.assert(200, "Request 1: different");
    for part in [
        "<code>rule</code></td><td>behaved</td><td>tier-1</td>",
        "Tried version</th>",
        "Input of request 1",
        "<dd>DE</dd>",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    assert!(!page.text.contains("&quot;rule&quot;"), "{}", page.text);
}

#[tokio::test]
async fn the_log_of_live_calls_is_shown() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let logged = "insert into policy_log (client_id, kind, slot, version, request_id, lines, at) \
        select client_id, 'fee', 0, 1, 'request-7', \
            '[{\"level\": \"warn\", \"text\": \"no tier\"}]', now() \
        from client where slug = 'acme'";
    sqlx::query(logged).execute(context.db()).await.unwrap();
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    let page = ada.get(POLICY).await.assert(200, "Log of live calls");
    page.assert(200, "request-7").assert(200, "warn no tier");
}

/// The browser of an operator whose key signs the changes of a partner that needs signatures.
async fn signer(context: &TestContext) -> (Browser<'_>, Ed25519KeyPair) {
    context.partner("acme").await;
    let (pair, pem) = ed25519(7);
    let ada = Browser::of(context, "ada", &["owner"]).await;
    ada.get("/console/operators").await.assert(200, &format!("href=\"{KEYS}\""));
    let key = [("name", "release"), ("publicKey", &*pem)];
    let registered = ada.submit(&format!("{KEYS}/register"), &key).await.assert(303, "");
    ada.get(registered.header("location")).await.assert(200, "Done: Register a key.");
    ada.get(KEYS).await.assert(200, "release");
    ada.submit("/console/partners/acme/require-signatures", &[]).await.assert(303, "");
    (ada, pair)
}

#[tokio::test]
async fn a_manifest_that_is_asked_for_again_is_the_same() {
    let context = TestContext::start().await;
    let (ada, pair) = signer(&context).await;
    let typed = [("reason", "first"), ("signature.key", "release"), ("failClosed", "yes")];
    let config = ("config", "{\"tiers\": [\"0=20000\"]}");
    let named: Vec<_> = typed.into_iter().chain([config]).collect();
    let shown = upload(&ada, &named).await.assert(422, "To be signed");
    let shown = shown.assert(422, "<option value=\"yes\" selected>");
    assert!(!shown.text.contains("quarter of an hour"), "a manifest has no time");
    let bytes = shown.to_be_signed();
    // The form as it is shown, once more without a signature.
    let (config, manifest) = (shown.lines("config"), shown.lines("manifest"));
    let filled = [("config", &*config), ("manifest", &*manifest)];
    let again: Vec<_> = typed.into_iter().chain(filled).collect();
    let shown = upload(&ada, &again).await.assert(422, "To be signed");
    assert_eq!(shown.to_be_signed(), bytes);
    let signature = sign(&pair, &bytes);
    let signed: Vec<_> = again.into_iter().chain([("signature.value", &*signature)]).collect();
    upload(&ada, &signed).await.assert(303, "");
    let version = &history(&context).await["versions"][0];
    assert_eq!((&version["signedBy"], &version["failClosed"]), (&json!("release"), &json!(true)));
    assert_eq!(version["config"], json!({"tiers": ["0=20000"]}));
}

#[tokio::test]
async fn a_link_shows_nobody_a_text_to_sign() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let members = [
        "manifest",
        "signature.key",
        "signature.value",
        "signed.key",
        "signed.statement",
        "signed.value",
        "shown.config",
    ];
    let planted = members.map(|member| format!("{member}=planted")).join("&");
    for action in ["upload", "rollback"] {
        let link = format!("{POLICY}/{action}?reason=typed&{planted}");
        let page = ada.get(&link).await.assert(200, "typed</textarea>");
        assert!(!page.text.contains("planted"), "{}", page.text);
        assert!(!page.text.contains("To be signed"), "{}", page.text);
    }
}

#[tokio::test]
async fn what_must_be_signed_is_shown_and_its_signature_taken() {
    let context = TestContext::start().await;
    let (ada, pair) = signer(&context).await;
    // A version by its manifest.
    upload(&ada, &[("reason", "first")]).await.assert(422, "signed manifest is required");
    let config = "{\"tiers\": [\"0=20000\"]}";
    let named = [("reason", "first"), ("config", config), ("signature.key", "release")];
    let shown = upload(&ada, &named).await.assert(422, "To be signed");
    let bytes = shown.to_be_signed();
    let (domain, manifest) = bytes.split_once('\n').unwrap();
    assert_eq!(domain, "rampart policy manifest 1");
    let members: Value = serde_json::from_str(manifest).unwrap();
    assert_eq!((&members["version"], &members["kind"]), (&json!(1), &json!("fee")));
    assert_eq!(members["config"], json!({"tiers": ["0=20000"]}));
    let signature = sign(&pair, &bytes);
    let signed = [
        ("reason", "first"),
        ("signature.key", "release"),
        ("manifest", manifest),
        ("signature.value", &*signature),
    ];
    upload(&ada, &signed).await.assert(303, "");
    assert_eq!(history(&context).await["versions"][0]["signedBy"], "release");

    // A change by its statement.
    let activate = format!("{POLICY}/versions/1/activate");
    let unsigned = ada.submit(&activate, &[("reason", "go")]).await;
    unsigned.assert(409, "signed by a registered key");
    let named = [("reason", "go"), ("signed.key", "release")];
    let shown = ada.submit(&activate, &named).await.assert(422, "To be signed");
    let shown = shown.assert(422, "within a quarter of an hour");
    let bytes = shown.to_be_signed();
    let (domain, statement) = bytes.split_once('\n').unwrap();
    assert_eq!(domain, "rampart policy change 1");
    let members: Value = serde_json::from_str(statement).unwrap();
    let wanted = json!({"action": "policy.activate", "partner": "acme", "kind": "fee",
        "version": 1, "percentage": 100, "at": members["at"]});
    assert_eq!(members, wanted);
    assert!(history(&context).await["active"].is_null(), "nothing is done yet");
    let signature = sign(&pair, &bytes);
    let signed = [
        ("reason", "go"),
        ("signed.key", "release"),
        ("signed.statement", statement),
        ("signed.value", &*signature),
    ];
    ada.submit(&activate, &signed).await.assert(303, "");
    assert_eq!(history(&context).await["active"], 1);
}

#[tokio::test]
async fn verification_keys_are_set_and_deleted_by_name() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let page = "/console/partners/acme/verification-keys";
    ada.get("/console/partners/acme").await.assert(200, &format!("href=\"{page}\""));
    let pem = ed25519(8).1;
    let key = [("name", "main"), ("algorithm", "ed25519"), ("key", &*pem)];
    let wrong = [("name", "main"), ("algorithm", "rot13"), ("key", &*pem)];
    ada.submit(&format!("{page}/set"), &wrong).await.assert(422, "algorithm: one of");
    let done = ada.submit(&format!("{page}/set"), &key).await.assert(303, "");
    ada.get(done.header("location")).await.assert(200, "Done: Set a verification key.");
    let row = audited(&context, "verification-key.put").await;
    assert_eq!((&row["actor"], &row["detail"]["name"]), (&json!("ada"), &json!("main")));
    ada.get(page).await.assert(200, "ed25519");
    let file = ada.get("/console/partners/acme/~/verification-keys?format=csv&columns=Key").await;
    file.assert(200, "Key\r\nmain\r\n");
    let gone = [("name", "main")];
    ada.submit(&format!("{page}/delete"), &gone).await.assert(303, "");
    ada.submit(&format!("{page}/delete"), &gone).await.assert(404, "");
}
