//! `GET /admin/v1/mail`

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::Read;
use super::operator::Operator;
use super::page::{AFTER, Page, Paging, Search, limit};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::platform::error::Result;
use crate::platform::mail::Message;
use rampart_types::{ClientId, EmailAddress};

/// Most mails of one answer.
const MAILS_MAX: i64 = 200;

/// `GET /admin/v1/mail`
pub struct ListMail;

impl Endpoint for ListMail {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/mail";
    const ROLES: &'static [Role] = &[Role::Support];
    const DOC: Doc = Doc {
        summary: "List mail to users and partners",
        details: "Newest first. `…` stands for codes and tokens, which only the user sees. The ids \
                  of the mails that were shown stand in the audit.",
        query: &[
            optional("partner", Kind::Text, "The partner's slug."),
            optional("kind", Kind::Text, "The occasion of the mail."),
            AFTER,
            limit(MAILS_MAX),
        ],
        answer: r#"[{"id": "0199a000-0000-7000-8000-000000000007", "partner": "acme",
            "user": null, "kind": "email-code", "state": "sent", "to": "ada@example.com",
            "subject": "Your code", "text": "Your code is ….", "createdAt": "2026-03-01T12:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search<Criteria>;
    type Response = Page<Mail>;

    fn read(input: &Input, _: &Operator) -> Result<Search<Criteria>> {
        let criteria: Criteria = strict::query(input)?;
        let paging = Paging::of(&input.head, criteria.limit.as_deref(), MAILS_MAX)?;
        Ok(Search { criteria, paging })
    }

    async fn call(core: &Core, operator: Operator, search: Search<Criteria>) -> Result<Page<Mail>> {
        let mut rows = sqlx::query!(
            r#"
            select m.client_id as "client_id!", c.slug as "partner!", m.mail_id as "mail_id!",
                m.user_id, m.kind as "kind!", m.sealed as "sealed!", m.state as "state!",
                m.created_at as "created_at!"
            from mail_outbox m join client c on c.client_id = m.client_id
            where ($1::text is null or m.client_id = (select client_id from client where slug = $1))
                and ($2::text is null or m.kind = $2)
                and ($3::uuid is null or m.mail_id < $3)
            order by m.mail_id desc limit $4
            "#,
            search.criteria.partner,
            search.criteria.kind,
            search.criteria.after,
            search.paging.rows_max(),
        )
        .fetch_all(&core.db)
        .await?;
        let has_more = search.paging.cut(&mut rows);
        let shown: Vec<_> = rows.iter().map(|row| row.mail_id).collect();
        let last = shown.last().filter(|_| has_more).map(Uuid::to_string);
        let mails = rows.into_iter().map(|row| {
            let (client, id) = (ClientId::from(row.client_id), row.mail_id);
            let message = Message::open(core, client, id, &row.sealed);
            // The list is of all partners: one whose key is gone must not take it from the others.
            let message = message
                .inspect_err(|error| tracing::warn!(%error, mail = %id, "a mail is not opened"))
                .ok();
            Mail {
                id,
                partner: row.partner,
                user: row.user_id,
                kind: row.kind,
                state: row.state,
                text: message.as_ref().map(Message::concealed),
                subject: message.as_ref().map(|message| message.subject.clone()),
                to: message.map(|message| message.to),
                created_at: row.created_at,
            }
        });
        let page = search.paging.page_until(mails.collect(), last);
        Read::of_list("mail.list", operator, json!({ "mails": shown })).record(core).await?;
        Ok(page)
    }
}

/// Criteria of mail; one that is absent is met by all.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criteria {
    partner: Option<String>,
    kind: Option<String>,
    after: Option<Uuid>,
    limit: Option<String>,
}

/// A mail to a user or a partner, without the code or token in it.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mail {
    /// The mail's id.
    id: Uuid,
    /// The partner's slug.
    partner: String,
    /// The user's id, if the mail is to one.
    user: Option<Uuid>,
    /// The occasion.
    kind: String,
    /// `pending`, `sent`, `failed` or `withheld`.
    state: String,
    /// The receiver; null if no key opens the mail any more.
    to: Option<EmailAddress>,
    /// The subject line; null if no key opens the mail any more.
    subject: Option<String>,
    /// The text, with the code or token blotted out; null if no key opens the mail any more.
    text: Option<String>,
    /// When it was written.
    created_at: DateTime<Utc>,
}
