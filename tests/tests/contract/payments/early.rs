//! Refunds and disputes by hand that are recorded before their payment, which an operator's event books.

use super::*;

#[tokio::test]
async fn what_was_taken_back_of_a_payment_before_an_event_books_it_is_the_orders() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for kind in ["refunded", "disputed"] {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        let reference = format!("bank-{kind}");
        pay(&context, &reference, json!({ "kind": kind })).await.assert_status(201);
        let path = format!("/admin/v1/orders/{}/events", order.id);
        let received = json!({"event": "payment-received", "reference": reference});
        context.admin(Method::POST, &path, received).await.assert_status(200);
        assert_eq!(status(&context, &order).await, "blocked", "no coins are sent for it");
        let of_order = list(&context, &format!("?order={}", order.id)).await;
        let mut kinds: Vec<_> = of_order
            .iter()
            .filter(|payment| payment["state"] == "matched")
            .map(|payment| payment["kind"].as_str().unwrap())
            .collect();
        kinds.sort_unstable();
        let mut both = ["received", kind];
        both.sort_unstable();
        assert_eq!(kinds, both);
        let books = balances(&context).await;
        assert!(books.contains(&"dispute EUR: 100".to_owned()), "{books:?}");
        assert!(!books.iter().any(|line| line.starts_with("suspense")), "{books:?}");
        order.event(&context, "refund").await.assert_status(200);
        assert_eq!(balances(&context).await, [""; 0], "nothing is given back twice");
        assert_eq!(problems(&context).await, [Value::Null; 0]);
    }
}
