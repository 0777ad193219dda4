//! An offer's row.

use chrono::{DateTime, TimeDelta, Utc};

use super::terms::Terms;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::policies::kinds::signature::SignatureDecision;
use rampart_types::{ClientId, OfferId, UserId};

/// A newly stored offer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredOffer {
    pub(crate) offer_id: OfferId,
    pub(crate) expires_at: DateTime<Utc>,
}

impl StoredOffer {
    /// Stores the terms, their user and the signature policy's decision, if any, and consumes the
    /// replay token of the latter: all in the caller's transaction.
    ///
    /// # Errors
    /// ER336 for a replay token that was used before; the database's, and without entropy.
    pub(crate) async fn write(
        conn: &mut Connection,
        core: &Core,
        client: ClientId,
        user: Option<UserId>,
        terms: &Terms,
        decision: Option<SignatureDecision>,
    ) -> Result<Self> {
        let offer_id = OfferId::from(core.clock.uuid()?);
        let now = core.clock.now();
        let lifetime = terms.expire_seconds.unwrap_or(core.settings.lifetimes.offer_seconds.into());
        let expires_at = now + TimeDelta::seconds(lifetime);
        let decision = match decision {
            Some(decision) => Some(decision.consume(core, conn).await?),
            None => None,
        };
        sqlx::query!(
        "insert into offer (client_id, offer_id, base_currency, quote_currency, payment_method, \
         base_amount, quote_amount, return_url, callback_url, partner_reference, wallet_address, \
         wallet_address_tag, fee_percentage, fixed_amount, fixed_currency, fixed_payment_method, \
         show_wallet_address, signature_decision, created_at, expires_at, user_id) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, \
         $19, $20, $21)",
        client.uuid(),
        offer_id.uuid(),
        terms.pair.code.base().to_string(),
        terms.pair.code.quote().to_string(),
        terms.payment_method,
        terms.base_amount,
        terms.quote_amount,
        terms.return_url.as_ref().map(|url| url.as_str()),
        terms.callback_url.as_ref().map(|url| url.as_str()),
        terms.partner_reference.as_ref().map(|reference| reference.as_str()),
        terms.wallet_address.as_ref().map(|address| address.as_str()),
        terms.wallet_address_tag.as_ref().map(ToString::to_string),
        terms.fee_percentage,
        terms.flags.fixed_amount,
        terms.flags.fixed_currency,
        terms.flags.fixed_payment_method,
        terms.flags.show_wallet_address,
        decision,
        now,
        expires_at,
        user.map(UserId::uuid),
    )
    .execute(conn)
    .await?;
        Ok(Self { offer_id, expires_at })
    }
}
