//! Operators, their tokens and roles, and what they do alone or with a second person.

mod approvals;
mod audit_chain;
mod configuration;
mod connections;
mod dependents;
mod idempotent;
mod identities;
mod keys;
mod lock_order;
mod logins;
mod nothing_to_approve;
mod pages;
mod refunds;
mod reviews;
mod second_persons;
mod spent_approvals;
mod tenant_keys;
mod webhooks;

use bytes::Bytes;
use http::Method;
use rampart_api::OPERATOR_ENDPOINTS;
use rampart_core::auth::roles::Role;
use rampart_core::endpoint::Body;
use rampart_tests::answer::Answer;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use crate::admin::table::some_path;

/// An operator of a test.
struct Operator<'a> {
    context: &'a TestContext,
    name: &'static str,
    token: String,
}

impl<'a> Operator<'a> {
    async fn new(context: &'a TestContext, name: &'static str, roles: &[&str]) -> Self {
        Self { context, name, token: context.operator(name, roles).await }
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Answer {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        self.context.admin_as(Some(&self.token), method, path, body).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, Value::Null).await
    }
}

/// Ada and Bob, who agree to each other's calls.
async fn treasurers(context: &TestContext) -> [Operator<'_>; 2] {
    let ada = Operator::new(context, "ada", &["treasury"]).await;
    [ada, Operator::new(context, "bob", &["treasury"]).await]
}

/// The newest rows of the audit as actor, action and target.
async fn audited(context: &TestContext, action: &str) -> Vec<(String, String)> {
    let list = context.admin(Method::GET, "/admin/v1/audit", Value::Null).await.json();
    let rows = list.as_array().unwrap().iter().filter(|row| row["action"] == action);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.map(|row| (text(&row["actor"]), text(&row["target"]))).collect()
}

#[tokio::test]
async fn operators_are_named_in_the_audit() {
    let context = TestContext::start().await;
    let ada = Operator::new(&context, "ada", &["platform"]).await;
    let body = json!({"slug": "acme", "name": "Acme", "mode": "test"});
    ada.call(Method::POST, "/admin/v1/partners", body).await.assert_status(201);
    assert_eq!(audited(&context, "partner.create").await, [("ada".into(), "acme".into())]);
    assert_eq!(audited(&context, "operator.create").await, [("admin".into(), "ada".into())]);
    let list = ada.get("/admin/v1/operators").await.assert_status(200).json();
    assert_eq!((&list[0]["name"], &list[0]["roles"]), (&json!("ada"), &json!(["platform"])));
    assert_eq!(list[0]["tokens"].as_array().unwrap().len(), 1);
    assert!(!list.to_string().contains(&ada.token));
}

#[tokio::test]
async fn a_route_is_for_the_roles_that_it_declares() {
    let context = TestContext::start().await;
    let roles = [Role::Viewer, Role::Support, Role::Compliance, Role::Treasury, Role::Platform];
    let mut refused = 0;
    for role in roles {
        let operator = Operator::new(&context, role.as_str(), &[role.as_str()]).await;
        for route in OPERATOR_ENDPOINTS {
            // Everybody may call these, for a token of one's own.
            if route.path.contains("/tokens") {
                continue;
            }
            let body = match route.body {
                Body::StrictJson => route.doc.request.to_owned().into(),
                _ => Bytes::new(),
            };
            let path = some_path(route);
            let token = Some(&*operator.token);
            let answer = context.admin_as(token, route.method.clone(), &path, body).await;
            let permitted = route.roles.contains(&role);
            assert_eq!(answer.status() != 403, permitted, "{route:?} {role:?} {}", answer.text());
            refused += usize::from(!permitted);
        }
    }
    assert!(refused > 100, "only {refused} calls were refused");
}

#[tokio::test]
async fn a_token_ends_when_it_expires_is_revoked_or_its_operator_disabled() {
    let context = TestContext::start().await;
    let ada = Operator::new(&context, "ada", &["viewer"]).await;
    let works = async |token: &str| {
        let body = Bytes::new();
        let answer = context.admin_as(Some(token), Method::GET, "/admin/v1/pairs", body).await;
        answer.status() == 200
    };
    let issue = async |body: Value| {
        let made = ada.call(Method::POST, "/admin/v1/operators/ada/tokens", body).await;
        let made = made.assert_status(201).json();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("token"), text("tokenId"))
    };
    let (second, id) = issue(json!({})).await;
    assert!(works(&ada.token).await && works(&second).await, "both live during the overlap");
    let path = format!("/admin/v1/operators/ada/tokens/{id}");
    ada.call(Method::DELETE, &path, Value::Null).await.assert_status(204);
    assert!(!works(&second).await && works(&ada.token).await);
    ada.call(Method::DELETE, &path, Value::Null).await.assert_status(404);

    let (third, _) = issue(json!({"overlapSeconds": 0})).await;
    assert!(!works(&ada.token).await && works(&third).await);
    sqlx::query("update operator_token set expires_at = now() where revoked_at is null")
        .execute(context.db())
        .await
        .unwrap();
    assert!(!works(&third).await);

    let made = context.admin(Method::POST, "/admin/v1/operators/ada/tokens", json!({})).await;
    let fourth = made.assert_status(201).json()["token"].as_str().unwrap().to_owned();
    for (disabled, expected) in [(true, false), (false, true)] {
        let body = json!({ "disabled": disabled });
        context.admin(Method::PATCH, "/admin/v1/operators/ada", body).await.assert_status(204);
        assert_eq!(works(&fourth).await, expected);
    }
}

#[tokio::test]
async fn an_operator_has_at_most_100_live_tokens() {
    let context = TestContext::start().await;
    let ada = Operator::new(&context, "ada", &["viewer"]).await;
    sqlx::query(
        "insert into operator_token \
             (operator_id, token_id, digest, expires_at, created_by, created_at) \
         select operator_id, gen_random_uuid(), sha256(convert_to(n::text, 'utf8')), \
             now() + interval '1 day', 'ada', now() \
         from operator cross join generate_series(1, 99) n",
    )
    .execute(context.db())
    .await
    .unwrap();
    let tokens = "/admin/v1/operators/ada/tokens";
    ada.call(Method::POST, tokens, json!({})).await.assert_status(409);
    ada.call(Method::POST, tokens, json!({"overlapSeconds": 0})).await.assert_status(201);
}

#[tokio::test]
async fn nobody_takes_more_than_their_own() {
    let context = TestContext::start().await;
    let ada = Operator::new(&context, "ada", &["platform", "compliance"]).await;
    let eve = Operator::new(&context, "eve", &["viewer"]).await;
    let path = format!("/admin/v1/operators/{}/tokens", ada.name);
    eve.call(Method::POST, &path, json!({})).await.assert_status(403);
    let roles = json!({"roles": ["owner"]});
    eve.call(Method::PATCH, "/admin/v1/operators/eve", roles.clone()).await.assert_status(403);
    ada.call(Method::PATCH, "/admin/v1/operators/ada", roles).await.assert_status(403);
    for (name, roles, status) in [
        ("admin", json!(["viewer"]), 422),
        ("", json!(["viewer"]), 422),
        ("Ada", json!(["viewer"]), 422),
        ("edge", json!(["viewer"]), 422),
        ("bob", json!([]), 422),
        ("bob", json!(["king"]), 422),
        ("ada", json!(["viewer"]), 409),
    ] {
        let body = json!({"name": name, "roles": roles});
        let answer = context.admin(Method::POST, "/admin/v1/operators", body).await;
        assert_eq!(answer.status(), status, "{name} {}", answer.text());
    }
}

#[tokio::test]
async fn reads_of_personal_data_stand_in_the_audit() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let user = acme.user("ada").await.log_in().await;
    let user = user["uuid"].as_str().unwrap();
    let sue = Operator::new(&context, "sue", &["support"]).await;
    for spelled in [user, &user.to_uppercase()] {
        sue.get(&format!("/admin/v1/users/{spelled}")).await.assert_status(200);
    }
    sue.get(&format!("/admin/v1/users/{user}/accounts")).await.assert_status(200);
    let order = OrderFixture::order(&context, &acme, None, None).await.id.to_string();
    sue.get(&format!("/admin/v1/orders/{order}")).await.assert_status(200);
    OrderFixture::ended(&context, &acme, "http://127.0.0.1:9/hook").await;
    let deliveries = sue.get("/admin/v1/deliveries").await.json();
    let delivery = deliveries[0]["id"].as_str().unwrap();
    sue.get(&format!("/admin/v1/deliveries/{delivery}")).await.assert_status(200);
    sue.get("/admin/v1/mail").await.assert_status(200);
    sue.get("/admin/v1/approvals").await.assert_status(200);
    let nobody = "00000000-0000-7000-8000-000000000000";
    sue.get(&format!("/admin/v1/users/{nobody}")).await.assert_status(404);
    let by_sue = |target: &str| vec![("sue".to_owned(), target.to_owned())];
    let twice = [by_sue(user), by_sue(user)].concat();
    assert_eq!(audited(&context, "user.read").await, twice, "by the one spelling of its id");
    assert_eq!(audited(&context, "account.list").await, by_sue(user));
    assert_eq!(audited(&context, "order.read").await, by_sue(&order));
    assert_eq!(audited(&context, "delivery.read").await, by_sue(delivery));
    for action in ["mail.list", "approval.list"] {
        assert_eq!(audited(&context, action).await, by_sue(""));
    }
}

#[tokio::test]
async fn lists_stand_in_the_audit_with_what_they_showed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for name in ["ada", "bob"] {
        acme.user(name).await;
    }
    let sue = Operator::new(&context, "sue", &["support"]).await;
    let mails = sue.get("/admin/v1/mail?limit=1").await.assert_status(200).json();
    let [ada, bob] = treasurers(&context).await;
    let price = json!({"price": 41234.56});
    let approval = approvals::held(&ada, Method::PUT, "/admin/v1/prices/BTC-EUR", price).await;
    for operator in [&sue, &bob] {
        operator.get("/admin/v1/approvals").await.assert_status(200);
    }
    let audit = context.admin(Method::GET, "/admin/v1/audit", Value::Null).await.json();
    let details = |action: &str| -> Vec<Value> {
        let rows = audit.as_array().unwrap().iter().filter(|row| row["action"] == action);
        rows.map(|row| row["detail"].clone()).collect()
    };
    assert_eq!(details("mail.list"), [json!({"mails": [mails[0]["id"]]})]);
    // The body is not for support.
    let looks = [json!({"approvals": [approval]}), json!({"approvals": []})];
    assert_eq!(details("approval.list"), looks);
}

#[tokio::test]
async fn one_person_changes_a_partners_rates_and_two_what_lifts_its_checks() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["platform", "treasury"]).await;
    let partner = "/admin/v1/partners/acme";
    for (path, alone) in [
        (partner, json!({"rateLimits": {"quotes": "9/s"}})),
        (partner, json!({"allowedAddresses": ["10.0.0.0/8"], "policyUploadAllowed": true})),
        (partner, json!({"defaultFeePercentage": 2})),
        ("/admin/v1/payment-methods/creditCard", json!({"limit": 6000})),
    ] {
        ada.call(Method::PATCH, path, alone).await.assert_status(200);
    }
    for both in [
        json!({"guestOrders": {"allowed": true}}),
        json!({"complianceGate": "before-payout"}),
        json!({"policyApprovalRequired": false}),
    ] {
        approvals::held(&ada, Method::PATCH, partner, both).await;
    }
}
