//! `GET /admin/v1/operators/{name}/sessions`

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{NAME, check_known};
use crate::Core;
use crate::auth::roles::{BREAK_GLASS, Role};
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::Doc;
use crate::http::request::Input;
use crate::operate::admin::approvals::identities;
use crate::operate::admin::login::session::{
    SESSIONS_MAX, is_of_configured_token, select_live_sessions,
};
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Part, limit};
use crate::platform::error::Result;

/// Most sessions of all who share a name, each of whom has up to [`SESSIONS_MAX`].
const LISTED_MAX: i64 = 1_000;

/// `GET /admin/v1/operators/{name}/sessions`
pub struct ListSessions;

impl Endpoint for ListSessions {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/operators/{name}/sessions";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List an operator's live sessions",
        details: "In browsers, newest first. One that began with a token ends with it. People whom \
                  the provider proves have sessions, and are otherwise unknown here. The list has \
                  those of everybody of that name; whoever asks by their own name finds those \
                  that they began by another one, too.",
        path: &[NAME],
        query: &[AFTER, limit(SESSIONS_MAX)],
        answer: r#"[{"id": "0199a000-0000-7000-8000-00000000000e", "withToken": true,
            "roles": ["treasury"], "createdAt": "2026-03-01T12:00:00Z",
            "expiresAt": "2026-03-01T20:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, Part);
    type Response = Page<ListedSession>;

    fn read(input: &Input, _: &Operator) -> Result<(String, Part)> {
        Ok((input.param("name").to_owned(), Part::read(input, SESSIONS_MAX)?))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (name, part): (String, Part),
    ) -> Result<Page<ListedSession>> {
        // People whom the provider proves may have changed their names since.
        let own = match operator.actor() == name {
            true => identities(core, operator.identity()).await?,
            false => Vec::new(),
        };
        let sessions = select_live_sessions!(
            "(s.name = $1 or s.identity = any ($4))",
            "order by s.created_at desc, s.session_id desc limit $3",
            name,
            BREAK_GLASS,
            LISTED_MAX,
            &own,
        )
        .fetch_all(&core.db)
        .await?;
        if sessions.is_empty() && name != BREAK_GLASS {
            check_known(core, &name).await?;
        }
        let is_live = |digest: &Option<Vec<u8>>| {
            let digest = digest.as_ref().filter(|_| name == BREAK_GLASS);
            digest.is_none_or(|digest| is_of_configured_token(core, digest))
        };
        let live = sessions.into_iter().filter(|row| is_live(&row.token_digest));
        let listed = live.map(|row| ListedSession {
            id: row.session_id,
            with_token: row.token_digest.is_some(),
            roles: row.roles.iter().filter_map(|role| Role::from_name(role)).collect(),
            created_at: row.created_at,
            expires_at: row.expires_at,
        });
        part.of(listed.collect(), |session: &ListedSession| session.id.to_string())
    }
}

/// A live session of an operator.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "OperatorSession")]
#[serde(rename_all = "camelCase")]
pub struct ListedSession {
    /// The session's id, as the audit has it where it begins and ends.
    id: Uuid,
    /// `true` if it began with a token, `false` if the provider has proven the person.
    with_token: bool,
    /// The roles that it has.
    roles: Vec<Role>,
    /// When it began.
    created_at: DateTime<Utc>,
    /// When it ends.
    expires_at: DateTime<Utc>,
}
