//! Two who clear the last two checks at the same time.

use futures::future::join_all;
use rampart_tests::wallet::Wallet;

use super::*;

#[tokio::test]
async fn of_two_reasons_cleared_at_once_one_commands_the_payout() {
    let shop = Shop::open().await;
    let second = shop.context.second_edge().await;
    let identity = json!({"verification": {"identity": "verified"}});
    for round in 0..8 {
        shop.change(json!({"verification": {"identity": "pending"}})).await;
        let order = shop.paid(1500, &Wallet::new(7).address()).await;
        assert_eq!(shop.codes(order).await, ["011", "021"]);
        let proof = format!("/admin/v1/orders/{order}/wallet-proof");
        let (proven, verified) = futures::join!(
            shop.decide(&proof, json!({"reason": "seen"})),
            second.admin(Method::PATCH, &shop.user, identity.clone()),
        );
        proven.assert_status(200);
        verified.assert_status(200);
        assert_eq!(shop.payouts(order).await, 1, "round {round}");
        let workers = [&shop.context, &second].map(|edge| edge.core().command_payouts());
        for run in join_all(workers).await {
            run.unwrap();
        }
        assert_eq!(shop.payouts(order).await, 1, "round {round}");
        for command in shop.connector.lease(100).await {
            let sent = json!({"transactionId": format!("0x{order:064x}")});
            shop.connector.report(&command, "done", sent).await.assert_status(200);
        }
    }
}
