//! Requests of dry runs: the records of `wit/` as JSON, in camel case.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampart_plugins::contract::{
    FeeRequest, Field, Header, Method, MethodKind, Money, PolicyKind, Purpose, RankRequest, Side,
    SignedPayload, Stage, UserFacts,
};
use serde::Deserialize;
use serde_json::Value;

use crate::policies::method_order::{method_kind, policy_methods};
use crate::trading::catalogue::{Catalogue, PaymentMethodKind};

/// A request to a policy of any kind.
pub(crate) enum DryRunRequest {
    Fee(FeeRequest),
    MethodOrder(Arc<RankRequest>),
    Signature(SignedPayload),
}

impl DryRunRequest {
    /// Reads an operator's input. Missing members have defaults; the default methods to rank are those
    /// of the catalogue.
    ///
    /// # Errors
    /// The member that is invalid or unknown.
    pub(crate) fn read(
        kind: PolicyKind,
        input: Value,
        catalogue: &Catalogue,
    ) -> Result<Self, String> {
        let invalid = |error: serde_json::Error| error.to_string();
        Ok(match kind {
            PolicyKind::Fee => {
                Self::Fee(serde_json::from_value::<Fee>(input).map_err(invalid)?.into())
            }
            PolicyKind::MethodOrder => {
                let rank: Rank = serde_json::from_value(input).map_err(invalid)?;
                Self::MethodOrder(Arc::new(rank.into_request(catalogue)))
            }
            PolicyKind::Signature => {
                Self::Signature(serde_json::from_value::<Payload>(input).map_err(invalid)?.into())
            }
        })
    }
}

/// A string, or a JSON number in the digits that were sent.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    String(String),
    Number(serde_json::Number),
    Flag(bool),
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        match text {
            Text::String(text) => text,
            Text::Number(number) => number.to_string(),
            Text::Flag(flag) => flag.to_string(),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SideName {
    Buy,
    Sell,
}

impl From<SideName> for Side {
    fn from(side: SideName) -> Self {
        match side {
            SideName::Buy => Self::Buy,
            SideName::Sell => Self::Sell,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Amount {
    amount: Text,
    currency: String,
}

impl From<Amount> for Money {
    fn from(amount: Amount) -> Self {
        Self { amount: amount.amount.into(), currency: amount.currency }
    }
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct User {
    country: String,
    tier: String,
    returning: bool,
    #[serde(alias = "last-used")]
    last_used: Option<String>,
    channel: String,
}

impl Default for User {
    fn default() -> Self {
        Self {
            country: "DE".to_owned(),
            tier: "basic".to_owned(),
            returning: false,
            last_used: None,
            channel: "web".to_owned(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct OfferedMethod {
    id: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    currencies: Vec<String>,
    #[serde(default, alias = "success-rate")]
    success_rate: Option<i32>,
    #[serde(default)]
    cost: Option<i32>,
    #[serde(default, alias = "settles-in")]
    settles_in: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Rank {
    side: SideName,
    amount: Option<Amount>,
    user: User,
    methods: Option<Vec<OfferedMethod>>,
}

impl Default for Rank {
    fn default() -> Self {
        Self { side: SideName::Buy, amount: None, user: User::default(), methods: None }
    }
}

impl Rank {
    fn into_request(self, catalogue: &Catalogue) -> RankRequest {
        let offered = |method: OfferedMethod| Method {
            id: method.id,
            kind: PaymentMethodKind::from_name(&method.kind).map_or(MethodKind::Other, method_kind),
            currencies: method.currencies,
            success_rate: method.success_rate,
            cost: method.cost,
            settles_in: method.settles_in,
        };
        let enabled = || {
            let all = catalogue.payment_methods.iter().zip(policy_methods(catalogue));
            all.filter(|(method, _)| method.enabled).map(|(_, facts)| facts).collect()
        };
        let methods = match self.methods {
            Some(methods) => methods.into_iter().map(offered).collect(),
            None => enabled(),
        };
        let user = UserFacts {
            country: self.user.country,
            tier: self.user.tier,
            returning: self.user.returning,
            last_used: self.user.last_used,
            channel: self.user.channel,
        };
        let amount = self.amount.map(Into::into);
        RankRequest { side: self.side.into(), amount, user, methods }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum PurposeName {
    Offer,
    Onboarding,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Payload {
    purpose: PurposeName,
    fields: BTreeMap<String, Text>,
    #[serde(alias = "signature")]
    claimed: Option<String>,
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Default for Payload {
    fn default() -> Self {
        Self {
            purpose: PurposeName::Offer,
            fields: BTreeMap::new(),
            claimed: None,
            method: "POST".to_owned(),
            path: "/api/v2/buy/offer".to_owned(),
            query: String::new(),
            headers: BTreeMap::new(),
            body: String::new(),
        }
    }
}

impl From<Payload> for SignedPayload {
    fn from(payload: Payload) -> Self {
        let field = |(name, value): (String, Text)| Field { name, value: value.into() };
        let header = |(name, value): (String, String)| Header {
            name: name.to_ascii_lowercase(),
            value: value.into_bytes(),
        };
        Self {
            purpose: match payload.purpose {
                PurposeName::Offer => Purpose::Offer,
                PurposeName::Onboarding => Purpose::Onboarding,
            },
            fields: payload.fields.into_iter().map(field).collect(),
            claimed: payload.claimed,
            method: payload.method,
            path: payload.path,
            query: payload.query,
            headers: payload.headers.into_iter().map(header).collect(),
            body: payload.body.into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(kind: PolicyKind, input: Value) -> Result<DryRunRequest, String> {
        DryRunRequest::read(kind, input, &Catalogue::default())
    }

    #[test]
    fn amounts_keep_the_text_that_was_sent() {
        let input = crate::http::fields::parse(
            br#"{"pay":{"amount":12.50,"currency":"EUR"},"mid-rate":"0.10","volume30d":1000}"#,
        );
        let Ok(DryRunRequest::Fee(request)) = read(PolicyKind::Fee, input.unwrap()) else {
            panic!("not a fee request")
        };
        assert_eq!((&*request.pay.amount, &*request.mid_rate), ("12.50", "0.10"));
        assert_eq!(request.volume_30d.as_deref(), Some("1000"));
        assert_eq!(request.country, "DE");
    }

    #[test]
    fn the_members_of_a_payload_are_sorted() {
        let input =
            json!({"fields": {"returnUrl": "app:a", "fee": 1, "a": true}, "signature": "x"});
        let Ok(DryRunRequest::Signature(payload)) = read(PolicyKind::Signature, input) else {
            panic!("not a payload")
        };
        let fields: Vec<_> = payload.fields.iter().map(|f| (&*f.name, &*f.value)).collect();
        assert_eq!(fields, [("a", "true"), ("fee", "1"), ("returnUrl", "app:a")]);
        assert_eq!(payload.claimed.as_deref(), Some("x"));
    }

    #[test]
    fn an_unknown_member_is_named() {
        for kind in PolicyKind::ALL {
            let problem = read(kind, json!({"foo": 1})).err().unwrap_or_default();
            assert!(problem.contains("`foo`"), "{problem}");
        }
    }
}
