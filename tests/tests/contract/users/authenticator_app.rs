//! The authenticator app of an account: put in use by its first code, asked for after the password, each
//! code once, and removed.

use chrono::TimeDelta;
use futures::future::join_all;
use http::Method;
use rampart_tests::cluster::until_a_lock_is_awaited;
use rampart_tests::passkey::{Authenticator, Ceremony, challenge};
use rampart_tests::totp::{code, shown_key};
use serde_json::json;

use super::{SIGNED_OUT, Visit, page_path, submit};

const PASSWORD_STEP: &str = "action=log-in&email=ada%40mail.example.com&password=password-of-ada";
const WRONG: &str = "De code klopt niet of is al gebruikt.";
/// The account's page has the address, which forms of the sign-in only carry along.
const ACCOUNT: &str = "<dd>ada@mail.example.com</dd>";

impl Visit {
    /// The page that follows the password.
    async fn past_password(&self) -> String {
        self.later(60);
        self.submit(PASSWORD_STEP).await.assert_status(200).text().to_owned()
    }

    /// The page with a new secret, from this page of the account.
    async fn begin_app(&self, page: &str) -> String {
        let form = format!("action=app-begin&challenge={}", challenge(page));
        self.submit(&form).await.assert_status(200).text().to_owned()
    }

    /// The form of an action of a page, with a code.
    fn with_code(page: &str, action: &str, code: &str) -> String {
        format!("action={action}&challenge={}&code={code}", challenge(page))
    }

    /// Puts an app in use after a sign-in, which the password suffices for; the key of it.
    pub(super) async fn set_up_app(&self) -> Vec<u8> {
        let page = self.past_password().await;
        self.set_up_app_on(&page).await
    }

    /// The same on this page of the account.
    pub(super) async fn set_up_app_on(&self, page: &str) -> Vec<u8> {
        let page = self.begin_app(page).await;
        let key = shown_key(&page);
        let form = Self::with_code(&page, "app-confirm", &self.shown_code(&key));
        let confirmed = self.submit(&form).await;
        assert!(confirmed.assert_status(200).text().contains("De app wordt voortaan gebruikt."));
        key
    }

    fn shown_code(&self, key: &[u8]) -> String {
        code(self.context.clock(), key)
    }
}

#[tokio::test]
async fn an_app_is_set_up_asked_for_and_removed() {
    let visit = Visit::start().await;
    let page = visit.past_password().await;
    let page = visit.begin_app(&page).await;
    assert!(page.contains("href=\"otpauth://totp/") && page.contains("ada%40mail"), "{page}");
    let key = shown_key(&page);
    // A secret whose first code was not shown is not asked for.
    assert!(visit.past_password().await.contains(ACCOUNT));
    let wrong = visit.submit(&Visit::with_code(&page, "app-confirm", "12345")).await;
    let page = wrong.assert_status(400).text().to_owned();
    assert!(page.contains(WRONG) && page.contains("href=\"#field-code\""), "{page}");
    assert_eq!(shown_key(&page), key, "the same secret is shown again");
    let form = Visit::with_code(&page, "app-confirm", &visit.shown_code(&key));
    let page = visit.submit(&form).await.assert_status(200).text().to_owned();
    assert!(page.contains("De app wordt voortaan gebruikt."), "{page}");
    // Another one takes its place only once it is removed.
    assert!(!visit.begin_app(&page).await.contains("otpauth"));

    let step = visit.past_password().await;
    assert!(step.contains("name=\"code\"") && !step.contains(ACCOUNT), "{step}");
    let wrong = visit.submit(&Visit::with_code(&step, "app-code", "123456")).await;
    assert!(wrong.assert_status(400).text().contains(WRONG));
    let late = visit.submit(&Visit::with_code(&step, "app-code", &visit.shown_code(&key))).await;
    assert!(late.assert_status(400).text().contains(WRONG), "a password is good for one code");
    let step = visit.past_password().await;
    let form = Visit::with_code(&step, "app-code", &visit.shown_code(&key));
    let page = visit.submit(&form).await.assert_status(200).text().to_owned();
    assert!(page.contains(ACCOUNT) && page.contains("In gebruik sinds:"), "{page}");

    let used = visit.submit(&Visit::with_code(&page, "app-remove", &visit.shown_code(&key))).await;
    let page = used.assert_status(200).text().to_owned();
    assert!(page.contains(WRONG) && page.contains("In gebruik sinds:"), "a code counts once");
    assert!(page.contains("href=\"#field-code\"") && page.contains("aria-invalid"), "{page}");
    visit.later(60);
    let form = Visit::with_code(&page, "app-remove", &visit.shown_code(&key));
    let removed = visit.submit(&form).await;
    assert!(removed.assert_status(200).text().contains("De app is verwijderd."));
    assert!(visit.submit(&form).await.assert_status(400).text().contains(SIGNED_OUT));
    assert!(visit.past_password().await.contains(ACCOUNT));
}

#[tokio::test]
async fn a_wrong_code_leads_back_to_the_password_with_the_address_filled_in() {
    let visit = Visit::start().await;
    visit.set_up_app().await;
    let step = visit.past_password().await;
    let carried = "<input type=\"hidden\" name=\"email\" value=\"ada@mail.example.com\">";
    assert!(step.contains(carried) && !step.contains("password-of-ada"), "{step}");
    let form = Visit::with_code(&step, "app-code", "123456");
    let wrong = visit.submit(&format!("{form}&email=ada%40mail.example.com")).await;
    let text = wrong.assert_status(400).text();
    let filled = "type=\"email\" name=\"email\" value=\"ada@mail.example.com\"";
    for part in [WRONG, filled, "type=\"password\" name=\"password\" value=\"\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Pages that register have the address in the form that signs in alone.
    let path = page_path(&visit.partner, &"y".repeat(36)).await;
    visit.later(60);
    let step = submit(&visit.partner, &path, PASSWORD_STEP).await;
    let form = Visit::with_code(step.assert_status(200).text(), "app-code", "123456");
    let form = format!("{form}&email=ada%40mail.example.com");
    let wrong = submit(&visit.partner, &path, &form).await;
    let text = wrong.assert_status(400).text();
    assert_eq!(text.matches("ada@mail.example.com").count(), 1, "{text}");
    assert!(text.contains(filled), "{text}");
}

#[tokio::test]
async fn no_code_is_asked_of_a_user_who_is_logged_out_meanwhile() {
    let visit = Visit::start().await;
    visit.set_up_app().await;
    visit.later(60);
    let mut log_out = visit.context.db().begin().await.unwrap();
    // The password is verified beside this lock; what follows waits.
    sqlx::query("select from end_user for share").execute(&mut *log_out).await.unwrap();
    let end = async {
        until_a_lock_is_awaited(visit.context.db()).await;
        sqlx::query("update end_user set tokens_valid_from = $1")
            .bind(visit.context.clock().now() + TimeDelta::minutes(1))
            .execute(&mut *log_out)
            .await
            .unwrap();
        let void = "delete from passkey_challenge";
        sqlx::query(void).execute(&mut *log_out).await.unwrap();
        log_out.commit().await.unwrap();
    };
    let (refused, ()) = futures::join!(visit.submit(PASSWORD_STEP), end);
    let text = refused.assert_status(400).text();
    assert!(!text.contains("name=\"code\""), "{text}");
    let left = "select exists (select from passkey_challenge)";
    let left: bool = sqlx::query_scalar(left).fetch_one(visit.context.db()).await.unwrap();
    assert!(!left);
}

#[tokio::test]
async fn no_password_alone_signs_in_while_a_second_factor_is_put_in_use() {
    let confirm = "update authenticator_app set confirmed_at = now()";
    let add = "insert into passkey (client_id, credential_id, user_id, sealed_name, public_key, \
             sign_count, created_at) \
         select client_id, 'a', user_id, '', '', 0, now() from end_user";
    for put_in_use in [confirm, add] {
        let visit = Visit::start().await;
        let page = visit.past_password().await;
        visit.begin_app(&page).await;
        visit.later(60);
        let mut change = visit.context.db().begin().await.unwrap();
        // The password is verified beside this lock; what it permits waits.
        sqlx::query("select from end_user for share").execute(&mut *change).await.unwrap();
        let commit = async {
            until_a_lock_is_awaited(visit.context.db()).await;
            sqlx::query(put_in_use).execute(&mut *change).await.unwrap();
            change.commit().await.unwrap();
        };
        let (refused, ()) = futures::join!(visit.submit(PASSWORD_STEP), commit);
        let text = refused.assert_status(400).text();
        assert!(!text.contains(ACCOUNT), "{put_in_use}: {text}");
    }
}

#[tokio::test]
async fn a_second_factor_ends_visits_that_the_password_alone_has_begun() {
    let visit = Visit::start().await;
    let by_password = visit.past_password().await;
    let open = visit.act(&by_password, "bank-add").await;
    let open = open.assert_status(303).header("location").unwrap().to_owned();
    let key = visit.set_up_app().await;
    for action in ["show", "app-begin"] {
        let refused = visit.act(&by_password, action).await;
        assert!(refused.assert_status(400).text().contains(SIGNED_OUT), "{}", refused.text());
    }
    visit.partner.anonymous(Method::GET, &open).send().await.assert_status(404);
    // The visit of the change goes on.
    visit.later(60);
    let step = visit.past_password().await;
    let form = Visit::with_code(&step, "app-code", &visit.shown_code(&key));
    let page = visit.submit(&form).await.assert_status(200).text().to_owned();
    visit.later(60);
    let form = Visit::with_code(&page, "app-remove", &visit.shown_code(&key));
    let page = visit.submit(&form).await.assert_status(200).text().to_owned();
    assert!(page.contains("De app is verwijderd."), "{page}");
    assert!(visit.begin_app(&page).await.contains("otpauth"));
}

#[tokio::test]
async fn no_app_is_removed_by_a_visit_that_is_ended_meanwhile() {
    let visit = Visit::start().await;
    let key = visit.set_up_app().await;
    let step = visit.past_password().await;
    let form = Visit::with_code(&step, "app-code", &visit.shown_code(&key));
    let page = visit.submit(&form).await.assert_status(200).text().to_owned();
    visit.later(60);
    // The page's challenge is renewed beside this lock; the code waits.
    let hold = "select from authenticator_app for update";
    let end = "delete from passkey_challenge";
    let form = Visit::with_code(&page, "app-remove", &visit.shown_code(&key));
    let refused = visit.ended_beside(hold, end, visit.submit(&form)).await;
    assert!(refused.text().contains(WRONG), "{}", refused.text());
    let left = "select exists (select from authenticator_app where confirmed_at is not null)";
    let left: bool = sqlx::query_scalar(left).fetch_one(visit.context.db()).await.unwrap();
    assert!(left);
}

#[tokio::test]
async fn a_code_is_asked_of_who_has_given_the_password() {
    let visit = Visit::start().await;
    let page = visit.past_password().await;
    let unasked = visit.submit(&Visit::with_code(&page, "app-confirm", "123456")).await;
    let page = unasked.assert_status(200).text().to_owned();
    assert!(page.contains(WRONG) && !page.contains("voortaan"), "no app was begun: {page}");
    let key = visit.set_up_app().await;
    visit.later(60);
    let nobodys = visit.submit("action=passkey").await.assert_status(200).text().to_owned();
    let bob = visit.partner.user("bob").await;
    let bobs = page_path(&visit.partner, &bob.identifier).await;
    let login = PASSWORD_STEP.replace("ada", "bob");
    let of_bob = submit(&visit.partner, &bobs, &login).await.assert_status(200).text().to_owned();
    for (why, page) in [("no password", &nobodys), ("a page of the account", &of_bob)] {
        let form = Visit::with_code(page, "app-code", &visit.shown_code(&key));
        let refused = visit.submit(&form).await;
        let text = refused.assert_status(400).text();
        assert!(text.contains(WRONG) && !text.contains("@mail"), "{why}: {text}");
    }
    let step = visit.past_password().await;
    visit.later(301);
    let late = visit.submit(&Visit::with_code(&step, "app-code", &visit.shown_code(&key))).await;
    assert!(late.assert_status(400).text().contains(WRONG));
    // Bob's password, and the code that Ada's app shows.
    let page = submit(&visit.partner, &bobs, &login).await.assert_status(200).text().to_owned();
    let begin = format!("action=app-begin&challenge={}", challenge(&page));
    let page = submit(&visit.partner, &bobs, &begin).await.assert_status(200).text().to_owned();
    let his = shown_key(&page);
    let form = Visit::with_code(&page, "app-confirm", &visit.shown_code(&his));
    submit(&visit.partner, &bobs, &form).await.assert_status(200);
    visit.later(60);
    let step = submit(&visit.partner, &bobs, &login).await.assert_status(200).text().to_owned();
    let form = Visit::with_code(&step, "app-code", &visit.shown_code(&key));
    submit(&visit.partner, &bobs, &form).await.assert_status(400);
}

#[tokio::test]
async fn codes_of_a_day_are_few() {
    let visit = Visit::start().await;
    visit.set_up_app().await;
    let mut refused = 0;
    for _ in 0..40 {
        let step = visit.past_password().await;
        let guess = visit.submit(&Visit::with_code(&step, "app-code", "123456")).await;
        refused += usize::from(guess.status() == 429);
    }
    // One of thirty was the first code; the quota grows by one in 48 minutes.
    assert_eq!(refused, 40 - 29);
}

#[tokio::test]
async fn a_page_that_links_asks_for_the_code_as_well() {
    let visit = Visit::start().await;
    let key = visit.set_up_app().await;
    let path = page_path(&visit.partner, &"y".repeat(36)).await;
    visit.later(60);
    let step = submit(&visit.partner, &path, PASSWORD_STEP).await;
    let step = step.assert_status(200).text().to_owned();
    let form = Visit::with_code(&step, "app-code", &visit.shown_code(&key));
    submit(&visit.partner, &path, &form).await.assert_status(303);
}

#[tokio::test]
async fn of_several_attempts_with_one_code_one_wins() {
    let visit = Visit::start().await;
    let key = visit.set_up_app().await;
    let mut steps = Vec::new();
    for _ in 0..4 {
        steps.push(visit.past_password().await);
    }
    let code = visit.shown_code(&key);
    let forms = steps.iter().map(|step| Visit::with_code(step, "app-code", &code));
    let forms: Vec<_> = forms.collect();
    let answers = join_all(forms.iter().map(|form| visit.submit(form))).await;
    let won = answers.iter().filter(|answer| answer.status() == 200).count();
    assert_eq!(won, 1);
}

#[tokio::test]
async fn guesses_of_a_code_are_few() {
    let visit = Visit::start().await;
    let key = visit.set_up_app().await;
    let step = visit.past_password().await;
    let form = Visit::with_code(&step, "app-code", &visit.shown_code(&key));
    let mut page = visit.submit(&form).await.assert_status(200).text().to_owned();
    visit.later(60);
    for _ in 0..5 {
        let guess = visit.submit(&Visit::with_code(&page, "app-remove", "123456")).await;
        page = guess.assert_status(200).text().to_owned();
        assert!(page.contains(WRONG), "{page}");
    }
    let limited = visit.submit(&Visit::with_code(&page, "app-remove", "123456")).await;
    assert!(limited.assert_status(429).header("retry-after").is_some());
}

#[tokio::test]
async fn a_passkey_or_a_code_follows_the_password_of_who_has_both() {
    let visit = Visit::start().await;
    let page = visit.past_password().await;
    let ours = Authenticator::of(&visit.id);
    let made = Ceremony::create(&challenge(&page));
    let form = ours.registration("Laptop", &made, &ours.public_key());
    let page = visit.submit(&form).await.assert_status(200).text().to_owned();
    let page = visit.begin_app(&page).await;
    let key = shown_key(&page);
    let form = Visit::with_code(&page, "app-confirm", &visit.shown_code(&key));
    visit.submit(&form).await.assert_status(200);
    let step = visit.past_password().await;
    let (by_passkey, by_code) = step.split_once("Vul de code van je app in").unwrap();
    let form = Visit::with_code(by_code, "app-code", &visit.shown_code(&key));
    assert!(visit.submit(&form).await.assert_status(200).text().contains(ACCOUNT));
    let form = ours.answer(&Ceremony::get(&challenge(by_passkey), 1));
    assert!(visit.submit(&form).await.assert_status(200).text().contains(ACCOUNT));
}

#[tokio::test]
async fn an_operator_removes_the_app_and_an_erasure_leaves_none() {
    let visit = Visit::start().await;
    let key = visit.set_up_app().await;
    let path = format!("/admin/v1/users/{}", visit.id);
    let change = async |change| {
        visit.context.admin(Method::PATCH, &path, change).await.assert_status(200);
    };
    // Of somebody who is disabled a code opens nothing.
    let step = visit.past_password().await;
    change(json!({"disabled": true})).await;
    let form = Visit::with_code(&step, "app-code", &visit.shown_code(&key));
    visit.submit(&form).await.assert_status(400);
    change(json!({"disabled": false})).await;
    change(json!({"authenticatorAppRemoved": true})).await;
    assert!(visit.past_password().await.contains(ACCOUNT));
    visit.set_up_app().await;
    change(json!({"deleted": true})).await;
    let count = sqlx::query_scalar::<_, i64>("select count(*) from authenticator_app");
    assert_eq!(count.fetch_one(visit.context.db()).await.unwrap(), 0);
}
