//! What a partner can make happen to its test orders.

use rampart_tests::placed::Placed;
use rampart_tests::world::World;
use serde_json::json;

fn path(order: &Placed, event: &str) -> String {
    format!("/api/v2/sandbox/orders/{}/{event}", order.id)
}

#[tokio::test]
async fn every_state_can_be_reached() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    for (events, status) in [
        (&["expire"][..], "cancelled"),
        (&["cancel"], "cancelled"),
        (&["payment-denied"], "cancelled"),
        (&["payment-received"], "in progress"),
        (&["payment-amount-wrong"], "blocked"),
        (&["payment-amount-wrong", "refund"], "refunded"),
        (&["payment-received", "hold", "release"], "in progress"),
        (&["payment-received", "coins-sent", "confirmed-on-chain"], "completed"),
    ] {
        let order = Placed::order(&world, &acme, None, None).await;
        let mut seen = json!(null);
        for event in events {
            let answer = acme.post(&path(&order, event), json!({})).await;
            seen = answer.assert_status(200).json();
        }
        assert_eq!(
            (&seen["id"], &seen["status"]),
            (&json!(order.id), &json!(status)),
            "{events:?}"
        );
    }
}

#[tokio::test]
async fn what_the_state_forbids_is_a_conflict() {
    let world = World::start().await;
    let acme = world.partner("acme").await;
    let order = Placed::order(&world, &acme, None, None).await;
    let answer = acme.post(&path(&order, "coins-sent"), json!({})).await;
    answer.assert_status(409).assert_codes(&["ER999"]);
    assert_eq!(order.seen(&world).await["status"], "pending");
}

#[tokio::test]
async fn only_ones_own_test_orders_can_be_moved() {
    let world = World::start().await;
    let (acme, other) = (world.partner("acme").await, world.partner("other").await);
    let live = world.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    let order = Placed::order(&world, &acme, None, None).await;
    let answer = other.post(&path(&order, "cancel"), json!({})).await;
    answer.assert_status(404).assert_codes(&["ER035"]);
    let of_live = Placed::order(&world, &live, None, None).await;
    let answer = live.post(&path(&of_live, "cancel"), json!({})).await;
    answer.assert_status(404).assert_codes(&["ER998"]);
    let answer = acme.post(&path(&order, "explode"), json!({})).await;
    answer.assert_status(404).assert_codes(&["ER998"]);
    for untouched in [order, of_live] {
        assert_eq!(untouched.seen(&world).await["status"], "pending");
    }
}
