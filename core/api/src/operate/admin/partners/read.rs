//! `GET /admin/v1/partners` and `GET /admin/v1/partners/{slug}`

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::SLUG;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Part, limit};
use crate::operate::going_live;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use crate::tenancy::tenants::api_keys::{self, LiveApiKey};
use crate::tenancy::tenants::branding::{BrandRow, Branding};
use rampart_types::{ClientId, JsonDecimal};

/// Most partners of one answer.
const PARTNERS_MAX: i64 = 1_000;

/// A partner, for the OpenAPI document.
pub(super) const EXAMPLE: &str = r##"{
    "id": "0199a000-0000-7000-8000-000000000001", "slug": "acme", "name": "Acme Wallets",
    "mode": "test", "status": "active", "username": "acme", "defaultFeePercentage": 1.5,
    "feeCapPercentage": 3, "walletAddressRequired": false, "allowedCountries": ["NL", "DE"],
    "allowedAddresses": [], "certificateSubject": null,
    "rateLimits": {"quotes": "5/s burst 7"},
    "complianceGate": null, "complianceGates": {"card": "before-payment"},
    "guestOrders": {"allowed": true, "maxFiat": null},
    "policySignatureRequired": false, "policyApprovalRequired": false,
    "policyUploadAllowed": false,
    "contactEmail": "hooks@acme.example",
    "branding": {"accentColor": "#0b57d0",
        "logoPath": "/brand/acme/3f1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e.png",
        "supportUrl": "mailto:help@acme.example", "privacyUrl": "https://acme.example/privacy",
        "termsUrl": null},
    "createdAt": "2026-03-01T12:00:00Z", "apiKeys": [{
        "id": "0199a000-0000-7000-8000-000000000002", "name": "office", "scopes": [],
        "allowedAddresses": ["192.0.2.0/24"], "certificateSubject": null,
        "expiresAt": null, "lastUsedAt": null
    }],
    "missing": ["route", "live price"]
}"##;

/// `GET /admin/v1/partners`
pub struct ListPartners;

impl Endpoint for ListPartners {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/partners";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List partners",
        details: "In the order of their slugs. The house, whose book has what is nobody's, is not \
                  one.",
        query: &[
            optional("after", Kind::Text, "The last slug of the page before."),
            limit(PARTNERS_MAX),
        ],
        answer: r#"[{"slug": "acme", "name": "Acme Wallets", "mode": "test", "status": "active",
            "createdAt": "2026-03-01T12:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Part;
    type Response = Page<Listed>;

    fn read(input: &Input, _: &Operator) -> Result<Part> {
        Part::read(input, PARTNERS_MAX)
    }

    async fn call(core: &Core, _: Operator, part: Part) -> Result<Page<Listed>> {
        let partners = sqlx::query_as!(
            Listed,
            "select slug, name, mode, status, created_at from client where slug > $1 \
             and slug <> 'house' order by slug limit $2",
            part.after.unwrap_or_default(),
            part.paging.rows_max(),
        )
        .fetch_all(&core.db)
        .await?;
        Ok(part.paging.page(partners, |partner| partner.slug.clone()))
    }
}

/// A partner in the list.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ListedPartner")]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The partner's slug, which paths name.
    slug: String,
    /// Its name; shoppers see it.
    name: String,
    /// `test` or `live`.
    mode: String,
    /// `active` or `suspended`.
    status: String,
    /// When it was made.
    created_at: DateTime<Utc>,
}

/// `GET /admin/v1/partners/{slug}`
pub struct ReadPartner;

impl Endpoint for ReadPartner {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/partners/{slug}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Read a partner",
        details: "Its settings, its live API keys without their secrets, and in `missing` what it \
                  needs before it can go live.",
        path: &[SLUG],
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = String;
    type Response = Json<Shown>;

    fn read(input: &Input, _: &Operator) -> Result<String> {
        Ok(input.param("slug").to_owned())
    }

    async fn call(core: &Core, _: Operator, slug: String) -> Result<Json<Shown>> {
        Shown::find(core, &slug).await.map(Json)
    }
}

/// A partner, and what it lacks.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PartnerWithNeeds")]
pub struct Shown {
    #[serde(flatten)]
    partner: Partner,
    /// Needs of a live partner that are not met, in the words of the refusal to go live: `route`,
    /// `live price`, `configured master key`, `mail`, `documents`.
    missing: Vec<&'static str>,
}

impl Shown {
    /// The partner with this slug.
    ///
    /// # Errors
    /// 404 when there is none.
    pub(super) async fn find(core: &Core, slug: &str) -> Result<Self> {
        let mut conn = core.db.acquire().await?;
        let partner = Partner::find(&mut conn, slug).await?;
        Ok(Self { partner, missing: going_live::missing_for_live(core, Some(slug)) })
    }
}

/// A partner's settings and live API keys.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Partner {
    /// The partner's id.
    id: ClientId,
    /// The partner's slug, which paths name.
    slug: String,
    /// Its name; shoppers see it.
    name: String,
    /// `test` or `live`.
    mode: String,
    /// `active` or `suspended`.
    status: String,
    /// User name for `POST /api/v1/authenticate`.
    username: String,
    /// Its fee where an offer names none.
    default_fee_percentage: JsonDecimal,
    /// The highest fee that its offers and its policy may ask.
    fee_cap_percentage: JsonDecimal,
    /// `true` if an offer must name the wallet address.
    wallet_address_required: bool,
    /// ISO 3166-1 alpha-2 codes.
    allowed_countries: Vec<String>,
    /// Networks from which its credentials are accepted, in CIDR notation; any if empty.
    allowed_addresses: Vec<String>,
    /// Subject of the TLS client certificate that comes with every credential, if one is needed.
    certificate_subject: Option<String>,
    /// Rates by bucket, such as `5/s burst 7`; the edge's default where none is set.
    #[schemars(with = "Map<String, Value>")]
    rate_limits: Value,
    /// When the checks of its users must be done; null is the default of its mode.
    compliance_gate: Option<String>,
    /// The same by the kind of payment method, in its place.
    #[schemars(with = "Map<String, Value>")]
    compliance_gates: Value,
    /// Orders without a user.
    guest_orders: GuestOrders,
    /// `true` if its policies change by signed manifests alone.
    policy_signature_required: bool,
    /// Address for mail to its people about what needs them.
    contact_email: Option<String>,
    /// `true` if a change of its active policies or verification keys needs a second operator.
    policy_approval_required: bool,
    /// `true` if its staff may upload versions of its policies in the portal.
    policy_upload_allowed: bool,
    /// Its appearance on pages for shoppers.
    branding: Branding,
    /// When it was made.
    created_at: DateTime<Utc>,
    /// Its live API keys.
    api_keys: Vec<LiveApiKey>,
}

/// Orders without a user.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PartnerGuestOrders")]
#[serde(rename_all = "camelCase")]
struct GuestOrders {
    /// `true` if they are allowed.
    allowed: bool,
    /// Largest one, in the currency of limits; null if only the other limits count.
    max_fiat: Option<JsonDecimal>,
}

/// A statement that reads partners: the columns are written here, what follows `from client` and its
/// argument are the caller's.
macro_rules! select_partners {
    ($rest:literal, $argument:expr) => {
        sqlx::query_as!(
            PartnerRow,
            "select client_id, slug, name, mode, status, username, default_fee_percentage, \
             fee_cap_percentage, wallet_address_required, allowed_countries, rate_limits, \
             policy_signature_required, policy_approval_required, policy_upload_allowed, \
             allowed_addresses, \
             certificate_subject, contact_email, compliance_gate, compliance_gates, \
             guest_orders_allowed, \
             guest_orders_max, created_at, accent_color, support_url, privacy_url, terms_url, \
             logo_digest, logo_is_svg \
             from client "
                + $rest,
            $argument,
        )
    };
}

impl Partner {
    /// The partner with this slug; the house is none.
    ///
    /// # Errors
    /// 404 when there is none.
    pub(in crate::operate::admin) async fn find(conn: &mut Connection, slug: &str) -> Result<Self> {
        let row = select_partners!("where slug = $1 and slug <> 'house'", slug);
        let row = row.fetch_optional(&mut *conn).await?;
        let row = row.ok_or_else(|| Denial::not_found("partner"))?;
        let api_keys = api_keys::live(conn, row.client_id.into()).await?;
        Ok(Self::of(row, api_keys))
    }

    /// The partners in the order of their slugs, without their API keys, and the house not among
    /// them.
    pub(in crate::operate::admin) async fn all(
        conn: &mut Connection,
        max: i64,
    ) -> Result<Vec<Self>> {
        let rows = select_partners!("where slug <> 'house' order by slug limit $1", max);
        let rows = rows.fetch_all(conn).await?;
        Ok(rows.into_iter().map(|row| Self::of(row, Vec::new())).collect())
    }

    fn of(row: PartnerRow, api_keys: Vec<LiveApiKey>) -> Self {
        let brand = BrandRow {
            accent_color: row.accent_color,
            support_url: row.support_url,
            privacy_url: row.privacy_url,
            terms_url: row.terms_url,
            logo_digest: row.logo_digest,
            logo_is_svg: row.logo_is_svg,
        };
        let guest_orders = GuestOrders {
            allowed: row.guest_orders_allowed.unwrap_or(row.mode == "test"),
            max_fiat: row.guest_orders_max.map(JsonDecimal),
        };
        Self {
            id: row.client_id.into(),
            compliance_gate: row.compliance_gate,
            compliance_gates: row.compliance_gates,
            guest_orders,
            branding: brand.brand(&row.slug).into(),
            slug: row.slug,
            name: row.name,
            mode: row.mode,
            status: row.status,
            username: row.username,
            default_fee_percentage: JsonDecimal(row.default_fee_percentage),
            fee_cap_percentage: JsonDecimal(row.fee_cap_percentage),
            wallet_address_required: row.wallet_address_required,
            allowed_countries: row.allowed_countries,
            allowed_addresses: row.allowed_addresses,
            certificate_subject: row.certificate_subject,
            rate_limits: row.rate_limits,
            policy_signature_required: row.policy_signature_required,
            contact_email: row.contact_email,
            policy_approval_required: row.policy_approval_required,
            policy_upload_allowed: row.policy_upload_allowed,
            created_at: row.created_at,
            api_keys,
        }
    }
}

/// A partner as stored.
struct PartnerRow {
    client_id: Uuid,
    slug: String,
    name: String,
    mode: String,
    status: String,
    username: String,
    default_fee_percentage: Decimal,
    fee_cap_percentage: Decimal,
    wallet_address_required: bool,
    allowed_countries: Vec<String>,
    rate_limits: Value,
    policy_signature_required: bool,
    policy_approval_required: bool,
    policy_upload_allowed: bool,
    allowed_addresses: Vec<String>,
    certificate_subject: Option<String>,
    contact_email: Option<String>,
    compliance_gate: Option<String>,
    compliance_gates: Value,
    guest_orders_allowed: Option<bool>,
    guest_orders_max: Option<Decimal>,
    created_at: DateTime<Utc>,
    accent_color: Option<String>,
    support_url: Option<String>,
    privacy_url: Option<String>,
    terms_url: Option<String>,
    logo_digest: Option<Vec<u8>>,
    logo_is_svg: bool,
}
