//! Calls that no second person is asked about: they name what there is not, or what there is already.

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
