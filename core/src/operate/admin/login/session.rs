//! Sessions of operators in a browser: a cookie that scripts cannot read, and a row that ends it. A
//! change needs a second token, which no other page can read.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderValue, Method, StatusCode};
use ring::hmac;
use serde_json::json;

use super::super::operator::Operator;
use crate::Core;
use crate::auth::oidc::Person;
use crate::http::reply::Reply;
use crate::http::request::Head;
use crate::platform::audit::{self, Entry};
use crate::platform::crypto::{Secret, constant_time_eq, digest_of};
use crate::platform::error::{Denial, Error, Result};

/// Header of a change that a page makes.
const CSRF_HEADER: &str = "x-csrf-token";
/// Random bytes of a session's cookie: 256 bits.
const COOKIE_BYTES: usize = 32;
/// Most sessions of one operator; the oldest one ends.
const SESSIONS_MAX: i64 = 20;

/// The session of a request's cookie.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) operator: Operator,
    cookie: Secret,
}

impl Session {
    /// Begins a session; its cookie.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub(super) async fn begin(core: &Core, person: &Person, seconds: i32) -> Result<HeaderValue> {
        let secret: [u8; COOKIE_BYTES] = core.clock.random_bytes()?;
        let (cookie, id) = (URL_SAFE_NO_PAD.encode(secret), core.clock.uuid()?);
        let roles: Vec<_> = person.roles.iter().map(|role| role.as_str().to_owned()).collect();
        let mut tx = core.db.begin().await?;
        sqlx::query!(
            "delete from operator_session where expires_at <= now() or session_id in (\
                 select session_id from operator_session where name = $1 \
                 order by created_at desc offset $2)",
            person.name,
            SESSIONS_MAX - 1,
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!(
            "insert into operator_session \
             (session_id, digest, name, roles, expires_at, created_at) \
             values ($1, $2, $3, $4, now() + make_interval(secs => $5::int), now())",
            id,
            &digest_of(&cookie)[..],
            person.name,
            &roles,
            seconds,
        )
        .execute(&mut *tx)
        .await?;
        let detail = json!({ "roles": roles, "sessionId": id });
        let target = &person.name;
        let entry = Entry { actor: target, action: "operator.login", target, detail };
        audit::record(&mut tx, core, entry).await?;
        tx.commit().await?;
        set_cookie(core, (name(core), &cookie), "/", ("Strict", seconds))
    }

    /// The session of a request; `None` without one that lives.
    ///
    /// # Errors
    /// 403 for a change without the session's token against forged requests.
    pub(super) async fn of(core: &Core, head: &Head) -> Result<Option<Self>> {
        let Some(cookie) = cookie(head, name(core)) else { return Ok(None) };
        let found = sqlx::query!(
            "select s.name, s.roles from operator_session s \
             left join operator o on o.name = s.name \
             where s.digest = $1 and s.expires_at > now() and o.disabled_at is null",
            &digest_of(cookie)[..],
        )
        .fetch_optional(&core.db)
        .await?;
        let Some(row) = found else { return Ok(None) };
        let operator = Operator::named(&row.name, &row.roles);
        let session = Self { operator, cookie: Secret::new(cookie) };
        let given = head.header(CSRF_HEADER).unwrap_or_default();
        let is_own = constant_time_eq(given.as_bytes(), session.csrf_token().as_bytes());
        if head.method != Method::GET && !is_own {
            let reason = "a change by a session needs its csrfToken in X-CSRF-Token";
            return Err(Denial::new(StatusCode::FORBIDDEN, reason).into());
        }
        Ok(Some(session))
    }

    /// The token of its changes.
    pub(super) fn csrf_token(&self) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.cookie.expose().as_bytes());
        URL_SAFE_NO_PAD.encode(hmac::sign(&key, b"csrf"))
    }

    /// Ends it.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub(super) async fn end(&self, core: &Core) -> Result<Reply> {
        sqlx::query!(
            "delete from operator_session where digest = $1",
            &digest_of(self.cookie.expose())[..],
        )
        .execute(&core.db)
        .await?;
        let mut reply = Reply::empty(StatusCode::NO_CONTENT);
        let cookie = set_cookie(core, (name(core), ""), "/", ("Strict", 0))?;
        reply.headers.append(SET_COOKIE, cookie);
        Ok(reply)
    }
}

/// The name of the cookie. Over TLS browsers take this prefix from this very host alone.
fn name(core: &Core) -> &'static str {
    if is_tls(core) { "__Host-rampart_operator" } else { "rampart_operator" }
}

fn is_tls(core: &Core) -> bool {
    core.settings.admin_url.starts_with("https://")
}

/// The value of a cookie of this name.
pub(super) fn cookie<'a>(head: &'a Head, name: &str) -> Option<&'a str> {
    let lines = head.headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).map(str::trim);
    pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// A cookie that no script can read.
///
/// # Errors
/// Never for values in base64; the header's type says it could.
pub(super) fn set_cookie(
    core: &Core,
    (name, value): (&str, &str),
    path: &str,
    (same_site, seconds): (&str, i32),
) -> Result<HeaderValue> {
    let secure = if is_tls(core) { "; Secure" } else { "" };
    let text = format!(
        "{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}"
    );
    HeaderValue::try_from(text).map_err(|error| Error::internal("set a cookie", error))
}
