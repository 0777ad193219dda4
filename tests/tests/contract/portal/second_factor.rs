//! The second factor: codes of an authenticator app, each of which counts once.

use chrono::TimeDelta;
use rampart_tests::answer::Answer;
use rampart_tests::staff::{PASSWORD, Staff};
use rampart_tests::test_context::TestContext;
use ring::hmac;

/// The key that a page shows, as an app reads it (RFC 4648, base32).
fn key(page: &Answer) -> Vec<u8> {
    let (_, rest) = page.text().split_once("<code>").unwrap();
    let text = rest.split('<').next().unwrap();
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes() {
        let value = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".iter().position(|known| *known == letter);
        bits = (bits << 5) | u32::try_from(value.unwrap()).unwrap();
        held += 5;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).unwrap());
        }
    }
    bytes
}

/// The code of an app (RFC 6238).
fn code(context: &TestContext, key: &[u8]) -> String {
    let step = context.clock().now().timestamp() / 30;
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let at = usize::from(tag.as_ref()[19] & 15);
    let word = u32::from_be_bytes(tag.as_ref()[at..at + 4].try_into().unwrap());
    format!("{:06}", (word & 0x7fff_ffff) % 1_000_000)
}

#[tokio::test]
async fn a_code_is_asked_for_once_it_is_set_up_and_counts_once() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    let page = staff.submit("/portal/account/second-factor", &[]).await;
    let key = key(page.assert_status(200));
    staff.signs_in(PASSWORD).await.assert_status(303);
    staff.get("/portal/account").await.assert_status(200);
    let confirm = "/portal/account/second-factor/confirm";
    staff.submit(confirm, &[("code", "000000")]).await.assert_status(400);
    let first = code(&context, &key);
    staff.submit(confirm, &[("code", &first)]).await.assert_status(303);
    // Another secret cannot take its place while it is in use.
    let again = staff.submit("/portal/account/second-factor", &[]).await;
    assert_eq!(again.header("location"), Some("/portal/account?done=factor"));
    let mut other = Staff::stranger(&acme, &staff.email);
    let asked = other.signs_in(PASSWORD).await;
    assert!(asked.assert_status(401).text().contains("authenticator app"));
    other.signs_in_with_code(PASSWORD, &first).await.assert_status(401);
    context.clock().advance(TimeDelta::minutes(5));
    let second = code(&context, &key);
    other.signs_in_with_code("a wrong password", &second).await.assert_status(401);
    other.signs_in_with_code(PASSWORD, &second).await.assert_status(303);
    other.signs_in_with_code(PASSWORD, &second).await.assert_status(401);
    context.clock().advance(TimeDelta::minutes(5));
    staff.get("/portal/account").await;
    let remove = "/portal/account/second-factor/remove";
    staff.submit(remove, &[("code", "000000")]).await.assert_status(400);
    staff.submit(remove, &[("code", &code(&context, &key))]).await.assert_status(303);
    other.signs_in(PASSWORD).await.assert_status(303);
}

#[tokio::test]
async fn guesses_of_a_code_are_few() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "owner").await;
    staff.submit("/portal/account/second-factor", &[]).await.assert_status(200);
    let confirm = "/portal/account/second-factor/confirm";
    for _ in 0..5 {
        staff.submit(confirm, &[("code", "000000")]).await.assert_status(400);
    }
    staff.submit(confirm, &[("code", "000000")]).await.assert_status(429);
}
