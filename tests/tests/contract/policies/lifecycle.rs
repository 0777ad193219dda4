//! From an upload that serves nobody to everybody, and back.

use http::Method;
use rampart_tests::cluster::commit_once_awaited;
use rampart_tests::document::{OPERATORS, operation};
use rampart_tests::guests::component;
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{
    FEE, METHOD_ORDER, SIGNATURE, actions, context, dry_run, ed25519, history, push, set_key, stage,
};

fn activate(version: i64) -> String {
    format!("{FEE}/versions/{version}/activate")
}

#[tokio::test]
async fn a_staged_version_serves_nobody_until_it_is_activated() {
    let context = context().await;
    let staged = stage(&context, FEE, "tiered-fee", json!({"reason": "new tariff"})).await;
    let staged = staged.assert_status(201).json();
    assert_eq!((&staged["version"], &staged["kind"]), (&json!(1), &json!("fee")));
    assert_eq!(staged["size"], component("tiered-fee").len());
    assert_eq!(history(&context, FEE).await["active"], Value::Null);
    let none = context.admin(Method::POST, &format!("{FEE}/dry-run"), json!({"input": {}})).await;
    none.assert_status(404);
    let of_version = json!({"input": {}, "version": 1});
    let tried = context.admin(Method::POST, &format!("{FEE}/dry-run"), of_version).await;
    assert_eq!(tried.assert_status(200).json()["decision"]["rule"], "tier-1");

    let body = json!({"reason": "agreed with the partner"});
    let activated = context.admin(Method::POST, &activate(1), body).await;
    assert_eq!(activated.assert_status(200).json(), staged);
    assert_eq!(dry_run(&context, FEE, json!({})).await["version"], 1);
    context.admin(Method::POST, &activate(2), json!({})).await.assert_status(404);
    context.admin(Method::POST, &activate(1), json!({"percentage": 101})).await.assert_status(422);

    let history = history(&context, FEE).await;
    assert_eq!(history["versions"][0]["reason"], "new tariff");
    let change = &history["changes"][0];
    assert_eq!((&change["action"], &change["actor"]), (&json!("policy.activate"), &json!("admin")));
    assert_eq!(change["detail"]["reason"], "agreed with the partner");
    assert!(change["at"].is_string());
    assert_eq!(actions(&context).await, ["policy.activate", "policy.stage", "partner.create"]);
}

#[tokio::test]
async fn the_active_version_is_shown_however_many_are_newer() {
    let context = context().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    let newer = "insert into policy_version (client_id, kind, version, digest, size, info, active, \
             created_by, created_at) \
         select client_id, kind, number, digest, size, info, false, created_by, created_at \
         from policy_version, generate_series(2, 250) number";
    sqlx::query(newer).execute(context.db()).await.unwrap();
    let history = history(&context, FEE).await;
    assert_eq!(history["active"], 1);
    let versions = history["versions"].as_array().unwrap();
    let shown: Vec<_> = versions.iter().map(|version| version["version"].as_i64()).collect();
    let expected: Vec<_> = (52..=250_i64).rev().chain([1]).map(Some).collect();
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn the_documents_example_of_a_dry_run_is_decided() {
    let context = context().await;
    for _ in 0..2 {
        stage(&context, FEE, "tiered-fee", json!({})).await.assert_status(201);
    }
    let path = "/admin/v1/partners/{slug}/policies/{kind}/dry-run";
    let body = operation(path, &Method::POST) + "/requestBody/content/application~1json/example";
    let example = OPERATORS.value().pointer(&body).unwrap().clone();
    let decided = context.admin(Method::POST, &format!("{FEE}/dry-run"), example).await;
    assert_eq!(decided.assert_status(200).json()["decision"]["rule"], "tier-1");
}

#[tokio::test]
async fn a_version_that_is_deleted_meanwhile_is_not_activated() {
    let context = context().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    stage(&context, FEE, "tiered-fee", json!({})).await.assert_status(201);
    let mut sweep = context.db().begin().await.unwrap();
    let delete = "delete from policy_version where version = 2";
    sqlx::query(delete).execute(&mut *sweep).await.unwrap();
    let path = activate(2);
    let activated = context.admin(Method::POST, &path, json!({}));
    let commit = commit_once_awaited(context.db(), sweep);
    let (refused, ()) = futures::join!(activated, commit);
    refused.assert_status(404);
    assert_eq!(history(&context, FEE).await["active"], 1, "what serves, serves on");
}

#[tokio::test]
async fn a_dry_run_refuses_an_input_that_is_no_object() {
    let context = context().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    for (body, told) in [
        (json!({"input": []}), "input: not an object"),
        (json!({"input": "100"}), "input: not an object"),
        (json!({"inputs": [{}, []]}), "inputs[1]: not an object"),
    ] {
        let refused = context.admin(Method::POST, &format!("{FEE}/dry-run"), body).await;
        assert_eq!(refused.assert_status(422).json()["error"], told);
    }
}

#[tokio::test]
async fn a_dry_run_names_the_member_that_is_wrong_by_its_path() {
    let context = context().await;
    for (path, policy) in [(FEE, "tiered-fee"), (METHOD_ORDER, "country-order")] {
        push(&context, path, policy).await.assert_status(200);
    }
    for (path, body, told) in [
        (FEE, json!({"input": {"pay": {"currency": "EUR"}}}), "input.pay: missing field `amount`"),
        (
            FEE,
            json!({"input": {"pay": {"amount": [], "currency": "EUR"}}}),
            "input.pay.amount: expected a string, a number, true or false",
        ),
        (FEE, json!({"input": {"pay": []}}), "input.pay: invalid type: array, expected an object"),
        (
            FEE,
            json!({"inputs": [{}, {"side": "hold"}]}),
            "inputs[1].side: unknown value `hold`, expected `buy` or `sell`",
        ),
        (
            FEE,
            json!({"input": {"attributes": {"channel": 1}}}),
            "input.attributes.channel: invalid type: number, expected a string",
        ),
        (
            METHOD_ORDER,
            json!({"input": {"methods": [{"id": "a", "cost": "1"}]}}),
            "input.methods[0].cost: invalid type: string \"1\", expected \
             a whole number from -2147483648 to 2147483647",
        ),
        (
            METHOD_ORDER,
            json!({"input": {"methods": [{"id": "a", "kind": "crad"}]}}),
            "input.methods[0].kind: unknown value `crad`, expected one of `card`, `bank-transfer`",
        ),
    ] {
        let refused = context.admin(Method::POST, &format!("{path}/dry-run"), body).await;
        let error = refused.assert_status(422).json()["error"].take();
        assert!(error.as_str().is_some_and(|error| error.starts_with(told)), "{error}");
    }
}

#[tokio::test]
async fn a_rollback_goes_to_what_was_active_before_not_to_what_was_staged() {
    let context = context().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    let other = json!({"config": {"tiers": ["0=20000"]}});
    stage(&context, FEE, "tiered-fee", other).await.assert_status(201);
    push(&context, FEE, "hostile").await.assert_status(200);
    context.admin(Method::POST, &activate(2), json!({})).await.assert_status(200);
    let rollback = format!("{FEE}/rollback");
    let back = async || {
        let answer = context.admin(Method::POST, &rollback, json!({"reason": "too dear"})).await;
        (answer.status(), answer.json()["version"].clone())
    };
    assert_eq!(back().await, (200, json!(3)));
    assert_eq!(back().await, (200, json!(1)));
    assert_eq!(back().await.0, 409);
    assert_eq!(history(&context, FEE).await["changes"][0]["detail"]["reason"], "too dear");
    context.admin(Method::POST, &activate(2), json!({})).await.assert_status(200);
    assert_eq!(back().await, (200, json!(1)), "an activation may be taken back again");
}

#[tokio::test]
async fn a_staged_configuration_needs_no_component() {
    let context = context().await;
    let versions = format!("{FEE}/versions");
    let flat = json!({"config": {"tiers": ["0=20000"]}});
    context.admin(Method::POST, &versions, flat.clone()).await.assert_status(422);
    let pushed = push(&context, FEE, "tiered-fee").await.assert_status(200).json();
    let staged = context.admin(Method::POST, &versions, flat).await.assert_status(201).json();
    assert_eq!((&staged["version"], &staged["digest"]), (&json!(2), &pushed["digest"]));
    assert_eq!(dry_run(&context, FEE, json!({})).await["version"], 1);
    let unknown = json!({"config": {"floors": 1}});
    context.admin(Method::POST, &versions, unknown).await.assert_status(422);
    for body in [
        json!({"component": "*"}),
        json!({"manifest": "{}"}),
        json!({"signature": {"key": "a", "value": "b"}}),
        json!({"reason": "x".repeat(501)}),
        json!({"why": "x"}),
    ] {
        context.admin(Method::POST, &versions, body).await.assert_status(422);
    }
    assert_eq!(history(&context, FEE).await["versions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn of_activations_at_once_one_version_is_left_active() {
    let context = context().await;
    let other = context.second_edge().await;
    for _ in 0..4 {
        stage(&context, FEE, "tiered-fee", json!({})).await.assert_status(201);
    }
    let paths = [1, 2, 3, 4].map(activate);
    let (a, b, c, d) = tokio::join!(
        context.admin(Method::POST, &paths[0], json!({})),
        other.admin(Method::POST, &paths[1], json!({})),
        context.admin(Method::POST, &paths[2], json!({})),
        other.admin(Method::POST, &paths[3], json!({"percentage": 50})),
    );
    for answer in [a, b, c] {
        answer.assert_status(200);
    }
    assert_eq!(d.status(), 200);
    let shown = history(&context, FEE).await;
    let versions = shown["versions"].as_array().unwrap();
    assert_eq!(versions.iter().filter(|version| version["active"] == true).count(), 1);
    let active = shown["active"].clone();
    assert_ne!(active, 4);
    for edge in [&context, &other] {
        assert_eq!(dry_run(edge, FEE, json!({})).await["version"], active);
    }
}

#[tokio::test]
async fn a_rollback_from_a_canary_needs_no_key_of_the_version_that_serves() {
    let context = context().await;
    set_key(&context).await;
    for _ in 0..2 {
        push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    }
    stage(&context, SIGNATURE, "ed25519-offer", json!({})).await.assert_status(201);
    let canary = format!("{SIGNATURE}/versions/3/activate");
    context.admin(Method::POST, &canary, json!({"percentage": 5})).await.assert_status(200);
    let key = "/admin/v1/partners/acme/verification-keys/partner-ed25519";
    let expired = json!({"algorithm": "ed25519", "key": ed25519(7).1,
        "notAfter": "2026-01-01T00:00:00Z"});
    context.admin(Method::PUT, key, expired).await.assert_status(200);
    let rollback = format!("{SIGNATURE}/rollback");
    let back = context.admin(Method::POST, &rollback, json!({})).await;
    assert_eq!(back.assert_status(200).json()["version"], 2);
    // Another version does not begin to serve without it.
    let refused = context.admin(Method::POST, &rollback, json!({})).await;
    assert!(refused.assert_status(422).text().contains("`partner-ed25519`"), "{}", refused.text());
    let shown = history(&context, SIGNATURE).await;
    assert_eq!((&shown["active"], &shown["trial"]), (&json!(2), &Value::Null));
}

#[tokio::test]
async fn what_a_version_is_tried_beside_must_be_there() {
    let context = context().await;
    let stage = async |path: &str, guest: &str| {
        stage(&context, path, guest, json!({})).await.assert_status(201);
    };
    let call = async |method: Method, path: &str, body: Value| {
        context.admin(method, path, body).await.status()
    };
    stage(FEE, "tiered-fee").await;
    stage(SIGNATURE, "ed25519-offer").await;
    set_key(&context).await;
    let shadow = |path: &str| format!("{path}/versions/1/shadow");
    assert_eq!(call(Method::POST, &shadow(FEE), json!({})).await, 409);
    assert_eq!(call(Method::POST, &shadow(SIGNATURE), json!({})).await, 409);
    let share = format!("{SIGNATURE}/versions/1/activate");
    assert_eq!(call(Method::POST, &share, json!({"percentage": 5})).await, 409);
    assert_eq!(call(Method::DELETE, &format!("{FEE}/trial"), json!({})).await, 404);
    assert_eq!(call(Method::GET, &format!("{FEE}/trial"), json!({})).await, 404);

    // Beside the built-in fees a share is possible, and there is no version to go back to.
    assert_eq!(call(Method::POST, &activate(1), json!({"percentage": 5})).await, 200);
    assert_eq!(call(Method::POST, &format!("{FEE}/rollback"), json!({})).await, 409);
    assert_eq!(history(&context, FEE).await["trial"]["percentage"], 5);
    assert_eq!(call(Method::DELETE, &format!("{FEE}/trial"), json!({})).await, 204);
    assert_eq!(call(Method::POST, &activate(1), json!({})).await, 200);
    assert_eq!(call(Method::POST, &activate(1), json!({"percentage": 5})).await, 409);
}

#[tokio::test]
async fn the_second_person_sees_which_component_is_pushed_with_which_settings() {
    let context = context().await;
    let demand = json!({"policyApprovalRequired": true});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", demand).await.assert_status(200);
    let ada = context.operator("ada", &["platform"]).await;
    let bob = context.operator("bob", &["platform"]).await;
    let (path, body) = (format!("{FEE}?failClosed=true"), component("tiered-fee"));
    let size = body.len();
    context.admin_as(Some(&ada), Method::PUT, &path, body).await.assert_status(202);
    let listed = context.admin_as(Some(&bob), Method::GET, "/admin/v1/approvals", "".into()).await;
    let listed = listed.assert_status(200).json();
    let shown = &listed[0]["body"];
    let staged = stage(&context, FEE, "tiered-fee", json!({})).await.assert_status(201).json();
    assert_eq!(shown["sha256"], staged["digest"]);
    assert_eq!((&shown["size"], &shown["query"]), (&json!(size), &json!("failClosed=true")));
}

/// Makes this the active one of all versions.
async fn activate_alone(conn: &mut PgConnection, version: i64) {
    let none = "update policy_version set active = false where active";
    sqlx::query(none).execute(&mut *conn).await.unwrap();
    let one = "update policy_version set active = true where version = $1";
    sqlx::query(one).bind(version).execute(conn).await.unwrap();
}

#[tokio::test]
async fn settings_are_not_completed_from_a_version_that_is_replaced_meanwhile() {
    let context = context().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    let members = json!({"config": {"mode": "panic@FR"}, "failClosed": true});
    stage(&context, FEE, "hostile", members).await.assert_status(201);
    let complete = r#"{"config": {}, "failClosed": false}"#;
    for (method, path, body, status) in [
        (Method::PUT, FEE.to_owned(), component("tiered-fee"), 409),
        (Method::PUT, format!("{FEE}/config"), complete.into(), 409),
        (Method::POST, format!("{FEE}/versions"), complete.into(), 409),
        (Method::PUT, format!("{FEE}?config={{}}&failClosed=false"), component("tiered-fee"), 200),
    ] {
        let mut somebody = context.db().begin().await.unwrap();
        let row = "update client set revision = revision where slug = 'acme'";
        sqlx::query(row).execute(&mut *somebody).await.unwrap();
        activate_alone(&mut somebody, 2).await;
        let commit = commit_once_awaited(context.db(), somebody);
        let (answer, ()) = futures::join!(context.admin_bytes(method, &path, body), commit);
        answer.assert_status(status);
        activate_alone(&mut context.db().acquire().await.unwrap(), 1).await;
    }
}

#[tokio::test]
async fn a_demand_of_two_persons_that_comes_meanwhile_counts() {
    let context = context().await;
    stage(&context, FEE, "tiered-fee", json!({})).await.assert_status(201);
    let ada = context.operator("ada", &["platform"]).await;
    let (activate, key) =
        (activate(1), "/admin/v1/partners/acme/verification-keys/partner-ed25519");
    set_key(&context).await;
    let another = json!({"algorithm": "ed25519", "key": ed25519(8).1}).to_string();
    for (method, path, body) in [
        (Method::PUT, FEE, component("tiered-fee")),
        (Method::PUT, key, another.into()),
        (Method::DELETE, key, "{}".into()),
        (Method::POST, &*activate, "{}".into()),
        (Method::POST, &*activate, r#"{"percentage": 5}"#.into()),
    ] {
        let mut somebody = context.db().begin().await.unwrap();
        let demand = "update client set policy_approval_required = true where slug = 'acme'";
        sqlx::query(demand).execute(&mut *somebody).await.unwrap();
        let commit = commit_once_awaited(context.db(), somebody);
        let call = context.admin_as(Some(&ada), method, path, body);
        let (refused, ()) = futures::join!(call, commit);
        refused.assert_status(409);
        assert!(refused.text().contains("two persons"), "{}", refused.text());
        let waived = "update client set policy_approval_required = false";
        sqlx::query(waived).execute(context.db()).await.unwrap();
    }
    let history = history(&context, FEE).await;
    assert_eq!(
        (&history["trial"], history["versions"].as_array().unwrap().len()),
        (&Value::Null, 1)
    );
}
