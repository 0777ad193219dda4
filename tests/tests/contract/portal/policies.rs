//! Policies: versions that staff upload where operators allow it, and what they see of them.

mod unexamined;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use rampart_core::policies::manifest::digest_hex;
use rampart_tests::answer::Answer;
use rampart_tests::cluster::commit_once_awaited;
use rampart_tests::guests::component;
use rampart_tests::keys::ed25519;
use rampart_tests::partner::Partner;
use rampart_tests::staff::Staff;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::audited;

const PATH: &str = "/portal/policies";
const PARTNER: &str = "/admin/v1/partners/acme";
const FEE: &str = "/admin/v1/partners/acme/policies/fee";
const VERSION_1: &str = "/portal/policies/fee/versions/1";
/// Checks of an examination.
const CHECKS: usize = 10;

/// A deployment with a partner, `acme`, whose staff may upload.
async fn context() -> (TestContext, Partner) {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    allow(&context, true).await;
    (context, acme)
}

async fn allow(context: &TestContext, allowed: bool) {
    let change = json!({ "policyUploadAllowed": allowed });
    let partner = context.admin(Method::PATCH, PARTNER, change).await.assert_status(200).json();
    assert_eq!(partner["policyUploadAllowed"], allowed);
}

/// Sends a fee policy with these fields.
async fn upload(staff: &mut Staff, wasm: &[u8], fields: &[(&str, &str)]) -> Answer {
    staff.get(PATH).await.assert_status(200);
    let fields: Vec<_> = [("kind", "fee")].into_iter().chain(fields.iter().copied()).collect();
    staff.submit_file(PATH, "component", wasm, &fields).await
}

/// The page that an answer leads to.
async fn follow(staff: &mut Staff, answer: &Answer) -> String {
    let path = answer.assert_status(303).header("location").unwrap().to_owned();
    staff.get(&path).await.assert_status(200).text().to_owned()
}

/// Counts the badges of a page that say this.
fn badges(page: &str, text: &str) -> usize {
    page.matches(&format!("\">{text}</span>")).count()
}

async fn history(context: &TestContext) -> Value {
    context.admin(Method::GET, FEE, Value::Null).await.assert_status(200).json()
}

#[tokio::test]
async fn a_version_is_uploaded_where_operators_allow_it_and_serves_nobody() {
    let (context, acme) = context().await;
    allow(&context, false).await;
    let mut ada = Staff::signed_in(&context, &acme, "developer").await;
    let mut support = Staff::signed_in(&context, &acme, "support").await;
    let wasm = component("tiered-fee");
    let refused = upload(&mut ada, &wasm, &[]).await;
    let text = refused.assert_status(403).text();
    assert!(text.contains("An operator of this service can allow it."), "{text}");
    let page = ada.get(PATH).await;
    assert!(!page.text().contains("type=\"file\"") && page.text().contains("can allow it"));

    allow(&context, true).await;
    assert!(ada.get(PATH).await.text().contains("type=\"file\""));
    assert!(!support.get(PATH).await.text().contains("type=\"file\""));
    upload(&mut support, &wasm, &[]).await.assert_status(403);
    let config = [("config", r#"{"tiers": ["0=20000"]}"#), ("reason", "new tariff")];
    let stored = upload(&mut ada, &wasm, &config).await;
    assert_eq!(stored.header("location"), Some(&*format!("{VERSION_1}?done=staged")));
    let text = follow(&mut ada, &stored).await;
    assert_eq!((badges(&text, "passed"), badges(&text, "examined")), (CHECKS, 1), "{text}");
    for part in ["developer@acme.example", "new tariff", "0=20000", "rampart/tiered-fee"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let list = support.get(PATH).await.text().to_owned();
    assert!(list.contains(VERSION_1) && badges(&list, "built-in rule") == 3, "{list}");
    assert!(!support.get(VERSION_1).await.assert_status(200).text().contains("/dry-run"));

    let stored = history(&context).await;
    assert_eq!((&stored["active"], &stored["trial"]), (&Value::Null, &Value::Null));
    assert!(stored["versions"][0]["sampleFuel"].as_i64().unwrap() > 0);
    let author = stored["versions"][0]["createdBy"].as_str().unwrap();
    assert!(author.starts_with("staff:"), "{author}");
    assert_eq!(stored["changes"][0]["actor"], author);
    assert_eq!(audited(&context).await, [("policy.stage".to_owned(), "acme".to_owned())]);
    // Operators activate it.
    let activate = format!("{FEE}/versions/1/activate");
    context.admin(Method::POST, &activate, json!({})).await.assert_status(200);
    assert_eq!(badges(ada.get(PATH).await.text(), "active"), 1);
}

#[tokio::test]
async fn what_fails_its_examination_is_shown_with_the_check_and_not_stored() {
    let (context, acme) = context().await;
    let mut ada = Staff::signed_in(&context, &acme, "developer").await;
    let large = vec![0; (2 << 20) + 1];
    let mode = |mode: &str| format!("{{\"mode\": \"{mode}\"}}");
    let (unknown, refused, endless) = (r#"{"mood": 1}"#, mode("refuse"), mode("loop"));
    let cases: [(Bytes, &str, usize, &str); 7] = [
        (large.into(), "", 0, "at most 2097152"),
        ("\0asm nonsense".into(), "", 1, "not a component"),
        (component("country-order"), "", 3, "not exactly fee"),
        (component("hostile-start"), "", 6, "`describe` failed: fuel"),
        (component("hostile"), unknown, 7, "no configuration `mood`"),
        (component("hostile"), &refused, 7, "cannot be `refuse`"),
        (component("hostile"), &endless, 8, "fuel"),
    ];
    for (wasm, config, passed, reason) in &cases {
        let answer = upload(&mut ada, wasm, &[("config", config)]).await;
        let text = follow(&mut ada, &answer).await;
        assert!(text.contains(reason), "{reason}: {text}");
        let found = ["passed", "failed", "not made"].map(|state| badges(&text, state));
        assert_eq!(found, [*passed, 1, CHECKS - 1 - passed], "{reason}: {text}");
        assert!(text.contains("developer@acme.example") && text.contains("Nothing was stored."));
    }
    let list = ada.get(PATH).await;
    assert_eq!(list.text().matches("/portal/policies/uploads/").count(), cases.len());
    let expected = ("policy.refuse".to_owned(), "acme".to_owned());
    assert_eq!(audited(&context).await, vec![expected; cases.len()]);
    assert_eq!(history(&context).await["versions"], json!([]));
    let kept: i64 = sqlx::query_scalar("select count(*) from policy_component")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(kept, 0);
}

#[tokio::test]
async fn a_form_that_is_wrong_names_its_fields_and_a_body_is_bounded() {
    let (context, acme) = context().await;
    let mut ada = Staff::signed_in(&context, &acme, "owner").await;
    let answer = upload(&mut ada, b"", &[("config", "[]"), ("signatureKey", "release")]).await;
    let text = answer.assert_status(400).text();
    for field in ["component", "config", "manifest"] {
        assert!(text.contains(&format!("href=\"#field-{field}\"")), "{field}: {text}");
    }
    assert!(text.contains(">[]</textarea>"), "{text}");
    let dense = format!(r#"{{"tiers": [{}0]}}"#, "[],".repeat(20_000));
    let answer = upload(&mut ada, b"\0asm", &[("config", dense.as_str())]).await;
    assert!(answer.assert_status(400).text().contains("It has too many values."));
    let huge = vec![0; rampart_api::operate::admin::BODY_BYTES_MAX + 1];
    upload(&mut ada, &huge, &[]).await.assert_status(413);
    assert_eq!(audited(&context).await, []);
}

#[tokio::test]
async fn where_signatures_are_required_a_signed_manifest_comes_with_the_component() {
    let (context, acme) = context().await;
    let (pair, public) = ed25519(7);
    let key = json!({"publicKey": public});
    context.admin(Method::PUT, "/admin/v1/operator-keys/release", key).await.assert_status(200);
    let require = json!({"policySignatureRequired": true});
    context.admin(Method::PATCH, PARTNER, require).await.assert_status(200);
    let mut ada = Staff::signed_in(&context, &acme, "developer").await;
    let wasm = component("tiered-fee");
    let unsigned = upload(&mut ada, &wasm, &[]).await;
    let text = follow(&mut ada, &unsigned).await;
    assert!(text.contains("a signed manifest is required here"), "{text}");
    let manifest = json!({"partner": "acme", "kind": "fee", "version": 1,
        "digest": digest_hex(&wasm), "config": {}, "failClosed": true});
    let manifest = manifest.to_string();
    let signature = pair.sign(format!("rampart policy manifest 1\n{manifest}").as_bytes());
    let signed = async |staff: &mut Staff, signature: &[u8]| {
        let value = STANDARD.encode(signature);
        staff.get(PATH).await.assert_status(200);
        let files = [("component", &wasm[..]), ("manifest", manifest.as_bytes())];
        let fields = [("kind", "fee"), ("signatureKey", "release"), ("signature", &*value)];
        staff.submit_files(PATH, &files, &fields).await
    };
    let forged = signed(&mut ada, &[7; 64]).await;
    assert!(follow(&mut ada, &forged).await.contains("its signature is not good"));
    let stored = signed(&mut ada, signature.as_ref()).await;
    let text = follow(&mut ada, &stored).await;
    assert!(text.contains("<dd>release</dd>"), "{text}");
    assert!(text.contains("the request is refused"), "{text}");
    assert_eq!(history(&context).await["versions"][0]["signedBy"], "release");
}

#[tokio::test]
async fn another_partner_sees_and_runs_nothing() {
    let (context, acme) = context().await;
    let rival = context.partner("rival").await;
    let mut ada = Staff::signed_in(&context, &acme, "owner").await;
    let refused = upload(&mut ada, b"nonsense", &[]).await;
    let refused = refused.header("location").unwrap().to_owned();
    upload(&mut ada, &component("tiered-fee"), &[]).await.assert_status(303);
    let mut eve = Staff::signed_in(&context, &rival, "owner").await;
    assert!(!eve.get(PATH).await.text().contains("/portal/policies/"));
    // Neither is a policy of its own, nor may its staff upload one.
    for path in [VERSION_1, &refused] {
        eve.get(path).await.assert_status(404);
        ada.get(path).await.assert_status(200);
    }
    eve.submit(&format!("{VERSION_1}/dry-run"), &[]).await.assert_status(404);
    upload(&mut eve, &component("tiered-fee"), &[]).await.assert_status(403);
    for path in [
        "/portal/policies/fee/versions/2",
        "/portal/policies/fees/versions/1",
        "/portal/policies/fee/versions/one",
        "/portal/policies/uploads/1",
    ] {
        ada.get(path).await.assert_status(404);
    }
}

/// Asks for a quote, which a fee policy sees.
async fn quote(acme: &Partner, country: &str) {
    let body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer",
        "fiatAmount": 100, "countryCode": country});
    acme.post("/api/v1/buy/quote", body).await.assert_status(200);
}

#[tokio::test]
async fn a_dry_run_shows_where_a_version_answers_differently() {
    let (context, acme) = context().await;
    let mut ada = Staff::signed_in(&context, &acme, "developer").await;
    context.admin_bytes(Method::PUT, FEE, component("hostile")).await.assert_status(200);
    upload(&mut ada, &component("tiered-fee"), &[("config", "{}")]).await.assert_status(303);
    let panics = [("config", r#"{"mode": "panic@FR"}"#)];
    upload(&mut ada, &component("hostile"), &panics).await.assert_status(303);
    let run = |version: u8| format!("/portal/policies/fee/versions/{version}/dry-run");
    let nothing = ada.submit(&run(2), &[]).await;
    assert!(nothing.assert_status(409).text().contains("nothing has been recorded yet"));
    for country in ["DE", "FR"] {
        quote(&acme, country).await;
        context.clock().advance(chrono::TimeDelta::seconds(1));
    }
    context.core().run_policy_shadows().await.unwrap();
    let states = ["same", "different", "failed"];
    for (version, expected, parts) in [
        (2, [0, 2, 0], ["tier-1", "behaved"]),
        (3, [1, 0, 1], ["<td>trap</td>", "behaved"]),
        (1, [2, 0, 0], ["behaved", "<dd>FR</dd>"]),
    ] {
        let page = ada.submit(&run(version), &[]).await;
        let text = page.assert_status(200).text();
        let found = states.map(|state| text.matches(&format!(": {state}</caption>")).count());
        assert_eq!(found, expected, "{version}: {text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{version}: {text}");
    }
    let dry_runs = audited(&context).await;
    let dry_runs = dry_runs.iter().filter(|(action, _)| action == "policy.dry-run").count();
    assert_eq!(dry_runs, 3, "the one that was refused did not run");
    let changes = history(&context).await["changes"].to_string();
    assert!(!changes.contains("dry-run"), "{changes}");
    let mut support = Staff::signed_in(&context, &acme, "support").await;
    support.submit(&run(2), &[]).await.assert_status(403);
}

#[tokio::test]
async fn a_shadow_run_and_a_canary_are_seen_with_their_differences() {
    let (context, acme) = context().await;
    let mut ada = Staff::signed_in(&context, &acme, "developer").await;
    context.admin_bytes(Method::PUT, FEE, component("hostile")).await.assert_status(200);
    upload(&mut ada, &component("tiered-fee"), &[("config", "{}")]).await.assert_status(303);
    let version = "/portal/policies/fee/versions/2";
    let shadow = format!("{FEE}/versions/2/shadow");
    context.admin(Method::POST, &shadow, json!({})).await.assert_status(200);
    assert!(ada.get(version).await.text().contains("No difference."));
    quote(&acme, "DE").await;
    context.core().run_policy_shadows().await.unwrap();
    let page = ada.get(version).await;
    let text = page.text();
    assert_eq!(badges(text, "shadow"), 1, "{text}");
    assert!(text.contains("Request 1: different"), "{text}");
    assert!(text.contains("<td>behaved</td><td>tier-1</td>"), "{text}");
    assert!(!ada.get("/portal/policies/fee/versions/1").await.text().contains("tier-1"));
    let activate = format!("{FEE}/versions/2/activate");
    let share = json!({"percentage": 25});
    context.admin(Method::POST, &activate, share).await.assert_status(200);
    assert_eq!(badges(ada.get(PATH).await.text(), "canary: 25 % of the users"), 1);
}

#[tokio::test]
async fn uploads_of_a_day_are_bounded_also_when_they_come_at_once() {
    let (context, acme) = context().await;
    let mut ada = Staff::signed_in(&context, &acme, "developer").await;
    for _ in 0..19 {
        upload(&mut ada, b"nonsense", &[]).await.assert_status(303);
    }
    let (mut one, mut other) = (ada.clone(), ada.clone());
    let fields = [("kind", "fee")];
    let (one, other) = tokio::join!(
        one.submit_file(PATH, "component", b"nonsense", &fields),
        other.submit_file(PATH, "component", b"nonsense", &fields),
    );
    let mut statuses = [one.status(), other.status()];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 409]);
    let full = upload(&mut ada, b"nonsense", &[]).await;
    assert!(full.assert_status(409).text().contains("20 uploads in 24 hours"));
    context.clock().advance(chrono::TimeDelta::hours(25));
    ada.signs_in(rampart_tests::staff::PASSWORD).await.assert_status(303);
    upload(&mut ada, b"nonsense", &[]).await.assert_status(303);
}

#[tokio::test]
async fn of_uploads_that_never_served_the_newest_are_kept() {
    let (context, acme) = context().await;
    let mut ada = Staff::signed_in(&context, &acme, "developer").await;
    let config = [("config", r#"{"tiers": ["0=20000"]}"#)];
    upload(&mut ada, &component("tiered-fee"), &config).await.assert_status(303);
    let others = [
        "insert into policy_component (digest, component, created_at) \
            select md5(n::text), '\\x00', rampart_now() - interval '2 days' \
            from generate_series(4, 31) n",
        "insert into policy_version (client_id, kind, version, digest, size, info, config, \
                active, created_by, created_at, has_served) \
            select client_id, kind, n, case when n < 4 then digest else md5(n::text) end, size, \
                info, config, false, case when n = 4 then 'admin' else created_by end, \
                rampart_now() - interval '2 days', has_served \
            from policy_version, generate_series(2, 30) n where version = 1",
    ];
    for other in others {
        sqlx::query(other).execute(context.db()).await.unwrap();
    }
    // Two have been active, one has served a part of the users, and an operator has staged one.
    for (version, share) in [(1, 100), (2, 100), (3, 10)] {
        let activate = format!("{FEE}/versions/{version}/activate");
        let share = json!({ "percentage": share });
        context.admin(Method::POST, &activate, share).await.assert_status(200);
    }
    context.admin(Method::DELETE, FEE, json!({})).await.assert_status(204);
    // A shadow run of another is about to begin.
    let mut somebody = context.db().begin().await.unwrap();
    for change in [
        "select from policy_version where version = 10 for no key update",
        "insert into policy_trial (client_id, kind, trial_id, version, started_by, started_at) \
            select client_id, kind, gen_random_uuid(), version, 'admin', now() \
            from policy_version where version = 10",
    ] {
        sqlx::query(change).execute(&mut *somebody).await.unwrap();
    }
    context.core().delete_unused_policy_versions().await.unwrap();
    somebody.commit().await.unwrap();
    context.core().delete_unused_policy_versions().await.unwrap();
    let left = "select version from policy_version order by version";
    let left: Vec<i64> = sqlx::query_scalar(left).fetch_all(context.db()).await.unwrap();
    assert_eq!(left, (1..=4).chain(10..=30).collect::<Vec<i64>>());
    let components = "select count(*) from policy_component";
    let components: i64 = sqlx::query_scalar(components).fetch_one(context.db()).await.unwrap();
    assert_eq!(components, 23, "those of the versions that are left");
}

#[tokio::test]
async fn an_upload_waits_for_another_as_long_as_an_examination_may_take() {
    let (context, acme) = context().await;
    let mut ada = Staff::signed_in(&context, &acme, "developer").await;
    upload(&mut ada, b"nonsense", &[]).await.assert_status(303);
    let examined_for = async |seconds: i64| {
        let begun = "update policy_upload set ended_at = null, failed_check = null, refusal = null, \
            created_at = rampart_now() - $1 * interval '1 second'";
        sqlx::query(begun).bind(seconds).execute(context.db()).await.unwrap();
    };
    // Twice the processor time of a compilation.
    let longest = 2 * context.core().settings.policy.compile_timeout_ms / 1_000;
    examined_for(i64::try_from(longest).unwrap()).await;
    let waits = upload(&mut ada, b"nonsense", &[]).await;
    assert!(waits.assert_status(409).text().contains("Another upload is being examined"));
    examined_for(i64::try_from(longest).unwrap() + 60).await;
    upload(&mut ada, b"nonsense", &[]).await.assert_status(303);
}

#[tokio::test]
async fn an_upload_of_a_member_who_is_removed_meanwhile_is_not_examined() {
    let (context, acme) = context().await;
    let mut ada = Staff::signed_in(&context, &acme, "developer").await;
    ada.get(PATH).await.assert_status(200);
    let mut somebody = context.db().begin().await.unwrap();
    for change in ["select from client for update", "delete from staff_member"] {
        sqlx::query(change).execute(&mut *somebody).await.unwrap();
    }
    let commit = commit_once_awaited(context.db(), somebody);
    let fields = [("kind", "fee")];
    let upload = ada.submit_file(PATH, "component", b"nonsense", &fields);
    let (refused, ()) = futures::join!(upload, commit);
    refused.assert_status(403);
    let recorded = "select exists (select from policy_upload)";
    let recorded: bool = sqlx::query_scalar(recorded).fetch_one(context.db()).await.unwrap();
    assert!(!recorded);
}
