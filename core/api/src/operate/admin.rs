//! The operators' API (section 11 of the contract): the way of a call, and its errors.
//!
//! It is served on a listener of its own (`operate/listener.rs`), never on the edge's. `OPERATOR_ENDPOINTS` in `api.rs` is its table;
//! `<subject>/<action>.rs` has an endpoint, or a few inseparable ones. Bodies and queries are read
//! strictly ([`crate::http::fields::strict`]).

pub mod accounts;
pub mod approvals;
pub mod audit;
pub(super) mod browser;
pub mod configuration;
pub mod connectors;
pub mod dca;
pub mod deliveries;
pub mod keys;
pub mod ledger;
mod line;
pub mod login;
pub mod mail;
pub mod market;
pub mod openapi;
pub mod operator;
pub mod operators;
pub mod orders;
mod overlap;
pub mod overview;
pub mod page;
mod partner_url;
pub mod partners;
pub mod payments;
pub mod policies;
pub mod reconciliations;
pub mod reviews;
pub mod routes;
pub mod screenings;
pub mod users;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use self::operator::Operator;
use crate::Core;
use crate::endpoint::private_api::{self, FoundRoute};
use crate::http::reply::Reply;
use crate::http::request::Head;
use crate::platform::audit::{self as audit_log, Entry};
use crate::platform::error::Result;

/// Largest body of the operators' API in bytes: a policy's component, with room.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Answers a call of an operator who is proven.
///
/// # Errors
/// The refusal.
pub(super) async fn serve(
    core: &Arc<Core>,
    operator: Operator,
    head: Head,
    body: Bytes,
) -> Result<Reply> {
    let found = private_api::find(core.apis.operators, &head, &body, BODY_BYTES_MAX)?;
    let FoundRoute { route, params } = &found;
    operator.check(route.roles)?;
    browser::check_media_type(route, &head, &body)?;
    let read = route.read_audit.map(|action| Read::new(action, &operator, params));
    let reply = private_api::run(core, found, head, body, operator).await;
    if let Some(read) = read.filter(|_| reply.status.is_success()) {
        read.record(core).await?;
    }
    Ok(reply)
}

/// The segment of a path, an id in its one spelling: whoever looks for it in the audit finds it.
fn spelled(name: &str, value: &str) -> String {
    let id = value.parse::<Uuid>().ok().filter(|_| ["uuid", "id"].contains(&name));
    id.map_or_else(|| value.to_owned(), |id| id.to_string())
}

/// A read of personal data, for the audit.
struct Read {
    action: &'static str,
    operator: Operator,
    target: String,
    detail: Value,
}

impl Read {
    /// A read of what the path's segments name.
    fn new(action: &'static str, operator: &Operator, params: &[(&'static str, String)]) -> Self {
        let mut named = params.iter().map(|(name, value)| (*name, spelled(name, value)));
        let target = named.next().map_or_else(String::new, |(_, value)| value);
        let detail = named.map(|(name, value)| (name.to_owned(), value.into()));
        let detail = Value::Object(detail.collect());
        Self { action, operator: operator.clone(), target, detail }
    }

    /// A read of rows of a list, which the detail names.
    fn of_list(action: &'static str, operator: Operator, detail: Value) -> Self {
        Self { action, operator, target: String::new(), detail }
    }

    /// Records the read; nothing is shown that does not stand in the audit.
    async fn record(self, core: &Core) -> Result<()> {
        let Self { action, operator, target, detail } = self;
        let entry = Entry { actor: operator.actor(), action, target: &target, detail };
        let mut tx = core.db.begin().await?;
        audit_log::record(&mut tx, core, entry).await?;
        tx.commit().await?;
        Ok(())
    }
}
