//! The request of a quote, for both sides.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use rampart_plugins::contract::Stage;
use rust_decimal::Decimal;
use serde_json::Value;

use super::Side;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Kind, Member, optional, required};
use crate::http::fields::Fields;
use crate::platform::error::{Code, Error, Result};
use crate::trading::catalogue::{Catalogue, Crypto, Currency, Pair, PairStatus, PaymentMethod};
use crate::trading::channel::{CHANNELS, channel};
use crate::trading::pricing::{Given, Unpriceable};
use crate::users::accounts::AccountType;
use rampart_types::decimal::{fits_decimals, from_number_or_text};
use rampart_types::money::AMOUNT_MAX;
use rampart_types::{Country, DestinationTag, WalletAddress};

const PAYOUT_METHOD_DEFAULT: AccountType = AccountType::BankTransfer;

/// Longest promotion code, in bytes.
const PROMO_CODE_BYTES_MAX: usize = 64;

/// The user's country.
pub(super) const COUNTRY_CODE: Member = optional(
    "countryCode",
    Kind::Matching("^[A-Za-z]{2}$"),
    "The user's country, as in ISO 3166-1. Served are the client's `allowedCountries`, if it has any.",
);
/// A promotion that the user takes part in.
pub(super) const PROMO_CODE: Member = optional(
    "promoCode",
    Kind::Sized(0, PROMO_CODE_BYTES_MAX),
    "A promotion's code, for the partner's own fee rule.",
);
/// The program that the user holds.
pub(super) const CHANNEL: Member = optional(
    "channel",
    Kind::OneOf(&CHANNELS),
    "The kind of program that the user holds, for the partner's own fee rule.",
);

/// Members of both sides.
pub(super) const MEMBERS: &[Member] = &[
    optional(
        "currencyPair",
        Kind::Matching("^[A-Z0-9]{2,12}-[A-Z0-9]{2,12}$"),
        "The pair, crypto first: `BTC-EUR`. Required unless both currencies are named by CAIP-19.",
    ),
    optional("sourceCurrency", Kind::Text, "CAIP-19 id of the currency that the user pays."),
    optional("targetCurrency", Kind::Text, "CAIP-19 id of the currency that the user gets."),
    optional(
        "fiatAmount",
        Kind::DecimalOrText,
        "Amount that is paid, or paid out, in fiat. Exactly one of the two amounts is sent.",
    ),
    optional("cryptoAmount", Kind::DecimalOrText, "Amount that is bought or sold, in crypto."),
    optional(
        "fee",
        Kind::DecimalOrText,
        "The partner's fee in percent, 0 to 5 within the client's cap; the client's default if \
         omitted.",
    ),
    COUNTRY_CODE,
    PROMO_CODE,
    CHANNEL,
];

/// Members of buying only.
pub(super) const BUY_MEMBERS: &[Member] = &[
    required("paymentMethod", Kind::Text, "Code of a listed payment method."),
    optional("walletAddress", Kind::Text, "Binds the quote to this wallet."),
    optional("destinationTag", Kind::Tag, "Binds the quote to this tag."),
];

/// Members of selling only.
pub(super) const SELL_MEMBERS: &[Member] = &[optional(
    "paymentMethod",
    Kind::OneOf(&AccountType::NAMES),
    "Payout method; `bankTransfer` if omitted.",
)];

/// A validated quote request; the call checks that the market is open.
#[derive(Debug)]
pub struct Request {
    pub(super) side: Side,
    pub(super) pair: Arc<Pair>,
    pub(super) method: Arc<PaymentMethod>,
    pub(super) given: Given,
    pub(super) fee: Option<Decimal>,
    pub(super) wallet_address: Option<WalletAddress>,
    pub(super) destination_tag: Option<DestinationTag>,
    pub(super) country: Option<Country>,
    pub(super) promo_code: Option<String>,
    pub(super) channel: Option<&'static str>,
    /// A quote of its own, or the order that is made at once.
    pub(super) stage: Stage,
}

impl Request {
    /// Reads the members.
    ///
    /// # Errors
    /// ER048, or every violation of: ER010 to ER015, ER042 to ER044, ER050, ER061 to ER063, ER402, ER403.
    pub fn read(side: Side, document: &Value, client: &Client) -> Result<Self> {
        let mut fields = Fields::from_object(document)?;
        let pair = pair(&mut fields, side, &client.catalogue);
        let method = method(&mut fields, side, &client.catalogue);
        let given = given(&mut fields, pair.as_deref());
        let fee = fee(&mut fields, client);
        let crypto = pair.as_ref().and_then(|pair| pair.base.crypto.as_ref());
        let (wallet_address, destination_tag) = match side {
            Side::Buy => wallet(&mut fields, crypto),
            Side::Sell => (None, None),
        };
        let country = client.tenant.country(&mut fields, "countryCode");
        let promo_code = fields.optional("promoCode", Code::RequestMalformed, promo_code);
        let channel =
            fields.optional("channel", Code::RequestMalformed, |value| channel(value.as_str()?));
        let request = pair.zip(method).zip(given).map(|((pair, method), given)| Self {
            side,
            pair,
            method,
            given,
            fee,
            wallet_address,
            destination_tag,
            country,
            promo_code: promo_code.flatten(),
            channel,
            stage: Stage::Quote,
        });
        fields.finish(request)
    }

    /// The request of an order that is made at once, for this fiat amount, with defaults for the rest.
    pub(crate) fn purchase(pair: Arc<Pair>, method: Arc<PaymentMethod>, fiat: Decimal) -> Self {
        Self {
            side: Side::Buy,
            pair,
            method,
            given: Given::Fiat(fiat),
            fee: None,
            wallet_address: None,
            destination_tag: None,
            country: None,
            promo_code: None,
            channel: None,
            stage: Stage::Order,
        }
    }

    /// The currencies that the user pays and receives.
    pub(super) fn paid_and_received(&self) -> (&Currency, &Currency) {
        paid_and_received(self.side, &self.pair)
    }

    /// The error for an amount without a price.
    pub(super) fn unpriceable(&self, why: Unpriceable) -> Error {
        let (code, name) = match self.given {
            Given::Fiat(_) => (Code::FiatAmountInvalid, "fiatAmount"),
            Given::Crypto(_) => (Code::CryptoAmountInvalid, "cryptoAmount"),
        };
        let detail = match why {
            Unpriceable::TooSmall => "nothing is left after the fees",
            Unpriceable::TooLarge => "it is too large",
        };
        Error::of_member_with(code, name, detail)
    }
}

/// Visible ASCII; an empty code is none.
pub(super) fn promo_code(value: &Value) -> Option<Option<String>> {
    match value.as_str()? {
        "" => Some(None),
        code if code.len() > PROMO_CODE_BYTES_MAX => None,
        code => code.bytes().all(|byte| byte.is_ascii_graphic()).then(|| Some(code.to_owned())),
    }
}

pub(super) fn parsed<T: FromStr>(value: &Value) -> Option<T> {
    value.as_str()?.parse().ok()
}

/// The pair of `currencyPair`, or of `sourceCurrency` and `targetCurrency` (CAIP-19). Both forms
/// may be sent, and one of the two ids alone, if they agree. A pair that is disabled on this side
/// counts as unknown.
fn pair(fields: &mut Fields<'_>, side: Side, catalogue: &Catalogue) -> Option<Arc<Pair>> {
    let source = fields.optional("sourceCurrency", Code::SourceCurrencyUnsupported, |value| {
        currency(catalogue, value)
            .filter(|currency| currency.crypto.is_some() == (side == Side::Sell))
    });
    let target = fields.optional("targetCurrency", Code::TargetCurrencyUnsupported, |value| {
        currency(catalogue, value)
            .filter(|currency| currency.crypto.is_some() == (side == Side::Buy))
    });
    let by_caip19 =
        fields.value("sourceCurrency").is_some() && fields.value("targetCurrency").is_some();
    let named = fields
        .value("currencyPair")
        .map(|value| parsed(value).and_then(|code| catalogue.pairs.get(&code)));
    let derived = || {
        let (source, target) = source.as_ref().zip(target.as_ref())?;
        let (base, quote) = if side == Side::Buy { (target, source) } else { (source, target) };
        catalogue.pair(base.code(), quote.code())
    };
    let agrees = |pair: &Pair| {
        let (paid, received) = paid_and_received(side, pair);
        source.as_ref().is_none_or(|source| source.code() == paid.code())
            && target.as_ref().is_none_or(|target| target.code() == received.code())
    };
    let pair = named.unwrap_or_else(derived);
    // An invalid CAIP-19 id has been reported already.
    let reported = by_caip19 && !fields.is_clean();
    let is_open = |pair: &Pair| side.terms(pair).status != PairStatus::Disabled;
    let pair = pair.filter(|pair| agrees(pair) && is_open(pair)).cloned();
    if pair.is_none() && !reported {
        fields.refuse_member(Code::CurrencyPairUnknown, "currencyPair");
    }
    pair
}

/// The pair's currencies that the user pays and receives on this side.
fn paid_and_received(side: Side, pair: &Pair) -> (&Currency, &Currency) {
    match side {
        Side::Buy => (&pair.quote, &pair.base),
        Side::Sell => (&pair.base, &pair.quote),
    }
}

fn currency(catalogue: &Catalogue, value: &Value) -> Option<Arc<Currency>> {
    catalogue.by_caip19(&parsed(value)?).cloned()
}

fn method(
    fields: &mut Fields<'_>,
    side: Side,
    catalogue: &Catalogue,
) -> Option<Arc<PaymentMethod>> {
    let find = |code: &str| {
        let fits = side == Side::Buy || AccountType::from_name(code).is_some();
        catalogue.payment_method(code).filter(|_| fits).cloned()
    };
    if side == Side::Sell && fields.value("paymentMethod").is_none() {
        return find(PAYOUT_METHOD_DEFAULT.as_str());
    }
    fields.required("paymentMethod", Code::PaymentMethodUnknown, |value| find(value.as_str()?))
}

/// Reads exactly one of the two amounts; an empty string is none.
fn given(fields: &mut Fields<'_>, pair: Option<&Pair>) -> Option<Given> {
    let is_sent = |name| fields.value(name).is_some_and(|value| value.as_str() != Some(""));
    let (fiat, crypto) = (is_sent("fiatAmount"), is_sent("cryptoAmount"));
    if fiat == crypto {
        fields.refuse(if fiat { Code::AmountAmbiguous } else { Code::AmountMissing });
    }
    let fiat = fiat.then(|| {
        let most = pair.map(|pair| pair.quote.scale());
        amount(fields, "fiatAmount", Code::FiatAmountInvalid, most).map(Given::Fiat)
    });
    let crypto = crypto.then(|| {
        let most = pair.map(|pair| pair.base.scale());
        amount(fields, "cryptoAmount", Code::CryptoAmountInvalid, most).map(Given::Crypto)
    });
    fiat.or(crypto).flatten()
}

/// A positive number with at most `decimals`, which are unknown without a pair.
pub(super) fn amount(
    fields: &mut Fields<'_>,
    name: &'static str,
    code: Code,
    decimals: Option<u32>,
) -> Option<Decimal> {
    let value = fields.value(name).and_then(from_number_or_text);
    let wrong: Cow<'static, str> = match value {
        None => "not a number".into(),
        Some(amount) if amount <= Decimal::ZERO => "not positive".into(),
        Some(amount) if amount > Decimal::from(AMOUNT_MAX) => "too large".into(),
        Some(amount) => match decimals {
            Some(most) if !fits_decimals(amount, most) => {
                format!("more than {most} decimals").into()
            }
            _ => return Some(amount),
        },
    };
    fields.refuse_with(code, name, wrong);
    None
}

/// The partner's fee in percent; null and an empty string are the tenant's default.
pub(super) fn fee(fields: &mut Fields<'_>, client: &Client) -> Option<Decimal> {
    fields
        .optional("fee", Code::FeeOutOfBounds, |value| {
            if value.as_str() == Some("") {
                return Some(None);
            }
            from_number_or_text(value).filter(|fee| client.tenant.accepts_fee(*fee)).map(Some)
        })
        .flatten()
}

/// The wallet to bind the quote to. Without a pair, its address is wrong if no chain knows it, and
/// its tag is not judged.
fn wallet(
    fields: &mut Fields<'_>,
    crypto: Option<&Crypto>,
) -> (Option<WalletAddress>, Option<DestinationTag>) {
    let address = fields.optional("walletAddress", Code::WalletAddressInvalid, |value| {
        let text = value.as_str()?;
        match crypto {
            Some(crypto) => WalletAddress::parse(crypto.chain, text).ok(),
            None => WalletAddress::of_any_chain(text),
        }
    });
    let Some(crypto) = crypto else { return (address, None) };
    let tag = fields.value("destinationTag").map_or(Ok(None), |value| crypto.read_tag(value));
    let tag = tag.unwrap_or_else(|code| {
        fields.refuse_member(code, "destinationTag");
        None
    });
    (address, tag)
}
