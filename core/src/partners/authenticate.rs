//! `POST /api/v1/authenticate`: exchanges a user name and a password for a token pair.

use http::Method;
use uuid::Uuid;

use crate::Core;
use crate::auth::caller::Anyone;
use crate::auth::tokens::refresh::TokenPair;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::crypto::Secret;
use crate::platform::db::tenant;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::{Sender, Tenant};
use rampart_types::ClientId;

/// Most passwords of one client that are verified: the current one, and previous ones during the
/// overlap of a rotation.
const PASSWORDS_MAX: i64 = 3;

/// Version 1, the only one.
pub struct V1;

/// A login request.
#[derive(Debug)]
pub struct Login {
    username: String,
    password: Secret,
    sender: Sender,
}

impl Endpoint for V1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/authenticate";
    const ERRORS: &'static [Code] = &[Code::ClientCredentialsInvalid];
    const IS_LOGIN: bool = true;
    const BODY: Body = Body::Json;
    const DOC: Doc = Doc {
        summary: "Exchange a user name and a password for tokens",
        details: "`token` lives an hour, `refreshToken` a month from its last use. By default ten \
                  tries a minute for one user name, and ten from one address. Tries of others \
                  do not count for an address from which you have logged in within 15 days.",
        body: Shape::Members(&[
            required("username", Kind::Text, "As issued by the operator."),
            required("password", Kind::Text, "As issued by the operator."),
        ]),
        request: r#"{"username": "acme", "password": "correct horse battery staple"}"#,
        answer: r#"{"token": "eyJhbGciOiJIUzI1NiJ9.e30.9f3k", "refreshToken": "rr_7f3a9c"}"#,
        ..Doc::NONE
    };
    type Caller = Anyone;
    type Request = Login;
    type Response = Json<TokenPair>;

    fn read(input: &Input, _: &Anyone) -> Result<Login> {
        let mut fields = Fields::from_object(&input.document)?;
        let username = fields.text("username", Code::ClientCredentialsInvalid);
        let password = fields.text("password", Code::ClientCredentialsInvalid).map(Secret::new);
        let login = username.zip(password).map(|(username, password)| Login {
            username,
            password,
            sender: Sender::of(&input.head),
        });
        fields.finish(login)
    }

    /// Neither the response nor its time distinguishes an unknown name from a wrong password or a
    /// suspended client, nor from a sender that it does not allow; during a rotation a wrong password takes one hash more.
    async fn call(core: &Core, _: Anyone, login: Login) -> Result<Json<TokenPair>> {
        let snapshot = core.snapshots.current();
        let tenant = snapshot.tenant_by_username(&login.username);
        let claimed = tenant.map(|tenant| &**tenant);
        core.attempts.count_password(core, &login.sender, &login.username, claimed).await?;
        let verified =
            verify_password(core, tenant.map(|tenant| tenant.id), login.password).await?;
        let admitted =
            |tenant: &Tenant| !tenant.suspended && tenant.allowed_senders.include(&login.sender);
        match (tenant, verified) {
            (Some(tenant), Some(hash)) if admitted(tenant) => {
                core.attempts.know(core, login.sender.address, &login.username).await?;
                Ok(Json(TokenPair::issue_to_client(core, tenant.id, &hash).await?))
            }
            _ => Err(Code::ClientCredentialsInvalid.into()),
        }
    }
}

/// The hash that the password matches, of the live ones of this client. An unknown client takes as long.
async fn verify_password(
    core: &Core,
    client: Option<ClientId>,
    password: Secret,
) -> Result<Option<String>> {
    let client = client.unwrap_or_else(|| Uuid::nil().into());
    tenant::enter(client);
    let hashes = sqlx::query_scalar!(
        r#"
        select password_hash as "password_hash!" from client_secret
        where client_id = $1 and kind = 'password' and (valid_until is null or valid_until > rampart_now())
        order by valid_until desc nulls first
        limit $2
        "#,
        client.uuid(),
        PASSWORDS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    if hashes.is_empty() {
        core.passwords.verify(password, None).await?;
        return Ok(None);
    }
    for hash in hashes {
        if core.passwords.verify(password.clone(), Some(hash.clone())).await? {
            return Ok(Some(hash));
        }
    }
    Ok(None)
}
