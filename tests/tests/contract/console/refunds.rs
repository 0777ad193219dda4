//! The form of a refund: sent again after a lost answer, it is one refund.

use super::*;

#[tokio::test]
async fn a_refund_sent_again_from_the_page_of_its_form_is_one() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let payment = json!({"partner": "acme", "kind": "received", "amount": 100, "currency": "EUR",
        "providerReference": "1", "reason": "seen"});
    let payment = context.admin(Method::POST, "/admin/v1/payments", payment).await;
    let payment = payment.assert_status(201).json();
    let page = format!("/console/payments/{}", payment["id"].as_str().unwrap());
    let (refund, done) = (format!("{page}/refund"), format!("{page}?done=refund"));
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let members = [("amount", "30"), ("reason", "late")];
    let send = async |csrf_token: &str, key: &str| {
        let sent = members.into_iter().chain([("csrfToken", csrf_token), ("callKey", key)]);
        ada.post(&refund, &sent.collect::<Vec<_>>()).await
    };
    let form = ada.get(&refund).await.csrf_token();
    assert_eq!(send(&form, "").await.assert(303, "").header("location"), done);
    assert_eq!(send(&form, "").await.assert(303, "").header("location"), done);
    second_clicks::forget(&context).await;
    let shown = send(&form, "").await.assert(409, "was sent before");
    let key = shown.text.split("name=\"callKey\" value=\"").nth(1).unwrap();
    let key = key.split('"').next().unwrap();
    let again = send(&shown.csrf_token(), key).await.assert(303, "");
    assert_eq!(again.header("location"), done);
    let refunded = async || {
        let path = format!("/admin/v1/payments/{}", payment["id"].as_str().unwrap());
        context.admin(Method::GET, &path, Value::Null).await.json()["refundRequested"].clone()
    };
    assert_eq!(refunded().await, 30);
    // A form that is opened anew makes another call, and no link says which.
    let anew = ada.get(&format!("{refund}?callKey={key}")).await.assert(200, "<form");
    assert!(!anew.text.contains("callKey"), "{}", anew.text);
    assert_eq!(send(&anew.csrf_token(), "").await.assert(303, "").header("location"), done);
    assert_eq!(refunded().await, 60);
}
