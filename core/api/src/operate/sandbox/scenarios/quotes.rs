//! Quotes that cannot be made.

use serde_json::{Value, json};

use super::ListedScenario;
use super::recipe::{BUY_QUOTE, ScenarioRequest, purchase, with};
use crate::platform::error::Code;

const EUR: &str = "swift:0/iso4217:EUR";
const BTC: &str = "bip122:000000000019d6689c085ae165831e93/slip44:0";

pub(super) fn scenarios() -> Vec<ListedScenario> {
    let by_id = |source: &str, target: &str| json!({"currencyPair": null, "sourceCurrency": source, "targetCurrency": target});
    let precise = json!({"fiatAmount": null, "cryptoAmount": "0.123456789"});
    let words = json!({"currencyPair": "XRP-EUR", "destinationTag": "seven"});
    let rows: [(_, _, Value); 12] = [
        (
            Code::CurrencyPairUnknown,
            "A pair that is not listed.",
            json!({"currencyPair": "BTC-JPY"}),
        ),
        (Code::FiatAmountInvalid, "Less than nothing.", json!({"fiatAmount": -1})),
        (Code::CryptoAmountInvalid, "Nine decimals.", precise),
        (
            Code::PaymentMethodUnknown,
            "A method that is not listed.",
            json!({"paymentMethod": "cash"}),
        ),
        (Code::WalletAddressInvalid, "An address of nowhere.", json!({"walletAddress": "nowhere"})),
        (Code::DestinationTagInvalid, "A tag in words.", words),
        (Code::AmountMissing, "No amount.", json!({"fiatAmount": null})),
        (Code::AmountAmbiguous, "Two amounts.", json!({"cryptoAmount": 1})),
        (Code::DestinationTagUnsupported, "A tag on Bitcoin.", json!({"destinationTag": "7"})),
        (Code::FeeOutOfBounds, "More than a partner may ask.", json!({"fee": 6})),
        (Code::TargetCurrencyUnsupported, "An unknown target.", by_id(EUR, "bip122:0/slip44:0")),
        (Code::SourceCurrencyUnsupported, "An unknown source.", by_id("swift:0/iso4217:XXX", BTC)),
    ];
    let row = |(code, description, changes)| {
        let request = ScenarioRequest::post(BUY_QUOTE, &with(purchase(), changes));
        ListedScenario::error(code, description, [request])
    };
    rows.into_iter().map(row).collect()
}
