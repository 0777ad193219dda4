//! Attempts to sign in that are too many.

use chrono::TimeDelta;
use rampart_tests::staff::{PASSWORD, Staff};
use rampart_tests::test_context::TestContext;

#[tokio::test]
async fn too_many_attempts_for_an_address_wait_on_every_edge() {
    let context = TestContext::start().await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    other.core().refresh().await.unwrap();
    let mut owner = Staff::signed_in(&context, &acme, "owner").await;
    let mut support = Staff::signed_in(&context, &acme, "support").await;
    context.clock().advance(TimeDelta::minutes(5));
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(owner.signs_in("a wrong password").await.status());
    }
    assert_eq!(statuses, [401; 5]);
    let refused = owner.at(&other).signs_in(PASSWORD).await;
    assert!(refused.assert_status(429).header("retry-after").is_some());
    support.signs_in(PASSWORD).await.assert_status(303);
    context.clock().advance(TimeDelta::minutes(1));
    owner.signs_in(PASSWORD).await.assert_status(303);
}

#[tokio::test]
async fn guesses_from_one_network_keep_a_member_out_there_alone() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let owner = Staff::signed_in(&context, &acme, "owner").await;
    for (partner, network, rest) in
        [("acme", "192.0.2.", ""), ("acme", "2001:db8:1:", "::1"), ("unknown", "192.0.2.", "")]
    {
        let fields = [("partner", partner), ("email", &*owner.email), ("password", "a wrong one")];
        let mut statuses = Vec::new();
        for number in 1..=6 {
            let peer = format!("{network}{number}{rest}").parse().unwrap();
            let mut stranger = Staff::stranger(&acme, &owner.email).from(peer);
            stranger.get("/portal/sign-in").await.assert_status(200);
            statuses.push(stranger.submit("/portal/sign-in", &fields).await.status());
        }
        assert_eq!(statuses, [401, 401, 401, 401, 401, 429], "{partner} {network}");
    }
    let mut member = owner.from([198, 51, 100, 1].into());
    member.signs_in(PASSWORD).await.assert_status(303);
}

#[tokio::test]
async fn guesses_from_many_networks_are_limited_together() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut owner = Staff::signed_in(&context, &acme, "owner").await;
    context.clock().advance(TimeDelta::minutes(5));
    let (began, mut guesses) = (context.clock().monotonic_ns(), 0_u16);
    let refused = loop {
        let [high, low] = guesses.to_be_bytes();
        let mut stranger = Staff::stranger(&acme, &owner.email).from([10, high, low, 1].into());
        let answer = stranger.signs_in("a wrong password").await;
        if answer.status() != 401 {
            break answer;
        }
        guesses += 1;
        assert!(guesses < 600, "nobody was told to wait");
    };
    assert!(refused.assert_status(429).header("retry-after").is_some());
    // One more fits for each second that these took.
    let seconds = (context.clock().monotonic_ns() - began) / 1_000_000_000;
    assert!((60..=60 + seconds).contains(&u64::from(guesses)), "{guesses} guesses in {seconds} s");
    context.clock().advance(TimeDelta::minutes(1));
    owner.signs_in(PASSWORD).await.assert_status(303);
}

#[tokio::test]
async fn too_many_attempts_of_a_network_wait_whoever_they_name() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (began, mut attempts) = (context.clock().monotonic_ns(), 0);
    loop {
        let mut stranger = Staff::stranger(&acme, &format!("nobody-{attempts}@acme.example"));
        stranger.get("/portal/forgot-password").await.assert_status(200);
        let fields = [("partner", "unknown"), ("email", &stranger.email.clone())];
        if stranger.submit("/portal/forgot-password", &fields).await.status() == 429 {
            break;
        }
        attempts += 1;
        assert!(attempts < 600, "nobody was told to wait");
    }
    // One more fits for each second that these took.
    let seconds = (context.clock().monotonic_ns() - began) / 1_000_000_000;
    assert!((60..=60 + seconds).contains(&attempts), "{attempts} attempts in {seconds} s");
    let mut owner = Staff::stranger(&acme, "owner@acme.example");
    let mut answer = owner.signs_in(PASSWORD).await;
    // So does one of these, while the address has some of its own five left.
    for _ in 1..5 {
        if answer.status() == 401 {
            answer = owner.signs_in(PASSWORD).await;
        }
    }
    assert!(answer.assert_status(429).header("retry-after").is_some());
    context.clock().advance(TimeDelta::minutes(1));
    owner.signs_in(PASSWORD).await.assert_status(401);
}
