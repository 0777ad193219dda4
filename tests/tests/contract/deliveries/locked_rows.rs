//! Results of attempts while somebody holds a row of one partner: those of others are written, and what
//! follows from them is done.

use std::sync::Arc;

use chrono::TimeDelta;
use rampart_api::workers;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::receiver::{Reaction, Receiver};
use rampart_tests::test_context::TestContext;
use serde_json::json;
use tokio::sync::watch;

use crate::orders::count;

/// Most endpoints of a partner.
const ENDPOINTS: usize = 10;

async fn listen(partner: &Partner, host: &Receiver, path: &str) {
    let body = json!({"url": host.url(path)});
    partner.post("/api/v2/webhooks", body).await.assert_status(200);
}

/// An order of which these events are told.
async fn told(context: &TestContext, partner: &Partner, events: &[&str]) {
    let order = OrderFixture::order(context, partner, None, None).await;
    for event in events {
        order.event(context, event).await.assert_status(200);
    }
}

#[tokio::test]
async fn a_partner_whose_row_is_locked_leaves_others_their_results() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (host, beside) = (Receiver::start().await, Receiver::start().await);
    for number in 0..ENDPOINTS {
        listen(&acme, &host, &format!("/hook/{number}")).await;
    }
    listen(&rival, &beside, "/hook").await;
    told(&context, &acme, &["cancel"]).await;
    // The second one is sent after the first, when results of the other partner wait for the lock.
    told(&context, &rival, &["payment-received", "hold"]).await;
    let mut somebody = context.db().begin().await.unwrap();
    let lock = "select from client where slug = 'acme' for update";
    sqlx::query(lock).execute(&mut *somebody).await.unwrap();
    assert_eq!(context.core().deliver_due().await.unwrap(), ENDPOINTS + 2);
    let delivered = "select count(*) from delivery where state = 'delivered'";
    assert_eq!(count(&context, delivered).await, 2);
    somebody.rollback().await.unwrap();
    context.clock().advance(TimeDelta::seconds(31));
    assert_eq!(context.core().deliver_due().await.unwrap(), ENDPOINTS, "its own are sent again");
    assert_eq!(beside.heard().len(), 2);
}

#[tokio::test]
async fn an_endpoint_whose_row_is_locked_leaves_others_to_be_switched_off() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let host = Receiver::start().await;
    host.react(Reaction::status(500));
    for partner in [&acme, &rival] {
        for number in 0..ENDPOINTS {
            listen(partner, &host, &format!("/hook/{number}")).await;
        }
        told(&context, partner, &["cancel"]).await;
    }
    assert_eq!(context.core().deliver_due().await.unwrap(), 2 * ENDPOINTS);
    context.clock().advance(TimeDelta::days(3));
    let mut somebody = context.db().begin().await.unwrap();
    let lock = "select from webhook_endpoint \
        where client_id = (select client_id from client where slug = 'acme') for update";
    sqlx::query(lock).execute(&mut *somebody).await.unwrap();
    assert_eq!(context.core().deliver_due().await.unwrap(), 2 * ENDPOINTS);
    let disabled = "select count(*) from webhook_endpoint where disabled_at is not null";
    let of_rival = i64::try_from(ENDPOINTS).unwrap();
    assert_eq!(count(&context, disabled).await, of_rival);
    somebody.rollback().await.unwrap();
    context.clock().advance(TimeDelta::days(1));
    context.core().deliver_due().await.unwrap();
    assert_eq!(count(&context, disabled).await, 2 * of_rival, "the next failure tries again");
}

#[tokio::test]
async fn a_delivery_that_somebody_holds_leaves_others_to_be_released() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let host = Receiver::start().await;
    host.react(Reaction::Silence);
    for partner in [&acme, &rival] {
        listen(partner, &host, "/hook").await;
        told(&context, partner, &["payment-received", "hold"]).await;
    }
    let (stop, stopped) = watch::channel(false);
    let working = tokio::spawn(workers::work(Arc::clone(context.core()), stopped));
    host.heard_at_least(2).await;
    let leased = "select count(*) from delivery where leased_until is not null";
    assert_eq!(count(&context, leased).await, 4, "the second ones are claimed along");
    let mut somebody = context.db().begin().await.unwrap();
    let lock = "select from delivery \
        where client_id = (select client_id from client where slug = 'acme') for update";
    sqlx::query(lock).execute(&mut *somebody).await.unwrap();
    stop.send_replace(true);
    let released = async || (count(&context, leased).await == 3).then_some(());
    until("the other partner's second one is released", SOON, released).await;
    working.abort();
}
