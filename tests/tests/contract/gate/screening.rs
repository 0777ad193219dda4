//! Screening of wallets and persons.

use chrono::TimeDelta;
use rampart_tests::wallet::Wallet;

use super::identity::completed;
use super::*;

impl Shop {
    pub(super) async fn screener(&self) -> Connector {
        Connector::new(&self.context, "screener", &["screening.check"]).await
    }

    /// The screening that waits for an operator.
    async fn review(&self) -> String {
        let path = "/admin/v1/screenings?state=review&partner=acme";
        let waiting = self.context.admin(Method::GET, path, json!({})).await;
        waiting.assert_status(200).json()[0]["id"].as_str().unwrap().to_owned()
    }
}

/// The orders of the review queue with their reasons.
pub(super) async fn queue(shop: &Shop) -> Vec<Value> {
    let path = "/admin/v1/reviews?subject=order";
    let queue = shop.context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    queue.as_array().unwrap().iter().map(|row| json!([row["id"], row["reasons"]])).collect()
}

/// Seconds that the oldest purchase in progress has been so, as measured two hours later.
async fn age(shop: &Shop) -> i64 {
    let late = "update buy_order set updated_at = now() - interval '2 hours'";
    sqlx::query(late).execute(shop.context.db()).await.unwrap();
    shop.context.core().measure_money().await.unwrap();
    let ages = &shop.context.core().metrics.order_age;
    ages.with_label_values(&["live", "buy", "in progress"]).get()
}

fn decision(decision: &str) -> Value {
    json!({"decision": decision, "reasons": ["exposure to a mixer"]})
}

#[tokio::test]
async fn a_clear_wallet_frees_the_coins_in_the_transaction_of_its_result() {
    let shop = Shop::open().await;
    let screener = shop.screener().await;
    let wallet = Wallet::new(7).address();
    let order = shop.paid(100, &wallet).await;
    let reason = shop.reasons(order).await.remove(0);
    assert_eq!((&reason["code"], &reason["url"]), (&json!("022"), &Value::Null));
    assert_eq!(reason["userActionRequired"], false);
    let check = screener.lease(10).await.remove(0);
    assert_eq!(
        (&check["kind"], &check["body"]["subject"]),
        (&json!("screening.check"), &json!("wallet"))
    );
    assert_eq!(
        (&check["body"]["address"], &check["body"]["asset"]),
        (&json!(wallet), &json!("ETH"))
    );
    assert_eq!(shop.payouts(order).await, 0);
    screener.report(&check, "done", decision("clear")).await.assert_status(200);
    assert_eq!((shop.payouts(order).await, shop.reasons(order).await.len()), (1, 0));
    let kept = "select count(*) from command \
         where kind = 'screening.check' and state <> 'open' and sealed_body is not null";
    let kept: i64 = sqlx::query_scalar(kept).fetch_one(shop.context.db()).await.unwrap();
    assert_eq!(kept, 0, "what was screened is not kept beside the decision");
}

#[tokio::test]
async fn what_is_not_clear_waits_for_an_operator() {
    let shop = Shop::open().await;
    let screener = shop.screener().await;
    let cases = [
        ("done", decision("review")),
        ("done", json!({"decision": "?"})),
        ("rejected", Value::Null),
    ];
    for (outcome, result) in cases {
        let order = shop.paid(100, &Wallet::new(7).address()).await;
        let check = screener.lease(10).await.remove(0);
        screener.report(&check, outcome, result).await.assert_status(200);
        shop.context.core().command_payouts().await.unwrap();
        assert_eq!(
            (shop.payouts(order).await, shop.codes(order).await),
            (0, vec!["023".to_owned()])
        );
        let id = shop.review().await;
        let path = format!("/admin/v1/screenings/{id}/decision");
        shop.decide(&path, json!({"decision": "clear"})).await.assert_status(422);
        let block = json!({"decision": "block", "reason": "a mixer"});
        shop.decide(&path, block.clone()).await.assert_status(200);
        shop.decide(&path, block).await.assert_status(409);
        assert_eq!(shop.payouts(order).await, 0);
        let clear = json!({"decision": "clear", "reason": "not the same wallet"});
        let decided = shop.decide(&path, clear).await.assert_status(200).json();
        assert_eq!((&decided["state"], &decided["orderId"]), (&json!("clear"), &json!(order)));
        assert_eq!(shop.payouts(order).await, 1);
        for payout in shop.connector.lease(10).await {
            let sent = json!({"transactionId": order.to_string()});
            shop.connector.report(&payout, "done", sent).await.assert_status(200);
        }
    }
    let read = "/admin/v1/screenings?limit=1";
    let first = shop.context.admin(Method::GET, read, json!({})).await.json();
    let path = format!("/admin/v1/screenings/{}", first[0]["id"].as_str().unwrap());
    let shown = shop.context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    assert_eq!(shown["reasons"], json!(["exposure to a mixer"]));
}

#[tokio::test]
async fn a_paid_order_whose_wallet_is_blocked_waits_until_it_is_cleared() {
    let shop = Shop::open().await;
    let screener = shop.screener().await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    assert_eq!((queue(&shop).await, age(&shop).await), (vec![], 0));
    let check = screener.lease(10).await.remove(0);
    screener.report(&check, "done", decision("block")).await.assert_status(200);
    assert_eq!(queue(&shop).await, [json!([order.to_string(), ["screening"]])]);
    assert!(age(&shop).await >= 7_200);
    let path = "/admin/v1/screenings?state=block&partner=acme";
    let blocked = shop.context.admin(Method::GET, path, json!({})).await.assert_status(200).json();
    let path = format!("/admin/v1/screenings/{}/decision", blocked[0]["id"].as_str().unwrap());
    let block = json!({"decision": "block", "reason": "a mixer"});
    shop.decide(&path, block).await.assert_status(200);
    // Somebody has to give its payment back.
    assert_eq!(queue(&shop).await, [json!([order.to_string(), ["held"]])]);
    assert!(age(&shop).await >= 7_200);
    let clear = json!({"decision": "clear", "reason": "another wallet"});
    shop.decide(&path, clear).await.assert_status(200);
    assert_eq!(queue(&shop).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_blocked_wallet_of_an_order_that_is_over_waits_for_nobody() {
    let shop = Shop::open().await;
    let screener = shop.screener().await;
    let order = shop.order(100, &Wallet::new(7).address()).await;
    let check = screener.lease(10).await.remove(0);
    screener.report(&check, "done", decision("block")).await.assert_status(200);
    assert_eq!(queue(&shop).await, [json!([order.to_string(), ["screening"]])]);
    let path = format!("/admin/v1/orders/{order}/events");
    shop.decide(&path, json!({"event": "cancel"})).await.assert_status(200);
    assert_eq!(queue(&shop).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_paid_order_of_a_disabled_user_waits_for_a_person() {
    let shop = Shop::open().await;
    let order = shop.order(100, &Wallet::new(7).address()).await;
    shop.change(json!({"disabled": true})).await;
    assert_eq!(queue(&shop).await, [Value::Null; 0], "it is not paid");
    shop.pay(order, 100).await;
    assert_eq!(queue(&shop).await, [json!([order.to_string(), ["held"]])]);
    assert!(age(&shop).await >= 7_200);
    shop.change(json!({"disabled": false})).await;
    assert_eq!(queue(&shop).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_person_is_screened_at_registration_and_after_a_change_of_name_or_country() {
    let shop = Shop::open().await;
    let screener = shop.screener().await;
    let bob = shop.partner.user("bob").await;
    let check = screener.lease(10).await.remove(0);
    assert_eq!(
        (&check["body"]["subject"], &check["body"]["lastName"]),
        (&json!("person"), &json!("Lovelace"))
    );
    screener.report(&check, "done", decision("clear")).await.assert_status(200);
    bob.patch("/api/v2/user", &json!({"newsletterSubscription": true})).await.assert_status(200);
    assert!(screener.lease(10).await.is_empty(), "the name is the same");
    bob.patch("/api/v2/user", &json!({"lastName": "King"})).await.assert_status(200);
    let again = screener.lease(10).await.remove(0);
    assert_eq!(again["body"]["lastName"], "King");
    bob.patch("/api/v2/user", &json!({"country": "NL"})).await.assert_status(200);
    assert!(screener.lease(10).await.is_empty(), "the country is the same");
    bob.patch("/api/v2/user", &json!({"country": "BE"})).await.assert_status(200);
    let abroad = screener.lease(10).await.remove(0);
    let body = &abroad["body"];
    assert_eq!((&body["lastName"], &body["country"]), (&json!("King"), &json!("BE")));
    // The one that was begun for the Netherlands clears nobody any more.
    screener.report(&again, "done", decision("clear")).await.assert_status(200);
    let order = order_of(&bob, 100, &Wallet::new(7).address()).await;
    let codes: Vec<_> = reasons_of(&bob, order).await.iter().map(|r| r["code"].clone()).collect();
    assert_eq!(codes, ["011", "012", "022"]);
}

#[tokio::test]
async fn pages_of_screenings_meet_while_a_person_is_screened_anew() {
    let shop = Shop::open().await;
    shop.screener().await;
    let bob = shop.partner.user("bob").await;
    shop.partner.user("eve").await;
    let page = async |after: &str| {
        let path = format!("/admin/v1/screenings?limit=1{after}");
        shop.context.admin(Method::GET, &path, json!({})).await.assert_status(200).json()
    };
    let first = page("").await;
    let id = first[0]["id"].as_str().unwrap();
    shop.context.clock().advance(TimeDelta::seconds(60));
    bob.patch("/api/v2/user", &json!({"lastName": "King"})).await.assert_status(200);
    let next = page(&format!("&after={id}")).await;
    assert!(next[0]["userId"].is_string(), "it is skipped: {next}");
    assert_ne!(next[0]["userId"], first[0]["userId"]);
    assert_eq!(page("").await[0]["id"], id, "it keeps its place");
}

#[tokio::test]
async fn a_block_of_an_operator_holds_a_user_of_another_name_too() {
    let shop = Shop::open().await;
    let screener = shop.screener().await;
    let bob = shop.partner.user("bob").await;
    let check = screener.lease(10).await.remove(0);
    screener.report(&check, "done", decision("review")).await.assert_status(200);
    let path = format!("/admin/v1/screenings/{}", shop.review().await);
    let block = json!({"decision": "block", "reason": "the person on the list"});
    let blocked = shop.decide(&format!("{path}/decision"), block).await.assert_status(200).json();
    assert_ne!(blocked["decidedAt"], Value::Null);
    shop.context.clock().advance(TimeDelta::seconds(60));
    bob.patch("/api/v2/user", &json!({"lastName": "King"})).await.assert_status(200);
    assert!(screener.lease(10).await.is_empty(), "no provider decides about it");
    let read = shop.context.admin(Method::GET, &path, json!({})).await;
    let read = read.assert_status(200).json();
    assert_eq!(read["state"], "block");
    assert_eq!(read["createdAt"], blocked["createdAt"], "it keeps its place in the list");
    assert_eq!(read["decidedAt"], Value::Null, "nobody has decided about that name");
    assert_eq!(read["decisionReason"], "the person on the list");
    let clear = json!({"decision": "clear", "reason": "another person"});
    shop.decide(&format!("{path}/decision"), clear).await.assert_status(200);
    let check = screener.lease(10).await.remove(0);
    assert_eq!(check["body"]["lastName"], "King", "nobody has screened that name");
    let read = shop.context.admin(Method::GET, &path, json!({})).await;
    assert_eq!(read.assert_status(200).json()["state"], "pending");
}

#[tokio::test]
async fn a_block_is_decided_again_for_another_name() {
    let shop = Shop::open().await;
    let screener = shop.screener().await;
    let bob = shop.partner.user("bob").await;
    let check = screener.lease(10).await.remove(0);
    screener.report(&check, "done", decision("review")).await.assert_status(200);
    let path = format!("/admin/v1/screenings/{}/decision", shop.review().await);
    let block = json!({"decision": "block", "reason": "the person on the list"});
    shop.decide(&path, block.clone()).await.assert_status(200);
    shop.decide(&path, block.clone()).await.assert_status(409);
    bob.patch("/api/v2/user", &json!({"lastName": "King"})).await.assert_status(200);
    let again = shop.decide(&path, block.clone()).await.assert_status(200).json();
    assert_ne!(again["decidedAt"], Value::Null, "it is about that name, too");
    shop.decide(&path, block).await.assert_status(409);
}

#[tokio::test]
async fn without_a_connector_that_screens_nothing_waits_for_it() {
    let shop = Shop::open().await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    assert_eq!((shop.payouts(order).await, shop.reasons(order).await.len()), (1, 0));
}

#[tokio::test]
async fn who_was_screened_by_nobody_is_once_identified() {
    let shop = Shop::open().await;
    shop.change(json!({"verification": {"identity": "pending"}})).await;
    let order = shop.paid(100, &Wallet::new(7).address()).await;
    let screener = shop.screener().await;
    let page = path(&shop.reasons(order).await.remove(0));
    visit(&shop.partner, &page).await.assert_status(200);
    let start = shop.connector.lease(10).await.remove(0);
    shop.connector.report(&start, "done", json!({})).await.assert_status(200);
    shop.connector.event(completed("e", &start, "verified")).await.assert_status(200);
    assert_eq!(shop.payouts(order).await, 0);
    let mut checks = screener.lease(10).await;
    assert_eq!(checks.len(), 1);
    let check = checks.remove(0);
    assert_eq!(
        (&check["body"]["subject"], &check["body"]["lastName"]),
        (&json!("person"), &json!("Lovelace"))
    );
    screener.report(&check, "done", decision("clear")).await.assert_status(200);
    assert_eq!((shop.payouts(order).await, shop.reasons(order).await.len()), (1, 0));
    // Somebody who was screened is not screened again.
    shop.change(json!({"verification": {"identity": "pending"}})).await;
    let other = shop.order(100, &Wallet::new(7).address()).await;
    let page = path(&shop.reasons(other).await.remove(0));
    visit(&shop.partner, &page).await.assert_status(200);
    let mut leased = shop.connector.lease(10).await;
    leased.retain(|command| command["kind"] == "identity.start");
    shop.connector.event(completed("again", &leased[0], "verified")).await.assert_status(200);
    let checks = screener.lease(10).await;
    let subjects: Vec<_> = checks.iter().map(|check| &check["body"]["subject"]).collect();
    assert_eq!(subjects, ["wallet"]);
}
