//! Sessions of staff: a cookie that names the partner and holds a secret, and a row that ends it. The
//! tokens of its forms follow from the secret.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use ring::hmac;

use super::{StaffRole, lock_staff, open_email};
use crate::Core;
use crate::auth::caller::Client;
use crate::auth::tokens::opaque;
use crate::platform::crypto::{Secret, constant_time_eq, sha256};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::sweeps::{DELETED_MAX, delete_expired};
use rampart_types::{ClientId, EmailAddress, StaffId};

/// Lifetime of a session, in seconds: a working day.
pub const SESSION_SECONDS: i32 = 12 * 3_600;
/// Most sessions of one member; the oldest one ends.
const SESSIONS_MAX: i64 = 20;

/// A session whose cookie a request has shown.
#[derive(Debug)]
pub struct Session {
    /// Partner of the staff member.
    pub client: Client,
    /// The staff member.
    pub staff: StaffId,
    /// E-mail address of the staff member.
    pub email: EmailAddress,
    /// Role in the portal.
    pub role: StaffRole,
    /// True if a code is asked for besides the password.
    pub has_second_factor: bool,
    cookie: Secret,
}

impl Session {
    /// Begins a session; the value of its cookie. `None` when the member is gone, or has another
    /// password than the one whose hash was verified, or another second factor than the one in use
    /// since `factor_since`: such a change ends sessions, and is waited for while it is being made.
    pub(crate) async fn begin(
        conn: &mut Connection,
        core: &Core,
        client: ClientId,
        staff: StaffId,
        password_hash: &str,
        factor_since: Option<DateTime<Utc>>,
    ) -> Result<Option<String>> {
        let cookie = opaque::generate(&core.clock, client)?;
        lock_staff(conn, client).await?;
        let begun = sqlx::query!(
            "insert into staff_session \
                 (client_id, session_digest, staff_id, expires_at, created_at) \
             select $1, $2, staff_id, rampart_now() + make_interval(secs => $4::int), rampart_now() \
             from staff_member where client_id = $1 and staff_id = $3 and password_hash = $5 \
                 and totp_confirmed_at is not distinct from $6 \
             for share",
            client.uuid(),
            &sha256(&cookie)[..],
            staff.uuid(),
            SESSION_SECONDS,
            password_hash,
            factor_since,
        )
        .execute(&mut *conn)
        .await?;
        if begun.rows_affected() == 0 {
            return Ok(None);
        }
        sqlx::query!(
            "delete from staff_session where client_id = $1 and session_digest in ( \
                 select session_digest from staff_session \
                 where client_id = $1 and staff_id = $2 order by created_at desc offset $3)",
            client.uuid(),
            staff.uuid(),
            SESSIONS_MAX,
        )
        .execute(conn)
        .await?;
        Ok(Some(cookie))
    }

    /// The session of a cookie; `None` when it is unknown or has ended, or its partner is suspended.
    pub async fn find(core: &Core, cookie: &str, request_id: &str) -> Result<Option<Self>> {
        let Some(client) = opaque::parse_client(cookie) else { return Ok(None) };
        let Some(client) = Client::for_page(core, client, request_id) else { return Ok(None) };
        let row = sqlx::query!(
            r#"
            select s.staff_id, m.role, m.sealed_email,
                m.totp_confirmed_at is not null as "has_second_factor!"
            from staff_session s join staff_member m using (client_id, staff_id)
            where s.client_id = $1 and s.session_digest = $2 and s.expires_at > rampart_now()
            "#,
            client.id().uuid(),
            &sha256(cookie)[..],
        )
        .fetch_optional(&core.db)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let staff = StaffId::from(row.staff_id);
        Ok(Some(Self {
            email: open_email(core, client.id(), staff, &row.sealed_email)?,
            role: StaffRole::from_stored(&row.role)?,
            has_second_factor: row.has_second_factor,
            client,
            staff,
            cookie: Secret::new(cookie),
        }))
    }

    /// Locks it and the partner's staff until the transaction ends; the member's role. `None` when it
    /// has ended, or the member is gone.
    pub async fn lock(&self, conn: &mut Connection) -> Result<Option<StaffRole>> {
        lock_staff(conn, self.client.id()).await?;
        let role = sqlx::query_scalar!(
            "select m.role from staff_session s join staff_member m using (client_id, staff_id) \
             where s.client_id = $1 and s.session_digest = $2 and s.expires_at > rampart_now() \
             for share of s",
            self.client.id().uuid(),
            &sha256(self.cookie.expose())[..],
        )
        .fetch_optional(conn)
        .await?;
        role.map(|role| StaffRole::from_stored(&role)).transpose()
    }

    /// Ends the member's other sessions, in a transaction that has locked this one.
    pub(super) async fn end_others(&self, conn: &mut Connection) -> Result<()> {
        sqlx::query!(
            "delete from staff_session \
             where client_id = $1 and staff_id = $2 and session_digest <> $3",
            self.client.id().uuid(),
            self.staff.uuid(),
            &sha256(self.cookie.expose())[..],
        )
        .execute(conn)
        .await?;
        Ok(())
    }

    /// The token of its forms.
    pub fn form_token(&self) -> String {
        sign(self.cookie.expose(), "staff form")
    }

    /// True if a form of this session's own sent this token.
    pub fn is_own_form(&self, token: &str) -> bool {
        constant_time_eq(token.as_bytes(), self.form_token().as_bytes())
    }

    /// Ends the session.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn end(&self, core: &Core) -> Result<()> {
        sqlx::query!(
            "delete from staff_session where client_id = $1 and session_digest = $2",
            self.client.id().uuid(),
            &sha256(self.cookie.expose())[..],
        )
        .execute(&core.db)
        .await?;
        Ok(())
    }
}

/// The token of one form, by its nonce, that a browser with this cookie gets without a session.
pub fn visitor_form_token(cookie: &str, nonce: &str) -> String {
    format!("{nonce}.{}", sign(cookie, &format!("visitor form/{nonce}")))
}

/// The MAC of a text under a cookie's secret.
fn sign(cookie: &str, text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, cookie.as_bytes());
    URL_SAFE_NO_PAD.encode(hmac::sign(&key, text.as_bytes()))
}

impl Core {
    /// Deletes the staff's sessions and links that have expired: one run of a worker. True if there may
    /// be more.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub async fn delete_expired_sessions_of_staff(&self) -> Result<bool> {
        let clients = sqlx::query_scalar!(
            "select c.client_id from client c cross join lateral ( \
                 (select 1 from staff_session s \
                 where s.client_id = c.client_id and s.expires_at <= rampart_now() limit 1) \
                 union all \
                 (select 1 from staff_token t \
                 where t.client_id = c.client_id and t.expires_at <= rampart_now() limit 1) \
                 limit 1) due",
        )
        .fetch_all(&self.db)
        .await?;
        let delete = |client| self.delete_expired_sessions_of(client);
        delete_expired(&self.metrics, "staff", clients, delete).await
    }

    async fn delete_expired_sessions_of(&self, client: ClientId) -> Result<bool> {
        let sessions = sqlx::query!(
            "delete from staff_session where client_id = $1 and session_digest in ( \
                 select session_digest from staff_session \
                 where client_id = $1 and expires_at <= rampart_now() \
                 limit $2 for update skip locked)",
            client.uuid(),
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        let links = sqlx::query!(
            "delete from staff_token where client_id = $1 and token_digest in ( \
                 select token_digest from staff_token \
                 where client_id = $1 and expires_at <= rampart_now() \
                 limit $2 for update skip locked)",
            client.uuid(),
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        let most = sessions.rows_affected().max(links.rows_affected());
        Ok(most >= DELETED_MAX.unsigned_abs())
    }
}
