//! Parts of requests that several kinds have, as JSON: the records of `wit/` in camel case.

use rampart_plugins::contract::{Money, Side};
use serde::Deserialize;
use serde_json::{Value, json};

/// A string, or a JSON number in the digits that were sent.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Text {
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
