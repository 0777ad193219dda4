//! The caller of the connectors' API, proven by a bearer token.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use rampart_types::UserId;
use uuid::Uuid;

use crate::Core;
use crate::auth::caller::{Caller, Client, UserProof};
use crate::auth::client_credentials::bearer;
use crate::endpoint::Approver;
use crate::http::Surface;
use crate::http::request::{Head, Input};
use crate::platform::clock::Clock;
use crate::platform::crypto::{Secret, sha256};
use crate::platform::db::Connection;
use crate::platform::error::{Code, Denial, Error, Result};
use crate::platform::rate_limit::Quota;
use crate::platform::telemetry::TraceScope;

/// Beginning of every connector's token. One that begins otherwise costs no statement.
const TOKEN_PREFIX: &str = "rcn_";
/// Random bytes of a token: 256 bits.
const TOKEN_BYTES: usize = 32;
/// Failed proofs of one address: 60 a minute.
pub(crate) const FAILURES: Quota = Quota::new(60, 60, 60);

/// A connector, proven by a token.
#[derive(Clone, Debug)]
pub struct Connector {
    /// Its name.
    pub(super) name: Arc<str>,
    /// Kinds of the commands that it takes.
    pub(super) capabilities: Vec<String>,
}

impl Connector {
    /// Proves the connector of a request.
    ///
    /// # Errors
    /// 401 for a token that is missing, unknown or past its overlap; 429 after too many of them.
    pub(super) async fn log_in(core: &Core, head: &Head) -> Result<Self> {
        let (failures, now) = (&core.connector_failures, core.clock.monotonic_ns());
        let bucket = failures.bucket(head.peer);
        let count =
            |cause: &str| core.metrics.connector_login_failures.with_label_values(&[cause]).inc();
        let limited = |decision| {
            count("limited");
            Error::from(Denial::rate_limited("too many wrong tokens from this address", decision))
        };
        let given = head.header("authorization").and_then(bearer);
        let token = given.filter(|token| token.starts_with(TOKEN_PREFIX));
        let shown = token.map(sha256);
        let is_known = shown.is_some_and(|shown| failures.is_known(head.peer, shown));
        let decision = bucket.peek(FAILURES, now);
        if !decision.allowed && !is_known {
            return Err(limited(decision));
        }
        if let Some(shown) = shown {
            if let Some(connector) = Self::of_digest(core, &shown).await? {
                if !is_known {
                    failures.know(head.peer, shown);
                }
                return Ok(connector);
            }
            failures.forget(head.peer, shown);
        }
        // Requests that were under way together may all have passed the look above.
        let decision = bucket.take(FAILURES, now);
        if !decision.allowed {
            return Err(limited(decision));
        }
        let cause = if given.is_some() { "wrong" } else { "missing" };
        count(cause);
        let (peer, request_id) = (head.peer, &*head.request_id);
        let trace_id = TraceScope::current().trace_id();
        tracing::warn!(%peer, request_id, trace_id, cause, "a connector could not be proven");
        let reason = "the connector's token is missing or wrong";
        Err(Denial::new(StatusCode::UNAUTHORIZED, reason).into())
    }

    /// The connector whose token has this digest.
    async fn of_digest(core: &Core, digest: &[u8; 32]) -> Result<Option<Self>> {
        let found = sqlx::query!(
            r#"
            select c.name, c.capabilities,
                coalesce(c.last_contact_at < now() - interval '1 second', true) as "is_stale!"
            from connector_token t join connector c on c.name = t.connector
            where t.digest = $1 and (t.expires_at is null or t.expires_at > now())
            "#,
            &digest[..],
        )
        .fetch_optional(&core.db)
        .await?;
        let Some(found) = found else { return Ok(None) };
        if found.is_stale {
            sqlx::query!(
                "update connector set last_contact_at = now() where name = $1",
                found.name
            )
            .execute(&core.db)
            .await?;
        }
        Ok(Some(Self { name: found.name.into(), capabilities: found.capabilities }))
    }
}

impl Caller for Connector {
    const SURFACE: Surface = Surface::Connectors;
    const CLIENT: bool = false;
    const USER: UserProof = UserProof::None;
    const ERRORS: &'static [Code] = &[];

    fn user(&self) -> Option<UserId> {
        None
    }

    /// The connector that the listener has let in.
    async fn identify(_: &Core, _: Option<Client>, input: &Input) -> Result<Self> {
        let connector = input.proven.get::<Self>().cloned();
        connector.ok_or_else(|| Error::invariant("call a connector's endpoint without a connector"))
    }
}

impl Approver for Connector {}

/// Issues a token to a connector. Earlier ones end after `overlap_seconds`.
///
/// # Errors
/// Without entropy, or when the database cannot be written.
pub async fn issue_token(
    conn: &mut Connection,
    clock: &Clock,
    connector: &str,
    by: &str,
    overlap_seconds: i32,
) -> Result<Secret> {
    let secret: [u8; TOKEN_BYTES] = clock.random_bytes()?;
    let token = Secret::new(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(secret)));
    let id: Uuid = clock.uuid()?;
    sqlx::query!(
        "update connector_token \
         set expires_at = least(expires_at, now() + make_interval(secs => $2::int)) \
         where connector = $1",
        connector,
        overlap_seconds,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from connector_token where connector = $1 and expires_at <= now()",
        connector,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "insert into connector_token (connector, token_id, digest, created_by, created_at) \
         values ($1, $2, $3, $4, now())",
        connector,
        id,
        &sha256(token.expose())[..],
        by,
    )
    .execute(conn)
    .await?;
    Ok(token)
}
