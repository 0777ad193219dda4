//! `GET /admin/v1/configuration` and `PUT /admin/v1/configuration`: partners, pairs, payment methods,
//! prices and routes as one document, applied in one transaction.
//!
//! - `document`: its sections, read and checked
//! - `write`: a section's rows, and what a change of them has changed
//! - `drift`: what has become different since

mod difference;
mod document;
pub mod drift;
mod write;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::difference::Difference;
use self::document::Document;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::operate::admin::approvals::{self, Held};
use crate::operate::admin::market::pairs::Pair;
use crate::operate::admin::market::payment_methods::PaymentMethod;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::partners::read::Partner;
use crate::operate::admin::routes::Routes;
use crate::platform::audit::{self, Entry};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};

/// Most partners of one document.
const PARTNERS_MAX: i64 = 10_000;
/// Beginnings of the subjects that treasurers alone change one by one.
const TERMS: [&str; 3] = ["pairs.", "paymentMethods.", "prices."];
/// Members of a partner that are not decided by a document.
const GIVEN: [&str; 5] = ["id", "slug", "username", "createdAt", "apiKeys"];

const EXAMPLE: &str = r#"{
    "partners": {"acme": {"name": "Acme Wallets", "mode": "test", "defaultFeePercentage": 1.5}},
    "pairs": {"BTC-EUR": {"spreadPercentage": 0.5}},
    "paymentMethods": {"creditCard": {"enabled": true}},
    "prices": {"BTC-EUR": {"price": 51234.56, "maxAgeSeconds": 3600}},
    "routes": [{"partner": null, "method": "creditCard", "direction": "in", "connector": "cards"}]
}"#;

/// `GET /admin/v1/configuration`
pub struct ReadConfiguration;

impl Endpoint for ReadConfiguration {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/configuration";
    const STATUSES: &'static [StatusCode] = &[StatusCode::CONFLICT];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Read the configuration",
        details: "Everything that `PUT` decides, as it is now: applied as it stands, it changes \
                  nothing. Prices are those that operators have set. With more than 10000 partners \
                  it is 409: read them one by one.",
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = ();
    type Response = Json<Configuration>;

    fn read(_: &Input, _: &Operator) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Operator, (): ()) -> Result<Json<Configuration>> {
        // One snapshot, so that its sections are of one moment.
        let mut tx = core.db.begin().await?;
        sqlx::query!("set transaction isolation level repeatable read, read only")
            .execute(&mut *tx)
            .await?;
        Ok(Json(Configuration::stored(&mut tx).await?))
    }
}

/// `PUT /admin/v1/configuration`
pub struct ApplyConfiguration;

impl Endpoint for ApplyConfiguration {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/admin/v1/configuration";
    const STATUSES: &'static [StatusCode] = &[StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    // Its changes are found by writing the document in a transaction of their own.
    const DRY_RUN: bool = false;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Apply a configuration",
        details: "In one transaction: all of it, or nothing. Subjects and members that it leaves \
                  out stay as they are; `routes` replaces all routes. A partner that does not exist \
                  is created, and gets its credentials by `api-keys` and `secrets/rotate`. \
                  `policies` names active components by digest. What changes anything needs a \
                  second operator, and what changes pairs, payment methods or prices the role \
                  `treasury` of both, too. An error names the subject.",
        query: &[optional(
            "dryRun",
            Kind::OneOf(&["true", "false"]),
            "`true` shows what it would change, and changes nothing.",
        )],
        body: Shape::of::<Configuration>(),
        request: EXAMPLE,
        answer: r#"{"isApplied": true, "changes": [{"subject": "partners.acme",
            "member": "defaultFeePercentage", "from": 1, "to": 1.5}]}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Application;
    type Response = Json<Applied>;

    fn read(input: &Input, _: &Operator) -> Result<Application> {
        let Options { dry_run } = strict::query(input)?;
        let is_dry_run = match dry_run.as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Denial::unprocessable("dryRun: true or false").into()),
        };
        let document = Document::read(strict::body(input)?)?;
        Ok(Application { document, is_dry_run, agreed: OnceLock::new() })
    }

    async fn hold(
        core: &Core,
        input: &Input,
        operator: &Operator,
        application: &Application,
    ) -> Result<Option<Reply>> {
        if application.is_dry_run {
            return Ok(None);
        }
        let changes = application.trial(core, operator).await?;
        if changes.is_empty() {
            return Ok(None);
        }
        let roles = roles_of(&changes);
        check_roles(operator, roles)?;
        // A call is held once.
        let _ = application.agreed.set(roles);
        let call = Held::of::<Self>(input, roles);
        approvals::hold_as(core, input, call, operator).await
    }

    async fn call(
        core: &Core,
        operator: Operator,
        application: Application,
    ) -> Result<Json<Applied>> {
        if application.is_dry_run {
            let changes = application.trial(core, &operator).await?;
            return Ok(Json(Applied { is_applied: false, changes }));
        }
        let mut tx = core.db.begin().await?;
        // Before the audit is locked, as whoever takes it back does.
        let approval = operator.take_approval(&mut tx).await?;
        let changes = application.document.write(core, &mut tx, operator.actor()).await?;
        if !changes.is_empty() && !application.is_agreed(roles_of(&changes)) {
            let reason = "somebody has changed the configuration meanwhile: apply it again";
            return Err(Denial::conflict(reason).into());
        }
        let is_kept_anew = drift::keep(&mut tx, &application.document, operator.actor()).await?;
        if let Some(used) = approval {
            used.record(&mut tx, core, operator.actor()).await?;
        }
        if is_kept_anew && changes.is_empty() {
            // What drift is counted from has changed, and nothing else tells of it.
            let detail =
                json!({ "subjects": application.document.named.keys().collect::<Vec<_>>() });
            let (action, target) = ("configuration.keep", "configuration");
            let entry = Entry { actor: operator.actor(), action, target, detail };
            audit::record(&mut tx, core, entry).await?;
        }
        tx.commit().await?;
        core.serve_committed().await;
        Ok(Json(Applied { is_applied: true, changes }))
    }
}

/// A configuration to be applied.
#[derive(Debug)]
pub struct Application {
    document: Document,
    is_dry_run: bool,
    /// Roles that both operators have for the changes that were agreed to; empty while nobody was asked.
    agreed: OnceLock<&'static [Role]>,
}

impl Application {
    /// True if changes that need these roles were agreed to.
    fn is_agreed(&self, roles: &[Role]) -> bool {
        self.agreed.get().is_some_and(|agreed| roles.iter().all(|role| agreed.contains(role)))
    }

    /// The changes that it would make.
    async fn trial(&self, core: &Core, operator: &Operator) -> Result<Vec<Difference>> {
        // Without a commit, nothing of it stays.
        let mut tx = core.db.begin().await?;
        self.document.write(core, &mut tx, operator.actor()).await
    }
}

/// The roles that both operators need for these changes besides the document's own: those of whoever
/// makes them one by one.
fn roles_of(changes: &[Difference]) -> &'static [Role] {
    let is_of_terms =
        |change: &Difference| TERMS.iter().any(|section| change.subject.starts_with(section));
    if changes.iter().any(is_of_terms) { &[Role::Treasury] } else { &[] }
}

/// Refuses an operator who lacks one of these roles.
///
/// # Errors
/// 403, which names the role.
fn check_roles(operator: &Operator, roles: &[Role]) -> Result<()> {
    roles.iter().try_for_each(|role| operator.check(&[*role]))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Options {
    dry_run: Option<String>,
}

/// The outcome of an application.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "AppliedConfiguration")]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// `false` for a dry run.
    is_applied: bool,
    /// The differences between the configuration and what was there.
    changes: Vec<Difference>,
}

/// The configuration of the platform, in sections by subject.
#[derive(Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Configuration {
    /// By slug: `name`, `policies` (digest of the active component by kind), and the members of
    /// `PATCH /admin/v1/partners/{slug}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    partners: BTreeMap<String, Map<String, Value>>,
    /// By code: the members of `PATCH /admin/v1/pairs/{pair}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pairs: BTreeMap<String, Map<String, Value>>,
    /// By code: the members of `PATCH /admin/v1/payment-methods/{code}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    payment_methods: BTreeMap<String, Map<String, Value>>,
    /// By pair: the members of `PUT /admin/v1/prices/{pair}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    prices: BTreeMap<String, Map<String, Value>>,
    /// In their order; all others are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<crate::operate::admin::routes::RouteEntry>>")]
    routes: Option<Value>,
}

impl Configuration {
    /// The configuration as it is.
    ///
    /// # Errors
    /// 409 for more than [`PARTNERS_MAX`] partners.
    async fn stored(conn: &mut Connection) -> Result<Self> {
        let partners = Partner::all(conn, PARTNERS_MAX + 1).await?;
        if i64::try_from(partners.len()).is_ok_and(|count| count > PARTNERS_MAX) {
            let reason = format!("more than {PARTNERS_MAX} partners: read them one by one");
            return Err(Denial::conflict(reason).into());
        }
        let mut stored = Self::default();
        for partner in &partners {
            let (slug, mut members) = keyed(json!(partner), "slug");
            members.retain(|name, _| !GIVEN.contains(&name.as_str()));
            if let Some(branding) = members.get_mut("branding").and_then(Value::as_object_mut) {
                // A logo is sent as a picture, and answered as a path.
                branding.remove("logoPath");
            }
            stored.partners.insert(slug, members);
        }
        for (slug, kind, digest) in write::active_policies(conn).await? {
            if let Some(partner) = stored.partners.get_mut(&slug) {
                let policies = partner.entry("policies").or_insert_with(|| json!({}));
                policies[kind] = digest.into();
            }
        }
        for pair in Pair::all(conn).await? {
            let (code, mut members) = keyed(json!(pair), "pair");
            members.remove("quotesValidFrom");
            stored.pairs.insert(code, members);
        }
        for method in PaymentMethod::all(conn).await? {
            let (code, members) = keyed(json!(method), "code");
            stored.payment_methods.insert(code, members);
        }
        stored.prices = write::fixed_prices(conn).await?;
        stored.routes = Some(json!(Routes::stored(conn).await?)["routes"].take());
        Ok(stored)
    }
}

/// The members of an answer, without the one that names it.
fn keyed(answer: Value, key: &str) -> (String, Map<String, Value>) {
    let Value::Object(mut members) = answer else { return Default::default() };
    let name = members.remove(key);
    (name.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(), members)
}
