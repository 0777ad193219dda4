//! The log's lines about refusals.

use rampart_core::platform::clock::Clock;

use super::*;

#[tokio::test]
async fn refusals_by_a_share_that_is_used_up_are_logged_once_a_second() {
    let edge = Edge::with(|setup| {
        setup.set("edge.in_flight_max", "8").set("edge.in_flight_per_partner_max", "8");
        setup.set("edge.in_flight_per_address_max", "2");
    })
    .await;
    let slow = edge.partner("slow").await;
    let clock = Clock::system();
    let began_ns = clock.monotonic_ns();
    let mut holder = PgConnection::connect(edge.setup().database()).await.unwrap();
    let lock = lock_endpoints(&mut holder).await;
    let held = [(); 2].map(|()| {
        until("a held call is answered", SOON, async || {
            Some(slow.get("/api/v2/webhooks").await).filter(|answer| answer.status() != 503)
        })
    });
    let mut refused = 0;
    let others = async {
        until("many are refused", SOON, async || {
            let answers = join_all([(); 8].map(|()| slow.get(PRICES))).await;
            refused += answers.iter().filter(|answer| answer.status() == 503).count();
            (refused >= 80).then_some(())
        })
        .await;
        lock.rollback().await.unwrap();
    };
    tokio::join!(join_all(held), others);
    let seconds = (clock.monotonic_ns() - began_ns) / 1_000_000_000;
    let lines = until("it is logged", SOON, async || {
        let lines = edge.process.err();
        let told = lines.iter().filter(|line| line.contains("too many of this address")).count();
        (told > 0).then_some(told as u64)
    })
    .await;
    assert!(lines <= seconds + 1, "{lines} lines about {refused} refusals in {seconds} s");
}
