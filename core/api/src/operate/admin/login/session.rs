//! Sessions of operators in a browser: a cookie that scripts cannot read, and a row that ends it. A
//! change needs a second token, which no other page can read.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::SET_COOKIE;
use http::{HeaderValue, Method, StatusCode};
use ring::hmac;
use serde_json::json;
use uuid::Uuid;

use super::super::operator::Operator;
use crate::Core;
use crate::auth::roles::BREAK_GLASS;
use crate::http::cookie::{self, SameSite};
use crate::http::reply::Reply;
use crate::http::request::Head;
use crate::platform::crypto::{Secret, constant_time_eq, sha256};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};

/// The session's cookie.
const COOKIE: &str = "rampart_operator";
/// Header of a change that a page makes.
const CSRF_HEADER: &str = "x-csrf-token";
/// Random bytes of a session's cookie: 256 bits.
const COOKIE_BYTES: usize = 32;
/// Random bytes of a form's nonce: 128 bits.
const NONCE_BYTES: usize = 16;
/// Most sessions of one operator; the oldest one ends.
pub(in crate::operate) const SESSIONS_MAX: i64 = 20;

/// The session of a request's cookie.
#[derive(Debug)]
pub(in crate::operate) struct Session {
    pub(in crate::operate) operator: Operator,
    id: Uuid,
    cookie: Secret,
}

/// A session that begins.
#[derive(Debug)]
pub(super) struct NewSession<'a> {
    pub(super) operator: &'a Operator,
    /// SHA-256 of the token that it begins with, and ends with; none of a person whom the provider
    /// has proven.
    pub(super) token_digest: Option<[u8; 32]>,
    /// Its lifetime.
    pub(super) seconds: i32,
}

impl NewSession<'_> {
    /// Begins it; its cookie.
    pub(super) async fn begin(&self, core: &Core) -> Result<HeaderValue> {
        let Self { operator, token_digest, seconds } = self;
        let secret: [u8; COOKIE_BYTES] = core.clock.random_bytes()?;
        let (cookie, id) = (URL_SAFE_NO_PAD.encode(secret), core.clock.uuid()?);
        let roles: Vec<_> = operator.roles().iter().map(|role| role.as_str().to_owned()).collect();
        let actor = operator.actor();
        // One with a token is its operator's for as long as the token is.
        let identity = operator.identity().filter(|_| token_digest.is_none());
        let mut tx = core.db.begin().await?;
        sqlx::query!(
            "delete from operator_session where expires_at <= now() or session_id in (\
                 select session_id from operator_session \
                 where name = $1 and identity is not distinct from $3 \
                 order by created_at desc offset $2)",
            actor,
            SESSIONS_MAX - 1,
            identity.as_deref(),
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!(
            "insert into operator_session \
             (session_id, digest, name, roles, token_digest, identity, expires_at, created_at) \
             values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7::int), now())",
            id,
            &sha256(&cookie)[..],
            actor,
            &roles,
            token_digest.as_ref().map(|digest| &digest[..]),
            identity.as_deref(),
            seconds,
        )
        .execute(&mut *tx)
        .await?;
        let mut detail = json!({ "roles": roles, "sessionId": id });
        if let Some(identity) = identity {
            detail["identity"] = identity.into();
        }
        operator.record(&mut tx, core, "operator.login", actor, detail).await?;
        tx.commit().await?;
        set_cookie(core, COOKIE, &cookie, SameSite::Strict, *seconds)
    }
}

/// A statement that reads live sessions by the first argument. One that began with a token ends with
/// it, and has the roles that the token's operator has now. The second argument is [`BREAK_GLASS`],
/// of whose sessions [`is_of_configured_token`] says if they live.
macro_rules! select_live_sessions {
    ($filter:literal, $order:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query!(
            "select s.session_id, s.name, s.identity, s.token_digest, s.created_at, \
                 s.expires_at, t.operator_id as \"operator_id?\", \
                 case when t.token_id is null then s.roles else o.roles end as \"roles!\" \
             from operator_session s \
             left join operator o on o.name = s.name \
             left join operator_token t on t.operator_id = o.operator_id \
                 and t.digest = s.token_digest and t.revoked_at is null and t.expires_at > now() \
             where " + $filter + " and s.expires_at > now() and o.disabled_at is null \
                 and not exists (select from operator_identity i join operator d using (name) \
                     where i.identity = s.identity and d.disabled_at is not null) \
                 and (s.token_digest is null or t.token_id is not null or s.name = $2) " + $order,
            $($argument),+
        )
    };
}

pub(in crate::operate::admin) use select_live_sessions;

/// True if a break-glass session that began with the token of this digest lives: the configuration still
/// has it.
pub(in crate::operate) fn is_of_configured_token(core: &Core, digest: &[u8]) -> bool {
    let configured = core.settings.admin_token.as_ref();
    let configured = configured.map(|token| sha256(token.expose()));
    configured.is_some_and(|now| constant_time_eq(digest, &now))
}

impl Session {
    /// The cookie of a request's session, which may live or not.
    pub(super) fn cookie<'a>(core: &Core, head: &'a Head) -> Option<&'a str> {
        head.cookie(&cookie_name(core, COOKIE))
    }

    /// The session of a request; `None` without one that lives.
    pub(in crate::operate) async fn find(core: &Core, head: &Head) -> Result<Option<Self>> {
        let Some(cookie) = Self::cookie(core, head) else { return Ok(None) };
        let digest = sha256(cookie);
        let found = select_live_sessions!("s.digest = $1", "", &digest[..], BREAK_GLASS);
        let Some(row) = found.fetch_optional(&core.db).await? else { return Ok(None) };
        let operator = match &row.token_digest {
            Some(digest) if row.name == BREAK_GLASS => {
                if !is_of_configured_token(core, digest) {
                    return Ok(None);
                }
                Operator::break_glass()
            }
            _ => match row.operator_id {
                Some(id) => Operator::with_token(id, &row.name, &row.roles),
                None => Operator::proven_before(row.identity.as_deref(), &row.name, &row.roles),
            },
        };
        let (operator, id) = (operator.within(row.session_id), row.session_id);
        Ok(Some(Self { operator, id, cookie: Secret::new(cookie) }))
    }

    /// The session of a call; `None` without one that lives.
    ///
    /// # Errors
    /// 403 for a change without the session's token against forged requests.
    pub(super) async fn of(core: &Core, head: &Head) -> Result<Option<Self>> {
        let Some(session) = Self::find(core, head).await? else { return Ok(None) };
        let given = head.header(CSRF_HEADER).unwrap_or_default();
        let is_own = constant_time_eq(given.as_bytes(), session.csrf_token().as_bytes());
        if head.method != Method::GET && !is_own {
            let reason = "a change by a session needs its csrfToken in X-CSRF-Token";
            return Err(Denial::new(StatusCode::FORBIDDEN, reason).into());
        }
        Ok(Some(session))
    }

    /// The token of its calls.
    pub(super) fn csrf_token(&self) -> String {
        self.sign("csrf")
    }

    fn sign(&self, text: &str) -> String {
        sign(self.cookie.expose(), text)
    }

    /// A token for one form of this session.
    ///
    /// # Errors
    /// Without entropy.
    pub(in crate::operate) fn form_token(&self, core: &Core) -> Result<String> {
        let nonce = URL_SAFE_NO_PAD.encode(core.clock.random_bytes::<NONCE_BYTES>()?);
        let mac = self.sign(&format!("form/{nonce}"));
        Ok(format!("{nonce}.{mac}"))
    }

    /// The nonce of a form's token; `None` if no form of this session has it.
    pub(in crate::operate) fn nonce<'a>(&self, token: &'a str) -> Option<&'a str> {
        let (nonce, mac) = token.split_once('.')?;
        let own = self.sign(&format!("form/{nonce}"));
        constant_time_eq(mac.as_bytes(), own.as_bytes()).then_some(nonce)
    }

    /// Uses a form up; `false` if it was sent before. Of two at once, one is the first.
    pub(in crate::operate) async fn use_form(
        &self,
        conn: &mut Connection,
        nonce: &str,
    ) -> Result<bool> {
        let used = sqlx::query!(
            "insert into operator_form (session_id, nonce, sent_at) values ($1, $2, now()) \
             on conflict (session_id, nonce) do nothing",
            self.id,
            nonce,
        )
        .execute(conn)
        .await?;
        Ok(used.rows_affected() == 1)
    }

    /// Ends it; the cookie that takes its own away.
    pub(in crate::operate) async fn end(&self, core: &Core) -> Result<HeaderValue> {
        let mut tx = core.db.begin().await?;
        let ended = sqlx::query!("delete from operator_session where session_id = $1", self.id)
            .execute(&mut *tx)
            .await?;
        if ended.rows_affected() == 1 {
            let (actor, detail) = (self.operator.actor(), json!({ "sessionId": self.id }));
            self.operator.record(&mut tx, core, "operator.logout", actor, detail).await?;
            tx.commit().await?;
        }
        set_cookie(core, COOKIE, "", SameSite::Strict, 0)
    }
}

/// The MAC of a text under a cookie's secret.
pub(super) fn sign(secret: &str, text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    URL_SAFE_NO_PAD.encode(hmac::sign(&key, text.as_bytes()))
}

/// An answer that ends a session.
pub(super) fn signed_out(cookie: HeaderValue) -> Reply {
    let mut reply = Reply::empty(StatusCode::NO_CONTENT);
    reply.headers.append(SET_COOKIE, cookie);
    reply
}

/// The name under which browsers have a cookie. Over TLS they take this prefix from this very host
/// alone: no neighbouring host can plant a session, a form or a login of its own.
pub(super) fn cookie_name(core: &Core, name: &str) -> String {
    let prefix = if is_tls(core) { "__Host-" } else { "" };
    format!("{prefix}{name}")
}

fn is_tls(core: &Core) -> bool {
    core.settings.admin_url.starts_with("https://")
}

/// A cookie for the whole host, which no script can read.
///
/// # Errors
/// Never for values in base64; the header's type says it could.
pub(super) fn set_cookie(
    core: &Core,
    name: &str,
    value: &str,
    same_site: SameSite,
    seconds: i32,
) -> Result<HeaderValue> {
    cookie::header(&cookie_name(core, name), value, seconds.into(), same_site, is_tls(core))
}
