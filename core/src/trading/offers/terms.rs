//! Terms of an offer, read from its body: every violation is reported at once.
//!
//! Each member has error codes of its own, by the kind of violation. A member that is well formed
//! but not acceptable (an address of another chain, a reference of 300 characters, a fee above the
//! cap) has the member's own code too, with the reason in the solution's text; only an invalid
//! return URL has a shared one, ER047 (section 13 of the contract).

use std::ops::RangeInclusive;
use std::sync::Arc;

use rust_decimal::Decimal;
use serde_json::Value;

use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Kind, Member, optional};
use crate::http::fields::{Fields, flag};
use crate::platform::error::Code;
use crate::trading::catalogue::{Currency, Pair};
use crate::trading::quotes::Side;
use crate::trading::routing::{is_offered, is_payable};
use rampart_types::decimal::{fits_decimals, from_number};
use rampart_types::money::AMOUNT_MAX;
use rampart_types::{CallbackUrl, DestinationTag, PartnerReference, ReturnUrl, WalletAddress};

/// Seconds that an offer may live (API document, Limits).
const EXPIRE_SECONDS: RangeInclusive<i64> = 3_600..=86_400;

/// Members with the terms.
pub(crate) const MEMBERS: &[Member] = &[
    optional(
        "baseCurrency",
        Kind::Text,
        "Code of the currency that is bought. Required unless both CAIP-19 ids are sent.",
    ),
    optional("quoteCurrency", Kind::Text, "Code of the currency that is paid. Required likewise."),
    optional("targetCurrency", Kind::Text, "CAIP-19 id of the currency that is bought."),
    optional("sourceCurrency", Kind::Text, "CAIP-19 id of the currency that is paid."),
    optional("paymentMethod", Kind::Text, "Code of a listed payment method. Required."),
    optional(
        "baseCurrencyAmount",
        Kind::Decimal,
        "Amount that is bought. At most one of the two amounts is sent, exactly one with `fixedAmount`.",
    ),
    optional("quoteCurrencyAmount", Kind::Decimal, "Amount that is paid."),
    optional("returnUrl", Kind::Format("uri"), "Page to return to after paying."),
    optional("callbackUrl", Kind::Format("uri"), "URL called when the order is final; https."),
    optional(
        "partnerOrderIdentifier",
        Kind::Sized(1, 255),
        "The partner's own identifier of the order.",
    ),
    optional("walletAddress", Kind::Text, "Chosen by the user if omitted."),
    optional("walletAddressTag", Kind::Text, "The tag or memo that goes with the address."),
    optional("fee", Kind::Decimal, "The partner's fee in percent, 0 to 5 within the client's cap."),
    optional("fixedAmount", Kind::Flag, "If true, a confirm must be of this amount."),
    optional("fixedCurrency", Kind::Flag, "If true, a confirm must be of this pair."),
    optional("fixedPaymentMethod", Kind::Flag, "If true, a confirm must use this method."),
    optional("showWalletAddress", Kind::Flag, "If true, as by default, the user sees the address."),
    optional("expireTime", Kind::Integer(3_600, 86_400), "Lifetime in seconds; 3600 if omitted."),
];

/// Error codes that differ between offers and checkouts.
#[derive(Debug)]
pub(crate) struct Codes {
    blank_quote_currency: Code,
    unknown_wallet_address: Code,
}

/// Codes of an offer.
pub(crate) const OFFER: Codes = Codes {
    blank_quote_currency: Code::QuoteCurrencyBlank,
    unknown_wallet_address: Code::OfferWalletInvalid,
};
/// Codes of a checkout, which has none for a blank quote currency: there is no pair then.
pub(crate) const CHECKOUT: Codes = Codes {
    blank_quote_currency: Code::CurrencyPairInvalid,
    unknown_wallet_address: Code::CheckoutWalletInvalid,
};

/// The terms of one purchase.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) pair: Arc<Pair>,
    pub(crate) payment_method: String,
    /// In crypto; never together with `quote_amount`.
    pub(crate) base_amount: Option<Decimal>,
    /// In fiat.
    pub(crate) quote_amount: Option<Decimal>,
    pub(crate) return_url: Option<ReturnUrl>,
    pub(crate) callback_url: Option<CallbackUrl>,
    pub(crate) partner_reference: Option<PartnerReference>,
    /// `None` if the user chooses it.
    pub(crate) wallet_address: Option<WalletAddress>,
    pub(crate) wallet_address_tag: Option<DestinationTag>,
    /// In percent; `None` is the client's default.
    pub(crate) fee_percentage: Option<Decimal>,
    pub(crate) flags: Flags,
    /// `None` is the edge's default.
    pub(crate) expire_seconds: Option<i64>,
}

/// Terms that are fixed, and the visibility of the wallet address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags {
    pub(crate) fixed_amount: bool,
    pub(crate) fixed_currency: bool,
    pub(crate) fixed_payment_method: bool,
    pub(crate) show_wallet_address: bool,
}

/// The value of a member that should be a text.
enum Text {
    Absent,
    /// Empty, or white space only.
    Blank,
    Some(String),
    Other,
}

impl Text {
    fn read(fields: &Fields<'_>, name: &str) -> Self {
        match fields.value(name) {
            None => Self::Absent,
            Some(Value::String(text)) if text.trim().is_empty() => Self::Blank,
            Some(Value::String(text)) => Self::Some(text.clone()),
            Some(_) => Self::Other,
        }
    }
}

impl Terms {
    /// Reads all members; `None` if one of them is refused.
    pub(crate) fn read(fields: &mut Fields<'_>, client: &Client, codes: &Codes) -> Option<Self> {
        let flags = Flags::read(fields);
        let pair = pair(fields, client, flags.fixed_currency, codes);
        let payment_method = payment_method(fields, client, flags.fixed_payment_method);
        let scale = |currency: fn(&Pair) -> &Currency| pair.as_deref().map(|p| currency(p).scale());
        let (base_scale, quote_scale) = (scale(|pair| &pair.base), scale(|pair| &pair.quote));
        let base_amount = amount(fields, "baseCurrencyAmount", Code::BaseAmountInvalid, base_scale);
        let quote_amount =
            amount(fields, "quoteCurrencyAmount", Code::QuoteAmountInvalid, quote_scale);
        check_amounts(fields, flags.fixed_amount);
        let return_url = return_url(fields);
        let callback_url = callback_url(fields, client);
        let partner_reference = partner_reference(fields);
        let wallet_address = wallet_address(fields, client, pair.as_deref(), codes);
        let wallet_address_tag = wallet_address_tag(fields, pair.as_deref());
        let fee_percentage = fee(fields, client);
        let expire_seconds = expire_seconds(fields);
        Some(Self {
            pair: pair?,
            payment_method: payment_method?,
            base_amount,
            quote_amount,
            return_url,
            callback_url,
            partner_reference,
            wallet_address,
            wallet_address_tag,
            fee_percentage,
            flags,
            expire_seconds,
        })
    }
}

impl Flags {
    fn read(fields: &mut Fields<'_>) -> Self {
        let mut read = |name, code| fields.optional(name, code, flag);
        Self {
            fixed_amount: read("fixedAmount", Code::FixedAmountNotBool).unwrap_or(false),
            fixed_currency: read("fixedCurrency", Code::FixedCurrencyNotBool).unwrap_or(false),
            fixed_payment_method: read("fixedPaymentMethod", Code::FixedPaymentMethodNotBool)
                .unwrap_or(false),
            show_wallet_address: read("showWalletAddress", Code::ShowWalletNotBool).unwrap_or(true),
        }
    }
}

/// The pair: of the two CAIP-19 ids if both are sent, else of the two codes.
fn pair(fields: &mut Fields<'_>, client: &Client, fixed: bool, codes: &Codes) -> Option<Arc<Pair>> {
    let by_id = ["sourceCurrency", "targetCurrency"].iter().all(|id| fields.value(id).is_some());
    let target = asset(fields, client, "targetCurrency", Code::TargetCurrencyUnsupported);
    let source = asset(fields, client, "sourceCurrency", Code::SourceCurrencyUnsupported);
    let blank_base = if fixed { Code::FixedBaseCurrencyBlank } else { Code::BaseCurrencyBlank };
    let base =
        code(fields, "baseCurrency", Code::BaseCurrencyNotString, (!by_id).then_some(blank_base));
    let quote = code(
        fields,
        "quoteCurrency",
        Code::QuoteCurrencyNotString,
        (!by_id).then_some(codes.blank_quote_currency),
    );
    let (base, quote) = if by_id {
        (target?.code(), source?.code())
    } else {
        let (base, quote) = (base?, quote?);
        match (base.parse(), quote.parse()) {
            (Ok(base), Ok(quote)) => (base, quote),
            _ => return refuse(fields, Code::CurrencyPairInvalid, "baseCurrency"),
        }
    };
    // An id that is sent alone derives nothing, but must be the pair's.
    let pair = client.catalogue.pair(base, quote).filter(|pair| {
        target.is_none_or(|target| target.code() == pair.base.code())
            && source.is_none_or(|source| source.code() == pair.quote.code())
    });
    match pair.filter(|pair| is_offered(client, Side::Buy, pair)) {
        Some(pair) => Some(Arc::clone(pair)),
        None => refuse(fields, Code::CurrencyPairInvalid, "baseCurrency"),
    }
}

/// The currency of a CAIP-19 id: crypto for the target, fiat for the source.
fn asset<'a>(
    fields: &mut Fields<'_>,
    client: &'a Client,
    name: &'static str,
    code: Code,
) -> Option<&'a Arc<Currency>> {
    let wants_crypto = code == Code::TargetCurrencyUnsupported;
    fields.optional(name, code, |value| {
        let currency = client.catalogue.by_caip19(&value.as_str()?.parse().ok()?)?;
        (currency.crypto.is_some() == wants_crypto).then_some(currency)
    })
}

/// A currency code's text; `blank` is `None` if it may be missing.
fn code(
    fields: &mut Fields<'_>,
    name: &'static str,
    not_text: Code,
    blank: Option<Code>,
) -> Option<String> {
    match (Text::read(fields, name), blank) {
        (Text::Some(text), _) => Some(text),
        (Text::Other, _) => refuse(fields, not_text, name),
        (Text::Absent | Text::Blank, Some(blank)) => refuse(fields, blank, name),
        (Text::Absent | Text::Blank, None) => None,
    }
}

fn payment_method(fields: &mut Fields<'_>, client: &Client, fixed: bool) -> Option<String> {
    let text = Text::read(fields, "paymentMethod");
    if fixed && matches!(text, Text::Absent | Text::Blank) {
        fields.refuse_member(Code::FixedPaymentMethodBlank, "paymentMethod");
    }
    match text {
        Text::Absent => refuse(fields, Code::PaymentMethodNull, "paymentMethod"),
        Text::Blank if fixed => None,
        Text::Blank => refuse(fields, Code::PaymentMethodInvalid, "paymentMethod"),
        Text::Other => refuse(fields, Code::PaymentMethodNotString, "paymentMethod"),
        Text::Some(code) => match client.catalogue.payment_method(&code) {
            Some(method) if is_payable(client, Side::Buy, method) => Some(code),
            _ => refuse(fields, Code::PaymentMethodInvalid, "paymentMethod"),
        },
    }
}

/// A positive JSON number with no more decimals than its currency has.
fn amount(
    fields: &mut Fields<'_>,
    name: &'static str,
    code: Code,
    scale: Option<u32>,
) -> Option<Decimal> {
    let amount = fields.optional(name, code, from_number)?;
    let detail = if amount <= Decimal::ZERO {
        "not positive"
    } else if amount > Decimal::from(AMOUNT_MAX) {
        "too large"
    } else if scale.is_some_and(|scale| !fits_decimals(amount, scale)) {
        "more decimals than its currency"
    } else {
        return Some(amount);
    };
    fields.refuse_with(code, name, detail);
    None
}

/// Requires one amount or none; exactly one if it is fixed. A malformed amount counts as set.
fn check_amounts(fields: &mut Fields<'_>, fixed: bool) {
    let names = ["baseCurrencyAmount", "quoteCurrencyAmount"];
    let set = names.iter().filter(|name| fields.value(name).is_some()).count();
    if set == 2 {
        fields.refuse(Code::OfferAmountAmbiguous);
    }
    if fixed && set != 1 {
        fields.refuse(Code::FixedAmountAmbiguous);
    }
}

fn return_url(fields: &mut Fields<'_>) -> Option<ReturnUrl> {
    match Text::read(fields, "returnUrl") {
        Text::Absent => None,
        Text::Blank => refuse(fields, Code::ReturnUrlBlank, "returnUrl"),
        Text::Other => refuse(fields, Code::ReturnUrlNotString, "returnUrl"),
        Text::Some(text) => {
            text.parse().ok().or_else(|| refuse(fields, Code::ReturnUrlInvalid, "returnUrl"))
        }
    }
}

fn callback_url(fields: &mut Fields<'_>, client: &Client) -> Option<CallbackUrl> {
    let loopback = client.tenant.loopback_http;
    match Text::read(fields, "callbackUrl") {
        Text::Absent => None,
        Text::Blank => refuse(fields, Code::CallbackUrlBlank, "callbackUrl"),
        Text::Other => refuse(fields, Code::OfferCallbackInvalid, "callbackUrl"),
        Text::Some(text) => CallbackUrl::parse(&text, loopback)
            .ok()
            .or_else(|| refuse(fields, Code::OfferCallbackInvalid, "callbackUrl")),
    }
}

fn partner_reference(fields: &mut Fields<'_>) -> Option<PartnerReference> {
    let text = fields.text_or_null("partnerOrderIdentifier", Code::PartnerOrderIdInvalid)?;
    match text.parse() {
        Ok(reference) => Some(reference),
        Err(_) => {
            let detail = "1 to 255 characters, no control characters";
            fields.refuse_with(Code::PartnerOrderIdInvalid, "partnerOrderIdentifier", detail);
            None
        }
    }
}

fn wallet_address(
    fields: &mut Fields<'_>,
    client: &Client,
    pair: Option<&Pair>,
    codes: &Codes,
) -> Option<WalletAddress> {
    let required = client.tenant.wallet_address_required;
    match Text::read(fields, "walletAddress") {
        Text::Absent | Text::Blank if required => {
            refuse(fields, Code::WalletAddressRequired, "walletAddress")
        }
        Text::Absent => None,
        Text::Blank | Text::Other => refuse(fields, Code::OfferWalletInvalid, "walletAddress"),
        Text::Some(text) => {
            let address = match pair.and_then(|pair| pair.base.crypto.as_ref()) {
                Some(crypto) => WalletAddress::parse(crypto.chain, &text).ok(),
                // Without a pair, it is wrong if no chain knows it.
                None => WalletAddress::of_any_chain(&text),
            };
            address.or_else(|| refuse(fields, codes.unknown_wallet_address, "walletAddress"))
        }
    }
}

fn wallet_address_tag(fields: &mut Fields<'_>, pair: Option<&Pair>) -> Option<DestinationTag> {
    let text = fields.text_or_null("walletAddressTag", Code::WalletAddressTagInvalid)?;
    let crypto = pair?.base.crypto.as_ref()?;
    match DestinationTag::parse(crypto.tag_kind(), &text) {
        Ok(tag) => Some(tag),
        Err(_) => refuse(fields, Code::WalletAddressTagInvalid, "walletAddressTag"),
    }
}

fn fee(fields: &mut Fields<'_>, client: &Client) -> Option<Decimal> {
    if matches!(Text::read(fields, "fee"), Text::Blank) {
        return refuse(fields, Code::FeeBlank, "fee");
    }
    let fee = fields.optional("fee", Code::FeeInvalid, from_number)?;
    if client.tenant.accepts_fee(fee) {
        return Some(fee);
    }
    let detail = "0 to 5 within the client's cap, with at most 4 decimals";
    fields.refuse_with(Code::FeeInvalid, "fee", detail);
    None
}

/// Seconds as a JSON integer; `3600.0` and `"3600"` are none.
fn expire_seconds(fields: &mut Fields<'_>) -> Option<i64> {
    let integer = match fields.value("expireTime")? {
        Value::String(text) if text.trim().is_empty() => {
            return refuse(fields, Code::ExpireTimeBlank, "expireTime");
        }
        Value::Number(number) => {
            let digits = number.as_str().strip_prefix('-').unwrap_or(number.as_str());
            let whole = digits.bytes().all(|byte| byte.is_ascii_digit());
            // An integer that does not fit is out of bounds, not malformed.
            whole.then(|| number.as_str().parse().unwrap_or(i64::MAX))
        }
        _ => None,
    };
    match integer {
        None => refuse(fields, Code::ExpireTimeNotInteger, "expireTime"),
        Some(seconds) if EXPIRE_SECONDS.contains(&seconds) => Some(seconds),
        Some(_) => refuse(fields, Code::ExpireTimeOutOfBounds, "expireTime"),
    }
}

fn refuse<T>(fields: &mut Fields<'_>, code: Code, name: &'static str) -> Option<T> {
    fields.refuse_member(code, name);
    None
}
