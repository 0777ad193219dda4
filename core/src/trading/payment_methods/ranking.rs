//! The built-in order of payment methods: the user's last method, then the country's preferences,
//! then the catalogue's order.

use std::sync::Arc;

use rust_decimal::Decimal;

use crate::Core;
use crate::platform::error::Result;
use crate::trading::catalogue::{Catalogue, PaymentMethod};
use rampart_types::{CurrencyCode, UserKey};

/// The facts about a user that decide the order.
#[derive(Debug, Default)]
pub(super) struct RankingContext {
    /// ISO 3166-1 alpha-2, in capitals.
    pub(super) country: Option<String>,
    /// The method of the user's last completed order.
    pub(super) last_used: Option<String>,
    /// The user's verification level; empty without a user.
    pub(super) tier: String,
    /// The channel that the request states.
    pub(super) channel: Option<&'static str>,
    /// The amount of fiat that the request states.
    pub(super) amount: Option<(Decimal, CurrencyCode)>,
}

impl RankingContext {
    pub(super) fn for_country(country: Option<String>) -> Self {
        Self { country, ..Self::default() }
    }

    pub(super) async fn for_user(core: &Core, key: UserKey) -> Result<Self> {
        let row = sqlx::query!(
            r#"
            select country, level, (
                select payment_method from buy_order
                where client_id = $1 and user_id = $2 and status = 'completed'
                order by created_at desc
                limit 1
            ) as "last_used?"
            from end_user
            where client_id = $1 and user_id = $2
            "#,
            key.client.uuid(),
            key.user.uuid(),
        )
        .fetch_optional(&core.db)
        .await?;
        let context = row.map(|row| Self {
            country: row.country,
            last_used: row.last_used,
            tier: row.level,
            ..Self::default()
        });
        Ok(context.unwrap_or_default())
    }

    /// True if a policy may be told more than the country.
    pub(super) fn states_more_than_country(&self) -> bool {
        self.channel.is_some() || self.amount.is_some()
    }

    /// Catalogue positions of the enabled methods, in the built-in order.
    pub(super) fn rank(&self, catalogue: &Catalogue) -> Vec<usize> {
        let preferred = self.country.as_ref().and_then(|code| catalogue.preferences.get(code));
        let key = |(_, method): &(usize, &Arc<PaymentMethod>)| {
            let used = self.last_used.as_ref() == Some(&method.code);
            let position = preferred.and_then(|codes| codes.iter().position(|c| *c == method.code));
            (!used, position.unwrap_or(usize::MAX))
        };
        let mut methods: Vec<_> = catalogue.payment_methods.iter().enumerate().collect();
        methods.retain(|(_, method)| method.enabled);
        // Stable, so that methods with equal keys stay in the catalogue's order.
        methods.sort_by_key(key);
        methods.into_iter().map(|(position, _)| position).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::catalogue;
    use super::*;

    fn order(country: Option<&str>, last_used: Option<&str>) -> String {
        let context = RankingContext {
            last_used: last_used.map(str::to_owned),
            ..RankingContext::for_country(country.map(str::to_owned))
        };
        let catalogue = catalogue();
        let ranked = context.rank(&catalogue).into_iter();
        ranked.map(|position| catalogue.payment_methods[position].code.as_str()).collect()
    }

    #[test]
    fn the_last_used_method_leads_then_the_country_then_the_default() {
        assert_eq!(order(None, None), "abcd");
        assert_eq!(order(Some("NL"), None), "dcab");
        assert_eq!(order(Some("NL"), Some("b")), "bdca");
        assert_eq!(order(Some("DE"), Some("c")), "cabd");
    }

    #[test]
    fn a_disabled_method_is_not_listed_even_when_preferred() {
        assert_eq!(order(Some("NL"), Some("off")), "dcab");
    }
}
