//! User credentials: `User-Authorization: Bearer` or `User-Identifier` (section 3 of the contract).

use chrono::{DateTime, Utc};
use http::HeaderMap;
use sqlx::PgExecutor;

use crate::Core;
use crate::auth::caller::Client;
use crate::auth::client_credentials::required_bearer;
use crate::http::request::Head;
use crate::platform::crypto::Purpose;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use rampart_types::{ClientId, UserId, UserIdentifier, UserKey};

const USER_AUTHORIZATION: &str = "user-authorization";
const USER_IDENTIFIER: &str = "user-identifier";

/// Authenticates the user of the headers; `None` without a user credential.
///
/// # Errors
/// ER701 to ER709 as documented; ER702 for the token of a user who is disabled. Another client's
/// user is reported as unknown.
pub(crate) async fn identify(core: &Core, client: &Client, head: &Head) -> Result<Option<UserId>> {
    authenticate(core, client, head).await?.map(Authenticated::admitted).transpose()
}

/// The same for an endpoint that refuses a disabled user itself, with ER124.
///
/// # Errors
/// ER701 to ER709 as documented.
pub(crate) async fn identify_also_disabled(
    core: &Core,
    client: &Client,
    head: &Head,
) -> Result<Option<UserId>> {
    Ok(authenticate(core, client, head).await?.map(|authenticated| authenticated.user))
}

/// A user whose credential is genuine.
struct Authenticated {
    user: UserId,
    /// The credential is the token of a login that has ended, because the user is disabled.
    is_shut_out: bool,
}

impl Authenticated {
    /// The user, unless it is shut out (ER702).
    fn admitted(self) -> Result<UserId> {
        if self.is_shut_out { Err(Code::UserTokenInvalid.into()) } else { Ok(self.user) }
    }
}

async fn authenticate(core: &Core, client: &Client, head: &Head) -> Result<Option<Authenticated>> {
    let token = single_header(&head.headers, USER_AUTHORIZATION, Code::UserTokenInvalid)
        .and_then(|text| text.map(|text| by_token(core, client, text)).transpose());
    let identifier = single_header(&head.headers, USER_IDENTIFIER, Code::UserIdentifierMalformed);
    let identifier = match identifier {
        Ok(Some(text)) => by_identifier(&core.db, core, client.id(), text).await.map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    match both(token, identifier)? {
        (Some(token), Some(identifier)) if token.user != identifier.user => {
            Err(Code::UserIdentifierMismatch.into())
        }
        (Some(token), _) => check_account(core, client.id(), token).await.map(Some),
        // The identifier is the partner's word, not a login: the partner knows of `user.disabled`.
        (None, Some(identifier)) if identifier.is_usable => {
            Ok(Some(Authenticated { user: identifier.user, is_shut_out: false }))
        }
        (None, Some(_)) => Err(Code::UserNotFound.into()),
        (None, None) => Ok(None),
    }
}

/// Both credentials, or what is wrong with either.
fn both<T, I>(token: Result<T>, identifier: Result<I>) -> Result<(T, I)> {
    match (token, identifier) {
        (Ok(token), Ok(identifier)) => Ok((token, identifier)),
        (Err(Error::Refused(mut refusal)), Err(Error::Refused(other))) => {
            other.codes().for_each(|code| refusal.add(code, None));
            Err(Error::Refused(refusal))
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// `true` if the request carries a user token, valid or not.
pub(crate) fn has_token(head: &Head) -> bool {
    head.headers.contains_key(USER_AUTHORIZATION)
}

/// The error ER700, where a login alone proves the user.
pub(crate) fn login_missing() -> Error {
    let detail = "User-Authorization alone: an identifier is no login";
    Error::with_detail(Code::UserCredentialMissing, detail)
}

/// Authenticates the user by token; an identifier is ignored.
///
/// # Errors
/// ER700 without a token, ER701, ER702 (also when the user is deleted or disabled).
pub(crate) async fn identify_token(core: &Core, client: &Client, head: &Head) -> Result<UserId> {
    let text = single_header(&head.headers, USER_AUTHORIZATION, Code::UserTokenInvalid)?
        .ok_or_else(login_missing)?;
    let token = by_token(core, client, text)?;
    match check_account(core, client.id(), token).await {
        Err(error) if error.is(Code::UserNotFound) => Err(Code::UserTokenInvalid.into()),
        checked => checked.and_then(Authenticated::admitted),
    }
}

/// Locks the row of the user whom the headers have proven, and checks that they still do: for what lasts
/// longer than the request.
///
/// # Errors
/// ER702 when the login of the token has ended since, ER705 when the identifier was unlinked, ER709 when
/// the user is deleted.
pub(crate) async fn lock_user(
    conn: &mut Connection,
    core: &Core,
    client: &Client,
    user: UserId,
    head: &Head,
) -> Result<()> {
    let text = single_header(&head.headers, USER_AUTHORIZATION, Code::UserTokenInvalid)?;
    let issued_at = text.map(|text| by_token(core, client, text)).transpose()?;
    let issued_at = issued_at.map(|token| token.issued_at);
    match (lock_login(&mut *conn, client.key_of(user), issued_at).await?, issued_at) {
        (true, Some(_)) => return Ok(()),
        (true, None) => {}
        (false, Some(_)) => return Err(Code::UserTokenInvalid.into()),
        (false, None) => return Err(Code::UserNotFound.into()),
    }
    let text = single_header(&head.headers, USER_IDENTIFIER, Code::UserIdentifierMalformed)?;
    let text = text.ok_or(Code::UserCredentialMissing)?;
    match by_identifier(conn, core, client.id(), text).await? {
        identified if identified.user == user => Ok(()),
        _ => Err(Code::UserIdentifierNotLinked.into()),
    }
}

/// Locks the user's row until the transaction ends. `false` when the user is deleted or, after a login at
/// this time, disabled or logged out since: what ends the user's sessions comes before this, or voids
/// what the transaction stores.
pub(crate) async fn lock_login(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
    logged_in_at: Option<DateTime<Utc>>,
) -> Result<bool> {
    let held = sqlx::query_scalar!(
        "select user_id from end_user \
         where client_id = $1 and user_id = $2 and deleted_at is null \
             and ($3::timestamptz is null or $3 >= tokens_valid_from and disabled_at is null) \
         for no key update",
        client.uuid(),
        user.uuid(),
        logged_in_at,
    )
    .fetch_optional(conn)
    .await?;
    Ok(held.is_some())
}

/// The header's text, if present; `code` if it is repeated or not text.
fn single_header<'a>(headers: &'a HeaderMap, name: &str, code: Code) -> Result<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| code.into()),
        (Some(_), Some(_)) => Err(code.into()),
    }
}

/// The user of a token.
struct TokenUser {
    user: UserId,
    issued_at: DateTime<Utc>,
}

fn by_token(core: &Core, client: &Client, text: &str) -> Result<TokenUser> {
    let token = required_bearer(text, Code::UserTokenInvalid)?;
    let claims = core.tokens.verify_user(core, token)?;
    if claims.client != client.id() {
        return Err(Code::UserTokenInvalid.into());
    }
    Ok(TokenUser { user: claims.user, issued_at: claims.issued_at })
}

/// A user as an identifier names it.
struct Identified {
    user: UserId,
    /// The account is not deleted.
    is_usable: bool,
}

async fn by_identifier(
    executor: impl PgExecutor<'_>,
    core: &Core,
    client: ClientId,
    text: &str,
) -> Result<Identified> {
    if text.is_empty() {
        return Err(Code::UserIdentifierEmpty.into());
    }
    let identifier: UserIdentifier = text.parse().map_err(|_| Code::UserIdentifierMalformed)?;
    let digest = identifier_digest(core, client, &identifier)?;
    let row = sqlx::query!(
        r#"
        select user_id, u.created_at is not null and u.deleted_at is null as "is_usable!"
        from user_identifier i left join end_user u using (client_id, user_id)
        where client_id = $1 and identifier_digest = $2
        "#,
        client.uuid(),
        &digest,
    )
    .fetch_optional(executor)
    .await?;
    let row = row.ok_or(Code::UserIdentifierNotLinked)?;
    Ok(Identified { user: row.user_id.into(), is_usable: row.is_usable })
}

/// The stored form of an identifier: a keyed digest, scoped to the client.
pub fn identifier_digest(
    core: &Core,
    client: ClientId,
    identifier: &UserIdentifier,
) -> Result<Vec<u8>> {
    let message = format!("identifier/{client}/{}", identifier.as_str());
    Ok(core.keys.mac(Purpose::BlindIndex, message.as_bytes())?.as_ref().to_vec())
}

/// Checks that the account is not deleted and the token not older than its last logout, and reads
/// if the user is disabled.
async fn check_account(
    core: &Core,
    client: ClientId,
    TokenUser { user, issued_at }: TokenUser,
) -> Result<Authenticated> {
    let row = sqlx::query!(
        r#"
        select deleted_at is not null as "deleted!", disabled_at is not null as "disabled!",
            tokens_valid_from
        from end_user where client_id = $1 and user_id = $2
        "#,
        client.uuid(),
        user.uuid(),
    )
    .fetch_optional(&core.db)
    .await?;
    match row {
        Some(row) if row.deleted => Err(Code::UserNotFound.into()),
        Some(row) if issued_at < row.tokens_valid_from => Err(Code::UserTokenInvalid.into()),
        Some(row) => Ok(Authenticated { user, is_shut_out: row.disabled }),
        None => Err(Code::UserNotFound.into()),
    }
}
