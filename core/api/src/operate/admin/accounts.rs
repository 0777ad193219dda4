//! Payment and payout accounts of a user, and the proofs that came in for them.

pub mod list;
pub mod open;
pub mod update;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::line;
use super::operator::Operator;
use crate::Core;
use crate::http::fields::strict::present;
use crate::money::connectors::payouts::command_payouts_and_transfers;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Error, Result};
use crate::users::accounts::{self, AccountType, PaymentAccount};
use rampart_types::{JsonDecimal, UserKey};

/// Most proofs of one account that are listed.
const PROOFS_MAX: i64 = 100;

/// An account, for the OpenAPI document.
const EXAMPLE: &str = r#"{
    "accountIdentifier": "NL91ABNA0417164300",
    "accountId": "0199a000-0000-7000-8000-00000000000a", "type": "bankTransfer",
    "name": "A. Lovelace", "version": "v5b1f0c2a9d3e4f60", "verified": true, "disabled": false,
    "limitRaised": true, "limit": 7500, "fastAccessEnabled": null,
    "proofs": [{"id": "0199a000-0000-7000-8000-00000000000b",
        "mediaType": "image/png", "size": 48123, "createdAt": "2026-03-01T12:00:00Z"}]
}"#;

/// An account of a user, with the proofs of its ownership.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Account")]
#[serde(rename_all = "camelCase")]
pub struct AccountView {
    /// IBAN, masked card number, or the provider's id.
    account_identifier: String,
    /// The account's id, which the other calls of accounts name.
    account_id: Uuid,
    #[serde(rename = "type")]
    kind: AccountType,
    /// Name of the holder; empty if unknown.
    name: String,
    /// Text that changes with the holder's name and the card's session.
    version: String,
    /// `true` if it is proven to be the user's.
    verified: bool,
    /// `true` if it pays and receives nothing.
    disabled: bool,
    /// `true` if the limits of accounts that are not raised do not count for it.
    limit_raised: bool,
    /// Its own limit a day, of purchases and sales together, in `limits.currency`.
    limit: Option<JsonDecimal>,
    /// True if sales are paid out to it at once: a verified card; null for what is no card.
    fast_access_enabled: Option<bool>,
    /// Newest first, at most 100.
    proofs: Vec<Proof>,
}

/// An image that proves the ownership of an account.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "OwnershipProof")]
#[serde(rename_all = "camelCase")]
struct Proof {
    /// The image's id.
    id: Uuid,
    /// Such as `image/png`.
    media_type: String,
    /// In bytes.
    size: i64,
    /// When it was sent.
    created_at: DateTime<Utc>,
}

impl AccountView {
    /// An account with its proofs.
    async fn load(
        conn: &mut Connection,
        UserKey { client, user }: UserKey,
        account: &PaymentAccount,
    ) -> Result<Self> {
        let proofs = sqlx::query_as!(
            Proof,
            "select proof_id as id, media_type, size, created_at from ownership_proof \
             where client_id = $1 and user_id = $2 and account_id = $3 \
             order by proof_id desc limit $4",
            client.uuid(),
            user.uuid(),
            account.id,
            PROOFS_MAX,
        )
        .fetch_all(conn)
        .await?;
        Ok(Self {
            account_identifier: account.details.identifier.clone(),
            account_id: account.id,
            kind: account.kind,
            name: account.details.holder.clone(),
            version: account.version.clone(),
            verified: account.verified,
            disabled: account.disabled,
            limit_raised: account.limit_raised,
            limit: account.amount_limit.map(JsonDecimal),
            fast_access_enabled: account.fast_access_enabled(),
            proofs,
        })
    }
}

/// The settings of an account; one that is left out stays as it is.
#[derive(Debug, Default, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "AccountUpdate")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Change {
    /// `true` if it is proven to be the user's.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<bool>,
    /// `true` has it pay and receive nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled: Option<bool>,
    /// `true` frees it of the limits of accounts that are not raised.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_raised: Option<bool>,
    /// Its own limit a day, of purchases and sales together, in `limits.currency`; not below zero.
    /// `null` takes it away.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    limit: Option<Option<JsonDecimal>>,
    /// Sales can be paid out to the card at once; only for cards.
    #[serde(skip_serializing_if = "Option::is_none")]
    fast_access_enabled: Option<bool>,
    /// The `version` of the account that was looked at: 409 if it has another by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// For the audit, which outlives an erasure: 1 to 255 characters, no personal data.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Change {
    /// True if it sets a limit, to whatever value.
    fn has_limits(&self) -> bool {
        self.limit.is_some() || self.limit_raised.is_some()
    }

    /// True if it may let the user trade more with the account than as `stored`; `None` for one that
    /// is new.
    fn raises_limit(&self, stored: Option<&PaymentAccount>) -> bool {
        let is_raised = stored.is_some_and(|account| account.limit_raised);
        let own = stored.and_then(|account| account.amount_limit);
        let lifts = |given: Option<JsonDecimal>| match (given, own) {
            (Some(limit), Some(own)) => limit.0 > own,
            // An account whose limit is raised has none until it gets its own.
            (Some(_), None) => !is_raised,
            (None, own) => own.is_some(),
        };
        (self.limit_raised == Some(true) && !is_raised) || self.limit.is_some_and(lifts)
    }

    fn check(&self) -> Result<()> {
        if let Some(text) = &self.reason {
            line::check("reason", text)?;
        }
        match self.limit {
            Some(Some(limit)) if limit.0.is_sign_negative() => {
                Err(Denial::unprocessable("limit: not below zero").into())
            }
            _ => Ok(()),
        }
    }

    /// Writes the settings, their audit row, and reads the account again.
    async fn apply(
        &self,
        conn: &mut Connection,
        core: &Core,
        user: UserKey,
        account: &PaymentAccount,
        operator: Operator,
        action: &'static str,
    ) -> Result<AccountView> {
        if self.fast_access_enabled == Some(true) && account.kind != AccountType::CreditCard {
            return Err(Denial::unprocessable("fastAccessEnabled: only for cards").into());
        }
        self.write(conn, core, user, account.id).await?;
        command_payouts_and_transfers(conn, core, user).await?;
        // The account stands in the audit by its id, which tells nothing of the person.
        let (target, detail) =
            (user.user.to_string(), json!({"accountId": account.id, "change": self}));
        operator.record(conn, core, action, &target, detail).await?;
        let identifier = &account.details.identifier;
        let account = accounts::find(conn, core, user, identifier).await?;
        let account = account.ok_or_else(|| Error::invariant("read the account just written"))?;
        AccountView::load(conn, user, &account).await
    }

    async fn write(
        &self,
        conn: &mut Connection,
        core: &Core,
        UserKey { client, user }: UserKey,
        account: Uuid,
    ) -> Result<()> {
        sqlx::query!(
            "update payment_account set \
                 verified_at = case when $4::boolean is null then verified_at \
                     when $4 then coalesce(verified_at, $8) end, \
                 disabled_at = case when $5::boolean is null then disabled_at \
                     when $5 then coalesce(disabled_at, $8) end, \
                 limit_raised = coalesce($6, limit_raised), \
                 amount_limit = case when $10 then $7 else amount_limit end, \
                 fast_access = coalesce($9, fast_access) \
             where client_id = $1 and user_id = $2 and account_id = $3",
            client.uuid(),
            user.uuid(),
            account,
            self.verified,
            self.disabled,
            self.limit_raised,
            self.limit.flatten().map(|limit| limit.0),
            core.clock.now(),
            self.fast_access_enabled,
            self.limit.is_some(),
        )
        .execute(conn)
        .await?;
        Ok(())
    }
}
