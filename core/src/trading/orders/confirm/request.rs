//! The request body of a confirm, in both versions.

use serde_json::Value;

use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Kind, Member, optional, required};
use crate::http::fields::Fields;
use crate::platform::error::{Code, Error, Result};
use crate::trading::orders::WalletType;
use crate::users::accounts::{IDENTIFIER_BYTES_MAX, identifier};
use rampart_types::{CallbackUrl, OfferId, PartnerReference, ReturnUrl, WalletAddress};

/// Longest tag that is judged with its chain, in bytes; no chain has one as long.
const TAG_BYTES_MAX: usize = 255;

/// Name of the address.
pub(super) const ADDRESS: &str = "walletAddress";
/// Name of the offer's member.
pub(super) const OFFER: &str = "offerId";
/// Name of the tag in version 1.
const STATED_TAG: &str = "destinationTag";
/// Name of the tag in version 2, which confirms offers.
pub(super) const OFFER_TAG: &str = "walletAddressTag";

/// Request members of both versions.
pub(super) const MEMBERS: &[Member] = &[
    required("quote", Kind::Text, "The quote as received, unchanged."),
    required(ADDRESS, Kind::Text, "A main-network address of the currency that is bought."),
    optional("callbackUrl", Kind::Format("uri"), "URL called when the order is final; https."),
    optional(
        "partnerOrderIdentifier",
        Kind::Sized(0, 255),
        "The partner's own name for the order.",
    ),
    optional(
        "walletType",
        Kind::OneOf(&[WalletType::Vasp.as_str(), WalletType::Unhosted.as_str()]),
        "`vasp`: a service provider keeps the wallet; `unhosted`, the default: the user.",
    ),
    optional(
        "accountIdentifier",
        Kind::Sized(1, IDENTIFIER_BYTES_MAX),
        "The account of the user that pays: verified, and of a type that fits the quote's method.",
    ),
];

/// Request members of version 1 alone.
pub(super) const V1_MEMBERS: &[Member] = &[
    required("returnUrl", Kind::Format("uri"), "Page to return to after paying."),
    optional(STATED_TAG, Kind::Tag, "The tag or memo that goes with the address."),
];

/// Request members of version 2 alone.
pub(super) const V2_MEMBERS: &[Member] = &[
    required(OFFER, Kind::Format("uuid"), "The offer's `offerUuid`."),
    optional("returnUrl", Kind::Format("uri"), "For an offer without one."),
    optional(OFFER_TAG, Kind::Tag, "The tag or memo that goes with the address."),
];

/// A confirm, as far as it can be judged without its quote: which chain the address and the tag
/// must be of, only the quote says.
#[derive(Debug)]
pub struct Confirm {
    pub(super) quote: String,
    pub(super) wallet_address: String,
    pub(super) tag: Value,
    pub(super) wallet_type: WalletType,
    pub(super) partner_reference: Option<PartnerReference>,
    /// Identifier of the account that pays, if it is named.
    pub(super) account: Option<String>,
    pub(super) terms: Terms,
}

/// The source of the return and callback URLs.
#[derive(Debug)]
pub(super) enum Terms {
    /// From the request.
    Stated { return_url: ReturnUrl, callback_url: Option<CallbackUrl> },
    /// From the offer, or from the request where the offer has none.
    Offer { id: OfferId, return_url: Option<ReturnUrl>, callback_url: Option<CallbackUrl> },
}

impl Terms {
    /// Name of the tag in a request of this kind.
    pub(super) const fn tag_name(&self) -> &'static str {
        match self {
            Self::Stated { .. } => STATED_TAG,
            Self::Offer { .. } => OFFER_TAG,
        }
    }
}

impl Confirm {
    /// # Errors
    /// Every violation: ER014, ER015, ER045, ER046, ER047, ER048, ER380.
    pub fn read_v1(document: &Value, client: &Client) -> Result<Self> {
        let mut fields = Fields::from_object(document)?;
        let return_url = fields.required("returnUrl", Code::ReturnUrlInvalid, return_url);
        let callback_url = callback_url(&mut fields, client);
        let terms = return_url.map(|return_url| Terms::Stated { return_url, callback_url });
        Self::read(fields, STATED_TAG, terms)
    }

    /// # Errors
    /// The same, and ER132 for an offer that nobody could have.
    pub(super) fn read_v2(document: &Value, client: &Client) -> Result<Self> {
        let mut fields = Fields::from_object(document)?;
        let id = fields.required(OFFER, Code::OfferNotFound, |id| id.as_str()?.parse().ok());
        let return_url = fields.optional("returnUrl", Code::ReturnUrlInvalid, return_url);
        let callback_url = callback_url(&mut fields, client);
        let terms = id.map(|id| Terms::Offer { id, return_url, callback_url });
        Self::read(fields, OFFER_TAG, terms)
    }

    fn read(mut fields: Fields<'_>, tag: &'static str, terms: Option<Terms>) -> Result<Self> {
        let quote = fields.text("quote", Code::QuoteMissing);
        let wallet_address = fields.text(ADDRESS, Code::WalletAddressInvalid);
        let tag = fields.optional(tag, Code::DestinationTagInvalid, written_tag);
        let wallet_type = fields.optional("walletType", Code::RequestMalformed, |name| {
            WalletType::from_name(name.as_str()?)
        });
        let partner_reference =
            fields.optional("partnerOrderIdentifier", Code::RequestMalformed, reference);
        let account =
            fields.optional("accountIdentifier", Code::AccountIdentifierInvalid, identifier);
        // Alone, it is left to the chain of the quote, which judges the tag as well.
        if !fields.is_clean() && wallet_address.as_deref().is_some_and(is_of_no_chain) {
            fields.refuse_member(Code::WalletAddressInvalid, ADDRESS);
        }
        let request = quote.zip(wallet_address).zip(terms);
        let request = request.map(|((quote, wallet_address), terms)| Self {
            quote,
            wallet_address,
            tag: tag.unwrap_or(Value::Null),
            wallet_type: wallet_type.unwrap_or(WalletType::Unhosted),
            partner_reference: partner_reference.flatten(),
            account,
            terms,
        });
        fields.finish(request)
    }

    /// Refuses an address that no chain knows, for a request without a quote that names the chain.
    ///
    /// # Errors
    /// ER014.
    pub(super) fn check_address(&self) -> Result<()> {
        if is_of_no_chain(&self.wallet_address) {
            return Err(Error::of_member(Code::WalletAddressInvalid, ADDRESS));
        }
        Ok(())
    }
}

fn return_url(value: &Value) -> Option<ReturnUrl> {
    value.as_str()?.parse().ok()
}

/// The URL that is called once the order is final (ER046).
pub(crate) fn callback_url(fields: &mut Fields<'_>, client: &Client) -> Option<CallbackUrl> {
    let loopback = client.tenant.loopback_http;
    let read = |value: &Value| CallbackUrl::parse(value.as_str()?, loopback).ok();
    fields.optional("callbackUrl", Code::CallbackUrlInvalid, read)
}

/// An empty reference is none.
pub(crate) fn reference(value: &Value) -> Option<Option<PartnerReference>> {
    match value.as_str()? {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    }
}

fn is_of_no_chain(address: &str) -> bool {
    WalletAddress::of_any_chain(address).is_none()
}

/// A text or a number. Its form is judged with the chain, which may have no tags at all (ER044).
fn written_tag(value: &Value) -> Option<Value> {
    let written = match value {
        Value::String(text) => text.as_str(),
        Value::Number(number) => number.as_str(),
        _ => return None,
    };
    (written.len() <= TAG_BYTES_MAX).then(|| value.clone())
}
