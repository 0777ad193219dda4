//! Refunds that one operator may not decide alone.

use http::Method;

use super::approvals::{PAYMENTS, held, received};
use super::*;

#[tokio::test]
async fn parts_of_one_payment_count_together() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["treasury"]).await;
    let seen = context.admin(Method::POST, PAYMENTS, received("1", json!(5000), "EUR")).await;
    let seen = seen.assert_status(201).json();
    let refund = format!("{PAYMENTS}/{}/refund", seen["id"].as_str().unwrap());
    let part = |amount: u32| json!({"amount": amount, "reason": "nobody's"});
    ada.call(Method::POST, &refund, part(900)).await.assert_status(200);
    ada.call(Method::POST, &refund, part(100)).await.assert_status(200);
    held(&ada, Method::POST, &refund, part(1)).await;
    let path = format!("{PAYMENTS}/{}", seen["id"].as_str().unwrap());
    let read = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    assert_eq!(read["refundRequested"], 1000);
}
