//! Validation of an operator's configuration against the policy's declaration.

use crate::bindings::meta::{ConfigField, ConfigType};
use crate::bindings::types::{ConfigEntry, ConfigValue};
use crate::kinds::scalars::parse_decimal;

/// Checks `config` against `fields`: keys sorted, unique and declared, types as declared, required
/// fields present.
///
/// # Errors
/// The first problem, naming the key.
pub fn check_config(fields: &[ConfigField], config: &[ConfigEntry]) -> Result<(), String> {
    if !config.is_sorted_by(|a, b| a.key < b.key) {
        return Err("configuration keys are not sorted, or one is repeated".into());
    }
    for ConfigEntry { key, value } in config {
        let field = fields.iter().find(|field| field.key == *key);
        let field = field.ok_or_else(|| format!("the policy has no configuration `{key}`"))?;
        let fits = match (field.type_, value) {
            (ConfigType::Decimal, ConfigValue::Decimal(text)) => parse_decimal(text).is_ok(),
            (ConfigType::Text, ConfigValue::Text(_))
            | (ConfigType::Flag, ConfigValue::Flag(_))
            | (ConfigType::Integer, ConfigValue::Integer(_))
            | (ConfigType::Texts, ConfigValue::Texts(_)) => true,
            _ => false,
        };
        if !fits {
            return Err(format!("configuration `{key}` is not of the type the policy declares"));
        }
    }
    let missing = fields.iter().find(|f| f.required && !config.iter().any(|e| e.key == f.key));
    match missing {
        Some(field) => Err(format!("configuration `{}` is required", field.key)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: &[(&str, ConfigValue)]) -> Result<(), String> {
        let field = |key: &str, type_, required| ConfigField {
            key: key.into(),
            type_,
            required,
            help: String::new(),
        };
        let fields =
            [field("floor", ConfigType::Decimal, false), field("tiers", ConfigType::Texts, true)];
        let entry = |(key, value): &(&str, ConfigValue)| ConfigEntry {
            key: (*key).into(),
            value: value.clone(),
        };
        check_config(&fields, &config.iter().map(entry).collect::<Vec<_>>())
    }

    #[test]
    fn a_declared_configuration_passes() {
        let tiers = ("tiers", ConfigValue::Texts(vec![]));
        assert_eq!(check(&[("floor", ConfigValue::Decimal("0.50".into())), tiers.clone()]), Ok(()));
        assert_eq!(check(&[tiers]), Ok(()));
    }

    #[test]
    fn an_undeclared_missing_or_mistyped_field_is_named() {
        let tiers = ("tiers", ConfigValue::Texts(vec![]));
        let cases = [
            (vec![("zz", ConfigValue::Flag(true))], "no configuration `zz`"),
            (vec![("floor", ConfigValue::Integer(1)), tiers.clone()], "`floor` is not of the type"),
            (vec![("floor", ConfigValue::Decimal("1e3".into())), tiers.clone()], "`floor` is not"),
            (vec![], "`tiers` is required"),
            (vec![tiers.clone(), tiers.clone()], "one is repeated"),
            (vec![tiers, ("floor", ConfigValue::Decimal("1".into()))], "not sorted"),
        ];
        for (config, expected) in cases {
            let problem = check(&config).expect_err(expected);
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
