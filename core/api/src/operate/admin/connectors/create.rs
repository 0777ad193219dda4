//! `POST /admin/v1/connectors`

use http::{Method, StatusCode};
use rampart_types::Caip19;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{CONNECTORS_MAX, NAME_CHARS_MAX};
use crate::Core;
use crate::auth::roles::{PROGRAMS, Role};
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Created, Endpoint};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::connectors::caller::issue_token;
use crate::money::connectors::commands::CommandKind;
use crate::money::payments::store::MANUAL;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Error, Result};
use crate::trading::catalogue::Catalogue;

/// `POST /admin/v1/connectors`
pub struct CreateConnector;

impl Endpoint for CreateConnector {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/connectors";
    const STATUSES: &'static [StatusCode] = &[StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Create a connector",
        details: "With its token, which is shown in this answer only. Routes lead money and coins \
                  to it.",
        body: Shape::of::<NewConnector>(),
        request: r#"{"name": "cards", "capabilities": ["payment.create", "payment.refund"],
            "methods": ["creditCard"]}"#,
        answer: r#"{"name": "cards", "capabilities": ["payment.create", "payment.refund"],
            "methods": ["creditCard"], "assets": [],
            "token": "rcn_q0pD1iYH1tqvTn2ZbQ2xXw8Tn0lJ8m2v7c3f5e6d7c8"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = NewConnector;
    type Response = Created<MadeConnector>;

    fn read(input: &Input, _: &Operator) -> Result<NewConnector> {
        let mut new: NewConnector = strict::body(input)?;
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let begins = new.name.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins || new.name.len() > NAME_CHARS_MAX || !new.name.chars().all(allowed) {
            let reason = "name: 1 to 63 of a-z, 0-9 and -, the first of them a letter";
            return Err(Denial::unprocessable(reason).into());
        }
        if new.name == MANUAL || PROGRAMS.contains(&&*new.name) {
            return Err(Denial::unprocessable("name: reserved").into());
        }
        if new.capabilities.is_empty() {
            return Err(Denial::unprocessable("capabilities: at least one").into());
        }
        new.capabilities.sort_by_key(|kind| kind.as_str());
        new.capabilities.dedup();
        Ok(new)
    }

    async fn needs_approval(core: &Core, _: &Operator, new: &NewConnector) -> Result<bool> {
        new.resolve(&core.snapshots.current().catalogue)?;
        let is_taken = sqlx::query_scalar!(
            r#"select exists (select from connector where name = $1) as "is_taken!""#,
            new.name,
        );
        match is_taken.fetch_one(&core.db).await? {
            true => Err(Denial::conflict("name is taken").into()),
            false => Ok(true),
        }
    }

    async fn call(
        core: &Core,
        operator: Operator,
        new: NewConnector,
    ) -> Result<Created<MadeConnector>> {
        let assets = new.resolve(&core.snapshots.current().catalogue)?;
        let NewConnector { name, capabilities, methods, .. } = new;
        let capabilities: Vec<_> =
            capabilities.iter().map(|kind| kind.as_str().to_owned()).collect();
        let mut tx = core.db.begin().await?;
        let inserted = sqlx::query!(
            "insert into connector (name, capabilities, methods, assets, created_by, created_at) \
             select $1, $2, $3, $4, $5, now() where (select count(*) from connector) < $6",
            name,
            &capabilities,
            &methods,
            &assets,
            operator.actor(),
            CONNECTORS_MAX,
        )
        .execute(&mut *tx)
        .await
        .map_err(|error| match error.as_database_error().and_then(|e| e.constraint()) {
            Some("connector_pkey") => Denial::conflict("name is taken").into(),
            _ => Error::from(error),
        })?;
        if inserted.rows_affected() == 0 {
            let reason = format!("there are {CONNECTORS_MAX} connectors already");
            return Err(Denial::conflict(reason).into());
        }
        let token = issue_token(&mut tx, &core.clock, &name, operator.actor(), 0).await?;
        let detail = json!({"capabilities": capabilities, "methods": methods, "assets": assets});
        operator.record(&mut tx, core, "connector.create", &name, detail).await?;
        tx.commit().await?;
        let token = token.expose().to_owned();
        Ok(Created(MadeConnector { name, capabilities, methods, assets, token }))
    }
}

/// Checks that there is such a payment method.
///
/// # Errors
/// 422 when there is none.
pub(in crate::operate::admin) fn check_method(catalogue: &Catalogue, method: &str) -> Result<()> {
    let known = catalogue.payment_method(method).map(|_| ());
    known.ok_or_else(|| Denial::unprocessable("no such payment method").into())
}

/// The code of a crypto currency that is named by its code or its CAIP-19 id.
///
/// # Errors
/// 422 when there is none.
pub(in crate::operate::admin) fn asset_code(catalogue: &Catalogue, asset: &str) -> Result<String> {
    let by_code = asset.parse().ok().and_then(|code| catalogue.currencies.get(&code));
    let by_id = || asset.parse::<Caip19>().ok().and_then(|id| catalogue.by_caip19(&id));
    let currency = by_code.or_else(by_id).filter(|currency| currency.crypto.is_some());
    let currency = currency.ok_or_else(|| Denial::unprocessable("no such asset"))?;
    Ok(currency.code().to_string())
}

/// A connector to be created.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewConnector {
    /// 1 to 63 of `a-z`, `0-9` and `-`, a letter first; unique and for good.
    name: String,
    /// Kinds of the commands that it takes, at least one.
    capabilities: Vec<CommandKind>,
    /// Payment methods that it serves.
    #[serde(default)]
    methods: Vec<String>,
    /// Assets that it serves, by code or CAIP-19 id.
    #[serde(default)]
    assets: Vec<String>,
}

impl NewConnector {
    /// The codes of its assets.
    ///
    /// # Errors
    /// 422 for a method or an asset that the catalogue lacks.
    fn resolve(&self, catalogue: &Catalogue) -> Result<Vec<String>> {
        for method in &self.methods {
            check_method(catalogue, method)?;
        }
        self.assets.iter().map(|asset| asset_code(catalogue, asset)).collect()
    }
}

/// A new connector.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "CreatedConnector")]
#[serde(rename_all = "camelCase")]
pub struct MadeConnector {
    /// The connector's name.
    name: String,
    /// Kinds of the commands that it takes.
    capabilities: Vec<String>,
    /// Payment methods that it serves.
    methods: Vec<String>,
    /// Assets that it serves.
    assets: Vec<String>,
    /// For `Authorization: Bearer` on the connectors' listener.
    token: String,
}
