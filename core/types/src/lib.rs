//! Validated types for every value that crosses a boundary (wire, database, policy). They can only
//! be constructed valid, so a function that takes one checks nothing again.

mod caip19;
mod checked_text;
mod country;
mod currency;
pub mod decimal;
mod iban;
mod ids;
mod keys;
mod locale;
pub mod money;
mod person;
mod preserialized;
mod text;
mod timestamp;
mod wallet;
mod web_url;

pub use caip19::{Caip19, InvalidCaip19};
pub use country::{Country, InvalidCountry, PAYMENT_METHOD_COUNTRIES};
pub use currency::{
    CRYPTO_DECIMALS_MAX, CurrencyCode, CurrencyDetails, InvalidCurrencyCode, InvalidPairCode,
    PairCode, crypto_scale, fiat_exponent,
};
pub use decimal::JsonDecimal;
pub use iban::{Iban, InvalidIban};
pub use ids::{
    ApiKeyId, CheckoutId, ClientId, DeliveryId, DocumentId, EventId, InvalidId, OfferId, OrderId,
    PolicyVersionId, QuoteId, StaffId, TokenFamilyId, UserId, WalletEntryId, WebhookEndpointId,
};
pub use keys::{OrderKey, UserKey};
pub use locale::{InvalidLocale, InvalidWebsiteLocale, Language, Locale, WebsiteLocale};
pub use money::{Amount, FeeBreakdown};
pub use person::{EmailAddress, InvalidEmail, InvalidPhone, PhoneNumber, folded_name, plain_text};
pub use preserialized::Preserialized;
pub use text::{InvalidIdentifier, InvalidReference, PartnerReference, UserIdentifier};
pub use timestamp::Timestamp;
pub use wallet::{
    Chain, DestinationTag, InvalidAddress, InvalidTag, TagKind, UnknownChain, WalletAddress,
};
pub use web_url::{CallbackUrl, InvalidUrl, LoopbackHttp, ReturnUrl};
