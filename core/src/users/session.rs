//! A user's session: `POST /api/v1/user/login`, `POST /api/v1/user/logout`,
//! `GET /api/v1/user/login-token`.

use chrono::{DateTime, TimeDelta, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::account::{self, RowLock};
use super::attempts::login_rate;
use super::details::required_email;
use super::one_time_token::{self, OneTimeToken, Purpose};
use super::passkeys;
use super::personal_data::email_index;
use crate::Core;
use crate::auth::caller::{Client, ClientAndUser, LoggedIn, USER_PROOF_ERRORS};
use crate::auth::tokens::refresh::{PasswordLogin, TokenPair};
use crate::auth::user_credentials;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, Done, Endpoint, Json};
use crate::http::device;
use crate::http::fields::Fields;
use crate::http::request::{Head, Input};
use crate::platform::crypto::Secret;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result, concat_codes};
use crate::tenancy::tenants::Scope;
use rampart_types::{EmailAddress, UserId, UserKey};

/// Most open sessions of a user that are listed, the newest.
const SESSIONS_MAX: i64 = 100;

/// Login, version 1.
pub struct LoginV1;

/// A login request.
#[derive(Debug)]
pub struct Login {
    email: EmailAddress,
    password: Secret,
    /// As [`device::named`] has it.
    device: Option<String>,
}

impl Login {
    /// # Errors
    /// Every violation: ER001, ER003, ER004.
    pub(crate) fn read(mut fields: Fields<'_>) -> Result<Self> {
        let email = required_email(&mut fields, "emailAddress");
        let password = fields.text("password", Code::PasswordMissing).map(Secret::new);
        fields.finish(email.zip(password).map(|(email, password)| Self {
            email,
            password,
            device: None,
        }))
    }

    /// The login of a known address with a password as it was typed.
    pub(crate) fn new(email: EmailAddress, password: &str) -> Self {
        Self { email, password: Secret::new(password), device: None }
    }
}

impl Endpoint for LoginV1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/user/login";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] = &concat_codes::<{ USER_PROOF_ERRORS.len() + 4 }>(&[
        &[Code::EmailInvalid, Code::EmailMissing, Code::PasswordMissing, Code::LoginInvalid],
        &USER_PROOF_ERRORS,
    ]);
    const IS_LOGIN: bool = true;
    const BODY: Body = Body::Json;
    const DOC: Doc = Doc {
        summary: "Log a user in",
        details: login_rate!(),
        body: Shape::Members(&[
            required("emailAddress", Kind::Format("email"), "The user's e-mail address."),
            required("password", Kind::Text, "The user's password."),
        ]),
        request: r#"{"emailAddress": "ada@example.com", "password": "correct horse"}"#,
        answer: r#"{"uuid": "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c", "token": "…",
            "refreshToken": "…"}"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = Login;
    type Response = Json<Session>;

    fn read(input: &Input, _: &Client) -> Result<Login> {
        let login = Login::read(Fields::from_object(&input.document)?)?;
        Ok(Login { device: input.head.header("user-agent").and_then(device::named), ..login })
    }

    async fn call(core: &Core, client: Client, login: Login) -> Result<Json<Session>> {
        let device = login.device.clone();
        let login = verify_password(core, &client, login).await?;
        let device = device.as_deref();
        let tokens = TokenPair::issue_to_user(core, client.id(), &login, device).await?;
        Ok(Json(Session { uuid: login.user, tokens }))
    }
}

/// Verifies an address and a password, and then that both still are the user's: the hash takes time.
/// Neither the result nor its time distinguishes an unknown address from a wrong password, a disabled
/// user or one without a password.
///
/// # Errors
/// ER005, or code 920 when the rate limit is exceeded.
pub(crate) async fn verify_login(core: &Core, client: &Client, login: Login) -> Result<UserId> {
    let login = verify_password(core, client, login).await?;
    let holds = login.still_holds(core, client.id()).await?;
    if holds { Ok(login.user) } else { Err(Code::LoginInvalid.into()) }
}

/// Verifies a login as [`verify_login`] does, and says against what.
async fn verify_password(core: &Core, client: &Client, login: Login) -> Result<PasswordLogin> {
    core.user_attempts.count(core, client, &login.email).await?;
    let index = email_index(core, client.id(), &login.email)?;
    let row = sqlx::query!(
        r#"
        select user_id, password_hash, disabled_at is not null as "disabled!" from end_user
        where client_id = $1 and email_index = $2 and deleted_at is null
        "#,
        client.id().uuid(),
        index,
    )
    .fetch_optional(&core.db)
    .await?;
    let hash = row.as_ref().and_then(|row| row.password_hash.clone());
    let verified = core.passwords.verify(login.password, hash.clone()).await?;
    match (row, hash) {
        (Some(row), Some(password_hash)) if verified && !row.disabled => {
            Ok(PasswordLogin { user: row.user_id.into(), email_index: index, password_hash })
        }
        _ => Err(Code::LoginInvalid.into()),
    }
}

/// A user's token pair.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "UserSession")]
pub struct Session {
    /// Id of the user.
    uuid: UserId,
    #[serde(flatten)]
    tokens: TokenPair,
}

/// Logout, version 1: ends every session of the user on every edge at once, because each use of a
/// token checks the user's row, and voids the tokens of pages, which would go on or open another.
/// Mailed links to set a password stay: whoever logs out does not doubt the mailbox.
pub struct LogoutV1;

impl Endpoint for LogoutV1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/user/logout";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const DOC: Doc = Doc {
        summary: "Log the user out",
        details: "Ends every session of the user, on every edge at once, and voids login tokens \
                  that are unused.",
        answer: "{}",
        ..Doc::NONE
    };
    type Caller = LoggedIn;
    type Request = ();
    type Response = Json<Done>;

    fn read(_: &Input, _: &LoggedIn) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, caller: LoggedIn, (): ()) -> Result<Json<Done>> {
        let mut tx = core.db.begin().await?;
        let key = caller.client.key_of(caller.user);
        end_sessions(&mut tx, core, key, &Purpose::OF_PAGES).await?;
        tx.commit().await?;
        Ok(Json(Done {}))
    }
}

/// Ends every session of the user, and what would open another: every one-time token, even of links
/// to set a password.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn end_all(tx: &mut Connection, core: &Core, key: UserKey) -> Result<()> {
    end_sessions(tx, core, key, &Purpose::ALL).await
}

/// Ends the visits of the user's pages, on every device, and voids what they lead to. Sessions go on.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn end_visits(tx: &mut Connection, core: &Core, key: UserKey) -> Result<()> {
    // A visit that is being begun is waited for.
    account::lock(tx, key, RowLock::NoKeyUpdate).await?;
    void_tokens(tx, core, key, &Purpose::OF_PAGES).await
}

/// Ends every session of the user; voids passkey challenges and unused tokens of these purposes.
async fn end_sessions(
    tx: &mut Connection,
    core: &Core,
    key: UserKey,
    purposes: &[Purpose],
) -> Result<()> {
    // Logins under way are waited for, so that the time is later than that of their tokens.
    account::lock(tx, key, RowLock::NoKeyUpdate).await?;
    let now = core.clock.now();
    sqlx::query!(
        "update end_user set tokens_valid_from = greatest(tokens_valid_from, $3) \
         where client_id = $1 and user_id = $2",
        key.client.uuid(),
        key.user.uuid(),
        now,
    )
    .execute(&mut *tx)
    .await?;
    void_tokens(tx, core, key, purposes).await
}

/// Ends the logins of a user who is disabled, for good: none is renewed when the user is enabled again.
/// Voids what would begin another, and open pages of the account. Tokens that were issued before are
/// ER702 as long as the user is disabled, and are ended when it is enabled; only a confirm reads
/// them until then, and answers ER124.
///
/// # Errors
/// When the database cannot be written.
pub async fn end_logins(tx: &mut Connection, core: &Core, key: UserKey) -> Result<()> {
    sqlx::query!(
        "update refresh_family set revoked_at = rampart_now() \
         where client_id = $1 and user_id = $2 and revoked_at is null",
        key.client.uuid(),
        key.user.uuid(),
    )
    .execute(&mut *tx)
    .await?;
    void_tokens(tx, core, key, &Purpose::ALL).await
}

/// Ends the tokens that a disabled user has from earlier logins, in the transaction that enables it,
/// before it does. A user who is not disabled keeps its tokens.
///
/// # Errors
/// When the database cannot be written.
pub async fn end_tokens_if_disabled(
    tx: &mut Connection,
    core: &Core,
    UserKey { client, user }: UserKey,
) -> Result<()> {
    sqlx::query!(
        "update end_user set tokens_valid_from = greatest(tokens_valid_from, $3) \
         where client_id = $1 and user_id = $2 and disabled_at is not null",
        client.uuid(),
        user.uuid(),
        core.clock.now(),
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Voids passkey challenges and unused tokens of these purposes.
async fn void_tokens(
    tx: &mut Connection,
    core: &Core,
    key: UserKey,
    purposes: &[Purpose],
) -> Result<()> {
    one_time_token::void(tx, core, key, purposes).await?;
    passkeys::end_challenges(tx, key).await
}

/// A login of a user whose tokens can be renewed.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) id: Uuid,
    /// Time of the login.
    pub(crate) began_at: DateTime<Utc>,
    /// Time after which nothing renews it, unless it is renewed before.
    pub(crate) ends_at: DateTime<Utc>,
    /// The device of the login, as [`device::named`] has it.
    pub(crate) device: Option<String>,
}

/// The user's open sessions, newest first, at most [`SESSIONS_MAX`].
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn open_sessions(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
) -> Result<Vec<OpenSession>> {
    let sessions = sqlx::query_as!(
        OpenSession,
        "select f.family_id as id, f.created_at as began_at, f.expires_at as ends_at, \
             f.device \
         from refresh_family f join end_user u using (client_id, user_id) \
         where f.client_id = $1 and f.user_id = $2 and f.revoked_at is null \
             and f.expires_at > rampart_now() and f.created_at >= u.tokens_valid_from \
         order by f.created_at desc limit $3",
        client.uuid(),
        user.uuid(),
        SESSIONS_MAX,
    )
    .fetch_all(conn)
    .await?;
    Ok(sessions)
}

/// Ends one of the user's sessions: its tokens are not renewed any more. `false` when it is none, or
/// has ended.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn end_one(
    core: &Core,
    UserKey { client, user }: UserKey,
    session: Uuid,
) -> Result<bool> {
    let ended = sqlx::query!(
        "update refresh_family set revoked_at = rampart_now() \
         where client_id = $1 and family_id = $2 and user_id = $3 and revoked_at is null",
        client.uuid(),
        session,
        user.uuid(),
    )
    .execute(&core.db)
    .await?;
    Ok(ended.rows_affected() > 0)
}

/// Issues a token for the secured pages, version 1.
pub struct LoginTokenV1;

impl Endpoint for LoginTokenV1 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v1/user/login-token";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const DOC: Doc = Doc {
        summary: "Make a token for the secured pages",
        details: "Put `token` and `uuid` into the query of one of `privateUrls`. It works once.",
        answer: r#"{"uuid": "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c", "token": "…",
            "expiryDate": "2026-11-20T10:05:00Z"}"#,
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = Head;
    type Response = Json<LoginToken>;

    fn read(input: &Input, _: &ClientAndUser) -> Result<Head> {
        Ok(input.head.clone())
    }

    async fn call(core: &Core, caller: ClientAndUser, head: Head) -> Result<Json<LoginToken>> {
        let ClientAndUser { client, user } = caller;
        let token = OneTimeToken::generate(&core.clock, client.id())?;
        let lifetime = TimeDelta::seconds(core.settings.lifetimes.login_token_seconds.into());
        let mut tx = core.db.begin().await?;
        user_credentials::lock_user(&mut tx, core, &client, user, &head).await?;
        let expiry_date = token.store(&mut tx, core, Purpose::Login, user, lifetime).await?;
        tx.commit().await?;
        Ok(Json(LoginToken { uuid: user, token: token.text, expiry_date }))
    }
}

/// The issued token.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginToken {
    /// Id of the user.
    uuid: UserId,
    /// Token for the pages of `privateUrls`, good for one use.
    token: String,
    /// Time until which it is good.
    expiry_date: DateTime<Utc>,
}
