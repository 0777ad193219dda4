//! Users: registered with everything the API document knows, found by address, kept in secret.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be made fails its test")]

mod bank_account;
mod change;
mod documents;
mod identifiers;
mod operators;
mod privacy;
mod register;
mod session;

use http::Method;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

/// The newest mail to this address, as operators see it.
async fn last_mail(context: &TestContext, to: &str) -> Value {
    let mails = context.admin(Method::GET, "/admin/v1/mail", json!({})).await.json();
    let mails = mails.as_array().unwrap();
    mails.iter().find(|mail| mail["to"] == to).cloned().unwrap_or_default()
}

/// The code of the newest mail to this address.
async fn mailed_code(context: &TestContext, to: &str) -> String {
    let mail = last_mail(context, to).await;
    let text = mail["text"].as_str().unwrap();
    text.chars().skip_while(|c| !c.is_ascii_digit()).take(6).collect()
}
