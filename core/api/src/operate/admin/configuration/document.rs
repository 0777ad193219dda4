//! A configuration that an operator wants: read, and checked as far as one look at it can.

use std::collections::BTreeMap;

use rampart_plugins::contract::PolicyKind;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Configuration;
use super::difference::leaves;
use crate::http::fields::strict;
use crate::operate::admin::market::pairs::ChangePair;
use crate::operate::admin::market::payment_methods::ChangeMethod;
use crate::operate::admin::market::prices::NewPrice;
use crate::operate::admin::partners::check_names;
use crate::operate::admin::partners::update::Change;
use crate::operate::admin::routes::Routes;
use crate::platform::error::{Denial, Error, Result};
use crate::tenancy::tenants::branding::BrandingChange;
use rampart_types::PairCode;

/// A configuration, by its subjects.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) partners: Vec<PartnerEntry>,
    pub(super) pairs: Vec<(PairCode, ChangePair)>,
    pub(super) payment_methods: Vec<(String, ChangeMethod)>,
    pub(super) prices: Vec<(PairCode, NewPrice)>,
    pub(super) routes: Option<Routes>,
    /// The members that it names, by subject.
    pub(super) named: BTreeMap<String, Vec<String>>,
}

/// A partner.
#[derive(Debug)]
pub(super) struct PartnerEntry {
    pub(super) slug: String,
    pub(super) name: Option<String>,
    /// Digests of the components that are to be active; kinds that are left out stay as they are.
    pub(super) policies: Vec<(PolicyKind, String)>,
    pub(super) change: Change,
    pub(super) branding: BrandingChange,
}

impl Document {
    /// Reads it.
    ///
    /// # Errors
    /// 422 with the first subject that is not valid.
    pub(super) fn read(written: Configuration) -> Result<Self> {
        let Configuration { partners, pairs, payment_methods, prices, routes } = written;
        let mut named = BTreeMap::new();
        let mut name = |subject: String, members: &Map<String, Value>| {
            let members = leaves(&json!(members)).into_iter().map(|(member, _)| member);
            named.insert(subject, members.collect());
        };
        for (section, subjects) in [
            ("partners", &partners),
            ("pairs", &pairs),
            ("paymentMethods", &payment_methods),
            ("prices", &prices),
        ] {
            subjects.iter().for_each(|(key, members)| name(format!("{section}.{key}"), members));
        }
        if routes.is_some() {
            named.insert("routes".to_owned(), vec!["routes".to_owned()]);
        }
        let routes = routes.map(|routes| {
            // The errors of routes name each by its place.
            let routes = strict::read::<Routes>(&json!({ "routes": routes }));
            let routes = routes.map_err(Denial::unprocessable)?;
            routes.check()?;
            Ok::<_, Error>(routes)
        });
        Ok(Self {
            partners: read_all("partners", partners, PartnerEntry::read)?,
            pairs: read_all("pairs", pairs, read_pair)?,
            payment_methods: read_all("paymentMethods", payment_methods, read_method)?,
            prices: read_all("prices", prices, |subject, code, members| {
                let new: NewPrice = member(subject, without_action(subject, members)?)?;
                new.check().map_err(|error| at(subject, error))?;
                Ok((pair_code(subject, &code)?, new))
            })?,
            routes: routes.transpose()?,
            named,
        })
    }
}

impl PartnerEntry {
    fn read(subject: &str, slug: String, mut members: Map<String, Value>) -> Result<Self> {
        let policies = members.remove("policies").unwrap_or_default();
        let digests = strict::read_at::<Option<BTreeMap<String, String>>>("policies", &policies)
            .map_err(|error| Denial::unprocessable(format!("{subject}: {error}")))?;
        let name = members.get("name").and_then(Value::as_str).map(str::to_owned);
        check_names(&slug, name.as_deref().unwrap_or(&slug)).map_err(|error| at(subject, error))?;
        let policies = digests.unwrap_or_default().into_iter().map(|(kind, digest)| {
            let kind = PolicyKind::from_name(&kind).ok_or_else(|| {
                Denial::unprocessable(format!("{subject}: policies: no kind {kind}"))
            })?;
            Ok((kind, digest))
        });
        let policies = policies.collect::<Result<_>>()?;
        let change: Change = member(subject, Value::Object(members))?;
        change.check().map_err(|error| at(subject, error))?;
        let branding = change.branding().map_err(|error| at(subject, error))?;
        Ok(Self { slug, name, policies, change, branding })
    }
}

fn read_pair(
    subject: &str,
    code: String,
    members: Map<String, Value>,
) -> Result<(PairCode, ChangePair)> {
    let change = member(subject, without_action(subject, members)?)?;
    Ok((pair_code(subject, &code)?, change))
}

fn read_method(
    subject: &str,
    code: String,
    members: Map<String, Value>,
) -> Result<(String, ChangeMethod)> {
    let change: ChangeMethod = member(subject, Value::Object(members))?;
    change.check().map_err(|error| at(subject, error))?;
    Ok((code, change))
}

/// Reads every subject of a section.
fn read_all<T>(
    section: &str,
    subjects: BTreeMap<String, Map<String, Value>>,
    read: impl Fn(&str, String, Map<String, Value>) -> Result<T>,
) -> Result<Vec<T>> {
    let read = |(key, members)| read(&format!("{section}.{key}"), key, members);
    subjects.into_iter().map(read).collect()
}

/// The members without an action in them: a document says what is, at whatever time it is applied.
fn without_action(subject: &str, members: Map<String, Value>) -> Result<Value> {
    if members.contains_key("quotesValidFrom") {
        let reason = format!("{subject}: quotesValidFrom is an action: PATCH or PUT the subject");
        return Err(Denial::unprocessable(reason).into());
    }
    Ok(Value::Object(members))
}

fn pair_code(subject: &str, code: &str) -> Result<PairCode> {
    code.parse().map_err(|_| Denial::unprocessable(format!("{subject}: no such pair")).into())
}

fn member<T: DeserializeOwned>(subject: &str, value: Value) -> Result<T> {
    strict::read(&value)
        .map_err(|error| Denial::unprocessable(format!("{subject}: {error}")).into())
}

/// The error, with its subject. What the document names wrongly is an error of the document.
pub(super) fn at(subject: &str, error: Error) -> Error {
    match error {
        Error::Denied(denial) => {
            let status = match denial.status() {
                http::StatusCode::NOT_FOUND => http::StatusCode::UNPROCESSABLE_ENTITY,
                status => status,
            };
            Denial::new(status, format!("{subject}: {}", denial.reason())).into()
        }
        error => error,
    }
}
