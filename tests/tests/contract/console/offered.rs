//! Actions that pages offer: those that the operator may do, and that can be done.

use rampart_tests::guests::component;
use rampart_tests::order_fixture::OrderFixture;

use super::*;

#[tokio::test]
async fn tokens_are_changed_by_their_operator_and_by_owners() {
    let context = TestContext::start().await;
    let eve = Browser::of(&context, "eve", &["support"]).await;
    let bob = Browser::of(&context, "bob", &["support"]).await;
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let path = "/console/operators/eve";
    for (browser, may) in [(&eve, true), (&bob, false), (&ada, true)] {
        let page = browser.get(path).await.assert(200, "Tokens");
        for link in [format!("href=\"{path}/token\""), format!("href=\"{path}/tokens/")] {
            assert_eq!(page.text.contains(&link), may, "{link}: {}", page.text);
        }
    }
}

#[tokio::test]
async fn a_call_is_agreed_to_by_who_has_a_role_of_it() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let price = [("price", "41234.56")];
    ada.submit("/console/market/BTC-EUR/price", &price).await.assert(303, "");
    for (name, role, may) in [("bob", "treasury", true), ("eve", "support", false)] {
        let browser = Browser::of(&context, name, &[role]).await;
        let page = browser.get("/console/approvals").await;
        let page = page.assert(200, "/admin/v1/prices/BTC-EUR");
        for action in ["/grant\"", "/refuse\""] {
            assert_eq!(page.text.contains(action), may, "{name} {action}: {}", page.text);
        }
    }
    // Who has made the call may withdraw it.
    let page = ada.get("/console/approvals").await.assert(200, "Withdraw");
    assert!(!page.text.contains("/grant\""), "{}", page.text);
    // A call that is not there any more is the owners' to decide.
    let gone = "update approval set route = '/admin/v1/gone', path = '/admin/v1/gone'";
    sqlx::query(gone).execute(context.db()).await.unwrap();
    for (name, role, may) in [("tim", "treasury", false), ("oda", "owner", true)] {
        let browser = Browser::of(&context, name, &[role]).await;
        let page = browser.get("/console/approvals").await.assert(200, "/admin/v1/gone");
        assert_eq!(page.text.contains("/grant\""), may, "{name}: {}", page.text);
    }
}

#[tokio::test]
async fn a_held_configuration_is_decided_by_who_has_the_roles_of_its_changes() {
    let context = TestContext::start().await;
    let token = context.operator("ada", &["platform", "treasury"]).await;
    let prices = json!({"prices": {"BTC-EUR": {"price": 40_000}}}).to_string();
    let path = "/admin/v1/configuration";
    let waits = context.admin_as(Some(&token), Method::PUT, path, prices.into()).await;
    waits.assert_status(202);
    let operators: [(&str, &[&str], bool); 3] = [
        ("bob", &["platform"], false),
        ("tim", &["treasury"], false),
        ("eve", &["platform", "treasury"], true),
    ];
    for (name, roles, may) in operators {
        let browser = Browser::of(&context, name, roles).await;
        let page = browser.get("/console/approvals").await.assert(200, path);
        for action in ["/grant\"", "/refuse\""] {
            assert_eq!(page.text.contains(action), may, "{name} {action}: {}", page.text);
        }
    }
}

#[tokio::test]
async fn a_call_of_ones_own_is_withdrawn() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let price = [("price", "41234.56")];
    let waits = ada.submit("/console/market/BTC-EUR/price", &price).await.assert(303, "");
    let id = waits.header("location").split("waits=").nth(1).unwrap().to_owned();
    let withdraw = format!("/console/approvals/{id}/withdraw");
    let page = ada.get("/console/approvals").await.assert(200, &format!("href=\"{withdraw}\""));
    assert!(!page.text.contains("/refuse\""), "{}", page.text);
    let form = ada.get(&withdraw).await.assert(200, "Withdraw: approval");
    assert!(!form.text.contains("Refuse"), "{}", form.text);
    let done = ada.submit(&withdraw, &[]).await.assert(303, "");
    let page = ada.get(done.header("location")).await.assert(200, "Done: Withdraw.");
    assert!(!page.text.contains("/withdraw\""), "{}", page.text);
}

#[tokio::test]
async fn a_payment_that_is_matched_is_not_matched_again() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "payment-received").await.assert_status(200);
    let path = format!("/admin/v1/payments?order={}", order.id);
    let payments = context.admin(Method::GET, &path, Value::Null).await.json();
    let path = format!("/console/payments/{}", payments[0]["id"].as_str().unwrap());
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let page = ada.get(&path).await.assert(200, &format!("href=\"{path}/refund\""));
    assert!(!page.text.contains("/match\""), "{}", page.text);
}

#[tokio::test]
async fn a_payment_is_refunded_where_something_is_left_of_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let offered = async |payment: &Value| {
        let path = format!("/console/payments/{}", payment["id"].as_str().unwrap());
        let page = ada.get(&path).await.assert(200, "Left to be given back");
        page.text.contains(&format!("href=\"{path}/refund\""))
    };
    let unmatched = json!({"partner": "acme", "kind": "received", "amount": 100, "currency": "EUR",
        "providerReference": "1", "reason": "seen"});
    let unmatched = context.admin(Method::POST, "/admin/v1/payments", unmatched).await;
    let unmatched = unmatched.assert_status(201).json();
    let refund = format!("/admin/v1/payments/{}/refund", unmatched["id"].as_str().unwrap());
    for amount in [30, 70] {
        assert!(offered(&unmatched).await, "{amount} of 100 are not asked for");
        let part = json!({"amount": amount, "reason": "nobody's"});
        context.admin(Method::POST, &refund, part).await.assert_status(200);
    }
    assert!(!offered(&unmatched).await, "all of it is asked for");

    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "payment-received").await.assert_status(200);
    let path = format!("/admin/v1/payments?order={}", order.id);
    let paid = context.admin(Method::GET, &path, Value::Null).await.json()[0].clone();
    assert!(offered(&paid).await, "its coins have not left");
    let events = format!("/admin/v1/orders/{}/events", order.id);
    let sent = json!({"event": "coins-sent", "transactionId": "ab12"});
    context.admin(Method::POST, &events, sent).await.assert_status(200);
    let payments = context.admin(Method::GET, &path, Value::Null).await.json();
    for payment in payments.as_array().unwrap() {
        assert!(!offered(payment).await, "{payment}");
    }
}

#[tokio::test]
async fn a_delivery_is_sent_again_while_its_endpoint_is_on() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let hook = json!({"url": "https://shop.example.com/hook"});
    acme.post("/api/v2/webhooks", hook).await.assert_status(200);
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "cancel").await.assert_status(200);
    let list = format!("/admin/v1/deliveries?order={}", order.id);
    let list = context.admin(Method::GET, &list, Value::Null).await.json();
    let path = format!("/console/deliveries/{}", list[0]["id"].as_str().unwrap());
    let link = format!("href=\"{path}/redeliver\"");
    let sue = Browser::of(&context, "sue", &["support"]).await;
    for is_on in [true, false] {
        let switch = "update webhook_endpoint set disabled_at = case when not $1 then now() end";
        sqlx::query(switch).bind(is_on).execute(context.db()).await.unwrap();
        for page in [&*path, &*format!("/console/orders/{}", order.id)] {
            let page = sue.get(page).await.assert(200, "order.cancelled");
            assert_eq!(page.text.contains(&link), is_on, "{}", page.text);
        }
    }
}

#[tokio::test]
async fn a_live_partner_does_not_go_live_again() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let path = "/console/partners/acme";
    let link = format!("href=\"{path}/go-live\"");
    ada.get(path).await.assert(200, &link);
    let live = "update client set mode = 'live', compliance_gate = null where slug = 'acme'";
    sqlx::query(live).execute(context.db()).await.unwrap();
    let page = ada.get(path).await.assert(200, &format!("href=\"{path}/suspend\""));
    assert!(!page.text.contains(&link), "{}", page.text);
}

#[tokio::test]
async fn signatures_are_required_once_and_waived_where_they_are() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let path = "/console/partners/acme";
    for is_required in [false, true] {
        let required = "update client set policy_signature_required = $1 where slug = 'acme'";
        sqlx::query(required).bind(is_required).execute(context.db()).await.unwrap();
        let page = ada.get(path).await.assert(200, "Policies need signatures");
        let offers = |name: &str| page.text.contains(&format!("href=\"{path}/{name}\""));
        let offered = (offers("require-signatures"), offers("waive-signatures"));
        assert_eq!(offered, (!is_required, is_required), "{}", page.text);
    }
}

#[tokio::test]
async fn a_trial_is_ended_and_a_policy_removed_where_there_is_one() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let (path, call) =
        ("/console/partners/acme/policies/fee", "/admin/v1/partners/acme/policies/fee");
    let offered = async || {
        let page = ada.get(path).await.assert(200, "Policy fee of acme");
        ["end-trial", "remove", "versions/2/shadow"]
            .map(|name| page.text.contains(&format!("href=\"{path}/{name}\"")))
    };
    assert_eq!(offered().await, [false; 3]);
    let push = async || {
        let pushed = context.admin_bytes(Method::PUT, call, component("tiered-fee")).await;
        pushed.assert_status(200);
    };
    push().await;
    assert_eq!(offered().await, [false, true, false]);
    push().await;
    let change = async |method: Method, path: &str| {
        let done = context.admin(method, &format!("{call}{path}"), json!({})).await;
        assert!(done.status() < 300, "{path}: {}", done.text());
    };
    change(Method::POST, "/rollback").await;
    assert_eq!(offered().await, [false, true, true]);
    change(Method::POST, "/versions/2/shadow").await;
    assert_eq!(offered().await, [true, true, true]);
    change(Method::DELETE, "").await;
    assert_eq!(offered().await, [false; 3]);
}

#[tokio::test]
async fn a_policy_is_rolled_back_where_a_version_is_behind_it() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let (path, call) =
        ("/console/partners/acme/policies/fee", "/admin/v1/partners/acme/policies/fee");
    let offered = async || {
        let page = ada.get(path).await.assert(200, "Policy fee of acme");
        page.text.contains(&format!("href=\"{path}/rollback\""))
    };
    let change = async |method: Method, path: &str, members: Value| {
        let done = context.admin(method, &format!("{call}{path}"), members).await;
        assert!(done.status() < 300, "{path}: {}", done.text());
    };
    let push = async || {
        let pushed = context.admin_bytes(Method::PUT, call, component("tiered-fee")).await;
        pushed.assert_status(200);
    };
    assert!(!offered().await, "no version");
    push().await;
    assert!(!offered().await, "no version before");
    push().await;
    assert!(offered().await, "from 2 to 1");
    change(Method::POST, "/rollback", json!({})).await;
    assert!(!offered().await, "nothing behind 1");
    change(Method::POST, "/versions/2/activate", json!({"percentage": 5})).await;
    assert!(offered().await, "from the canary to 1");
    change(Method::DELETE, "", json!({})).await;
    assert!(offered().await, "from the removal to 1");
    change(Method::POST, "/versions/2/activate", json!({"percentage": 5})).await;
    assert!(!offered().await, "the built-in rule is behind the canary");
    change(Method::DELETE, "/trial", json!({})).await;
    // The version behind it may not serve any more.
    let demanded = "update client set policy_signature_required = true where slug = 'acme'";
    sqlx::query(demanded).execute(context.db()).await.unwrap();
    assert!(!offered().await, "1 is not signed");
}

#[tokio::test]
async fn a_claim_is_offered_where_it_can_be_made_and_given_back() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "payment-received").await.assert_status(200);
    order.event(&context, "hold").await.assert_status(200);
    let ada = Browser::of(&context, "ada", &["compliance"]).await;
    let bob = Browser::of(&context, "bob", &["compliance"]).await;
    let path = format!("/console/reviews/order/{}", order.id);
    let offered = async |browser: &Browser<'_>| {
        let page = browser.get(&path).await.assert(200, "Review of order");
        ["claim", "release"].map(|name| page.text.contains(&format!("href=\"{path}/{name}\"")))
    };
    assert_eq!(offered(&ada).await, [true, false]);
    ada.submit(&format!("{path}/claim"), &[]).await.assert(303, "");
    assert_eq!((offered(&ada).await, offered(&bob).await), ([true, true], [false, false]));
    order.event(&context, "release").await.assert_status(200);
    assert_eq!(offered(&ada).await, [false, false]);
}
