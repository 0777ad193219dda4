//! A stored checkout: its offer's terms, as the page shows and uses them.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use super::session;
use crate::Core;
use crate::auth::caller::Client;
use crate::auth::user_credentials::identifier_digest;
use crate::http::language::Texts;
use crate::platform::error::Result;
use crate::users::identifiers;
use rampart_types::{OfferId, OrderId, ReturnUrl, UserId, UserIdentifier};

/// A checkout with its partner.
#[derive(Debug)]
pub(super) struct Checkout {
    pub(super) client: Client,
    pub(super) offer: OfferId,
    /// The partner's identifier of the shopper, from the link.
    pub(super) identifier: Option<UserIdentifier>,
    /// The user whom the partner has made it for.
    pub(super) user: Option<UserId>,
    /// Code of the currency that is bought.
    pub(super) base: String,
    /// Code of the currency that is paid.
    pub(super) quote: String,
    pub(super) method: Option<String>,
    /// Amount that is bought; never together with the next.
    pub(super) base_amount: Option<Decimal>,
    /// Amount that is paid.
    pub(super) quote_amount: Option<Decimal>,
    pub(super) fixed_amount: bool,
    pub(super) fee_percentage: Option<Decimal>,
    /// `None` if the shopper chooses it.
    pub(super) wallet_address: Option<String>,
    pub(super) wallet_address_tag: Option<String>,
    /// False if the partner hides the address.
    pub(super) show_wallet_address: bool,
    /// True if a shopper who is known confirms without looking at the quote.
    pub(super) attempt_direct_confirm: bool,
    pub(super) expires_at: DateTime<Utc>,
    /// True if it is neither confirmed nor expired.
    pub(super) is_open: bool,
    pub(super) bought: Option<Bought>,
    pub(super) return_url: Option<ReturnUrl>,
}

/// The order that a checkout has become.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bought {
    pub(super) order: OrderId,
    /// `None` for a guest's.
    pub(super) user: Option<UserId>,
}

impl Checkout {
    /// The same, on a page that a visitor at this address has opened.
    pub(super) fn visited_from(self, peer: IpAddr) -> Self {
        Self { client: self.client.visited_from(peer), ..self }
    }

    /// The checkout of a link; `None` if the link is invalid, the identifier in it is not the
    /// checkout's, or its partner is deleted or suspended.
    pub(super) async fn find(
        core: &Core,
        session: &str,
        sealed: Option<&str>,
        request_id: &str,
    ) -> Result<Option<Self>> {
        let Some((client, offer)) = session::open(core, session)? else { return Ok(None) };
        let identifier = match sealed.map(|text| identifiers::open(core, client, text)) {
            Some(None) => return Ok(None),
            opened => opened.flatten(),
        };
        let digest = identifier.as_ref().map(|one| identifier_digest(core, client, one));
        let digest = digest.transpose()?;
        let Some(client) = Client::for_page(core, client, request_id) else { return Ok(None) };
        let row = sqlx::query!(
            r#"
            select o.base_currency, o.quote_currency, o.payment_method, o.base_amount,
                o.quote_amount, o.fixed_amount, o.fee_percentage, o.wallet_address,
                o.wallet_address_tag, o.show_wallet_address, o.return_url, o.expires_at, o.user_id,
                c.attempt_direct_confirm,
                (o.confirmed_at is null and o.expires_at > rampart_now()) as "is_open!",
                b.order_id as "order_id?", b.user_id as buyer
            from offer o join checkout c using (client_id, offer_id)
            left join buy_order b using (client_id, offer_id)
            where client_id = $1 and offer_id = $2
                and ($3::bytea is null or c.identifier_digest = $3)
            "#,
            client.id().uuid(),
            offer.uuid(),
            digest,
        )
        .fetch_optional(&core.db)
        .await?;
        Ok(row.map(|row| Self {
            client,
            offer,
            identifier,
            user: row.user_id.map(UserId::from),
            base: row.base_currency,
            quote: row.quote_currency,
            method: row.payment_method,
            base_amount: row.base_amount,
            quote_amount: row.quote_amount,
            fixed_amount: row.fixed_amount,
            fee_percentage: row.fee_percentage,
            wallet_address: row.wallet_address,
            wallet_address_tag: row.wallet_address_tag,
            show_wallet_address: row.show_wallet_address,
            attempt_direct_confirm: row.attempt_direct_confirm,
            expires_at: row.expires_at,
            is_open: row.is_open,
            bought: row.order_id.and_then(OrderId::new).map(|order| {
                let user = row.buyer.map(UserId::from);
                Bought { order, user }
            }),
            // Validated when it was stored, and again before it becomes a link on our page.
            return_url: row.return_url.and_then(|url| url.parse().ok()),
        }))
    }

    /// True if the shopper chooses the amount in what is bought, not in what is paid.
    pub(super) fn is_amount_in_base(&self) -> bool {
        self.base_amount.is_some()
    }

    /// The currency that the shopper's amount is in.
    pub(super) fn amount_currency(&self) -> &str {
        if self.is_amount_in_base() { &self.base } else { &self.quote }
    }

    /// The partner's amount, in [`Checkout::amount_currency`].
    pub(super) fn amount(&self) -> Option<Decimal> {
        self.base_amount.or(self.quote_amount)
    }

    /// Name of the payment method.
    pub(super) fn method_name(&self, texts: Texts) -> String {
        let code = self.method.as_deref().unwrap_or_default();
        self.client.catalogue.payment_method_name(texts, code)
    }
}
