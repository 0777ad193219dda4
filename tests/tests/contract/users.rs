//! Users: registered with everything the API document knows, found by address, kept in secret.

mod bank_account;
mod change;
mod documents;
mod erasure;
mod identifiers;
mod operators;
mod ownership;
mod passkeys;
mod privacy;
mod register;
mod search;
mod session;

use rampart_tests::outbox;
use rampart_tests::test_context::TestContext;

/// The code of the newest mail to this address.
async fn mailed_code(context: &TestContext, to: &str) -> String {
    let mail = outbox::newest(context, to).await;
    mail.text.chars().skip_while(|c| !c.is_ascii_digit()).take(6).collect()
}
