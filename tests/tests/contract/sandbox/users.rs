//! Events that a partner triggers for its test users.

use http::Method;
use rampart_tests::cluster::{changes, lose_first_change, until_a_lock_is_awaited};
use rampart_tests::connector::Connector;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::{User, registration};
use serde_json::{Value, json};

const EVENTS: &str = "/api/v2/sandbox/user/events";

async fn happens(user: &User, event: &str) -> u16 {
    user.post(EVENTS, &json!({ "event": event })).await.status()
}

async fn status(user: &User) -> Value {
    user.get("/api/v1/user/info").await.assert_status(200).json()["status"].clone()
}

/// Types of the partner's events, in order.
async fn told(context: &TestContext) -> Vec<String> {
    let types = "select type from event order by created_at, event_id";
    sqlx::query_scalar(types).fetch_all(context.db()).await.unwrap()
}

#[tokio::test]
async fn an_identity_check_ends_as_the_partner_says() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = acme.user("ann").await;
    for outcome in ["failed", "pending", "blocked", "verified"] {
        assert_eq!(happens(&ann, &format!("identity-{outcome}")).await, 204);
        let shown = status(&ann).await;
        assert_eq!(shown["details"]["identityVerificationStatus"], *outcome);
    }
    assert_eq!(told(&context).await, ["user.created", "identifier.linked"]);
}

#[tokio::test]
async fn a_user_who_is_verified_has_nothing_left_to_show() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = acme.user("ann").await;
    for _ in 0..2 {
        assert_eq!(happens(&ann, "verified").await, 204);
    }
    let open = ann.get("/api/v2/user/verification-status").await.assert_status(200).json();
    assert_eq!(open, json!([]));
    assert_eq!(told(&context).await, ["user.created", "identifier.linked", "user.verified"]);
}

#[tokio::test]
async fn simulated_checks_end_when_the_partner_goes_live() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = acme.user("ann").await;
    assert_eq!(happens(&ann, "verified").await, 204);
    let session = json!({"sessionIdentifier": "session-1", "cardHolderName": "Ann",
        "currencyCode": "EUR"});
    let added = ann.post("/api/v2/user/accounts/cards/processor", &session).await;
    let card = json!({"accountIdentifier": added.assert_status(200).json()["accountIdentifier"]});
    ann.post("/api/v1/user/verify/card", &card).await.assert_status(200);
    Connector::of_live(&context).await;
    let live = json!({"mode": "live"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", live).await.assert_status(200);
    let key =
        context.admin(Method::POST, "/admin/v1/partners/acme/api-keys", json!({})).await.json();
    let ann = User { partner: acme.with_key(key["apiKey"].as_str().unwrap()), ..ann };
    let details = status(&ann).await["details"].clone();
    for (check, expected) in [
        ("emailAddressVerificationStatus", "pending"),
        ("identityVerificationStatus", "pending"),
        ("amld5VerificationStatus", "pending"),
        ("privacyAgreementVerificationStatus", "pending"),
        ("residentialAddressStatus", "missing"),
        ("dac8Status", "unknown"),
    ] {
        assert_eq!(details[check], expected, "{check}");
    }
    let profile = ann.get("/api/v1/user/info").await.json();
    assert_eq!(profile["activationDate"], Value::Null);
    assert_eq!(profile["enabledAccounts"][0]["verified"], false);
    // What the user has said is still there, and counts once it is said to be so.
    ann.patch("/api/v2/user", &json!({"privacyAgreement": true})).await.assert_status(200);
    let details = status(&ann).await["details"].clone();
    assert_eq!(details["privacyAgreementVerificationStatus"], "verified");
    assert_eq!(details["residentialAddressStatus"], "present");
}

#[tokio::test]
async fn checks_of_more_users_than_a_statement_takes_end_when_their_partner_goes_live() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for made in [
        "insert into end_user (client_id, user_id, created_at) \
         select client_id, lpad(to_hex(n), 32, '0')::uuid, now() \
         from client, generate_series(1, 5100) n where slug = 'acme'",
        "insert into command (client_id, command_id, kind, idempotency_key, connector, user_id, state, \
             due_at, created_at, finished_at) \
         select client_id, gen_random_uuid(), 'identity.start', 'check-' || user_id, 'sandbox', \
             user_id, 'done', now(), now(), now() from end_user",
    ] {
        sqlx::query(made).execute(context.db()).await.unwrap();
    }
    Connector::of_live(&context).await;
    let live = json!({"mode": "live"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", live).await.assert_status(200);
    let left = "select count(*) from command where kind = 'identity.start' and state <> 'rejected'";
    let left: i64 = sqlx::query_scalar(left).fetch_one(context.db()).await.unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn users_are_locked_in_order_when_their_partner_goes_live() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for name in ["ann", "bob", "cas"] {
        acme.user(name).await;
    }
    Connector::of_live(&context).await;
    // The first is the last on disk.
    let moved = "update end_user set created_at = created_at \
        where user_id = (select user_id from end_user order by user_id limit 1)";
    sqlx::query(moved).execute(context.db()).await.unwrap();
    let mut somebody = context.db().begin().await.unwrap();
    let first = "select from end_user order by user_id limit 1 for update";
    sqlx::query(first).execute(&mut *somebody).await.unwrap();
    let live = json!({"mode": "live"});
    let live = context.admin(Method::PATCH, "/admin/v1/partners/acme", live);
    let free = async {
        until_a_lock_is_awaited(context.db()).await;
        let last = "select from end_user order by user_id desc limit 1 for update nowait";
        sqlx::query(last).execute(context.db()).await.unwrap();
        somebody.rollback().await.unwrap();
    };
    let (live, ()) = futures::join!(live, free);
    live.assert_status(200);
}

#[tokio::test]
async fn a_user_is_disabled_enabled_and_erased() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = acme.user("ann").await;
    let session = ann.log_in().await;
    for event in ["disable", "disable", "enable"] {
        assert_eq!(happens(&ann, event).await, 204);
    }
    assert_eq!(told(&context).await, ["user.created", "identifier.linked", "user.disabled"]);
    assert_eq!(happens(&ann, "delete").await, 204);
    ann.get("/api/v1/user/info").await.assert_codes(&["ER709"]);
    let mut again = registration("another");
    again["identifier"] = json!(ann.identifier);
    acme.post("/api/v2/user", again).await.assert_codes(&["ER706"]);
    let token = format!("Bearer {}", session["token"].as_str().unwrap());
    let gone = acme.request(Method::GET, "/api/v1/user/info");
    gone.header("user-authorization", &token).send().await.assert_codes(&["ER709"]);
    let left: i64 = sqlx::query_scalar("select count(*) from personal_key")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(left, 0, "the key is destroyed");
}

#[tokio::test]
async fn an_event_that_lost_to_a_deadlock_is_tried_again() {
    let context = TestContext::start().await;
    let ann = context.partner("acme").await.user("ann").await;
    lose_first_change(context.db(), "personal_key").await;
    assert_eq!(happens(&ann, "delete").await, 204);
    assert_eq!(changes(context.db()).await, 2);
}

#[tokio::test]
async fn nobody_else_and_no_live_client_can_do_so() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    let ann = acme.user("ann").await;
    let theirs = User { partner: other, ..ann.clone() };
    let refused = theirs.post(EVENTS, &json!({"event": "delete"})).await;
    refused.assert_codes(&["ER705"]);
    let unknown = ann.post(EVENTS, &json!({"event": "explode"})).await;
    unknown.assert_status(400).assert_codes(&["ER048"]);
    let live = context.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    let lea = live.user("lea").await;
    let refused = lea.post(EVENTS, &json!({"event": "identity-verified"})).await;
    refused.assert_status(404).assert_codes(&["ER998"]);
    assert_eq!(status(&lea).await["details"]["identityVerificationStatus"], "pending");
}

#[tokio::test]
async fn a_card_that_the_sandbox_disables_is_disabled_everywhere() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = acme.user("ann").await;
    let session = json!({"sessionIdentifier": "sandbox-disabled", "cardHolderName": "Ann",
        "currencyCode": "EUR"});
    let added = ann.post("/api/v2/user/accounts/cards/processor", &session).await;
    let card = added.assert_status(200).json()["accountIdentifier"].clone();
    let verify = json!({ "accountIdentifier": card });
    ann.post("/api/v1/user/verify/card", &verify).await.assert_codes(&["ER397"]);
    let again = ann.post("/api/v2/user/accounts/cards/processor", &session).await;
    again.assert_codes(&["ER401"]);
}
