//! `GET /admin/v1/mail`: what users were written, newest first.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{Answer, Input, ok};
use crate::Core;
use crate::platform::mail::Message;
use rampart_types::ClientId;

/// Most mails of one answer.
const MAILS_MAX: i64 = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    partner: Option<String>,
    kind: Option<String>,
    /// The last id of the page before.
    before: Option<Uuid>,
}

/// Mails that fit every criterion, at most [`MAILS_MAX`]; `before` goes on.
pub(super) async fn list(core: &Arc<Core>, input: Input) -> Answer {
    let Search { partner, kind, before } = input.query()?;
    let rows = sqlx::query!(
        r#"
        select m.client_id as "client_id!", c.slug as "partner!", m.mail_id as "mail_id!",
            m.user_id, m.kind as "kind!", m.sealed as "sealed!", m.state as "state!",
            m.created_at as "created_at!"
        from mail_outbox m join client c on c.client_id = m.client_id
        where ($1::text is null or c.slug = $1) and ($2::text is null or m.kind = $2)
            and ($3::uuid is null or m.mail_id < $3)
        order by m.mail_id desc limit $4
        "#,
        partner,
        kind,
        before,
        MAILS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    let mut mails = Vec::with_capacity(rows.len());
    for row in rows {
        let client = ClientId::from(row.client_id);
        let Message { to, subject, text } = Message::open(core, client, row.mail_id, &row.sealed)?;
        mails.push(json!({
            "id": row.mail_id, "partner": row.partner, "user": row.user_id, "kind": row.kind,
            "state": row.state, "to": to, "subject": subject, "text": text,
            "createdAt": row.created_at,
        }));
    }
    ok(&mails)
}
