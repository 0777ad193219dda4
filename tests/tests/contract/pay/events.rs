//! The events by which a payment page follows its order.

use std::net::IpAddr;

use futures::FutureExt as _;
use rampart_core::http::event_stream::EventStream;

use super::*;

fn follow(partner: &Partner, order: &OrderFixture, last: u8) -> rampart_tests::partner::Request {
    let address: IpAddr = [192, 0, 2, last].into();
    partner.anonymous(Method::GET, &format!("{}/events", order.pay_path)).from(address)
}

/// The part that is there already, if one is.
fn told(stream: &mut EventStream) -> Option<String> {
    stream.next().now_or_never().map(|part| String::from_utf8(part.unwrap().to_vec()).unwrap())
}

#[tokio::test]
async fn a_page_is_told_the_states_of_its_order_and_of_no_other() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let eve = context.partner("eve").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let other = OrderFixture::order(&context, &acme, None, None).await;
    let eves = OrderFixture::order(&context, &eve, None, None).await;
    let mut streams = [
        follow(&acme, &order, 1).events().await,
        follow(&acme, &order, 2).events().await,
        follow(&acme, &other, 1).events().await,
        follow(&eve, &eves, 1).events().await,
    ];
    let page = show(&acme, &order).await;
    assert!(page.text().contains(r#"data-state="pending""#), "{}", page.text());
    let first = "retry: 1000\nevent: state\ndata: pending\n\n";
    assert!(streams.iter_mut().all(|stream| told(stream).as_deref() == Some(first)));
    press(&acme, &order, "pay").await.assert_status(303);
    context.core().read_watched_orders().await.unwrap();
    let paid = Some("event: state\ndata: in progress\n\n".to_owned());
    let after = streams.each_mut().map(told);
    assert_eq!(after, [paid.clone(), paid, None, None]);
    assert!(show(&acme, &order).await.text().contains(r#"data-state="in progress""#));
    let mut late = follow(&acme, &order, 3).events().await;
    assert_eq!(told(&mut late).unwrap(), "retry: 1000\nevent: state\ndata: in progress\n\n");
    context.core().read_watched_orders().await.unwrap();
    assert_eq!(streams.each_mut().map(told), [const { None }; 4], "nothing is told twice");
    for _ in 0..2 {
        settle(&context).await;
    }
    context.core().read_watched_orders().await.unwrap();
    let done = Some("event: state\ndata: completed\n\n".to_owned());
    assert_eq!(
        [told(&mut streams[0]), told(&mut late), told(&mut streams[2])],
        [done.clone(), done, None]
    );
}

#[tokio::test]
async fn an_order_that_cannot_be_read_costs_the_pages_of_its_partner_alone() {
    let context = TestContext::start().await;
    let (acme, eve) = (context.partner("acme").await, context.partner("eve").await);
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let eves = OrderFixture::order(&context, &eve, None, None).await;
    let mut stream = follow(&acme, &order, 1).events().await;
    let mut of_eve = follow(&eve, &eves, 1).events().await;
    assert!([&mut stream, &mut of_eve].into_iter().all(|stream| told(stream).is_some()));
    press(&acme, &order, "pay").await.assert_status(303);
    // As a later version may write it.
    let unknown = "update buy_order set status_cause = 'unknown' \
        where client_id = (select client_id from client where slug = 'eve')";
    sqlx::query(unknown).execute(context.db()).await.unwrap();
    context.core().read_watched_orders().await.unwrap();
    assert_eq!(told(&mut stream).as_deref(), Some("event: state\ndata: in progress\n\n"));
    assert_eq!(told(&mut of_eve), None);
}

#[tokio::test]
async fn a_page_learns_what_it_shows_of_time_and_reason() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (late, denied) = (
        OrderFixture::order(&context, &acme, None, None).await,
        OrderFixture::order(&context, &acme, None, None).await,
    );
    press(&acme, &denied, "deny").await.assert_status(303);
    context.clock().advance(TimeDelta::hours(2));
    for (order, state) in [(&late, "pending: late"), (&denied, "cancelled: payment-denied")] {
        let mut stream = follow(&acme, order, 1).events().await;
        assert!(told(&mut stream).unwrap().ends_with(&format!("data: {state}\n\n")), "{state}");
    }
    assert!(!show(&acme, &denied).await.text().contains("data-state"), "final");
}

#[tokio::test]
async fn a_wrong_link_has_no_events() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let altered = order.pay_path.replacen("/pay/", "/pay/A", 1);
    for path in ["/pay/x", &altered, &order.pay_path[..order.pay_path.len() - 1]] {
        let answer = acme.anonymous(Method::GET, &format!("{path}/events")).send().await;
        answer.assert_status(404);
        assert!(answer.text().contains("There is no such payment"));
    }
    assert_eq!(context.core().order_watches.count(), 0);
}

#[tokio::test]
async fn pages_that_follow_are_bounded_and_free_their_place() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let mut open = Vec::new();
    for last in 0..8 {
        open.push(follow(&acme, &order, last).events().await);
    }
    let refused = follow(&acme, &order, 9).send().await;
    refused.assert_status(503).assert_codes(&["ER999"]);
    assert_eq!(refused.header("retry-after"), Some("2"));
    open.pop();
    open.push(follow(&acme, &order, 9).events().await);
    drop(open);
    assert_eq!(context.core().order_watches.count(), 0);
    let mut open = Vec::new();
    for _ in 0..8 {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        for _ in 0..8 {
            open.push(follow(&acme, &order, 1).events().await);
        }
    }
    let order = OrderFixture::order(&context, &acme, None, None).await;
    follow(&acme, &order, 1).send().await.assert_status(503);
    drop(follow(&acme, &order, 2).events().await);
}
