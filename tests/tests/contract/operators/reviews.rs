//! The review queue: what waits for a person, oldest first, claimed by one operator.

use chrono::TimeDelta;
use rampart_tests::order_fixture::OrderFixture;

use super::*;

/// The queue as subject, reasons and claim.
async fn queue(context: &TestContext) -> Vec<(String, String, Value)> {
    let list = context.admin(Method::GET, "/admin/v1/reviews", Value::Null).await;
    let rows = list.assert_status(200).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let row = |row: &Value| {
        let reasons: Vec<_> = row["reasons"].as_array().unwrap().iter().map(text).collect();
        (text(&row["subject"]), reasons.join(","), row["claimedBy"].clone())
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

/// A user with a photo of a bank account; the path of its claim.
async fn waiting_user(context: &TestContext) -> String {
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let photo = json!({"name": "Ada Lovelace", "iban": "NL91ABNA0417164300",
        "proof": "iVBORw0KGgoAAAANSUhEUgAAAAE="});
    ada.post("/api/v1/user/verify/iban/photo", &photo).await.assert_status(200);
    let uuid = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let order = OrderFixture::order(context, &acme, None, None).await;
    order.event(context, "payment-received").await.assert_status(200);
    let held = json!({"event": "hold", "reason": "source of funds"});
    let path = format!("/admin/v1/orders/{}/events", order.id);
    context.admin(Method::POST, &path, held).await.assert_status(200);
    format!("/admin/v1/reviews/user/{uuid}/claim")
}

#[tokio::test]
async fn users_and_orders_wait_until_somebody_decides() {
    let context = TestContext::start().await;
    let claim = waiting_user(&context).await;
    let waiting = queue(&context).await;
    let user = ("user".to_owned(), "account".to_owned(), Value::Null);
    let order = ("order".to_owned(), "blocked".to_owned(), Value::Null);
    assert_eq!(waiting, [user.clone(), order.clone()]);
    let first = context.admin(Method::GET, "/admin/v1/reviews?limit=1", Value::Null).await;
    let link = first.header("link").unwrap().split(['<', '>']).nth(1).unwrap().to_owned();
    let second = context.admin(Method::GET, &link, Value::Null).await.assert_status(200).json();
    assert_eq!((second.as_array().unwrap().len(), &second[0]["subject"]), (1, &json!("order")));
    let users = context.admin(Method::GET, "/admin/v1/reviews?subject=user", Value::Null).await;
    assert_eq!(users.json().as_array().unwrap().len(), 1);
    let id = claim.split('/').nth(5).unwrap();
    context.admin(Method::GET, "/admin/v1/reviews?id=x", Value::Null).await.assert_status(422);
    for (id, found) in [(id, 1), (&*id.to_uppercase(), 1), ("7", 0)] {
        let url = format!("/admin/v1/reviews?id={id}");
        let one = context.admin(Method::GET, &url, Value::Null).await.assert_status(200).json();
        assert_eq!(one.as_array().unwrap().len(), found, "{one}");
    }
    let account = claim.replace("reviews/user", "users");
    let account = account.replace("/claim", "/accounts/NL91ABNA0417164300");
    let verified = json!({"verified": true});
    context.admin(Method::PATCH, &account, verified).await.assert_status(200);
    assert_eq!(queue(&context).await, [order]);
    context.admin(Method::POST, &claim, Value::Null).await.assert_status(404);
}

#[tokio::test]
async fn of_two_operators_one_claims_and_a_claim_ends() {
    let context = TestContext::start().await;
    let claim = waiting_user(&context).await;
    let ada = Operator::new(&context, "ada", &["compliance"]).await;
    let bob = Operator::new(&context, "bob", &["support"]).await;
    let viewer = Operator::new(&context, "eve", &["viewer"]).await;
    viewer.get("/admin/v1/reviews").await.assert_status(403);
    let attempts = (0..8).map(|at| {
        let operator = if at % 2 == 0 { &ada } else { &bob };
        operator.call(Method::POST, &claim, Value::Null)
    });
    let answers = futures::future::join_all(attempts).await;
    let winner = queue(&context).await[0].2.as_str().unwrap().to_owned();
    for (at, answer) in answers.iter().enumerate() {
        let name = if at % 2 == 0 { "ada" } else { "bob" };
        assert_eq!(answer.status(), if name == winner { 200 } else { 409 }, "{}", answer.text());
    }
    let (holder, other) = if winner == "ada" { (&ada, &bob) } else { (&bob, &ada) };
    other.call(Method::DELETE, &claim, Value::Null).await.assert_status(409);
    holder.call(Method::DELETE, &claim, Value::Null).await.assert_status(204);
    other.call(Method::POST, &claim, Value::Null).await.assert_status(200);
    assert_eq!(audited(&context, "review.release").await[0].0, holder.name);
    context.clock().advance(TimeDelta::minutes(31));
    assert_eq!(queue(&context).await[0].2, Value::Null);
    holder.call(Method::POST, &claim, Value::Null).await.assert_status(200);
}

#[tokio::test]
async fn the_overview_counts_what_is_open_and_what_waits() {
    let context = TestContext::start().await;
    waiting_user(&context).await;
    let overview = context.admin(Method::GET, "/admin/v1/overview", Value::Null).await;
    let overview = overview.assert_status(200).json();
    let open = &overview["open"][0];
    assert_eq!(
        (&open["side"], &open["status"], &open["count"]),
        (&json!("buy"), &json!("blocked"), &json!(1))
    );
    assert_eq!(overview["hours"][0]["orders"], json!(1));
    let volume = json!([{"currency": "EUR", "ordered": 100, "completed": 0}]);
    assert_eq!(overview["volume"], volume);
    assert_eq!(overview["waiting"], json!({"payments": 0, "approvals": 0, "deliveries": 0}));
}

#[tokio::test]
async fn a_decision_has_a_reason_that_stands_in_the_audit() {
    let context = TestContext::start().await;
    let claim = waiting_user(&context).await;
    let user = claim.replace("reviews/user", "users").replace("/claim", "");
    let account = format!("{user}/accounts/NL91ABNA0417164300");
    let ada = Operator::new(&context, "ada", &["compliance"]).await;
    let with_reason = |members: &Value, reason: &str| {
        let mut body = members.clone();
        body["reason"] = reason.into();
        body
    };
    let checks = json!({"verification": {"identity": "verified"}});
    for (path, members) in [(&user, checks), (&account, json!({"verified": true}))] {
        for wrong in [" ", "a\nb", &*"x".repeat(256)] {
            let body = with_reason(&members, wrong);
            ada.call(Method::PATCH, path, body).await.assert_status(422);
        }
        let body = with_reason(&members, "seen on the passport");
        ada.call(Method::PATCH, path, body).await.assert_status(200);
        ada.call(Method::PATCH, path, members).await.assert_status(200);
    }
    let orders = context.admin(Method::GET, "/admin/v1/orders?status=blocked", Value::Null).await;
    let path = format!("/admin/v1/orders/{}/events", orders.json()[0]["id"]);
    let release = json!({"event": "release", "reason": "source of funds shown"});
    ada.call(Method::POST, &path, release).await.assert_status(200);
    let reasons = async |action: &str| {
        let url = format!("/admin/v1/audit?actor=ada&action={action}");
        let rows = context.admin(Method::GET, &url, Value::Null).await.json();
        let details = rows.as_array().unwrap().iter().map(|row| row["detail"].clone());
        details.collect::<Vec<_>>()
    };
    let users = reasons("user.change").await;
    assert_eq!((&users[1]["reason"], users.len()), (&json!("seen on the passport"), 2));
    assert_eq!(users[0].get("reason"), None, "it may be left out");
    let accounts = reasons("account.change").await;
    assert_eq!(accounts[1]["change"]["reason"], "seen on the passport");
    assert_eq!(reasons("order.event").await[0]["reason"], "source of funds shown");
}
