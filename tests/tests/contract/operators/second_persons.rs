//! The roles of the second person for a configuration: those of whoever makes its changes one by one.

use super::approvals::{decide, held};
use super::*;

const PATH: &str = "/admin/v1/configuration";

async fn state(operator: &Operator<'_>, approval: &str) -> Value {
    let list = operator.get("/admin/v1/approvals").await.assert_status(200).json();
    let row = list.as_array().unwrap().iter().find(|row| row["id"] == approval);
    row.unwrap()["state"].clone()
}

#[tokio::test]
async fn treasurers_agree_to_prices_and_terms_of_a_document() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["platform", "treasury"]).await;
    let bob = Operator::new(&context, "bob", &["platform"]).await;
    let cleo = Operator::new(&context, "cleo", &["platform", "treasury"]).await;
    let olga = Operator::new(&context, "olga", &["owner"]).await;
    for wanted in [
        json!({"prices": {"BTC-EUR": {"price": 40_000}}}),
        json!({"pairs": {"BTC-EUR": {"spreadPercentage": 19}}}),
        json!({"paymentMethods": {"creditCard": {"fees": {"percentage": 0.25}}}}),
    ] {
        let approval = held(&ada, Method::PUT, PATH, wanted.clone()).await;
        for word in ["grant", "refuse"] {
            assert_eq!(decide(&bob, &approval, word).await, 403, "{word} {wanted}");
        }
        assert_eq!(decide(&cleo, &approval, "grant").await, 204, "{wanted}");
        ada.call(Method::PUT, PATH, wanted).await.assert_status(200);
    }
    let wanted = json!({"prices": {"BTC-EUR": {"price": 41_000}}});
    let approval = held(&ada, Method::PUT, PATH, wanted.clone()).await;
    assert_eq!(decide(&cleo, &approval, "grant").await, 204);
    let fewer = json!({"roles": ["platform"]});
    let changed = context.admin(Method::PATCH, "/admin/v1/operators/cleo", fewer).await;
    changed.assert_status(204);
    assert_eq!(state(&ada, &approval).await, "pending", "she could not agree to it now");
    assert_eq!(decide(&olga, &approval, "grant").await, 204);
    ada.call(Method::PUT, PATH, wanted).await.assert_status(200);
}

#[tokio::test]
async fn a_document_that_changes_terms_since_it_was_agreed_to_waits_for_a_treasurer() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["platform", "treasury"]).await;
    let bob = Operator::new(&context, "bob", &["platform"]).await;
    let pair = "/admin/v1/pairs/BTC-EUR";
    let set = async |min: u32| {
        let terms = json!({"buy": {"min": min}});
        context.admin(Method::PATCH, pair, terms).await.assert_status(200);
    };
    set(25).await;
    let wanted = json!({"partners": {"acme": {"defaultFeePercentage": 1.5}},
        "pairs": {"BTC-EUR": {"buy": {"min": 25}}}});
    let approval = held(&ada, Method::PUT, PATH, wanted.clone()).await;
    assert_eq!(decide(&bob, &approval, "grant").await, 204, "it changes the partner alone");
    set(30).await;
    let second = held(&ada, Method::PUT, PATH, wanted.clone()).await;
    assert_ne!(second, approval);
    assert_eq!(decide(&bob, &second, "grant").await, 403);
    set(25).await;
    ada.call(Method::PUT, PATH, wanted).await.assert_status(200);
}
