//! The operator's settings. The host has checked their types against what the policy declared.

use crate::{ConfigEntry, ConfigValue, PolicyError};

/// The settings of one call. A setting that is not there is `None` (or an empty list).
pub struct Config(Vec<ConfigEntry>);

/// The reason a setting cannot be used.
pub struct Problem {
    /// The setting.
    pub key: &'static str,
    /// For the operator.
    pub problem: String,
}

impl Config {
    #[doc(hidden)]
    pub fn new(entries: Vec<ConfigEntry>) -> Self {
        Self(entries)
    }

    fn get(&self, key: &str) -> Option<&ConfigValue> {
        self.0.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// A text.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            ConfigValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Yes or no.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            ConfigValue::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// A whole number.
    pub fn integer(&self, key: &str) -> Option<i32> {
        match self.get(key)? {
            ConfigValue::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Exact decimal text.
    pub fn decimal(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            ConfigValue::Decimal(text) => Some(text),
            _ => None,
        }
    }

    /// A list of texts.
    pub fn texts(&self, key: &str) -> &[String] {
        match self.get(key) {
            Some(ConfigValue::Texts(texts)) => texts,
            _ => &[],
        }
    }
}

impl Problem {
    /// A problem with the setting `key`.
    pub fn new(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key, problem: problem.into() }
    }
}

impl From<Problem> for PolicyError {
    fn from(Problem { key, problem }: Problem) -> Self {
        Self::InvalidConfig(format!("{key}: {problem}"))
    }
}
