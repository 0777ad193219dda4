//! Fee requests as JSON: the input of a dry run, and of a stored sample or decision.

use rampart_plugins::contract::{FeeRequest, Stage};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::fields::strict;
use crate::policies::kinds::json::{Amount, SideName, Text, money, side};

/// Reads an operator's input; missing members have defaults.
///
/// # Errors
/// A sentence, after the path of the member that is invalid or unknown.
pub(super) fn read(path: &str, input: &Value) -> Result<FeeRequest, String> {
    strict::read_at::<Fee>(path, input).map(Into::into)
}

pub(super) fn to_json(request: &FeeRequest) -> Value {
    let stage = match request.stage {
        Stage::Quote => "quote",
        Stage::Order => "order",
    };
    let mut members = json!({
        "stage": stage,
        "side": side(request.side),
        "pay": money(&request.pay),
        "receiveCurrency": request.receive_currency,
        "midRate": request.mid_rate,
        "paymentMethod": request.payment_method,
        "country": request.country,
        "userTier": request.user_tier,
    });
    if let Some(volume) = &request.volume_30d {
        members["volume30d"] = volume.as_str().into();
    }
    if let Some(code) = &request.promo_code {
        members["promoCode"] = code.as_str().into();
    }
    members
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum StageName {
    Quote,
    Order,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Fee {
    stage: StageName,
    side: SideName,
    pay: Amount,
    #[serde(alias = "receive-currency")]
    receive_currency: String,
    #[serde(alias = "mid-rate")]
    mid_rate: Text,
    #[serde(alias = "payment-method")]
    payment_method: String,
    country: String,
    #[serde(alias = "user-tier")]
    user_tier: String,
    #[serde(rename = "volume30d", alias = "volume-30d")]
    volume_30d: Option<Text>,
    #[serde(alias = "promo-code")]
    promo_code: Option<String>,
}

impl Default for Fee {
    fn default() -> Self {
        Self {
            stage: StageName::Quote,
            side: SideName::Buy,
            pay: Amount { amount: "100".into(), currency: "EUR".to_owned() },
            receive_currency: "BTC".to_owned(),
            mid_rate: "0.00001".into(),
            payment_method: "creditCard".to_owned(),
            country: "DE".to_owned(),
            user_tier: "basic".to_owned(),
            volume_30d: None,
            promo_code: None,
        }
    }
}

impl From<Fee> for FeeRequest {
    fn from(fee: Fee) -> Self {
        Self {
            stage: match fee.stage {
                StageName::Quote => Stage::Quote,
                StageName::Order => Stage::Order,
            },
            side: fee.side.into(),
            pay: fee.pay.into(),
            receive_currency: fee.receive_currency,
            mid_rate: fee.mid_rate.into(),
            payment_method: fee.payment_method,
            country: fee.country,
            user_tier: fee.user_tier,
            volume_30d: fee.volume_30d.map(Into::into),
            promo_code: fee.promo_code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_the_text_that_was_sent() {
        let input = crate::http::fields::parse(
            br#"{"pay":{"amount":12.50,"currency":"EUR"},"mid-rate":"0.10","volume30d":1000}"#,
        );
        let request = read("input", &input.unwrap()).unwrap();
        assert_eq!((&*request.pay.amount, &*request.mid_rate), ("12.50", "0.10"));
        assert_eq!(request.volume_30d.as_deref(), Some("1000"));
        assert_eq!(request.country, "DE");
    }
}
