//! Deliveries and mails that wait in the database, as metrics.

use chrono::TimeDelta;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::receiver::Receiver;
use rampart_tests::test_context::TestContext;

#[tokio::test]
async fn what_waits_in_the_database_is_measured() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let shown = |name: &str, queue: &str| -> i64 {
        let text = context.core().metrics.render();
        let line = format!(r#"rampart_{name}{{queue="{queue}"}} "#);
        let value = text.lines().find_map(|text| text.strip_prefix(&line));
        value.unwrap_or_else(|| panic!("{line}: {text}")).parse().unwrap()
    };
    context.core().measure_backlogs().await.unwrap();
    assert_eq!((shown("backlog", "deliveries"), shown("backlog", "mail")), (0, 0));

    acme.user("ada").await;
    let host = Receiver::start().await;
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    context.core().measure_backlogs().await.unwrap();
    assert_eq!((shown("backlog", "deliveries"), shown("backlog", "mail")), (1, 1));
    // Just written, and not in 1970.
    assert!(shown("backlog_overdue_seconds", "mail") < 100);
    context.clock().advance(TimeDelta::seconds(100));
    context.core().measure_backlogs().await.unwrap();
    assert!((100..200).contains(&shown("backlog_overdue_seconds", "mail")));

    assert_eq!(context.core().deliver_due().await.unwrap(), 1);
    context.core().measure_backlogs().await.unwrap();
    assert_eq!(shown("backlog", "deliveries"), 0);
}
