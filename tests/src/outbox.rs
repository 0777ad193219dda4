//! The outbox of mail, as only its users see it: with codes and tokens.

use serde_json::Value;
use uuid::Uuid;

use crate::test_context::TestContext;

/// A mail, opened.
#[derive(Debug)]
pub struct OutboxMail {
    /// Plain text.
    pub text: String,
    /// `pending`, `withheld` …
    pub state: String,
}

/// The newest mail to this address.
///
/// # Panics
/// When there is none.
pub async fn newest(context: &TestContext, to: &str) -> OutboxMail {
    let rows: Vec<(Uuid, Uuid, Vec<u8>, String)> = sqlx::query_as(
        "select client_id, mail_id, sealed, state from mail_outbox order by mail_id desc",
    )
    .fetch_all(context.db())
    .await
    .unwrap();
    let mut opened = rows.into_iter().map(|(client, id, sealed, state)| {
        let place = format!("mail_outbox/{client}/{id}");
        let plain = context.core().cipher(client.into()).open(&place, &sealed).unwrap();
        (serde_json::from_slice::<Value>(&plain).unwrap(), state)
    });
    let (mail, state) = opened.find(|(mail, _)| mail["to"] == to).unwrap();
    OutboxMail { text: mail["text"].as_str().unwrap().to_owned(), state }
}
