//! Commands that are written, or held, while the routes are replaced.

use super::purchase::order;
use super::*;

const PAYOUT: CommandKind = CommandKind::PayoutSend;

fn coins() -> Target {
    Target::Asset { direction: Direction::Out, asset: "ETH".to_owned() }
}

/// Replaces all routes by one of the partner's ETH to this connector, or by none.
async fn route(context: &TestContext, connector: Option<&str>) {
    let routes: Vec<_> = connector
        .into_iter()
        .map(|name| {
            json!({"partner": "acme", "asset": "ETH", "direction": "out", "connector": name})
        })
        .collect();
    let body = json!({ "routes": routes });
    context.admin(Method::PUT, "/admin/v1/routes", body).await.assert_status(200);
}

/// Writes a command and replaces the routes before its transaction is committed.
async fn written_meanwhile(
    context: &TestContext,
    partner: &Partner,
    key: &str,
    connector: Option<&str>,
) {
    let core = context.core();
    let mut tx = core.db.begin().await.unwrap();
    let command = new_command(partner, PAYOUT, key, None, coins());
    assert!(enqueue(&mut tx, core, command).await.unwrap());
    route(context, connector).await;
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_command_that_was_written_while_routes_were_replaced_follows_them() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let one = Connector::new(&context, "one", &["payout.send"]).await;
    let two = Connector::new(&context, "two", &["payout.send"]).await;
    route(&context, Some("one")).await;
    assert!(command(&context, &acme, PAYOUT, "begun", None, coins()).await);
    let begun = one.lease(10).await.remove(0);
    assert!(command(&context, &acme, PAYOUT, "fixed", None, to("one")).await);
    written_meanwhile(&context, &acme, "late", Some("two")).await;
    assert!(two.lease(10).await.is_empty(), "the replacement has not seen it");
    assert!(!context.core().follow_routes().await.unwrap(), "there are no more");
    let moved = two.lease(10).await;
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert_eq!(moved[0]["body"]["key"], "late");

    one.report(&begun, "retry", json!({})).await.assert_status(200);
    context.core().follow_routes().await.unwrap();
    assert!(two.lease(10).await.is_empty(), "what was leased stays");
    let left = one.lease(10).await;
    assert!(left.iter().any(|left| left["body"]["key"] == "fixed"), "no route is asked for it");
}

#[tokio::test]
async fn a_command_whose_route_was_taken_away_meanwhile_waits_for_another() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let one = Connector::new(&context, "one", &["payout.send"]).await;
    let two = Connector::new(&context, "two", &["payout.send"]).await;
    route(&context, Some("one")).await;
    written_meanwhile(&context, &acme, "late", None).await;
    context.core().follow_routes().await.unwrap();
    assert!(one.lease(10).await.is_empty() && two.lease(10).await.is_empty(), "no route leads on");
    written_meanwhile(&context, &acme, "later", Some("two")).await;
    context.core().follow_routes().await.unwrap();
    assert_eq!(two.lease(10).await.len(), 2);
}

#[tokio::test]
async fn a_command_that_somebody_holds_holds_up_no_change_of_routes() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let one = Connector::new(&context, "one", &["payout.send"]).await;
    let two = Connector::new(&context, "two", &["payout.send"]).await;
    route(&context, Some("one")).await;
    for key in ["held", "free"] {
        assert!(command(&context, &acme, PAYOUT, key, None, coins()).await);
    }
    let mut somebody = context.db().begin().await.unwrap();
    let hold = "select from command where idempotency_key = 'held' for update";
    sqlx::query(hold).execute(&mut *somebody).await.unwrap();
    route(&context, Some("two")).await;
    let moved = two.lease(10).await;
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert_eq!(moved[0]["body"]["key"], "free");
    somebody.rollback().await.unwrap();
    context.core().follow_routes().await.unwrap();
    assert!(one.lease(10).await.is_empty());
    let moved = two.lease(10).await;
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert_eq!(moved[0]["body"]["key"], "held");
}

/// Replaces all routes by one of the partner's cards to this connector, or by none.
async fn route_cards(context: &TestContext, connector: Option<&str>) {
    let routes: Vec<_> = connector
        .into_iter()
        .map(|name| {
            json!({"partner": "acme", "method": "creditCard", "direction": "in", "connector": name})
        })
        .collect();
    let body = json!({ "routes": routes });
    context.admin(Method::PUT, "/admin/v1/routes", body).await.assert_status(200);
}

/// A partner whose cards are routed to the first of two connectors.
async fn two_for_cards(context: &TestContext) -> (Partner, [Connector; 2]) {
    let acme = context.partner("acme").await;
    let kinds = ["payment.create", "payment.cancel"];
    let one = Connector::new(context, "one", &kinds).await;
    let two = Connector::new(context, "two", &kinds).await;
    route_cards(context, Some("one")).await;
    (acme, [one, two])
}

/// Checks that a connector is commanded to cancel the payment of this name, and nothing else.
async fn assert_cancels(connector: &Connector, payment: &str) {
    let leased = connector.lease(10).await;
    assert_eq!(leased.len(), 1, "{leased:?}");
    assert_eq!(leased[0]["kind"], "payment.cancel");
    assert_eq!(leased[0]["body"]["providerReference"], payment);
}

#[tokio::test]
async fn a_payment_that_follows_the_routes_is_cancelled_by_whoever_makes_it() {
    let context = TestContext::start().await;
    let (acme, [one, two]) = two_for_cards(&context).await;
    let order = order(&acme, 100).await;
    route_cards(&context, Some("two")).await;
    let create = two.lease(10).await.remove(0);
    assert_eq!(create["kind"], "payment.create");
    order.event(&context, "cancel").await.assert_status(200);
    let made = json!({"providerReference": "pi-1"});
    two.report(&create, "done", made).await.assert_status(200);
    assert!(one.lease(10).await.is_empty(), "it holds no payment");
    assert_cancels(&two, "pi-1").await;
}

#[tokio::test]
async fn a_payment_that_nobody_has_begun_is_not_made_for_an_order_that_has_ended() {
    let context = TestContext::start().await;
    let (acme, [one, two]) = two_for_cards(&context).await;
    for route in [Some("one"), None] {
        route_cards(&context, Some("one")).await;
        let order = order(&acme, 100).await;
        route_cards(&context, route).await;
        order.event(&context, "cancel").await.assert_status(200);
        route_cards(&context, Some("two")).await;
        for connector in [&one, &two] {
            assert!(connector.lease(10).await.is_empty(), "{route:?}");
        }
    }
}

#[tokio::test]
async fn a_cancellation_follows_no_route_away_from_the_connector_of_its_payment() {
    let context = TestContext::start().await;
    let (acme, [one, two]) = two_for_cards(&context).await;
    let order = order(&acme, 100).await;
    route_cards(&context, None).await;
    route_cards(&context, Some("one")).await;
    let create = one.lease(10).await.remove(0);
    assert_eq!(create["kind"], "payment.create");
    order.event(&context, "cancel").await.assert_status(200);
    route_cards(&context, Some("two")).await;
    let made = json!({"providerReference": "pi-1"});
    one.report(&create, "done", made).await.assert_status(200);
    route_cards(&context, None).await;
    context.core().follow_routes().await.unwrap();
    assert!(two.lease(10).await.is_empty(), "it holds no payment");
    assert_cancels(&one, "pi-1").await;
}

#[tokio::test]
async fn an_order_that_ends_or_is_paid_while_its_payment_is_made_cancels_it_once() {
    let context = TestContext::start().await;
    let (acme, [one, _two]) = two_for_cards(&context).await;
    for (round, event) in ["cancel", "payment-received"].repeat(4).into_iter().enumerate() {
        let order = order(&acme, 100).await;
        let create = one.lease(10).await.remove(0);
        let payment = format!("pi-{round}");
        let made = json!({ "providerReference": payment });
        let (ended, reported) =
            tokio::join!(order.event(&context, event), one.report(&create, "done", made));
        ended.assert_status(200);
        reported.assert_status(200);
        assert_cancels(&one, &payment).await;
    }
}

#[tokio::test]
async fn a_payment_that_was_to_be_made_later_is_not_made_or_cancelled_once_its_order_has_ended() {
    let context = TestContext::start().await;
    let (acme, [one, _two]) = two_for_cards(&context).await;
    let order = order(&acme, 100).await;
    let create = one.lease(10).await.remove(0);
    one.report(&create, "retry", Value::Null).await.assert_status(200);
    order.event(&context, "cancel").await.assert_status(200);
    sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
    assert!(one.lease(10).await.is_empty(), "there is nothing to make, and nothing to cancel");
}
