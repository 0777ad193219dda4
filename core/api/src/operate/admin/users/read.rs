//! `GET /admin/v1/users/{uuid}`

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{UUID, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use crate::users::account::Account;
use crate::users::personal_data::PersonalData;
use crate::users::profile::Profile;
use rampart_types::{UserId, UserKey};

/// `GET /admin/v1/users/{uuid}`
pub struct ReadUser;

impl Endpoint for ReadUser {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/users/{uuid}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Support, Role::Compliance];
    const READ_AUDIT: Option<&'static str> = Some("user.read");
    const DOC: Doc = Doc {
        summary: "Read a user",
        details: "With personal data, and the profile as the partner sees it.",
        path: &[UUID],
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = String;
    type Response = Json<User>;

    fn read(input: &Input, _: &Operator) -> Result<String> {
        Ok(input.param("uuid").to_owned())
    }

    async fn call(core: &Core, _: Operator, uuid: String) -> Result<Json<User>> {
        let mut conn = core.db.acquire().await?;
        let key = find(&mut conn, &uuid).await?;
        Ok(Json(User::load(&mut conn, core, key).await?))
    }
}

/// A user, for the OpenAPI document.
pub(super) const EXAMPLE: &str = r#"{
    "uuid": "0199a000-0000-7000-8000-000000000005", "partner": "acme", "disabled": false,
    "deleted": false, "newsletterSubscription": false, "limitOverrides": {"user_day_limit": 250.5},
    "personal": {
        "email": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace",
        "phoneNumber": "+31612345678", "dateOfBirth": "1990-12-10", "nationality": "NL",
        "address": "Keizersgracht", "addressNo": "1", "postalCode": "1015 AA",
        "city": "Amsterdam", "businessName": null, "businessCountry": null,
        "chamberOfCommerce": null, "shareToken": null, "taxCountry": "NL",
        "taxNumber": "111222333", "amld5Answers": {}},
    "documents": [{"type": "passport", "side": "front", "status": "pending",
        "id": "0199a000-0000-7000-8000-000000000006", "mediaType": "image/jpeg", "size": 48123,
        "createdAt": "2026-03-01T12:00:00Z"}],
    "profile": {
        "emailAddress": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace",
        "region": "nl-nl", "country": "NL", "phoneNumber": "+31612345678",
        "registrationDate": "2026-03-01T12:00:00Z", "activationDate": null, "isBusiness": false,
        "limits": {
            "buy": {"limit": {"amount": 1000, "currencyCode": "EUR"},
                "remaining": {"amount": 900, "currencyCode": "EUR"}, "interval": "P1D"},
            "sell": {"limit": {"amount": 1000, "currencyCode": "EUR"},
                "remaining": {"amount": 1000, "currencyCode": "EUR"}, "interval": "P1D"}},
        "enabledIbanAccounts": [], "enabledAccounts": [], "enabledWalletAddresses": [],
        "status": {"status": "pending", "description": "The user has not shown everything yet.",
            "details": {
                "amld5VerificationStatus": "pending", "emailAddressVerificationStatus": "pending",
                "identityVerificationStatus": "pending",
                "privacyAgreementVerificationStatus": "verified",
                "documents": [{"type": "passport", "side": "front", "status": "pending"}],
                "residentialAddressStatus": "present", "dac8Status": "unknown"}},
        "verificationLevel": {"uuid": "0199a000-0000-7000-8000-000000000001",
            "identifier": "bronze",
            "limits": {"buy": {"amount": 1000, "currencyCode": "EUR"},
                "sell": {"amount": 1000, "currencyCode": "EUR"}}}}
}"#;

/// A user, with personal data.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// The user's id.
    uuid: UserId,
    /// The partner's slug.
    partner: String,
    /// `true` if the user can do nothing.
    disabled: bool,
    /// `true` if the personal data are erased.
    deleted: bool,
    /// `true` if the user wants the newsletter.
    newsletter_subscription: bool,
    /// Limits set for this user alone.
    #[schemars(with = "Map<String, Value>")]
    limit_overrides: Value,
    /// Personal data as stored.
    personal: PersonalData,
    /// Sides of identity documents that were sent, announced or decided on.
    documents: Vec<DocumentSide>,
    /// As the partner sees it.
    profile: Profile,
}

/// A side of an identity document that was sent, announced or decided on.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct DocumentSide {
    /// The document, such as `passport`.
    #[serde(rename = "type")]
    kind: String,
    /// `front` or `back`.
    side: String,
    /// `missing`, `pending`, `verified`, `failed` or `blocked`.
    status: String,
    /// Id of the image, once there is one.
    id: Option<Uuid>,
    /// Media type of the image; null without one.
    media_type: Option<String>,
    /// Size of the image, in bytes.
    size: Option<i64>,
    /// When it was sent, announced or first decided on.
    created_at: DateTime<Utc>,
}

impl User {
    /// The user of this client.
    ///
    /// # Errors
    /// 404 when there is none.
    pub(super) async fn load(conn: &mut Connection, core: &Core, key: UserKey) -> Result<Self> {
        let account = Account::load(conn, core, key).await?;
        let account = account.ok_or_else(|| Denial::not_found("user"))?;
        let partner =
            sqlx::query_scalar!("select slug from client where client_id = $1", key.client.uuid())
                .fetch_one(&mut *conn)
                .await?;
        Ok(Self {
            uuid: key.user,
            partner,
            disabled: account.disabled_at.is_some(),
            deleted: account.deleted_at.is_some(),
            newsletter_subscription: account.newsletter,
            limit_overrides: account.limit_overrides.clone(),
            personal: account.personal.clone(),
            documents: sides(conn, key).await?,
            profile: Profile::load(conn, core, account).await?,
        })
    }
}

async fn sides(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
) -> Result<Vec<DocumentSide>> {
    let rows = sqlx::query!(
        "select type as kind, side, status, document_id, media_type, size, created_at \
         from user_document where client_id = $1 and user_id = $2 order by type, side",
        client.uuid(),
        user.uuid(),
    )
    .fetch_all(conn)
    .await?;
    let sides = rows.into_iter().map(|row| DocumentSide {
        kind: row.kind,
        side: row.side,
        status: row.status,
        id: row.media_type.is_some().then_some(row.document_id),
        media_type: row.media_type,
        size: row.size,
        created_at: row.created_at,
    });
    Ok(sides.collect())
}
