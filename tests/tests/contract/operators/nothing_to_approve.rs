//! Calls that no second person is asked about: they name what there is not, or what there is already, or
//! would be refused for another reason.

use super::approvals::{PAYMENTS, decide, held, received};
use super::*;

const ACCOUNTS: &str = "/admin/v1/users/00000000-0000-7000-8000-000000000000/accounts";

#[tokio::test]
async fn nobody_is_asked_to_agree_to_a_change_of_nothing() {
    let context = TestContext::start().await;
    let cards = json!({"name": "cards", "capabilities": ["payment.create"]});
    context.admin(Method::POST, "/admin/v1/connectors", cards.clone()).await.assert_status(201);
    let olga = Operator::new(&context, "olga", &["owner"]).await;
    let guests = json!({"guestOrders": {"allowed": true}});
    let account = json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300",
        "name": "A. Lovelace", "limitRaised": true});
    let payment = json!({"partner": "nobody", "kind": "received", "amount": 100_000,
        "currency": "EUR", "providerReference": "statement 17", "reason": "seen on it"});
    let deposit = json!({"amount": 100_000, "currencyCode": "EUR", "reference": "statement 17"});
    let unknown = json!({"name": "shells", "capabilities": ["payment.create"],
        "methods": ["cowries"]});
    let routes = json!({"routes": [{"partner": null, "method": "creditCard", "direction": "in",
        "connector": "nobody"}]});
    for (method, path, body, status) in [
        (Method::PATCH, "/admin/v1/partners/nobody", guests.clone(), 404),
        (Method::PATCH, "/admin/v1/partners/house", guests, 404),
        (Method::PUT, "/admin/v1/prices/BTC-JPY", json!({"price": 1}), 404),
        (Method::PATCH, "/admin/v1/operators/nobody", json!({"roles": ["viewer"]}), 404),
        (Method::POST, "/admin/v1/operators/nobody/tokens", json!({}), 404),
        (Method::POST, "/admin/v1/operators", json!({"name": "olga", "roles": ["viewer"]}), 409),
        (Method::POST, ACCOUNTS, account, 404),
        (Method::POST, "/admin/v1/payments", payment, 404),
        (Method::POST, "/admin/v1/dca-codes/7K2M9QXT4B8D/deposits", deposit, 404),
        (Method::POST, "/admin/v1/connectors", cards, 409),
        (Method::POST, "/admin/v1/connectors", unknown, 422),
        (Method::PUT, "/admin/v1/routes", routes, 422),
    ] {
        let answer = olga.call(method, path, body).await;
        assert_eq!(answer.status(), status, "{path} {}", answer.text());
    }
    assert_eq!(audited(&context, "approval.request").await, []);
}

/// Sets an order's amounts to what takes two persons.
async fn enlarge(context: &TestContext, order: &OrderFixture) {
    let large = "update buy_order set fiat_amount = 2000, crypto_amount = 0.04 where order_id = $1";
    sqlx::query(large).bind(order.id).execute(context.db()).await.unwrap();
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_that_would_be_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let (pending, paid) = (
        OrderFixture::order(&context, &acme, None, None).await,
        OrderFixture::order(&context, &acme, None, None).await,
    );
    enlarge(&context, &pending).await;
    paid.event(&context, "payment-received").await.assert_status(200);
    let large = context.admin(Method::POST, PAYMENTS, received("1", json!(2000), "EUR")).await;
    let large = large.assert_status(201).json();
    let payment = format!("{PAYMENTS}/{}", large["id"].as_str().unwrap());
    let (refund, matching) = (format!("{payment}/refund"), format!("{payment}/match"));
    let events = format!("/admin/v1/orders/{}/events", pending.id);
    let price = "/admin/v1/prices/BTC-EUR";
    let set = |from: &str| json!({"price": 50_000, "quotesValidFrom": from});
    let raised = set("2026-01-01T00:00:00Z");
    context.admin(Method::PUT, price, raised).await.assert_status(200);
    let known = received("1", json!(3000), "EUR");
    for (method, path, body, status, reason) in [
        (Method::POST, &*refund, json!({"amount": 2000.01, "reason": "all"}), 409, "less is left"),
        (Method::POST, &*matching, json!({"orderId": paid.id}), 409, "does not wait"),
        (Method::POST, &*events, json!({"event": "confirmed-on-chain"}), 409, "pending"),
        (Method::POST, PAYMENTS, known, 409, "providerReference"),
        (Method::PUT, price, set("2025-01-01T00:00:00Z"), 422, "only be raised"),
    ] {
        let refused = ada.call(method, path, body).await;
        refused.assert_status(status);
        assert!(refused.text().contains(reason), "{path}: {}", refused.text());
    }
    assert_eq!(audited(&context, "approval.request").await, []);
}

#[tokio::test]
async fn a_call_that_waits_has_changed_nothing() {
    const TABLES: [&str; 8] = [
        "event",
        "delivery",
        "command",
        "ledger_entry",
        "payment",
        "payment_refund",
        "order_transition",
        "mail_outbox",
    ];
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let user = acme.user("ada").await.log_in().await;
    let ada = Operator::new(&context, "ada", &["treasury", "compliance"]).await;
    let bob = Operator::new(&context, "bob", &["treasury", "compliance"]).await;
    let (pending, paid) = (
        OrderFixture::order(&context, &acme, None, None).await,
        OrderFixture::order(&context, &acme, None, None).await,
    );
    for order in [&pending, &paid] {
        enlarge(&context, order).await;
    }
    paid.event(&context, "payment-received").await.assert_status(200);
    let large = context.admin(Method::POST, PAYMENTS, received("1", json!(2000), "EUR")).await;
    let large = large.assert_status(201).json();
    let payment = format!("{PAYMENTS}/{}", large["id"].as_str().unwrap());
    let events = |order: &OrderFixture| format!("/admin/v1/orders/{}/events", order.id);
    let user = format!("/admin/v1/users/{}", user["uuid"].as_str().unwrap());
    let raised = json!({"limitOverrides": {"user_day_limit": 100_000}, "deleted": true});
    let counts = async || {
        let mut counts = Vec::new();
        for table in TABLES {
            let count = format!("select count(*) from {table}");
            let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
                .fetch_one(context.db())
                .await
                .unwrap();
            counts.push((table, count));
        }
        counts
    };
    let calls = [
        (Method::POST, format!("{payment}/refund"), json!({"reason": "nobody's"})),
        (Method::POST, events(&pending), json!({"event": "payment-received"})),
        (Method::POST, events(&paid), json!({"event": "refund", "reason": "asked for"})),
        (Method::POST, PAYMENTS.to_owned(), received("2", json!(3000), "EUR")),
        (Method::PATCH, user, raised),
    ];
    let before = counts().await;
    let mut approvals = Vec::new();
    for (method, path, body) in &calls {
        approvals.push(held(&ada, method.clone(), path, body.clone()).await);
    }
    assert_eq!(counts().await, before);
    assert_eq!(pending.seen(&context).await["status"], "pending");
    assert_eq!(paid.seen(&context).await["status"], "in progress");
    for action in ["payment.refund", "order.event", "user.change"] {
        let by_ada = audited(&context, action).await.into_iter().filter(|(who, _)| who == "ada");
        assert_eq!(by_ada.count(), 0, "{action}");
    }
    // What was tried first is carried out once it is agreed to.
    for ((method, path, body), approval) in calls.into_iter().zip(approvals) {
        assert_eq!(decide(&bob, &approval, "grant").await, 204, "{path}");
        let done = ada.call(method, &path, body).await;
        assert!([200, 201].contains(&done.status()), "{path}: {}", done.text());
    }
    assert_ne!(counts().await, before);
}
