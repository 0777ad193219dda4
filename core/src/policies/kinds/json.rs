//! Parts of requests that several kinds have, as JSON: the records of `wit/` in camel case.

use rampart_plugins::contract::{Money, Side};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// The text of a string, of a number in the digits that were sent, or of a boolean.
pub(super) struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            Value::Bool(flag) => Ok(Self(flag.to_string())),
            _ => Err(D::Error::custom("expected a string, a number, true or false")),
        }
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// A side by its name.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SideName {
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

/// An amount, as text or as a number in the digits that were sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Amount {
    pub(super) amount: Text,
    pub(super) currency: String,
}

impl From<Amount> for Money {
    fn from(amount: Amount) -> Self {
        Self { amount: amount.amount.into(), currency: amount.currency }
    }
}

/// A side's name.
pub(super) fn side(side: Side) -> Value {
    match side {
        Side::Buy => "buy",
        Side::Sell => "sell",
    }
    .into()
}

/// An amount as JSON.
pub(super) fn money(money: &Money) -> Value {
    json!({"amount": money.amount, "currency": money.currency})
}
