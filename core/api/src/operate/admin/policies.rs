//! Policies of a partner: `/admin/v1/partners/{slug}/policies/{kind}`.

pub mod dry_run;
pub mod history;
pub mod push;
pub mod rollback;
pub mod trial;
pub mod versions;

use rampart_plugins::contract::PolicyKind;
use schemars::JsonSchema;
use serde::Deserialize;

use super::operator::Operator;
use super::partners::{self, SLUG};
use crate::Core;
use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::http::request::Input;
use crate::platform::error::{Denial, Result};
use crate::policies::lifecycle::{REASON_CHARS_MAX, Target};
use crate::policies::statement::SignedChange;

/// The path's `{kind}`.
const KIND: Member = required("kind", Kind::OneOf(&PolicyKind::NAMES), "The kind of policy.");
/// The path's `{version}`.
const VERSION: Member =
    required("version", Kind::Integer(1, i64::MAX), "The version's number, from 1 per kind.");
/// The path of a kind of policy.
const PATH: &[Member] = &[SLUG, KIND];

/// A stored version, for the OpenAPI document.
const EXAMPLE: &str = r#"{"version": 3, "kind": "fee", "size": 48123,
    "digest": "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c"}"#;

/// A kind of policy of a partner, as the path names it, and the operator's words for a change.
#[derive(Debug)]
pub struct Policy {
    slug: String,
    kind: String,
    reason: Option<String>,
    signed: Option<SignedChange>,
}

impl Policy {
    /// The policy that the path names.
    fn read(input: &Input, reason: Option<String>) -> Self {
        let (slug, kind) = (input.param("slug").to_owned(), input.param("kind").to_owned());
        Self { slug, kind, reason, signed: None }
    }

    /// The same, for a change that an operator may have to sign.
    fn read_signed(input: &Input, reason: Option<String>, signed: Option<SignedChange>) -> Self {
        Self { signed, ..Self::read(input, reason) }
    }

    /// True if the partner demands a second person, as [`needs_second`] says.
    ///
    /// # Errors
    /// Those of [`needs_second`].
    async fn needs_second(&self, core: &Core) -> Result<bool> {
        needs_second(core, &self.slug).await
    }

    /// The target of a change.
    ///
    /// # Errors
    /// 404 without such a partner or kind, 422 for a reason that is too long.
    async fn target<'a>(&'a self, core: &Core, operator: &'a Operator) -> Result<Target<'a>> {
        let kind =
            PolicyKind::from_name(&self.kind).ok_or_else(|| Denial::not_found("kind of policy"))?;
        let (client, _) = partners::find(core, &self.slug).await?;
        let reason = self.reason.as_deref();
        if reason.is_some_and(|reason| reason.chars().count() > REASON_CHARS_MAX) {
            let reason = format!("reason: at most {REASON_CHARS_MAX} characters");
            return Err(Denial::unprocessable(reason).into());
        }
        let reason = reason.filter(|reason| !reason.trim().is_empty());
        Ok(Target {
            actor: operator.actor(),
            slug: &self.slug,
            client,
            kind,
            reason,
            signed: self.signed.as_ref(),
            is_approved: operator.is_approved(),
            approval: operator.approval(),
        })
    }
}

/// True if a partner demands a second person for changes of its active policies, and of the keys
/// that they rely on.
///
/// # Errors
/// 404 without such a partner.
pub(super) async fn needs_second(core: &Core, slug: &str) -> Result<bool> {
    let is_demanded =
        sqlx::query_scalar!("select policy_approval_required from client where slug = $1", slug)
            .fetch_optional(&core.db)
            .await?;
    is_demanded.ok_or_else(|| Denial::not_found("partner").into())
}

/// The members of a change that has no settings.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Reason")]
#[serde(deny_unknown_fields)]
struct ChangeReason {
    /// For the history, at most 500 characters.
    reason: Option<String>,
    /// A signed statement, where signatures are required.
    signed: Option<SignedChange>,
}
