//! Currency codes, currency pairs, and the decimals of each currency.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::Caip19;
use super::checked_text::{refusal, text_form};

/// Most decimals of a crypto amount, whatever its chain allows (contract, section 1, Money).
pub const CRYPTO_DECIMALS_MAX: u32 = 8;

/// Longest currency code, in characters.
const CODE_CHARS_MAX: usize = 12;
/// Shortest currency code, in characters.
const CODE_CHARS_MIN: usize = 2;

refusal!(
    /// The text is not 2 to 12 capital letters and digits.
    InvalidCurrencyCode,
    "a currency code is 2 to 12 capital letters or digits"
);
refusal!(
    /// The text is not two currency codes joined by a hyphen.
    InvalidPairCode,
    "a currency pair is written BASE-QUOTE"
);

/// The code of a fiat or crypto currency (`EUR`, `BTC`): 2 to 12 of `[A-Z0-9]`, stored inline so
/// that it is `Copy`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CurrencyCode {
    bytes: [u8; CODE_CHARS_MAX],
    length: u8,
}

impl CurrencyCode {
    /// The euro.
    pub const EURO: Self = {
        let mut bytes = [0; CODE_CHARS_MAX];
        [bytes[0], bytes[1], bytes[2]] = *b"EUR";
        Self { bytes, length: 3 }
    };

    /// The code as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII is ever stored, so the default is never taken.
        str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl FromStr for CurrencyCode {
    type Err = InvalidCurrencyCode;

    fn from_str(text: &str) -> Result<Self, InvalidCurrencyCode> {
        let allowed = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        let sized = (CODE_CHARS_MIN..=CODE_CHARS_MAX).contains(&text.len());
        if !sized || !text.bytes().all(allowed) {
            return Err(InvalidCurrencyCode);
        }
        let mut bytes = [0; CODE_CHARS_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        let length = u8::try_from(text.len()).map_err(|_| InvalidCurrencyCode)?;
        Ok(Self { bytes, length })
    }
}

impl fmt::Display for CurrencyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for CurrencyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CurrencyCode({self})")
    }
}

text_form!(CurrencyCode, borrowed, pattern "^[A-Z0-9]{2,12}$");

/// A currency pair, crypto first: `BTC-EUR` buys and sells BTC for EUR (contract, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairCode {
    base: CurrencyCode,
    quote: CurrencyCode,
}

impl PairCode {
    /// The pair of a crypto currency and the fiat currency it is priced in.
    #[must_use]
    pub const fn new(base: CurrencyCode, quote: CurrencyCode) -> Self {
        Self { base, quote }
    }

    /// The crypto currency that is bought or sold.
    #[must_use]
    pub const fn base(self) -> CurrencyCode {
        self.base
    }

    /// The fiat currency of the price.
    #[must_use]
    pub const fn quote(self) -> CurrencyCode {
        self.quote
    }
}

impl FromStr for PairCode {
    type Err = InvalidPairCode;

    fn from_str(text: &str) -> Result<Self, InvalidPairCode> {
        let (base, quote) = text.split_once('-').ok_or(InvalidPairCode)?;
        let code = |part: &str| part.parse().map_err(|_| InvalidPairCode);
        Ok(Self::new(code(base)?, code(quote)?))
    }
}

impl fmt::Display for PairCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.base, self.quote)
    }
}

text_form!(PairCode, pattern "^[A-Z0-9]{2,12}-[A-Z0-9]{2,12}$");

/// A currency in a response (API document, Currency details object).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CurrencyDetails {
    /// The code used in pairs and amounts.
    pub code: CurrencyCode,
    /// The symbol traders use; most often the code.
    pub ticker: Arc<str>,
    /// The name people use.
    pub name: Arc<str>,
    /// The chain-agnostic asset id.
    pub caip19: Caip19,
}

/// Decimals of a fiat currency by ISO 4217 (EUR 2, JPY 0, KWD 3); `None` when the code is not an
/// ISO 4217 currency or has no minor unit.
#[must_use]
pub fn fiat_exponent(code: CurrencyCode) -> Option<u32> {
    iso_currency::Currency::from_code(code.as_str())?.exponent().map(u32::from)
}

/// Decimals of an amount of a crypto currency whose chain counts in `chain_decimals`.
#[must_use]
pub fn crypto_scale(chain_decimals: u32) -> u32 {
    chain_decimals.min(CRYPTO_DECIMALS_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_are_capital_letters_and_digits_within_bounds() {
        for text in ["EUR", "BTC", "1INCH", "USDC", "ABCDEFGHIJKL"] {
            assert_eq!(text.parse::<CurrencyCode>().unwrap().as_str(), text);
        }
        for text in ["", "E", "eur", "EÜR", "EU R", " EUR", "EUR\n", "ABCDEFGHIJKLM", "EU-R"] {
            assert!(text.parse::<CurrencyCode>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_pair_names_crypto_then_fiat() {
        let pair: PairCode = "BTC-EUR".parse().unwrap();
        assert_eq!((pair.base().as_str(), pair.quote().as_str()), ("BTC", "EUR"));
        assert_eq!(serde_json::to_string(&pair).unwrap(), "\"BTC-EUR\"");
        assert_eq!(serde_json::from_str::<PairCode>("\"BTC-EUR\"").unwrap(), pair);
        for text in
            ["", "-", "BTCEUR", "BTC-", "-EUR", "btc-eur", "BTC-EUR-X", "BTC/EUR", "BTC--EUR"]
        {
            assert!(text.parse::<PairCode>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn exponents_follow_iso_4217_and_crypto_is_cut_at_eight() {
        let exponent = |code: &str| fiat_exponent(code.parse().unwrap());
        assert_eq!(exponent("EUR"), Some(2));
        assert_eq!(exponent("JPY"), Some(0));
        assert_eq!(exponent("KWD"), Some(3));
        assert_eq!(exponent("XXX"), None);
        assert_eq!(exponent("BTC"), None);
        assert_eq!((crypto_scale(18), crypto_scale(8), crypto_scale(6)), (8, 8, 6));
    }

    #[test]
    fn details_are_written_as_documented() {
        let details = CurrencyDetails {
            code: "EUR".parse().unwrap(),
            ticker: "EUR".into(),
            name: "Euro".into(),
            caip19: "swift:0/iso4217:EUR".parse().unwrap(),
        };
        assert_eq!(
            serde_json::to_string(&details).unwrap(),
            r#"{"code":"EUR","ticker":"EUR","name":"Euro","caip19":"swift:0/iso4217:EUR"}"#
        );
    }

    proptest! {
        #[test]
        fn a_code_that_is_read_is_written_the_same(text in "[A-Z0-9]{0,14}|.{0,4}") {
            if let Ok(code) = text.parse::<CurrencyCode>() {
                prop_assert_eq!(code.as_str(), text);
            }
        }

        #[test]
        fn a_pair_reads_back(base in "[A-Z0-9]{2,12}", quote in "[A-Z]{3}") {
            let pair = PairCode::new(base.parse().unwrap(), quote.parse().unwrap());
            prop_assert_eq!(pair.to_string().parse(), Ok(pair));
        }
    }
}
