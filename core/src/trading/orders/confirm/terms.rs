//! The terms of a confirm: the destination wallet, the terms that the offer fixes, and the digest
//! that tells a repeated confirm from another one.

use chrono::{DateTime, Utc};
use ring::digest::{Context, SHA256};
use rust_decimal::Decimal;
use serde_json::Value;

use super::account::NamedAccount;
use super::request::{ADDRESS, Confirm, OFFER, OFFER_TAG};
use crate::Core;
use crate::platform::error::{Code, Refusal, Result, Violation};
use crate::trading::catalogue::{Catalogue, Crypto};
use crate::trading::quotes::Quote;
use rampart_types::{ClientId, DestinationTag, OfferId, PartnerReference, UserId, WalletAddress};

/// The destination wallet: address and tag.
pub(crate) struct Destination {
    pub(super) address: WalletAddress,
    pub(super) tag: Option<DestinationTag>,
}

impl Destination {
    /// Reads address and tag of a confirm by the rules of the chain of what is bought.
    ///
    /// # Errors
    /// As [`Self::parse`]; ER008 for a currency that is not traded any more.
    pub(super) fn read(request: &Confirm, quote: &Quote, catalogue: &Catalogue) -> Result<Self> {
        let crypto = catalogue
            .currencies
            .get(&quote.crypto_currency())
            .and_then(|currency| currency.crypto.as_ref())
            .ok_or(Code::CurrencyInMaintenance)?;
        Self::parse(crypto, &request.wallet_address, &request.tag, request.terms.tag_name())
    }

    /// Reads `walletAddress`, and the tag of this name, by the rules of the currency's chain.
    ///
    /// # Errors
    /// ER014, and ER015 or ER044, together.
    pub(crate) fn parse(
        crypto: &Crypto,
        address: &str,
        tag: &Value,
        tag_name: &'static str,
    ) -> Result<Self> {
        let mut refusal = Refusal::new();
        let address = WalletAddress::parse(crypto.chain, address);
        if address.is_err() {
            refusal.add_of_member(Code::WalletAddressInvalid, ADDRESS);
        }
        let tag = crypto.read_tag(tag);
        if let Err(code) = tag {
            refusal.add_of_member(code, tag_name);
        }
        match (address, tag) {
            (Ok(address), Ok(tag)) => Ok(Self { address, tag }),
            _ => Err(refusal.into()),
        }
    }
}

/// The terms that an offer sets for its order.
#[derive(Debug)]
pub(super) struct OfferTerms {
    pub(super) offer_id: uuid::Uuid,
    pub(super) return_url: Option<String>,
    pub(super) callback_url: Option<String>,
    pub(super) partner_reference: Option<String>,
    pub(super) signature_decision: Option<Value>,
    base_currency: String,
    quote_currency: String,
    payment_method: Option<String>,
    base_amount: Option<Decimal>,
    quote_amount: Option<Decimal>,
    wallet_address: Option<String>,
    wallet_address_tag: Option<String>,
    fee_percentage: Option<Decimal>,
    fixed_amount: bool,
    fixed_currency: bool,
    fixed_payment_method: bool,
    expires_at: DateTime<Utc>,
    confirmed_at: Option<DateTime<Utc>>,
    user_id: Option<uuid::Uuid>,
    /// True if a checkout's page quotes and confirms it.
    is_checkout: bool,
}

impl OfferTerms {
    /// The client's offer; another client's is as unknown as none.
    pub(super) async fn find(
        core: &Core,
        client: ClientId,
        offer: OfferId,
    ) -> Result<Option<Self>> {
        let offer = sqlx::query_as!(
            Self,
            r#"
            select offer_id, return_url, callback_url, partner_reference, signature_decision,
                base_currency, quote_currency, payment_method, base_amount, quote_amount,
                wallet_address, wallet_address_tag, fee_percentage, fixed_amount, fixed_currency,
                fixed_payment_method, expires_at, confirmed_at, user_id,
                exists (select from checkout c
                    where c.client_id = o.client_id and c.offer_id = o.offer_id) as "is_checkout!"
            from offer o where client_id = $1 and offer_id = $2
            "#,
            client.uuid(),
            offer.uuid(),
        )
        .fetch_optional(&core.db)
        .await?;
        Ok(offer)
    }

    /// The user whom the offer is for, if it is for one.
    pub(super) fn user(&self) -> Option<UserId> {
        self.user_id.map(UserId::from)
    }

    /// `true` if this user may confirm it; one that is for another is as unknown as none.
    pub(super) fn is_for(&self, user: Option<UserId>) -> bool {
        self.user_id.is_none_or(|own| user == Some(own.into()))
    }

    /// Adds to `refusal` every reason why the quote cannot be confirmed under the offer: ER131 or
    /// ER133 if the offer is confirmed or expired, else every term that differs (ER134 to ER137,
    /// and ER014 and ER015 for another wallet than the one that its partner has signed).
    pub(super) fn check(
        &self,
        quote: &Quote,
        destination: &Destination,
        now: DateTime<Utc>,
        refusal: &mut Refusal,
    ) {
        if self.confirmed_at.is_some() {
            return refusal.add_of_member(Code::OfferAlreadyConfirmed, OFFER);
        }
        if self.expires_at <= now {
            return refusal.add_of_member(Code::OfferExpired, OFFER);
        }
        let (base, pays) = (quote.crypto_currency(), quote.fiat_currency());
        let other_amount = self.base_amount.is_some_and(|amount| amount != quote.crypto)
            || self.quote_amount.is_some_and(|amount| amount != quote.fiat);
        let other_currency =
            self.base_currency != base.as_str() || self.quote_currency != pays.as_str();
        let method = self.payment_method.as_ref();
        let other_method = method.is_some_and(|method| *method != quote.payment_method);
        let checks = [
            (self.fixed_amount && other_amount, Code::OfferAmountFixed, "quote"),
            (self.fixed_currency && other_currency, Code::OfferCurrencyFixed, "quote"),
            (self.fixed_payment_method && other_method, Code::OfferPaymentMethodFixed, "quote"),
            (self.names_another_fee(quote), Code::OfferFeeFixed, "quote"),
            (self.names_another_address(destination), Code::WalletAddressInvalid, ADDRESS),
            (self.names_another_tag(destination), Code::DestinationTagInvalid, OFFER_TAG),
        ];
        for (_, code, name) in checks.into_iter().filter(|(differs, _, _)| *differs) {
            let detail = Some("the offer says otherwise".into());
            refusal.add_violation(Violation { code, field: Some(name), detail });
        }
    }

    /// A checkout without a fee has the client's own: a quote that its shopper brings from another
    /// checkout, which has one, is not at that.
    fn names_another_fee(&self, quote: &Quote) -> bool {
        let asked = quote.requested_fee_percentage;
        match self.fee_percentage {
            Some(fixed) => fixed != asked.unwrap_or(quote.partner_fee_percentage),
            None => self.is_checkout && asked.is_some(),
        }
    }

    fn names_another_address(&self, destination: &Destination) -> bool {
        self.wallet_address.as_ref().is_some_and(|text| {
            let address = WalletAddress::parse(destination.address.chain(), text);
            address.as_ref() != Ok(&destination.address)
        })
    }

    /// An address that is named without a tag is named to be used without one.
    fn names_another_tag(&self, destination: &Destination) -> bool {
        let named = self.wallet_address.is_some() || self.wallet_address_tag.is_some();
        let kind = destination.address.chain().tag_kind();
        let tag = self.wallet_address_tag.as_ref();
        let tag = tag.map(|text| DestinationTag::parse(kind, text)).transpose();
        named && tag.as_ref() != Ok(&destination.tag)
    }
}

/// SHA-256 of what a repeated confirm must repeat (section 6.3 of the contract), of the user, who
/// must not get another user's order for an answer, and of the account that pays.
pub(super) fn digest(
    destination: &Destination,
    offer: Option<OfferId>,
    partner_reference: Option<&PartnerReference>,
    user: Option<UserId>,
    account: &NamedAccount,
) -> [u8; 32] {
    let mut parts = vec![
        Some(destination.address.key().into_owned()),
        destination.tag.as_ref().map(ToString::to_string),
        offer.map(|offer| offer.to_string()),
        partner_reference.map(ToString::to_string),
        user.map(|user| user.to_string()),
    ];
    // Orders from before an account could be named have digests without it.
    parts.extend(account.term().map(Some));
    digest_of_parts(&parts)
}

/// SHA-256 of texts of which some may be missing.
pub(crate) fn digest_of_parts(parts: &[Option<String>]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        // Whether there is a part, and its length: no two lists of parts are written alike.
        let text = part.as_deref().unwrap_or_default();
        context.update(&[u8::from(part.is_some())]);
        context.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        context.update(text.as_bytes());
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

#[cfg(test)]
mod tests;
