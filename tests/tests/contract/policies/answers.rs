//! Answers of policies that the contract allows, and what the host makes of them.

use super::*;

#[tokio::test]
async fn the_rule_of_an_order_is_any_text_of_which_one_line_is_kept() {
    let context = context().await;
    push(&context, METHOD_ORDER, "country-order").await.assert_status(200);
    let long = "X".repeat(80);
    let countries = ["A\nB_1=card".to_owned(), format!("{long}=card"), "*=card".to_owned()];
    let config = json!({"config": {"countries": countries}});
    let path = format!("{METHOD_ORDER}/config");
    context.admin(Method::PUT, &path, config).await.assert_status(200);
    for (country, rule) in [
        ("A\nB_1", "country-a b_1".to_owned()),
        (long.as_str(), format!("country-{}", "x".repeat(56))),
    ] {
        let ranked = dry_run(&context, METHOD_ORDER, json!({"user": {"country": country}})).await;
        assert_eq!(ranked["decision"]["rule"], rule, "{ranked}");
    }
}

#[tokio::test]
async fn a_decimal_of_an_answer_may_have_40_characters() {
    let context = with_mirror().await;
    // The mirror gives the amount back as the most that its third fee may be.
    let thirds = |count: usize| format!("33.{}", "3".repeat(count));
    let amount = |text: String| json!({"pay": {"amount": text, "currency": "EUR"}});
    let answered = dry_run(&context, FEE, amount(thirds(37))).await;
    let most = &answered["decision"]["lines"][2]["charge"]["atMost"];
    assert_eq!(most.to_string(), thirds(27), "cut where the digits end: {answered}");
    let failed = dry_run(&context, FEE, amount(thirds(38))).await;
    assert_eq!(failed["failure"]["cause"], "answer", "41 characters: {failed}");
}

#[tokio::test]
async fn a_label_that_the_host_does_not_know_is_dropped() {
    let context = context().await;
    push(&context, METHOD_ORDER, "told-order").await.assert_status(200);
    // The guest labels the first method `sponsored`.
    let methods = json!([{"id": "creditCard"}, {"id": "bankTransfer"}]);
    let ranked = dry_run(&context, METHOD_ORDER, json!({"methods": methods})).await;
    let plain = |id: &str| json!({"id": id, "badge": null});
    let expected = json!([plain("creditCard"), plain("bankTransfer")]);
    assert_eq!(ranked["decision"]["shown"], expected, "{ranked}");
}
