//! The facts about a user that a fee policy is told.

use chrono::{DateTime, Utc};
use rampart_plugins::contract::PolicyKind;
use rust_decimal::Decimal;

use crate::Core;
use crate::auth::caller::ClientMaybeUser;
use crate::platform::error::{Code, Result};
use crate::trading::catalogue::{Catalogue, Currency};
use rampart_types::{CurrencyCode, UserKey};

/// A user, as a fee policy is told of it.
#[derive(Debug)]
pub(super) struct PolicyUser {
    /// ISO 3166-1 alpha-2.
    pub(super) country: Option<String>,
    /// The verification level.
    pub(super) tier: String,
    /// Paid trades of the last 30 days, by fiat currency.
    volume: Vec<(CurrencyCode, Decimal)>,
}

impl PolicyUser {
    /// Reads the caller's user, if it has one and its partner a fee policy.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(super) async fn of(core: &Core, caller: &ClientMaybeUser) -> Result<Option<Self>> {
        match caller.user.filter(|_| caller.client.tenant.policies.has(PolicyKind::Fee)) {
            Some(user) => Self::read(core, caller.client.key_of(user)).await.map(Some),
            None => Ok(None),
        }
    }

    /// Reads the user in one statement.
    ///
    /// # Errors
    /// ER709 for one that is gone; when the database cannot be read.
    async fn read(core: &Core, key: UserKey) -> Result<Self> {
        let rows = sqlx::query!(
            r#"
            select u.level as "level!", u.country as "country?",
                t.currency as "currency?: CurrencyCode", t.amount as "amount?"
            from end_user u left join (
                select fiat_currency as currency, sum(fiat_amount) as amount from (
                    select fiat_currency, fiat_amount from buy_order
                    where client_id = $1 and user_id = $2
                        and created_at > rampart_now() - interval '30 days'
                        and status in ('in progress', 'completed')
                    union all
                    select fiat_currency, fiat_amount from sell_order
                    where client_id = $1 and user_id = $2
                        and created_at > rampart_now() - interval '30 days'
                        and status in ('in progress', 'completed')
                ) as trade group by fiat_currency
            ) as t on true
            where u.client_id = $1 and u.user_id = $2 and u.deleted_at is null
            "#,
            key.client.uuid(),
            key.user.uuid(),
        )
        .fetch_all(&core.db)
        .await?;
        let mut volume = Vec::new();
        let mut read = None;
        for row in rows {
            volume.extend(row.currency.zip(row.amount));
            read = Some((row.country, row.level));
        }
        let (country, tier) = read.ok_or(Code::UserNotFound)?;
        Ok(Self { country, tier, volume })
    }

    /// The volume in this currency at the prices of `now`, rounded down to its decimals; `None` when
    /// one of the trades' currencies has no rate.
    pub(super) fn volume_in(
        &self,
        currency: &Currency,
        catalogue: &Catalogue,
        now: DateTime<Utc>,
    ) -> Option<Decimal> {
        let mut total = Decimal::ZERO;
        for (from, amount) in &self.volume {
            let converted = catalogue.convert(*amount, *from, currency.code(), now)?;
            total = total.checked_add(converted)?;
        }
        Some(total.trunc_with_scale(currency.scale()))
    }
}
