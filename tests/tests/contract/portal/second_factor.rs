//! The second factor: codes of an authenticator app, each of which counts once.

use chrono::TimeDelta;
use rampart_tests::cluster::{until_a_lock_is_awaited, until_locks_are_awaited};
use rampart_tests::outbox;
use rampart_tests::staff::{PASSWORD, Staff};
use rampart_tests::test_context::TestContext;
use rampart_tests::totp::{code, shown_key};

const BEGIN: &str = "/portal/account/second-factor";
const CONFIRM: &str = "/portal/account/second-factor/confirm";
const REMOVE: &str = "/portal/account/second-factor/remove";

#[tokio::test]
async fn a_code_is_asked_for_once_it_is_set_up_and_counts_once() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    let page = staff.submit(BEGIN, &[("password", PASSWORD)]).await;
    let key = shown_key(page.assert_status(200).text());
    staff.signs_in(PASSWORD).await.assert_status(303);
    staff.get("/portal/account").await.assert_status(200);
    staff.submit(CONFIRM, &[("code", "000000")]).await.assert_status(400);
    let first = code(context.clock(), &key);
    staff.submit(CONFIRM, &[("code", &first)]).await.assert_status(303);
    // Another secret cannot take its place while it is in use.
    let again = staff.submit(BEGIN, &[("password", PASSWORD)]).await;
    assert_eq!(again.header("location"), Some("/portal/account?done=factor"));
    let mut other = Staff::stranger(&acme, &staff.email);
    other.get("/portal/sign-in").await.assert_status(200);
    let fields = [("partner", "acme"), ("email", &*staff.email), ("password", PASSWORD)];
    let fields = [&fields[..], &[("page", "/portal/orders")]].concat();
    let asked = other.submit("/portal/sign-in", &fields).await;
    let text = asked.assert_status(401).text();
    for part in ["authenticator app", "name=\"page\" value=\"/portal/orders\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    other.signs_in_with_code(PASSWORD, &first).await.assert_status(401);
    context.clock().advance(TimeDelta::minutes(5));
    let second = code(context.clock(), &key);
    other.signs_in_with_code("a wrong password", &second).await.assert_status(401);
    other.signs_in_with_code(PASSWORD, &second).await.assert_status(303);
    other.signs_in_with_code(PASSWORD, &second).await.assert_status(401);
    context.clock().advance(TimeDelta::minutes(5));
    staff.get("/portal/account").await;
    let refused = staff.submit(REMOVE, &[("code", "000000")]).await;
    let text = refused.assert_status(400).text();
    assert!(text.contains("<details class=\"dialog\" open>"), "{text}");
    staff.submit(REMOVE, &[("code", &code(context.clock(), &key))]).await.assert_status(303);
    other.signs_in(PASSWORD).await.assert_status(303);
}

#[tokio::test]
async fn a_change_ends_other_sessions_and_is_told_by_mail() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    let mut other = Staff::stranger(&acme, &staff.email);
    other.signs_in(PASSWORD).await.assert_status(303);
    let page = staff.submit(BEGIN, &[("password", PASSWORD)]).await;
    let key = shown_key(page.assert_status(200).text());
    for (path, said) in [
        (
            CONFIRM,
            "Your account has an authenticator app now: its code is asked for after your \
             password.",
        ),
        (REMOVE, "The authenticator app of your account was removed."),
    ] {
        other.get("/portal").await.assert_status(200);
        let first = code(context.clock(), &key);
        staff.submit(path, &[("code", &first)]).await.assert_status(303);
        staff.get("/portal").await.assert_status(200);
        other.get("/portal").await.assert_status(303);
        let mail = outbox::newest(&context, &staff.email).await;
        assert_eq!(mail.text, format!("{said}\nIf this was not you, tell acme at once.\n"));
        assert_eq!(mail.state, "pending");
        context.clock().advance(TimeDelta::minutes(5));
        let code = if path == CONFIRM { code(context.clock(), &key) } else { String::new() };
        other.signs_in_with_code(PASSWORD, &code).await.assert_status(303);
        context.clock().advance(TimeDelta::minutes(5));
    }
}

#[tokio::test]
async fn no_password_alone_signs_in_while_a_second_factor_is_put_in_use() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    staff.submit(BEGIN, &[("password", PASSWORD)]).await.assert_status(200);
    let mut other = Staff::stranger(&acme, &staff.email);
    let mut confirm = context.db().begin().await.unwrap();
    sqlx::query("select from client for no key update").execute(&mut *confirm).await.unwrap();
    let commit = async {
        until_a_lock_is_awaited(context.db()).await;
        let put_in_use = "update staff_member set totp_confirmed_at = now()";
        sqlx::query(put_in_use).execute(&mut *confirm).await.unwrap();
        confirm.commit().await.unwrap();
    };
    let (refused, ()) = futures::join!(other.signs_in(PASSWORD), commit);
    refused.assert_status(401);
}

#[tokio::test]
async fn a_form_with_a_code_that_is_sent_twice_counts_once_for_both() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    let page = staff.submit(BEGIN, &[("password", PASSWORD)]).await;
    let key = shown_key(page.assert_status(200).text());
    for (path, word) in [(CONFIRM, "factor"), (REMOVE, "no-factor")] {
        context.clock().advance(TimeDelta::minutes(5));
        staff.get("/portal/account").await.assert_status(200);
        let code = code(context.clock(), &key);
        for _ in 0..2 {
            let answer = staff.submit(path, &[("formId", path), ("code", &code)]).await;
            let location = format!("/portal/account?done={word}");
            assert_eq!(answer.header("location"), Some(&*location), "{}", answer.text());
        }
    }
}

#[tokio::test]
async fn one_key_is_made_and_both_answers_to_a_form_sent_twice_at_once_show_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    let fields = [("formId", "begin"), ("password", PASSWORD)];
    let mut other = staff.clone();
    let (first, second) = tokio::join!(staff.submit(BEGIN, &fields), other.submit(BEGIN, &fields));
    let key = shown_key(first.assert_status(200).text());
    assert_eq!(shown_key(second.assert_status(200).text()), key);
    let code = code(context.clock(), &key);
    staff.submit(CONFIRM, &[("code", &code)]).await.assert_status(303);
}

#[tokio::test]
async fn guesses_of_a_code_are_few() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "owner").await;
    staff.submit(BEGIN, &[("password", PASSWORD)]).await.assert_status(200);
    for _ in 0..5 {
        staff.submit(CONFIRM, &[("code", "000000")]).await.assert_status(400);
    }
    staff.submit(CONFIRM, &[("code", "000000")]).await.assert_status(429);
}

#[tokio::test]
async fn setting_it_up_takes_the_password_and_guesses_of_that_are_few() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "owner").await;
    context.clock().advance(TimeDelta::minutes(5));
    let strange = staff.submit_with(BEGIN, "wrong", &[("password", PASSWORD)]).await;
    assert!(!strange.assert_status(403).text().contains(PASSWORD), "{}", strange.text());
    for password in ["", "a wrong password", "1", "2", "3"] {
        let refused = staff.submit(BEGIN, &[("password", password)]).await;
        let text = refused.assert_status(400).text();
        assert!(text.contains("This is not your password.") && !text.contains("otpauth"), "{text}");
    }
    staff.submit(BEGIN, &[("password", PASSWORD)]).await.assert_status(429);
    let begun = "select exists (select from staff_member where sealed_totp is not null)";
    let begun: bool = sqlx::query_scalar(begun).fetch_one(context.db()).await.unwrap();
    assert!(!begun);
    context.clock().advance(TimeDelta::minutes(5));
    staff.submit(BEGIN, &[("password", PASSWORD)]).await.assert_status(200);
}

#[tokio::test]
async fn a_code_that_comes_while_a_password_is_set_confirms_nothing() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "owner").await;
    let page = staff.submit(BEGIN, &[("password", PASSWORD)]).await;
    let key = shown_key(page.assert_status(200).text());
    let code = code(context.clock(), &key);
    let mut mailed = Staff::stranger(&acme, &staff.email);
    mailed.get("/portal/forgot-password").await;
    let fields = [("partner", "acme"), ("email", &*staff.email)];
    mailed.submit("/portal/forgot-password", &fields).await.assert_status(303);
    let link = mailed.mailed_link(&context).await;
    mailed.get(&link).await.assert_status(200);
    let mut somebody = context.db().begin().await.unwrap();
    sqlx::query("select from staff_member for update").execute(&mut *somebody).await.unwrap();
    let confirm = async {
        until_a_lock_is_awaited(context.db()).await;
        staff.submit(CONFIRM, &[("code", &code)]).await
    };
    let commit = async {
        until_locks_are_awaited(context.db(), 2).await;
        somebody.commit().await.unwrap();
    };
    let fields = [("password", "another password")];
    let set = mailed.submit(&link, &fields);
    let (set, refused, ()) = futures::join!(set, confirm, commit);
    set.assert_status(200);
    assert!(refused.assert_status(403).text().contains("nothing was done"), "{}", refused.text());
    let confirmed = "select exists (select from staff_member where totp_confirmed_at is not null)";
    let confirmed: bool = sqlx::query_scalar(confirmed).fetch_one(context.db()).await.unwrap();
    assert!(!confirmed);
}
