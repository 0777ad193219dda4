//! `PATCH /admin/v1/partners/{slug}`

mod members;

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use ipnet::IpNet;
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::members::{GuestOrders, Status};
use super::read::{EXAMPLE, Shown};
use super::{SLUG, check_countries, check_networks, check_subject, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict::{self, present};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::operate::admin::approvals;
use crate::operate::admin::line;
use crate::operate::admin::operator::Operator;
use crate::operate::going_live;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Error, Result};
use crate::platform::rate_limit::Quota;
use crate::platform::revision;
use crate::platform::settings::Gate;
use crate::policies::statement::SignedChange;
use crate::policies::{operator_keys, signed_change};
use crate::tenancy::tenants::branding::{self, BrandingChange, BrandingMembers};
use crate::tenancy::tenants::{Mode, RATE_BUCKETS};
use crate::trading::catalogue::PaymentMethodKind;
use rampart_types::{EmailAddress, JsonDecimal};

/// Highest cap of a partner's fee, in percent.
const FEE_CAP_PERCENTAGE_MAX: Decimal = Decimal::from_parts(20, 0, 0, false, 0);

/// `PATCH /admin/v1/partners/{slug}`
pub struct UpdatePartner;

impl Endpoint for UpdatePartner {
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/admin/v1/partners/{slug}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Update a partner's settings",
        details: "Members that are left out stay as they are, also those of an object. Every edge \
                  follows within a second. To go live takes two persons, and is refused with 409 \
                  and `missing`, a list of words, while something is missing that the first order \
                  needs.",
        path: &[SLUG],
        body: Shape::of::<Change>(),
        request: r#"{"defaultFeePercentage": 1.5, "rateLimits": {"quotes": "5/s burst 7"}}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Update;
    type Response = Json<Shown>;

    fn read(input: &Input, _: &Operator) -> Result<Update> {
        let change: Change = strict::body(input)?;
        change.check()?;
        let mut detail = input.document.clone();
        // The audit names nobody, as a `mailto:` URL may, and has no picture.
        for member in ["/contactEmail", "/branding/supportUrl", "/branding/logo"] {
            if let Some(value) = detail.pointer_mut(member).filter(|value| value.is_string()) {
                *value = "set".into();
            }
        }
        let branding = change.branding()?;
        Ok(Update { slug: input.param("slug").to_owned(), change, branding, detail })
    }

    async fn hold(
        core: &Core,
        input: &Input,
        operator: &Operator,
        update: &Update,
    ) -> Result<Option<Reply>> {
        let is_live = match update.change.mode {
            Some(_) => going_live::is_live(core, &update.slug).await?,
            None => false,
        };
        match update.change.mode {
            Some(Mode::Test) if is_live => {
                return Err(going_live::stays_live().into());
            }
            Some(Mode::Live) if !is_live => {
                if let Some(refusal) = going_live::refuse_live(core, &update.slug)? {
                    return Ok(Some(refusal));
                }
                return approvals::hold::<Self>(core, input, operator).await;
            }
            _ => {}
        }
        let loosens = update.change.policy_approval_required == Some(false)
            || update.change.compliance_gate.is_some()
            || update.change.compliance_gates.is_some()
            || update.change.guest_orders.is_some();
        if !loosens {
            return Ok(None);
        }
        find(core, &update.slug).await?;
        approvals::hold::<Self>(core, input, operator).await
    }

    async fn call(core: &Core, operator: Operator, update: Update) -> Result<Json<Shown>> {
        let Update { slug, change, branding, detail } = update;
        find(core, &slug).await?;
        let mut tx = core.db.begin().await?;
        if change.mode == Some(Mode::Test) {
            going_live::refuse_return(&mut tx, &slug).await?;
        }
        check_requirement(core, &mut tx, &slug, &change).await?;
        change.write(&mut tx, &slug, &branding).await?;
        operator.record(&mut tx, core, "partner.change", &slug, detail).await?;
        tx.commit().await?;
        core.serve_committed().await;
        Shown::find(core, &slug).await.map(Json)
    }
}

/// Checks a change of a partner's requirement of signatures: it begins while there is a key to sign
/// with, and an operator has signed its end.
///
/// # Errors
/// 404 without the partner, 409 without a key, 409 and 422 for the statement.
async fn check_requirement(
    core: &Core,
    conn: &mut Connection,
    slug: &str,
    change: &Change,
) -> Result<()> {
    let Some(is_required) = change.policy_signature_required else { return Ok(()) };
    if is_required {
        return Ok(operator_keys::hold(core, conn).await?);
    }
    let client =
        sqlx::query_scalar!("select client_id from client where slug = $1 for no key update", slug)
            .fetch_optional(&mut *conn)
            .await?
            .ok_or_else(|| Denial::not_found("partner"))?;
    let signed = change.signed.as_ref();
    Ok(signed_change::check_requirement(core, conn, client.into(), slug, signed).await?)
}

/// A change of one partner's settings.
#[derive(Debug)]
pub struct Update {
    slug: String,
    change: Change,
    branding: BrandingChange,
    /// The body, for the audit.
    detail: Value,
}

/// The settings of a partner; one that is left out stays as it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "PartnerUpdate")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::operate::admin) struct Change {
    /// 1 to 255 characters; shoppers see it.
    name: Option<String>,
    /// Its appearance on pages for shoppers.
    branding: Option<BrandingMembers>,
    /// `suspended` has every credential of it refused.
    status: Option<Status>,
    /// `live` for good, once nothing is missing that its first order needs. Checks that its users
    /// have passed so far count no more.
    pub(in crate::operate::admin) mode: Option<Mode>,
    /// When the checks of its users must be done; `none` is for test clients, `null` takes it away.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<Gate>")]
    compliance_gate: Option<Option<Gate>>,
    /// The same by the kind of payment method, in its place; `null` takes one away.
    compliance_gates: Option<BTreeMap<PaymentMethodKind, Option<Gate>>>,
    /// Orders without a user.
    guest_orders: Option<GuestOrders>,
    /// 0 to 20.
    default_fee_percentage: Option<JsonDecimal>,
    /// 0 to 20.
    fee_cap_percentage: Option<JsonDecimal>,
    /// `true` if an offer must name the wallet address.
    wallet_address_required: Option<bool>,
    /// ISO 3166-1 alpha-2 codes, at most 300.
    allowed_countries: Option<Vec<String>>,
    /// Networks of its credentials, tokens too, in CIDR notation, at most 64; any if empty.
    #[schemars(with = "Option<Vec<String>>")]
    allowed_addresses: Option<Vec<IpNet>>,
    /// Subject of the TLS client certificate that comes with every credential, such as
    /// `C=NL, O=Acme Wallets, CN=acme`; none is needed if empty or `null`.
    #[serde(default, deserialize_with = "present")]
    certificate_subject: Option<Option<String>>,
    /// Rates (`5/s burst 7`) of `client`, `quotes`, `credentials`, `login`, `clientLogin`, `uploads`;
    /// `null` takes one away.
    #[schemars(with = "Option<BTreeMap<String, Option<String>>>")]
    rate_limits: Option<BTreeMap<String, Option<Quota>>>,
    /// `true` if its policies change by signed manifests and statements alone.
    policy_signature_required: Option<bool>,
    /// A signed statement, to end the requirement of signatures.
    signed: Option<SignedChange>,
    /// `true` if a change of its active policies or verification keys needs a second operator.
    policy_approval_required: Option<bool>,
    /// `true` if its staff may upload versions of its policies in the portal. Operators activate them.
    policy_upload_allowed: Option<bool>,
    /// E-mail address of the partner's people, for what needs them; `null` takes it away.
    #[serde(default, deserialize_with = "present")]
    contact_email: Option<Option<String>>,
}

impl Change {
    /// Checks what one look at the members shows.
    ///
    /// # Errors
    /// 422 with the first member that is not valid.
    pub(in crate::operate::admin) fn check(&self) -> Result<()> {
        if let Some(name) = &self.name {
            line::check("name", name)?;
        }
        let cap = self.fee_cap_percentage.as_ref().map(|cap| cap.0);
        if cap.is_some_and(|cap| cap < Decimal::ZERO || cap > FEE_CAP_PERCENTAGE_MAX) {
            return Err(Denial::unprocessable("feeCapPercentage: 0 to 20").into());
        }
        let fee = self.default_fee_percentage.as_ref().map(|fee| fee.0);
        if fee.is_some_and(|fee| fee < Decimal::ZERO || fee > FEE_CAP_PERCENTAGE_MAX) {
            return Err(Denial::unprocessable("defaultFeePercentage: 0 to 20").into());
        }
        self.guest_orders.as_ref().map_or(Ok(()), GuestOrders::check)?;
        if let Some(networks) = &self.allowed_addresses {
            check_networks(networks)?;
        }
        let contact = self.contact_email.iter().flatten().next();
        if contact.is_some_and(|address| address.parse::<EmailAddress>().is_err()) {
            return Err(Denial::unprocessable("contactEmail: not an e-mail address").into());
        }
        check_subject(self.subject())?;
        check_countries(self.allowed_countries.as_deref().unwrap_or_default())?;
        let mut buckets = self.rate_limits.iter().flatten();
        match buckets.find(|(name, _)| !RATE_BUCKETS.contains(&name.as_str())) {
            Some((name, _)) => {
                Err(Denial::unprocessable(format!("rateLimits: no bucket {name}")).into())
            }
            None => Ok(()),
        }
    }

    /// The change of its branding.
    ///
    /// # Errors
    /// 422 with the first member that is not valid.
    pub(in crate::operate::admin) fn branding(&self) -> Result<BrandingChange> {
        let branding = self.branding.as_ref().map(BrandingMembers::check).transpose();
        let branding = branding.map_err(|(member, reason)| {
            Denial::unprocessable(format!("branding.{member}: {reason}"))
        })?;
        Ok(branding.unwrap_or_default())
    }

    /// True if it ends the requirement of signatures.
    pub(in crate::operate::admin) fn waives_signatures(&self) -> bool {
        self.policy_signature_required == Some(false)
    }

    /// Writes the members that are there.
    ///
    /// # Errors
    /// 404 without the partner, 409 for a gate that its mode forbids.
    pub(in crate::operate::admin) async fn write(
        &self,
        conn: &mut Connection,
        slug: &str,
        branding: &BrandingChange,
    ) -> Result<()> {
        if self.mode == Some(Mode::Live) {
            going_live::end_simulation(conn, slug).await?;
        }
        let (networks, guests) = (self.networks(), self.guest_orders.as_ref());
        let revision = revision::next_revision_of(&mut *conn, slug).await?;
        let changed = sqlx::query_scalar!(
            r#"
            update client set
                status = coalesce($2, status),
                default_fee_percentage = coalesce($3, default_fee_percentage),
                fee_cap_percentage = coalesce($4, fee_cap_percentage),
                wallet_address_required = coalesce($5, wallet_address_required),
                allowed_countries = coalesce($6, allowed_countries),
                rate_limits = jsonb_strip_nulls(rate_limits || coalesce($7::jsonb, '{}')),
                revision = $8,
                policy_signature_required = coalesce($9, policy_signature_required),
                allowed_addresses = coalesce($10, allowed_addresses),
                contact_email = case when $11 then $12 else contact_email end,
                policy_approval_required = coalesce($13, policy_approval_required),
                certificate_subject = nullif(coalesce($14, certificate_subject), ''),
                mode = coalesce($15, mode),
                compliance_gate = case when $22 then $16 else compliance_gate end,
                guest_orders_allowed = coalesce($17, guest_orders_allowed),
                guest_orders_max = case when $23 then $18 else guest_orders_max end,
                name = coalesce($19, name),
                policy_upload_allowed = coalesce($20, policy_upload_allowed),
                compliance_gates = jsonb_strip_nulls(compliance_gates || coalesce($21::jsonb, '{}'))
            where slug = $1 and slug <> 'house'
            returning client_id
            "#,
            slug,
            self.status.map(Status::as_str),
            self.default_fee_percentage.map(|fee| fee.0),
            self.fee_cap_percentage.map(|cap| cap.0),
            self.wallet_address_required,
            self.allowed_countries.as_deref(),
            self.rates(),
            revision,
            self.policy_signature_required,
            networks.as_deref(),
            self.contact_email.is_some(),
            self.contact_email.as_ref().and_then(Option::as_deref),
            self.policy_approval_required,
            self.subject(),
            self.mode.map(Mode::as_str),
            self.compliance_gate.flatten().map(Gate::as_str),
            guests.and_then(|guests| guests.allowed),
            guests.and_then(GuestOrders::largest),
            self.name,
            self.policy_upload_allowed,
            self.gates(),
            self.compliance_gate.is_some(),
            guests.is_some_and(GuestOrders::has_largest),
        )
        .fetch_optional(&mut *conn)
        .await
        .map_err(|error| match error.as_database_error().and_then(|e| e.constraint()) {
            Some("client_compliance_mode_check") => {
                Denial::conflict("complianceGate: none is for test clients").into()
            }
            Some("client_compliance_gates_mode_check") => {
                Denial::conflict("complianceGates: none is for test clients").into()
            }
            _ => Error::from(error),
        })?;
        let client = changed.ok_or_else(|| Denial::not_found("partner"))?;
        branding::update(conn, client.into(), branding).await?;
        Ok(())
    }

    /// The subject to be written, empty for none; `None` leaves it as it is.
    fn subject(&self) -> Option<&str> {
        self.certificate_subject.as_ref().map(|subject| subject.as_deref().unwrap_or_default())
    }

    /// The gates by kind of method as stored, `null` for one that is taken away.
    fn gates(&self) -> Option<Value> {
        let gates = self.compliance_gates.as_ref()?.iter();
        let gates = gates.map(|(method, gate)| (method.as_str().to_owned(), json!(gate)));
        Some(Value::Object(gates.collect()))
    }

    /// The networks as stored.
    fn networks(&self) -> Option<Vec<String>> {
        let networks = self.allowed_addresses.as_ref()?;
        Some(networks.iter().map(ToString::to_string).collect())
    }

    /// The rates as stored, `null` for one that is taken away.
    fn rates(&self) -> Option<Value> {
        self.rate_limits.as_ref().map(|rates| json!(rates))
    }
}
