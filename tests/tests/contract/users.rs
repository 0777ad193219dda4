//! Users: registered with everything the API document knows, found by address, kept in secret.

mod account_page;
mod account_requirements;
mod authenticator_app;
mod bank_account;
mod change;
mod document_decisions;
mod documents;
mod erased_backups;
mod erasure;
mod forgotten_password;
mod identifiers;
mod languages;
mod operators;
mod ownership;
mod passkeys;
mod privacy;
mod register;
mod search;
mod security_notices;
mod session;

use chrono::TimeDelta;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::cluster::until_a_lock_is_awaited;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::outbox;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::json;
use sqlx::AssertSqlSafe;

/// The code of the newest mail to this address.
async fn mailed_code(context: &TestContext, to: &str) -> String {
    let mail = outbox::newest(context, to).await;
    mail.text.chars().skip_while(|c| !c.is_ascii_digit()).take(6).collect()
}

/// Path of the page that a partner sends the user with this identifier to, in Dutch.
async fn page_path(partner: &Partner, identifier: &str) -> String {
    let body = json!({"identifier": identifier, "returnUrl": "https://shop.example/"});
    let made = partner.post("/api/v1/user/register-identifier", body).await;
    let url = made.assert_status(200).json()["redirectUrl"]["nl-nl"].clone();
    url.as_str().unwrap().strip_prefix("https://pay.example.com").unwrap().to_owned()
}

/// Sends a form of a page.
async fn submit(partner: &Partner, path: &str, form: &str) -> Answer {
    partner.anonymous(Method::POST, path).body(form.to_owned()).send().await
}

/// Returns once this query is true, or a statement waits for a lock.
pub(crate) async fn until_stored_or_waiting(context: &TestContext, is_stored: &str) {
    let query = format!(
        "select ({is_stored}) or exists (select from pg_stat_activity \
             where datname = current_database() and wait_event_type = 'Lock')"
    );
    until("it is stored, or waits", SOON, async || {
        let query = sqlx::query_scalar(AssertSqlSafe(query.as_str()));
        let is_there: bool = query.fetch_one(context.db()).await.unwrap();
        is_there.then_some(())
    })
    .await;
}

/// Sentence of a page that asks to sign in once more.
const SIGNED_OUT: &str = "Log opnieuw in.";

/// A user at the page of the account.
struct Visit {
    context: TestContext,
    partner: Partner,
    user: User,
    id: String,
    path: String,
}

impl Visit {
    async fn start() -> Self {
        let context = TestContext::start().await;
        let partner = context.partner("acme").await;
        let user = partner.user("ada").await;
        let id = user.log_in().await["uuid"].as_str().unwrap().to_owned();
        let path = page_path(&partner, &user.identifier).await;
        let visit = Self { context, partner, user, id, path };
        visit.later(60);
        visit
    }

    /// Time goes by, and with it what was counted.
    fn later(&self, seconds: i64) {
        self.context.clock().advance(TimeDelta::seconds(seconds));
    }

    async fn submit(&self, form: &str) -> Answer {
        submit(&self.partner, &self.path, form).await
    }

    /// The output of `work`, which waits for the lock that `hold` takes until `end` has ended this visit.
    async fn ended_beside<T>(
        &self,
        hold: &'static str,
        end: &'static str,
        work: impl Future<Output = T>,
    ) -> T {
        let mut log_out = self.context.db().begin().await.unwrap();
        sqlx::query(hold).execute(&mut *log_out).await.unwrap();
        let ending = async {
            until_a_lock_is_awaited(self.context.db()).await;
            sqlx::query(end).execute(&mut *log_out).await.unwrap();
            log_out.commit().await.unwrap();
        };
        futures::join!(work, ending).0
    }
}
