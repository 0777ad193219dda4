//! Endpoints by e-mail address: `GET /api/v1/user/exists` and `POST /api/v1/user/reset-password`.
//! Both could be used to enumerate users, so both share the rate limit of login.

use chrono::TimeDelta;
use http::{Method, StatusCode};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;

use super::account::texts_of;
use super::attempts::login_rate;
use super::details::required_email;
use super::one_time_token::{OneTimeToken, Purpose};
use super::personal_data::email_index;
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, ClaimedKey, Done, Endpoint, Json, Respond, Success, save_answer};
use crate::http::fields::Fields;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use crate::platform::mail::{self, Message};
use crate::tenancy::tenants::Scope;
use rampart_types::{EmailAddress, UserId};
use uuid::Uuid;

/// Lifetime of a password reset link.
const RESET_LIFETIME: TimeDelta = TimeDelta::hours(1);

/// Checks if an address is registered, version 1.
pub struct ExistsV1;

impl Endpoint for ExistsV1 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v1/user/exists";
    const SCOPE: Option<Scope> = Some(Scope::UsersRead);
    const ERRORS: &'static [Code] = &[Code::EmailInvalid, Code::EmailMissing];
    const DOC: Doc = Doc {
        summary: "Ask whether an e-mail address is registered",
        details: concat!(
            "404 with `{\"exists\":false}` is an answer, not an error. ",
            login_rate!(),
        ),
        query: &[required("emailAddress", Kind::Format("email"), "The address.")],
        answer: r#"{"exists": true}"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = EmailAddress;
    type Response = Existence;

    fn read(input: &Input, _: &Client) -> Result<EmailAddress> {
        let mut fields = Fields::of_query(input.head.query.as_deref());
        let email = required_email(&mut fields, "emailAddress");
        fields.finish(email)
    }

    async fn call(core: &Core, client: Client, email: EmailAddress) -> Result<Existence> {
        core.user_attempts.count(core, &client, &email).await?;
        Ok(Existence { exists: find(core, &client, &email).await?.is_some() })
    }
}

/// The result: 200 if the address is registered, else 404.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "EmailAddressCheck")]
pub struct Existence {
    /// `true` if a user has the address.
    exists: bool,
}

impl Respond for Existence {
    fn respond(self) -> Result<Reply> {
        Reply::json(if self.exists { StatusCode::OK } else { StatusCode::NOT_FOUND }, &self)
    }

    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success> {
        let known = Success::json::<Self>(StatusCode::OK, schemas);
        let unknown = Success::json::<Self>(StatusCode::NOT_FOUND, schemas);
        vec![known, Success { about: "Nobody has the address.", ..unknown }]
    }
}

/// Mails a password reset link, version 1.
pub struct ResetPasswordV1;

impl Endpoint for ResetPasswordV1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/user/reset-password";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] =
        &[Code::EmailInvalid, Code::EmailMissing, Code::PasswordResetFailed];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Mail the user a link to set a new password",
        details: concat!(
            "The answer is the same when nobody has the address. A password that is set by the link \
             proves the address. If nothing has proven it before, identifiers that were linked to \
             the user until then are unlinked (ER705): link them again. At most five links an hour \
             are mailed to one address (ER354). ",
            login_rate!(),
        ),
        body: Shape::Members(&[required("emailAddress", Kind::Format("email"), "The address.")]),
        request: r#"{"emailAddress": "ada@example.com"}"#,
        answer: "{}",
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = EmailAddress;
    type Response = Json<Done>;

    fn read(input: &Input, _: &Client) -> Result<EmailAddress> {
        let mut fields = Fields::from_object(&input.document)?;
        let email = required_email(&mut fields, "emailAddress");
        fields.finish(email)
    }

    async fn call(core: &Core, client: Client, email: EmailAddress) -> Result<Json<Done>> {
        Self::call_with_key(core, client, email, None).await
    }

    async fn call_with_key(
        core: &Core,
        client: Client,
        email: EmailAddress,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Done>> {
        mail_reset_link(core, &client, email, key).await?;
        Ok(Json(Done {}))
    }
}

/// Mails a link to set a new password, and saves the answer under the request's key. The work is the
/// same for an unknown address: a mail is written and withheld.
///
/// # Errors
/// ER354 and code 920 when too many are asked for.
pub(crate) async fn mail_reset_link(
    core: &Core,
    client: &Client,
    email: EmailAddress,
    key: Option<&ClaimedKey>,
) -> Result<()> {
    core.user_attempts.count_reset(core, client, &email).await?;
    core.user_attempts.count_mail(core, client, &email).await?;
    let token = OneTimeToken::generate(&core.clock, client.id())?;
    let mut tx = core.db.begin().await?;
    let user = find_and_lock(&mut tx, core, client, &email).await?;
    // Nobody's mail, which is withheld, takes the same statements.
    let of = user.unwrap_or_else(|| Uuid::nil().into());
    let texts = texts_of(&mut tx, client.key_of(of)).await?;
    let text = format!(
        "{}\n{}/reset-password/{}\n{}\n",
        texts.get("mail-reset"),
        core.settings.public_url,
        token.text,
        texts.get("mail-ignore"),
    );
    let subject = texts.with("mail-reset-subject", &[("shop", &client.tenant.name)]);
    token.store(&mut tx, core, Purpose::ResetPassword, of, RESET_LIFETIME).await?;
    let message = Message { to: email, subject, text, secrets: Some(vec![token.text]) };
    message.enqueue(&mut tx, core, client.id(), mail::Kind::ResetPassword, user).await?;
    save_answer(key, core, &mut tx, &Done {}).await?;
    tx.commit().await?;
    Ok(())
}

/// The user with this address, which nobody changes until the transaction ends: a link that is mailed to
/// an earlier one would set the password, too.
async fn find_and_lock(
    conn: &mut Connection,
    core: &Core,
    client: &Client,
    email: &EmailAddress,
) -> Result<Option<UserId>> {
    let user = sqlx::query_scalar!(
        "select user_id from end_user \
         where client_id = $1 and email_index = $2 and deleted_at is null for no key update",
        client.id().uuid(),
        email_index(core, client.id(), email)?,
    )
    .fetch_optional(conn)
    .await?;
    Ok(user.map(UserId::from))
}

/// The user with this address.
///
/// # Errors
/// When the database cannot be read.
pub async fn find(core: &Core, client: &Client, email: &EmailAddress) -> Result<Option<UserId>> {
    let user = sqlx::query_scalar!(
        "select user_id from end_user \
         where client_id = $1 and email_index = $2 and deleted_at is null",
        client.id().uuid(),
        email_index(core, client.id(), email)?,
    )
    .fetch_optional(&core.db)
    .await?;
    Ok(user.map(UserId::from))
}
