//! Payouts of orders that wait while a connector sends their coins, or that fail.

use rust_decimal::Decimal;

use super::purchase::{live, paid, paid_order, payable_order, status};
use super::queue::{end_leases, retried};
use super::refunds_by_hand::reconciled;
use super::sale;
use super::*;
use crate::orders::count;
use crate::payments::problems;

#[tokio::test]
async fn an_order_that_waits_names_the_transaction_that_its_connector_told_of() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for (reference, told) in [("p-1", Some("0xab")), ("p-2", None)] {
        let order = paid_order(&acme, &connector).await;
        let payout = connector.lease(1).await.remove(0);
        order.event(&context, "hold").await.assert_status(200);
        let sent = json!({ "transactionId": told.unwrap_or("0xcd") });
        connector.report(&payout, "done", sent).await.assert_status(200);
        let mut confirmed = json!({"id": reference, "kind": "payout.confirmed", "partner": "acme",
            "occurredAt": "2026-03-01T12:10:00Z", "commandId": payout["id"],
            "providerReference": reference, "confirmations": 2});
        if let Some(transaction) = told {
            confirmed["transactionId"] = json!(transaction);
        }
        connector.event(confirmed).await.assert_status(200);
        order.event(&context, "release").await.assert_status(200);
        assert_eq!(status(&context, &order).await, "completed");
        let named: Option<String> =
            sqlx::query_scalar("select transaction_id from buy_order where order_id = $1")
                .bind(order.id)
                .fetch_one(context.db())
                .await
                .unwrap();
        assert_eq!(named.as_deref(), told.or(Some("0xcd")), "{reference}");
    }
}

#[tokio::test]
async fn coins_that_an_operator_knows_to_have_failed_are_sent_again_once_their_order_is_released() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let first = connector.answer_next("done", json!({"transactionId": "0xab"})).await;
    let failed = json!({"partner": "acme", "kind": "payout-failed", "connector": "manual",
        "amount": first["body"]["amount"], "currency": first["body"]["asset"],
        "providerReference": "0xab", "orderId": order.id, "reason": "no block has it"});
    let recorded = context.admin(Method::POST, "/admin/v1/payments", failed).await;
    recorded.assert_status(201);
    assert_eq!(status(&context, &order).await, "blocked");
    assert!(connector.lease(10).await.is_empty());
    order.event(&context, "release").await.assert_status(200);
    let second = connector.answer_next("done", json!({"transactionId": "0xcd"})).await;
    assert_eq!(second["kind"], "payout.send");
    assert_ne!(second["id"], first["id"]);
    context.core().command_payouts().await.unwrap();
    assert!(connector.lease(10).await.is_empty(), "it is sent once");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn coins_that_were_sent_again_are_not_those_whose_failure_is_told_once_more() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let first = connector.answer_next("done", json!({"transactionId": "0xab"})).await;
    let failed = json!({"id": "f", "kind": "payout.failed", "commandId": first["id"],
        "occurredAt": "2026-03-01T12:10:00Z", "providerReference": "0xab"});
    connector.event(failed).await.assert_status(200);
    order.event(&context, "release").await.assert_status(200);
    connector.answer_next("done", json!({"transactionId": "0xcd"})).await;
    let again = json!({"partner": "acme", "kind": "payout-failed", "connector": "manual",
        "amount": first["body"]["amount"], "currency": first["body"]["asset"],
        "providerReference": "0xab", "orderId": order.id, "reason": "no block has it"});
    context.admin(Method::POST, "/admin/v1/payments", again).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "blocked", "an operator looks at it");
    let out = "select count(*) from buy_order where transaction_id = '0xcd'";
    assert_eq!(count(&context, out).await, 1);
    let done = "select count(*) from command where kind = 'payout.send' and state = 'done'";
    assert_eq!(count(&context, done).await, 1);

    order.event(&context, "release").await.assert_status(200);
    let confirmed = json!({"id": "c", "kind": "payout.confirmed", "transactionId": "0xcd",
        "occurredAt": "2026-03-01T12:20:00Z", "confirmations": 2});
    connector.event(confirmed).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "completed");
    let told = "select count(*) from event where type = 'order.sent'";
    assert_eq!(count(&context, told).await, 2, "once for each time that coins have left");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn coins_whose_currency_is_not_their_asset_are_refused_until_it_is_told_which_they_are() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let payout = connector.answer_next("done", json!({"transactionId": "0xab"})).await;
    let mut confirmed = json!({"id": "c", "kind": "payout.confirmed", "partner": "acme",
        "occurredAt": "2026-03-01T12:10:00Z", "commandId": payout["id"],
        "providerReference": "0xab", "amount": payout["body"]["amount"],
        "asset": payout["body"]["asset"], "currency": "EUR", "confirmations": 2});
    for (kind, amount) in [("payout.confirmed", 100), ("payout.failed", 1), ("health", 1)] {
        let mut wrong = confirmed.clone();
        (wrong["kind"], wrong["amount"]) = (json!(kind), json!(amount));
        let refused = connector.event(wrong).await.assert_status(422).json();
        assert_eq!(refused, json!({"error": "currency: another one than asset"}), "{kind}");
    }
    connector.event(confirmed.clone()).await.assert_status(422);
    assert_eq!(status(&context, &order).await, "in progress");
    confirmed["currency"] = confirmed["asset"].clone();
    let told = connector.event(confirmed.clone()).await.assert_status(200).json();
    assert_eq!(told, json!({"duplicate": false}), "nothing was kept of the wrong ones");
    assert_eq!(connector.event(confirmed).await.json(), json!({"duplicate": true}));
    assert_eq!(status(&context, &order).await, "completed");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn coins_whose_end_names_their_transaction_alone_have_left_once() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    connector.answer_next("done", json!({"transactionId": "0xab"})).await;
    let confirmed = json!({"id": "c", "kind": "payout.confirmed", "transactionId": "0xab",
        "occurredAt": "2026-03-01T12:10:00Z", "confirmations": 2});
    connector.event(confirmed).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "completed");
    let of_none = "select count(*) from ledger_entry where order_id is null";
    assert_eq!(count(&context, of_none).await, 0);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn coins_whose_end_an_operator_tells_of_before_their_connector_have_left_once() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for reference in ["0xab", "0xcd"] {
        let order = paid_order(&acme, &connector).await;
        let payout = connector.answer_next("done", json!({"transactionId": reference})).await;
        order.event(&context, "confirmed-on-chain").await.assert_status(200);
        assert_eq!(status(&context, &order).await, "completed");
        let confirmed = json!({"id": reference, "kind": "payout.confirmed", "partner": "acme",
            "occurredAt": "2026-03-01T12:10:00Z", "commandId": payout["id"],
            "providerReference": reference, "confirmations": 2});
        let told = connector.event(confirmed).await.assert_status(200).json();
        assert_eq!(told, json!({"duplicate": false}), "it is a report of its own");
    }
    let twice = "select count(*) from ledger_entry where kind = 'payout-excess'";
    assert_eq!(count(&context, twice).await, 0);
    let ends = "select count(*) from payment where kind = 'payout-confirmed'";
    assert_eq!(count(&context, ends).await, 4);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn coins_that_an_operator_has_recorded_by_their_transaction_have_left_once() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    // Their connector has sent them, and cannot say so for now.
    let payout = connector.lease(1).await.remove(0);
    for kind in ["payout-sent", "payout-confirmed"] {
        let by_hand = json!({"partner": "acme", "kind": kind, "connector": "manual",
            "amount": payout["body"]["amount"], "currency": payout["body"]["asset"],
            "providerReference": "0xab", "orderId": order.id, "reason": "seen on the chain"});
        let recorded = context.admin(Method::POST, "/admin/v1/payments", by_hand).await;
        recorded.assert_status(201);
    }
    assert_eq!(status(&context, &order).await, "completed");
    connector.report(&payout, "done", json!({"transactionId": "0xab"})).await.assert_status(200);
    let confirmed = json!({"id": "c", "kind": "payout.confirmed", "commandId": payout["id"],
        "occurredAt": "2026-03-01T12:10:00Z", "transactionId": "0xab", "confirmations": 2});
    connector.event(confirmed).await.assert_status(200);
    let twice = "select count(*) from ledger_entry where kind = 'payout-excess'";
    assert_eq!(count(&context, twice).await, 0);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn one_transaction_sends_the_coins_of_several_orders() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let mut orders = Vec::new();
    for fiat in [100, 120, 250] {
        let order = payable_order(&acme, &connector, fiat).await;
        connector.event(paid(&order, fiat)).await.assert_status(200);
        let payout = connector.answer_next("done", json!({"transactionId": "0xab"})).await;
        orders.push((order, payout));
    }
    for (order, payout) in orders.iter().rev() {
        let mut confirmed = json!({"id": payout["id"], "kind": "payout.confirmed",
            "occurredAt": "2026-03-01T12:10:00Z", "commandId": payout["id"],
            "providerReference": "0xab", "transactionId": "0xab", "confirmations": 2});
        let told = connector.event(confirmed.clone()).await.assert_status(200).json();
        assert_eq!(told, json!({"duplicate": false}));
        confirmed["id"] = json!(order.id.to_string());
        let again = connector.event(confirmed).await.assert_status(200).json();
        assert_eq!(again, json!({"duplicate": true}));
    }
    let named =
        "select count(*) from buy_order where status = 'completed' and transaction_id = '0xab'";
    assert_eq!(count(&context, named).await, 3);
    let sent = "select count(*) from ledger_entry where kind = 'payout-sent'";
    assert_eq!(count(&context, sent).await, 3);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_transaction_of_several_orders_is_as_many_lines_of_a_statement_or_one() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (mut payments, mut payouts, mut sum) = (Vec::new(), Vec::new(), Decimal::ZERO);
    for fiat in [100, 120, 250] {
        let order = payable_order(&acme, &connector, fiat).await;
        connector.event(paid(&order, fiat)).await.assert_status(200);
        let payout = connector.answer_next("done", json!({"transactionId": "0xab"})).await;
        let amount = &payout["body"]["amount"];
        payments.push(format!("2026-03-01,{fiat},EUR,pay-{}\n", order.id));
        payouts.push(format!("2026-03-01,-{amount},BTC,0xab\n"));
        sum += amount.to_string().parse::<Decimal>().unwrap();
    }
    // The notice lets the statement cover every day.
    let statement = |payouts: &str| {
        let payments = payments.concat();
        format!(
            "date,amount,currency,providerReference\n{payments}{payouts}2999-12-31,0,EUR,notice\n"
        )
    };
    let line = format!("2026-03-01,-{sum},BTC,0xab\n");
    assert_eq!(reconciled(&context, &statement(&line)).await, (json!(4), json!([])));
    let (matched, again) = reconciled(&context, &statement(&line.repeat(2))).await;
    assert_eq!((matched, &again[0]["side"]), (json!(4), &json!("statement")), "{again}");
    assert_eq!(problems(&context).await.len(), 1, "it left once");
    let each = statement(&payouts.concat());
    assert_eq!(reconciled(&context, &each).await, (json!(6), json!([])));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn lines_of_a_transaction_are_open_until_the_payouts_of_its_orders_are_told() {
    for is_one in [true, false] {
        let context = TestContext::start().await;
        let (acme, connector) = live(&context).await;
        let (mut payouts, mut lines, mut sum) = (Vec::new(), Vec::new(), Decimal::ZERO);
        for fiat in [100, 120, 250] {
            let order = payable_order(&acme, &connector, fiat).await;
            connector.event(paid(&order, fiat)).await.assert_status(200);
            let payout = connector.lease(1).await.remove(0);
            let amount = payout["body"]["amount"].to_string();
            lines.push(format!("2026-03-01,-{amount},BTC,0xab\n"));
            sum += amount.parse::<Decimal>().unwrap();
            payouts.push(payout);
        }
        if is_one {
            lines = vec![format!("2026-03-01,-{sum},BTC,0xab\n")];
        }
        let statement = format!("date,amount,currency,providerReference\n{}", lines.concat());
        let (matched, differences) = reconciled(&context, &statement).await;
        assert_eq!(matched, json!(0), "{differences}");
        for payout in payouts {
            assert_ne!(problems(&context).await, [Value::Null; 0], "one: {is_one}");
            let sent = json!({"transactionId": "0xab"});
            connector.report(&payout, "done", sent).await.assert_status(200);
        }
        assert_eq!(problems(&context).await, [Value::Null; 0], "one: {is_one}");
    }
}

#[tokio::test]
async fn a_transaction_that_another_one_has_replaced_is_no_difference_once_that_is_confirmed() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let payout = connector.answer_next("done", json!({"transactionId": "0xab"})).await;
    // The notice lets the statement cover every day.
    let statement = format!(
        "date,amount,currency,providerReference\n2026-03-01,100,EUR,pay-{}\n\
         2026-03-01,-{},BTC,0xcd\n2999-12-31,0,EUR,notice\n",
        order.id, payout["body"]["amount"]
    );
    let (matched, differences) = reconciled(&context, &statement).await;
    assert_eq!(matched, json!(1));
    let told = differences.as_array().unwrap().iter();
    let told: Vec<_> = told.map(|d| (&d["side"], &d["providerReference"])).collect();
    let (line, books) = ((json!("statement"), json!("0xcd")), (json!("books"), json!("0xab")));
    assert_eq!(told, [(&line.0, &line.1), (&books.0, &books.1)]);
    let confirmed = json!({"id": "c", "kind": "payout.confirmed", "partner": "acme",
        "occurredAt": "2026-03-01T12:10:00Z", "commandId": payout["id"],
        "providerReference": "0xcd", "transactionId": "0xcd", "confirmations": 2});
    connector.event(confirmed).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "completed");
    assert_eq!(reconciled(&context, &statement).await, (json!(2), json!([])));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn coins_that_an_operator_tells_of_by_the_longest_name_have_left_once() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let longest = "a".repeat(255);
    let path = format!("/admin/v1/orders/{}/events", order.id);
    let sent = json!({"event": "coins-sent", "transactionId": longest});
    context.admin(Method::POST, &path, sent).await.assert_status(200);
    let confirmed = json!({"id": "c", "kind": "payout.confirmed", "partner": "acme",
        "occurredAt": "2026-03-01T12:10:00Z", "orderId": order.id,
        "providerReference": longest, "confirmations": 2});
    connector.event(confirmed).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "completed");
    let twice = "select count(*) from ledger_entry where kind = 'payout-excess'";
    assert_eq!(count(&context, twice).await, 0);
}

#[tokio::test]
async fn a_payout_that_was_perhaps_made_waits_for_its_connector_and_no_release_repeats_it() {
    let context = TestContext::with(|settings| settings.connectors.attempts_max = 1).await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    assert_eq!(connector.lease(1).await[0]["kind"], "payout.send");
    end_leases(&context).await;
    assert_eq!(retried(&context, &connector).await, "open");
    assert_eq!(status(&context, &order).await, "in progress");
    let waits = |reason: &str| json!([order.id.to_string(), [reason]]);
    assert_eq!(sale::queue(&context).await, [waits("unknown")]);
    order.event(&context, "hold").await.assert_status(200);
    order.event(&context, "release").await.assert_status(200);
    let payouts = "select count(*) from command where kind = 'payout.send'";
    assert_eq!(count(&context, payouts).await, 1, "no release sends another one");

    sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
    let payout = connector.lease(1).await.remove(0);
    connector.report(&payout, "rejected", Value::Null).await.assert_status(200);
    assert_eq!(sale::queue(&context).await, [waits("blocked")]);
    order.event(&context, "release").await.assert_status(200);
    assert_eq!(sale::queue(&context).await, [Value::Null; 0]);
    // As an edge of the version before ends it: it knows no reviews.
    let ended = "update command set review = 'unknown' where state <> 'open'";
    sqlx::query(ended).execute(context.db()).await.unwrap();
    assert_eq!(sale::queue(&context).await, [Value::Null; 0]);
    assert_ne!(connector.lease(1).await[0]["id"], payout["id"], "it is sent anew");
}

/// Half of what a command sends.
fn half(command: &Value) -> Decimal {
    let amount: Decimal = command["body"]["amount"].to_string().parse().unwrap();
    (amount / Decimal::TWO).round_dp(amount.scale().max(2))
}

#[tokio::test]
async fn coins_of_which_a_part_has_arrived_before_all_were_told_as_sent_wait_for_an_operator() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let payout = connector.lease(1).await.remove(0);
    let part = half(&payout);
    let confirmed = json!({"id": "c", "kind": "payout.confirmed", "partner": "acme",
        "occurredAt": "2026-03-01T12:10:00Z", "commandId": payout["id"],
        "providerReference": "0xab", "transactionId": "0xab", "amount": sale::number(part),
        "asset": payout["body"]["asset"], "confirmations": 2});
    connector.event(confirmed).await.assert_status(200);
    connector.report(&payout, "done", json!({"transactionId": "0xab"})).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
    let waits = json!([order.id.to_string(), ["shortfall"]]);
    assert_eq!(sale::queue(&context).await, [waits]);
    let all: Decimal = payout["body"]["amount"].to_string().parse().unwrap();
    for kind in ["payout-sent", "payout-confirmed"] {
        let rest = json!({"partner": "acme", "kind": kind, "amount": sale::number(all - part),
            "currency": payout["body"]["asset"], "providerReference": "by-hand",
            "orderId": order.id, "reason": "the chain has half of it"});
        context.admin(Method::POST, "/admin/v1/payments", rest).await.assert_status(201);
        assert_eq!(sale::queue(&context).await, [Value::Null; 0]);
    }
    assert_eq!(status(&context, &order).await, "completed");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn money_of_which_a_part_has_arrived_before_all_was_told_as_sent_waits_for_an_operator() {
    for result in [json!({}), json!({"completed": true})] {
        let context = TestContext::start().await;
        let (connector, sold) = sale::deposited(&context).await;
        let transfer = sale::transfers(&context, &connector).await.remove(0);
        let completed = json!({"id": "c", "kind": "transfer.completed",
            "occurredAt": "2026-03-01T12:10:00Z", "commandId": transfer["id"],
            "providerReference": "sepa-1", "amount": sale::number(half(&transfer)),
            "currency": "EUR"});
        connector.event(completed).await.assert_status(200);
        let mut done = result.clone();
        done["providerReference"] = json!("sepa-1");
        connector.report(&transfer, "done", done).await.assert_status(200);
        let waits = json!([sold["orderId"].to_string(), ["shortfall"]]);
        assert_eq!(sale::queue(&context).await, [waits], "{result}");
        assert_eq!(problems(&context).await, [Value::Null; 0]);
    }
}
