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
