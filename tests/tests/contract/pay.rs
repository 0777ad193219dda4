//! The payment page and the settlement that follows it in the sandbox.

mod events;
mod receipt;

use chrono::TimeDelta;
use http::Method;
use rampart_core::trading::orders::expiry::expire_due;
use rampart_tests::answer::Answer;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::receiver::Receiver;
use rampart_tests::test_context::TestContext;
use serde_json::json;

const RETURN_URL: &str = "https://shop.example/done?cart=7";

async fn show(partner: &Partner, order: &OrderFixture) -> Answer {
    partner.anonymous(Method::GET, &order.pay_path).send().await
}

async fn press(partner: &Partner, order: &OrderFixture, action: &str) -> Answer {
    let request = partner.anonymous(Method::POST, &order.pay_path);
    request.body(format!("action={action}")).send().await
}

/// Time passes until the next step is due, and the worker takes it.
async fn settle(context: &TestContext) -> usize {
    context.clock().advance(TimeDelta::milliseconds(500));
    context.core().settle_sandbox_orders().await.unwrap()
}

#[tokio::test]
async fn the_payment_method_is_in_the_readers_language_unless_an_operator_has_named_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, Some(RETURN_URL), None).await;
    let shown = async || {
        let request = acme.anonymous(Method::GET, &order.pay_path).header("accept-language", "nl");
        request.send().await.assert_status(200).text().to_owned()
    };
    let text = shown().await;
    assert!(text.contains("<dd>Creditcard</dd>") && !text.contains("Credit card"), "{text}");
    let named = json!({"label": "Visa & co"});
    let path = "/admin/v1/payment-methods/creditCard";
    context.admin(Method::PATCH, path, named).await.assert_status(200);
    context.core().refresh().await.unwrap();
    let text = shown().await;
    assert!(text.contains("<dd>Visa &amp; co</dd>"), "{text}");
}

#[tokio::test]
async fn the_page_shows_the_order_under_a_strict_policy() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, Some(RETURN_URL), None).await;
    let page = show(&acme, &order).await;
    page.assert_status(200);
    for text in ["100.00 EUR", "0.002 BTC", "Credit card", "bc1qar0", "acme", "test"] {
        assert!(page.text().contains(text), "{text} in {}", page.text());
    }
    for action in ["pay", "deny", "cancel"] {
        assert!(page.text().contains(&format!(r#"value="{action}""#)), "{action}");
    }
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "style-src 'sha256-",
        "form-action 'self' https://shop.example;",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{part} in {policy}");
    }
    assert!(!policy.contains("unsafe") && policy.contains("script-src 'sha256-"), "{policy}");
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
}

#[tokio::test]
async fn a_paid_order_completes_by_itself_and_the_partner_is_told() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    let order =
        OrderFixture::order(&context, &acme, Some(RETURN_URL), Some(&host.url("/hook"))).await;
    let left = press(&acme, &order, "pay").await;
    left.assert_status(303);
    assert_eq!(left.header("location"), Some(RETURN_URL));
    assert_eq!(order.seen(&context).await["status"], "in progress");
    // However slow this machine is.
    let clock = context.clock();
    clock.advance(TimeDelta::hours(-1));
    assert_eq!(context.core().settle_sandbox_orders().await.unwrap(), 0, "not due yet");
    clock.advance(TimeDelta::hours(1));
    assert_eq!(settle(&context).await, 1);
    let sent = order.seen(&context).await;
    assert_eq!(sent["status"], "in progress");
    assert_eq!(sent["transactionId"].as_str().unwrap().len(), 64);
    assert_eq!(settle(&context).await, 1);
    let done = order.seen(&context).await;
    assert_eq!(done["status"], "completed");
    let told: Vec<_> = done["timeline"].as_array().unwrap().iter().collect();
    let told: Vec<_> =
        told.iter().map(|row| (row["cause"].as_str(), row["actor"].as_str())).collect();
    assert_eq!(
        told,
        [
            (Some("payment-received"), Some("page")),
            (Some("coins-sent"), Some("sandbox")),
            (Some("confirmed-on-chain"), Some("sandbox")),
        ]
    );
    assert_eq!(settle(&context).await, 0);
    assert_eq!(context.core().deliver_due().await.unwrap(), 1);
    let heard = &host.heard()[0];
    assert_eq!(heard.target, format!("/hook?orderId={}&status=success", order.id));
    assert_eq!(heard.json()["type"], "order.completed");
    assert!(show(&acme, &order).await.text().contains("complete"));
}

#[tokio::test]
async fn denying_and_cancelling_end_the_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    for (action, cause, outcome) in
        [("deny", "payment-denied", "denied"), ("cancel", "cancelled", "cancelled")]
    {
        let order = OrderFixture::order(&context, &acme, None, Some(&host.url("/hook"))).await;
        let left = press(&acme, &order, action).await;
        left.assert_status(303);
        assert_eq!(left.header("location"), Some(&*order.pay_path), "no returnUrl: the page");
        let seen = order.seen(&context).await;
        assert_eq!(seen["status"], "cancelled");
        assert_eq!(seen["statusCause"], cause);
        assert_eq!(settle(&context).await, 0);
        assert_eq!(context.core().deliver_due().await.unwrap(), 1);
        let target = host.heard().pop().unwrap().target;
        assert_eq!(target, format!("/hook?orderId={}&status={outcome}", order.id));
        assert!(!show(&acme, &order).await.text().contains("<form"));
    }
}

#[tokio::test]
async fn a_second_press_changes_nothing_and_shows_what_it_is() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, Some(RETURN_URL), None).await;
    press(&acme, &order, "pay").await.assert_status(303);
    let late = press(&acme, &order, "cancel").await;
    late.assert_status(409);
    assert!(late.text().contains("payment has arrived") && late.text().contains(RETURN_URL));
    assert_eq!(order.seen(&context).await["status"], "in progress");
}

#[tokio::test]
async fn of_racing_presses_one_wins() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let presses = ["pay", "deny", "cancel", "pay", "deny", "cancel"];
    let answers = presses.map(|action| press(&acme, &order, action));
    let answers = futures::future::join_all(answers).await;
    let mut statuses: Vec<_> = answers.iter().map(Answer::status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 409, 409, 409, 409, 409]);
    assert_eq!(order.seen(&context).await["timeline"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_link_that_is_none_of_ours_is_a_page_not_found() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let altered = order.pay_path.replacen("/pay/", "/pay/A", 1);
    for path in ["/pay/", "/pay/x", &altered, &order.pay_path[..order.pay_path.len() - 1]] {
        for method in [Method::GET, Method::POST] {
            let answer = acme.anonymous(method, path).body("action=pay").send().await;
            answer.assert_status(404);
            assert!(answer.text().contains("There is no such payment"));
            assert!(answer.header("content-security-policy").is_some());
        }
    }
    assert_eq!(order.seen(&context).await["status"], "pending");
}

#[tokio::test]
async fn an_unknown_action_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    for body in ["", "action=", "action=PAY", "action=refund", "other=pay", "\u{fffd}%ff="] {
        let request = acme.anonymous(Method::POST, &order.pay_path).body(body.to_owned());
        request.send().await.assert_status(400);
    }
    assert_eq!(order.seen(&context).await["status"], "pending");
}

#[tokio::test]
async fn a_live_order_cannot_be_paid_by_a_button() {
    let context = TestContext::start().await;
    let live = context.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    let order = OrderFixture::order(&context, &live, None, None).await;
    let page = show(&live, &order).await;
    page.assert_status(200);
    assert!(page.text().contains("not configured") && !page.text().contains("<form"));
    press(&live, &order, "pay").await.assert_status(409);
    assert_eq!(order.seen(&context).await["status"], "pending");
    order.event(&context, "payment-received").await.assert_status(200);
    assert_eq!(settle(&context).await, 0, "live coins are not simulated");
}

#[tokio::test]
async fn an_order_past_its_time_has_no_buttons() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    context.clock().advance(TimeDelta::hours(2));
    let text = show(&acme, &order).await.text().to_owned();
    // The payment may be on its way.
    let advice = "If you have paid, ask the shop before you order again";
    assert!(text.contains("can no longer be paid") && text.contains(advice), "{text}");
    press(&acme, &order, "pay").await.assert_status(409);
    assert_eq!(order.seen(&context).await["status"], "pending");
    assert_eq!(expire_due(context.core()).await.unwrap(), 1);
    let text = show(&acme, &order).await.text().to_owned();
    assert!(text.contains("has expired") && text.contains(advice), "{text}");
}

#[tokio::test]
async fn a_cancelled_order_says_what_its_method_may_have_done() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (method, text) in [
        ("creditCard", "Nothing was charged."),
        ("bankTransfer", "do not transfer the amount any more"),
        ("payByBank", "If you have paid, ask the shop"),
    ] {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        sqlx::query("update buy_order set payment_method = $2 where order_id = $1")
            .bind(order.id)
            .bind(method)
            .execute(context.db())
            .await
            .unwrap();
        press(&acme, &order, "cancel").await.assert_status(303);
        let page = show(&acme, &order).await;
        assert!(page.text().contains("The order is cancelled"), "{}", page.text());
        assert_eq!(page.text().contains("Nothing was charged."), method == "creditCard");
        assert!(page.text().contains(text), "{method}: {}", page.text());
    }
}

#[tokio::test]
async fn an_operator_in_between_wins_and_a_release_goes_on() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    press(&acme, &order, "pay").await.assert_status(303);
    order.event(&context, "hold").await.assert_status(200);
    assert_eq!(settle(&context).await, 0);
    assert_eq!(order.seen(&context).await["status"], "blocked");
    let page = show(&acme, &order).await;
    assert!(page.text().contains("http-equiv=\"refresh\" content=\"30\""), "{}", page.text());
    order.event(&context, "release").await.assert_status(200);
    assert_eq!((settle(&context).await, settle(&context).await), (1, 1));
    assert_eq!(order.seen(&context).await["status"], "completed");
}

#[tokio::test]
async fn two_edges_send_the_coins_once() {
    let context = TestContext::start().await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    for _ in 0..10 {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        press(&acme, &order, "pay").await.assert_status(303);
    }
    context.clock().advance(TimeDelta::milliseconds(500));
    let (one, two) =
        tokio::join!(context.core().settle_sandbox_orders(), other.core().settle_sandbox_orders());
    assert_eq!(one.unwrap() + two.unwrap(), 10);
    let sent: i64 =
        sqlx::query_scalar("select count(*) from order_transition where cause = 'coins-sent'")
            .fetch_one(context.db())
            .await
            .unwrap();
    assert_eq!(sent, 10);
}
