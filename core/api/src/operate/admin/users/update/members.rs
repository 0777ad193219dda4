//! The members of a user's update.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::operate::admin::line;
use crate::platform::error::{Denial, Result};
use crate::users::documents::is_name;
use rampart_types::JsonDecimal;

/// Most documents that one call updates.
const DOCUMENTS_MAX: usize = 32;
/// The refusal of other names.
const DOCUMENT_NAMES: &str =
    "documents: a type and a side have 1 to 32 letters, digits, hyphens and underscores";
/// Limits that may be set for one user (API document, user limits).
const LIMITS: [&str; 6] = [
    "user_day_limit",
    "user_day_limit_fiat_to_coin",
    "user_day_limit_coin_to_fiat",
    "non_raised_limit_account_limit",
    "new_limited_account_limit",
    "number_of_non_raised_accounts_limit",
];

/// The settings of a user; one that is left out stays as it is.
#[derive(Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "UserUpdate")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Change {
    /// `true` ends the user's logins: none is renewed, tokens that were issued before are refused, links
    /// and login tokens that are unused are void, and the user neither signs in nor orders. By an
    /// identifier the partner still reads and changes the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disabled: Option<bool>,
    /// `true` erases the personal data, for good; `false` is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deleted: Option<bool>,
    /// `true` removes the user's passkeys, such as those of a lost device: the password alone signs in
    /// until another one is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) passkeys_removed: Option<bool>,
    /// `true` removes the user's authenticator app, such as that of a lost telephone: no code is asked
    /// for until the user sets one up again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) authenticator_app_removed: Option<bool>,
    /// Another e-mail address: every session ends, and the user has to prove it unless the state of its
    /// check comes with it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "changed")]
    pub(super) email_address: Option<String>,
    /// The level, which limits follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) level: Option<Level>,
    /// The state of the report to tax authorities (DAC8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dac8_status: Option<Dac8>,
    /// States of the checks.
    #[serde(default, skip_serializing_if = "Verification::is_empty")]
    pub(super) verification: Verification,
    /// Decisions on sides, sent or not, at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) documents: Vec<Document>,
    /// Limits of this user alone, in place of all set before: `user_day_limit`,
    /// `user_day_limit_fiat_to_coin`, `user_day_limit_coin_to_fiat`,
    /// `non_raised_limit_account_limit`, `new_limited_account_limit`,
    /// `number_of_non_raised_accounts_limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit_overrides: Option<BTreeMap<String, JsonDecimal>>,
    /// For the audit, which outlives an erasure: 1 to 255 characters, no personal data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// Writes for the audit that a personal value was changed, without the value.
fn changed<S: Serializer>(_: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("changed")
}

/// States of a user's checks; one that is left out stays as it is.
#[derive(Default, Deserialize, JsonSchema, Serialize, PartialEq, Eq)]
#[schemars(rename = "VerificationUpdate")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Verification {
    /// The e-mail address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) email: Option<Check>,
    /// The identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) identity: Option<Check>,
    /// The questions of AMLD5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) amld5: Option<Check>,
    /// The consent to the privacy statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) privacy_agreement: Option<Check>,
    /// The residential address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) residential_address: Option<AddressCheck>,
}

impl Verification {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The decision on a side of an identity document.
#[derive(Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "DocumentUpdate")]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// The document, such as `passport`.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// `front` or `back`.
    pub(super) side: String,
    /// The decision.
    pub(super) status: DocumentCheck,
}

/// Gives the values of a column their names, the same in JSON and as stored.
macro_rules! names {
    ($name:ident as $component:literal: $about:literal { $($value:ident $text:literal),+ }) => {
        #[doc = $about]
        #[derive(Clone, Copy, Deserialize, JsonSchema, Serialize, PartialEq, Eq)]
        #[schemars(rename = $component)]
        pub(super) enum $name {
            $(#[serde(rename = $text)] $value,)+
        }

        impl $name {
            pub(super) const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }
        }
    };
}

names!(Level as "UserLevel": "A user's level." { Bronze "bronze", Silver "silver", Gold "gold" });
names!(Dac8 as "Dac8Status": "State of a report to tax authorities." {
    Unknown "unknown", Missing "missing", Pending "pending", Present "present"
});
names!(Check as "CheckStatus": "State of a check." {
    Pending "pending", Verified "verified", Failed "failed", Blocked "blocked"
});
names!(AddressCheck as "AddressStatus": "State of the check of an address." {
    Missing "missing", Present "present", Pending "pending", Verified "verified",
    Failed "failed", Blocked "blocked"
});
names!(DocumentCheck as "DocumentStatus": "State of a side of a document." {
    Missing "missing", Pending "pending", Verified "verified", Failed "failed", Blocked "blocked"
});

impl Change {
    /// True if it has a member that limits follow.
    pub(super) fn has_limits(&self) -> bool {
        self.limit_overrides.is_some() || self.level.is_some()
    }

    pub(super) fn check(&self) -> Result<()> {
        if let Some(text) = &self.reason {
            line::check("reason", text)?;
        }
        if self.deleted == Some(false) {
            return Err(Denial::unprocessable("deleted: a user cannot be brought back").into());
        }
        if self.documents.len() > DOCUMENTS_MAX {
            return Err(Denial::unprocessable("documents: at most 32").into());
        }
        let named = |document: &Document| is_name(&document.kind) && is_name(&document.side);
        if !self.documents.iter().all(named) {
            return Err(Denial::unprocessable(DOCUMENT_NAMES).into());
        }
        for (name, amount) in self.limit_overrides.iter().flatten() {
            if !LIMITS.contains(&name.as_str()) {
                let reason = format!("limitOverrides: no limit {name}");
                return Err(Denial::unprocessable(reason).into());
            }
            if amount.0.is_sign_negative() {
                let reason = format!("limitOverrides: {name} is negative");
                return Err(Denial::unprocessable(reason).into());
            }
        }
        Ok(())
    }
}
