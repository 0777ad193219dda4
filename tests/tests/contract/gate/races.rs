//! Two who clear the last two checks at the same time, a transfer and a saved answer beside their
//! user's erasure, and sweeps beside orders that somebody holds.

use futures::future::join_all;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::wallet::Wallet;
use sqlx::{AssertSqlSafe, Postgres, Transaction};

use super::sales::{deposit, sale, states, transfers};
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

/// A transaction that has locked rows.
async fn locked(shop: &Shop, lock: &'static str) -> Transaction<'static, Postgres> {
    let mut tx = shop.context.db().begin().await.unwrap();
    sqlx::query(lock).execute(&mut *tx).await.unwrap();
    tx
}

/// Erases the user beside a transaction that waits for locked rows, and unlocks them once the erasure
/// waits too, or is done.
async fn erase_beside(shop: &Shop, locked: Transaction<'static, Postgres>) {
    let erase = async {
        until_awaited(shop, 1).await;
        shop.change(json!({"deleted": true})).await;
    };
    let unlock = async {
        until_awaited(shop, 2).await;
        locked.rollback().await.unwrap();
    };
    futures::join!(erase, unlock);
}

/// Returns once this many transactions wait for a lock, or the user is erased all the same.
async fn until_awaited(shop: &Shop, waiting: i64) {
    let query = "select exists (select from end_user where deleted_at is not null) \
                     or count(*) >= $1 from pg_stat_activity \
                 where datname = current_database() and wait_event_type = 'Lock'";
    until("they wait for a lock", SOON, async || {
        let query = sqlx::query_scalar(query).bind(waiting);
        let is_there: bool = query.fetch_one(shop.context.db()).await.unwrap();
        is_there.then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_transfer_that_is_tried_again_beside_an_erasure_keeps_no_recipient() {
    let shop = Shop::open().await;
    sale(&shop).await;
    deposit(&shop).await;
    let transfer = transfers(&shop).await.remove(0);
    let locked = locked(&shop, "select from sell_order for update").await;
    let retry = shop.connector.report(&transfer, "retry", Value::Null);
    futures::join!(retry, erase_beside(&shop, locked)).0.assert_status(200);
    assert_eq!(states(&shop).await, [("rejected".to_owned(), false)]);
}

#[tokio::test]
async fn a_transfer_that_is_commanded_beside_an_erasure_keeps_no_recipient() {
    let shop = Shop::open().await;
    sale(&shop).await;
    deposit(&shop).await;
    let second = shop.context.second_edge().await;
    for statement in
        ["create table taken as table command", "delete from command where kind = 'transfer.send'"]
    {
        sqlx::query(statement).execute(shop.context.db()).await.unwrap();
    }
    // The transfer is written with the recipient, and waits for the other one of its key.
    let again = "insert into command select * from taken where kind = 'transfer.send'";
    let locked = locked(&shop, again).await;
    let sweep = second.core().command_transfers();
    futures::join!(sweep, erase_beside(&shop, locked)).0.unwrap();
    let open = states(&shop).await.into_iter().filter(|(_, has_recipient)| *has_recipient);
    assert_eq!(open.count(), 0);
}

#[tokio::test]
async fn an_answer_about_an_order_beside_an_erasure_is_not_kept() {
    let (shop, wallet) = (Shop::open().await, Wallet::new(7).address());
    let order = shop.paid(1500, &wallet).await;
    let canonical = format!("orderId={order}&reason=seen&walletAddress={wallet}");
    let proof = json!({"orderId": order, "walletAddress": wallet, "reason": "seen",
        "signature": shop.partner.sign(&canonical)});
    let path = format!("/api/v2/buy/orders/{order}/wallet-proof");
    let request = shop.ada.request(Method::POST, &path).header("idempotency-key", "k").json(&proof);
    // One has the order then, the other one the user: whoever Postgres gives up is run again.
    let locked = locked(&shop, "select from buy_order for update").await;
    let answer = futures::join!(request.send(), erase_beside(&shop, locked)).0;
    match answer.status() {
        200 => assert_eq!(answer.json()["recorded"], true),
        409 => drop(answer.assert_codes(&["ER999"])),
        other => panic!("{other}: {}", answer.text()),
    }
    let saved = sqlx::query_scalar::<_, i64>("select count(*) from idempotency_key");
    assert_eq!(saved.fetch_one(shop.context.db()).await.unwrap(), 0);
}

/// Two paid orders that nothing holds back any more, of which only the sweep learns.
async fn freed(shop: &Shop) -> [i64; 2] {
    shop.change(json!({"verification": {"identity": "pending"}})).await;
    let first = shop.paid(100, &Wallet::new(7).address()).await;
    let second = shop.paid(100, &Wallet::new(8).address()).await;
    let free = sqlx::query("update end_user set identity_status = 'verified'");
    free.execute(shop.context.db()).await.unwrap();
    [first, second]
}

#[tokio::test]
async fn a_payout_whose_order_somebody_holds_delays_no_other() {
    let shop = Shop::open().await;
    let [first, second] = freed(&shop).await;
    // Sorted: the numbers of orders do not follow their times.
    let counts = async || {
        let mut counts = [shop.payouts(first).await, shop.payouts(second).await];
        counts.sort_unstable();
        counts
    };
    assert_eq!(counts().await, [0, 0]);
    let one = "select from buy_order where order_id = (select min(order_id) from buy_order) \
        for update";
    let somebody = locked(&shop, one).await;
    shop.context.core().command_payouts().await.unwrap();
    assert_eq!(counts().await, [0, 1]);
    somebody.rollback().await.unwrap();
    shop.context.core().command_payouts().await.unwrap();
    assert_eq!(counts().await, [1, 1]);
}

#[tokio::test]
async fn a_payout_that_cannot_be_commanded_delays_no_other() {
    let shop = Shop::open().await;
    let [first, second] = freed(&shop).await;
    let check = format!("kind <> 'payout.send' or order_id <> {first}");
    let frozen = format!("alter table command add constraint frozen check ({check})");
    sqlx::query(AssertSqlSafe(frozen)).execute(shop.context.db()).await.unwrap();
    shop.context.core().command_payouts().await.unwrap();
    assert_eq!([shop.payouts(first).await, shop.payouts(second).await], [0, 1]);
}

#[tokio::test]
async fn a_transfer_whose_sale_somebody_holds_is_commanded_later() {
    let shop = Shop::open().await;
    sale(&shop).await;
    deposit(&shop).await;
    let forget = sqlx::query("delete from command where kind = 'transfer.send'");
    forget.execute(shop.context.db()).await.unwrap();
    let somebody = locked(&shop, "select from sell_order for update").await;
    shop.context.core().command_transfers().await.unwrap();
    assert!(states(&shop).await.is_empty());
    somebody.rollback().await.unwrap();
    assert_eq!(transfers(&shop).await.len(), 1);
}
