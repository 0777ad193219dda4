//! Members of a partner's update that are more than one value, and how a document has them.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Change;
use crate::http::fields::strict::present;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use rampart_types::JsonDecimal;

/// Orders without a user.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct GuestOrders {
    /// `true` if they are allowed.
    pub(super) allowed: Option<bool>,
    /// Largest one, in the currency of limits, above zero; `null` takes it away.
    #[serde(default, deserialize_with = "present")]
    max_fiat: Option<Option<JsonDecimal>>,
}

impl GuestOrders {
    /// Checks what one look at the members shows.
    ///
    /// # Errors
    /// 422 with the first member that is not valid.
    pub(super) fn check(&self) -> Result<()> {
        match self.largest() {
            Some(max) if max <= Decimal::ZERO => {
                Err(Denial::unprocessable("guestOrders.maxFiat: above zero").into())
            }
            _ => Ok(()),
        }
    }

    /// The amount of the largest one; `None` if it is taken away or left out.
    pub(super) fn largest(&self) -> Option<Decimal> {
        self.max_fiat.flatten().map(|max| max.0)
    }

    /// True if it says which one is the largest, or that none is.
    pub(super) const fn has_largest(&self) -> bool {
        self.max_fiat.is_some()
    }
}

/// A partner's status.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "PartnerStatus")]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Active,
    Suspended,
}

rampart_types::named_values! {
    pub(super) Status {
        Active = "active",
        Suspended = "suspended",
    }
}

impl Change {
    /// Takes away the rates and the largest order of a guest that a document leaves out beside others:
    /// they count as a whole in one, for a file of TOML has no `null`.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub(in crate::operate::admin) async fn end_what_is_left_out(
        &self,
        conn: &mut Connection,
        slug: &str,
    ) -> Result<()> {
        if self.rate_limits.is_none() && self.guest_orders.is_none() {
            return Ok(());
        }
        sqlx::query!(
            "update client set \
                 rate_limits = case when $2 then '{}' else rate_limits end, \
                 guest_orders_max = case when $3 then null else guest_orders_max end \
             where slug = $1",
            slug,
            self.rate_limits.is_some(),
            self.guest_orders.is_some(),
        )
        .execute(conn)
        .await?;
        Ok(())
    }
}
