//! Networks from which a client has logged in, which the tries of others do not keep out.

use super::*;

async fn log_in_from(partner: &Partner, from: IpAddr) -> Answer {
    let login = json!({"username": partner.username, "password": partner.password});
    partner.anonymous(Method::POST, AUTHENTICATE).from(from).json(&login).send().await
}

async fn use_up_the_tries_of_strangers(context: &TestContext, acme: &Partner) {
    context.clock().advance(TimeDelta::minutes(2));
    assert_ten_tries(context, async |last| try_from(acme, address(last), &acme.username).await)
        .await;
}

#[tokio::test]
async fn tries_of_strangers_keep_a_client_out_of_no_network_that_it_has_logged_in_from() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let there = acme.at(&context.second_edge().await);
    let own = IpAddr::from([198, 51, 100, 7]);
    log_in_from(&acme, own).await.assert_status(200);
    use_up_the_tries_of_strangers(&context, &acme).await;
    assert_limited(&log_in_from(&acme, IpAddr::from([198, 51, 100, 8])).await);
    log_in_from(&acme, own).await.assert_status(200);
    log_in_from(&there, own).await.assert_status(200);
}

#[tokio::test]
async fn a_known_network_tries_ten_times_a_minute_beside_the_strangers() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let own = IpAddr::from([198, 51, 100, 7]);
    log_in_from(&acme, own).await.assert_status(200);
    use_up_the_tries_of_strangers(&context, &acme).await;
    assert_ten_tries(&context, async |_| try_from(&acme, own, &acme.username).await).await;
}

#[tokio::test]
async fn a_network_is_known_for_fifteen_days_and_for_thirty_after_a_second_login() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let [once, twice] = [7, 8].map(|last| IpAddr::from([198, 51, 100, last]));
    for own in [once, twice, twice] {
        log_in_from(&acme, own).await.assert_status(200);
    }
    context.clock().advance(TimeDelta::days(16));
    use_up_the_tries_of_strangers(&context, &acme).await;
    assert_limited(&log_in_from(&acme, once).await);
    log_in_from(&acme, twice).await.assert_status(200);
}
