//! Limits of policies that are settings.

use super::*;

/// The failure of a dry run.
async fn failure(context: &TestContext, input: Value) -> Value {
    dry_run(context, FEE, input).await["failure"].clone()
}

#[tokio::test]
async fn an_upload_is_examined_within_the_limits_of_the_settings() {
    let context = TestContext::with(|settings| settings.policy.component_bytes = 200_000).await;
    context.partner("acme").await;
    let large = context.admin_bytes(Method::PUT, FEE, vec![0; 200_001].into()).await;
    assert!(large.assert_status(422).text().contains("at most 200000"), "{}", large.text());
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    let frugal = context.edge_with(|settings| settings.policy.admission_fuel = 100).await;
    let refused = push(&frugal, FEE, "hostile").await;
    assert!(refused.assert_status(422).text().contains("failed: fuel"), "{}", refused.text());
}

#[tokio::test]
async fn a_call_has_the_limits_of_the_settings() {
    let context = TestContext::with(|settings| {
        settings.policy.log_lines_max = 2;
        settings.policy.request_bytes = 20_000;
        settings.policy.output_bytes = 4 << 20;
    })
    .await;
    context.partner("acme").await;
    let path = format!("{FEE}?config={{%22mode%22:%22chatter@FR%22}}");
    push(&context, &path, "hostile").await.assert_status(200);
    let chatted = dry_run(&context, FEE, json!({"country": "FR"})).await;
    let lines = chatted["log"].as_array().unwrap().len();
    assert_eq!((lines, &chatted["logDropped"]), (2, &json!(98)));
    let large = failure(&context, json!({"promoCode": "x".repeat(20_000)})).await;
    assert_eq!(large["cause"], "capacity", "{large}");
    let config = json!({"config": {"mode": "x".repeat(20_000)}});
    let refused = context.admin(Method::PUT, &format!("{FEE}/config"), config).await;
    assert!(refused.assert_status(422).text().contains("leave room"), "{}", refused.text());

    // A rule of 1 MiB is read, and then it is none.
    let path = format!("{FEE}?config={{%22mode%22:%22large-answer@FR%22}}");
    push(&context, &path, "hostile").await.assert_status(200);
    let read = failure(&context, json!({"country": "FR"})).await;
    assert_eq!(read["message"], "a rule is not [a-z0-9-]{0,64}", "{read}");
}
