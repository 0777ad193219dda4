//! Identity checks at a provider.

use rampart_tests::wallet::Wallet;

use super::*;

pub(super) fn completed(id: &str, command: &Value, outcome: &str) -> Value {
    json!({"id": id, "kind": "identity.completed", "occurredAt": "2026-03-01T12:00:00Z",
        "commandId": command["id"], "outcome": outcome})
}

#[tokio::test]
async fn the_first_visit_starts_the_check_and_its_end_frees_the_coins() {
    let shop = Shop::open().await;
    shop.change(json!({"verification": {"identity": "pending"}})).await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    let page = path(&shop.reasons(order).await.remove(0));
    let lease = async || shop.connector.lease(10).await;
    assert!(lease().await.is_empty(), "nobody has visited the page");
    let (first, second) = futures::join!(visit(&shop.partner, &page), visit(&shop.partner, &page));
    assert_eq!((first.header("refresh"), second.header("refresh")), (Some("2"), Some("2")));
    let mut started = lease().await;
    assert_eq!(started.len(), 1, "one check for both visits");
    let start = started.remove(0);
    assert_eq!(start["kind"], "identity.start");
    assert!(start["body"]["returnUrl"].as_str().unwrap().ends_with(&page));
    let url = json!({"url": "https://id.example/check?a=1"});
    shop.connector.report(&start, "done", url).await.assert_status(200);
    assert!(
        visit(&shop.partner, &page).await.text().contains("href=\"https://id.example/check?a=1\"")
    );

    shop.connector.event(completed("e-1", &start, "rejected")).await.assert_status(200);
    assert_eq!(shop.payouts(order).await, 0);
    assert_eq!(visit(&shop.partner, &page).await.header("refresh"), Some("2"));
    let again = lease().await.remove(0);
    assert!(again["kind"] == "identity.start" && again["id"] != start["id"]);
    shop.connector.report(&again, "done", json!({})).await.assert_status(200);
    shop.connector.event(completed("e-2", &again, "verified")).await.assert_status(200);
    assert_eq!((shop.payouts(order).await, shop.reasons(order).await.len()), (1, 0));
    shop.connector.event(completed("e-3", &again, "rejected")).await.assert_status(200);
    assert!(shop.reasons(order).await.is_empty(), "a verified identity stays so");
}

#[tokio::test]
async fn an_identity_that_an_operator_has_blocked_stays_so() {
    let shop = Shop::open().await;
    shop.change(json!({"verification": {"identity": "pending"}})).await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    let page = path(&shop.reasons(order).await.remove(0));
    visit(&shop.partner, &page).await.assert_status(200);
    let start = shop.connector.lease(10).await.remove(0);
    shop.connector.report(&start, "done", json!({})).await.assert_status(200);
    shop.change(json!({"verification": {"identity": "blocked"}})).await;
    shop.connector.event(completed("e", &start, "verified")).await.assert_status(200);
    assert_eq!((shop.payouts(order).await, shop.codes(order).await), (0, vec!["011".to_owned()]));
}
