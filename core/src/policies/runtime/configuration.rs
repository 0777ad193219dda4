//! An operator's configuration: a JSON object in the API and the database, typed entries for the
//! policy. The types are those of the policy's description of itself.

use rampart_plugins::contract::{ConfigEntry, ConfigField, ConfigType, ConfigValue, PolicyInfo};
use serde_json::{Map, Value, json};

use crate::http::fields::integer;
use rampart_types::decimal;

const TYPES: [ConfigType; 5] = [
    ConfigType::Text,
    ConfigType::Flag,
    ConfigType::Integer,
    ConfigType::Decimal,
    ConfigType::Texts,
];

/// A policy's description of itself, as stored.
pub(crate) fn info_as_json(info: &PolicyInfo) -> Value {
    let field = |field: &ConfigField| {
        json!({
            "key": field.key,
            "type": type_name(field.type_),
            "required": field.required,
            "help": field.help,
        })
    };
    json!({
        "name": info.name,
        "version": info.version,
        "summary": info.summary,
        "config": info.config.iter().map(field).collect::<Vec<_>>(),
        "keys": info.keys,
    })
}

/// The entries of a configuration, sorted as the contract requires.
///
/// # Errors
/// The first member of another type, by name.
pub(crate) fn entries(
    fields: &[ConfigField],
    config: &Map<String, Value>,
) -> Result<Vec<ConfigEntry>, String> {
    let entry = |(key, value): (&String, &Value)| {
        let field = fields.iter().find(|field| field.key == *key);
        let field = field.ok_or_else(|| format!("the policy has no configuration `{key}`"))?;
        let expected = type_name(field.type_);
        let value = read(field.type_, value).ok_or_else(|| format!("`{key}` is not {expected}"))?;
        Ok(ConfigEntry { key: key.clone(), value })
    };
    let mut entries = config.iter().map(entry).collect::<Result<Vec<_>, String>>()?;
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(entries)
}

/// The entries of a stored configuration.
///
/// # Errors
/// When it does not match the stored description, which only a manual change can cause.
pub(crate) fn entries_of_stored(info: &Value, config: &Value) -> Result<Vec<ConfigEntry>, String> {
    let config = config.as_object().ok_or("the configuration is not an object")?;
    entries(&stored_fields(info), config)
}

fn stored_fields(info: &Value) -> Vec<ConfigField> {
    let field = |field: &Value| {
        Some(ConfigField {
            key: field["key"].as_str()?.to_owned(),
            type_: TYPES.into_iter().find(|t| field["type"].as_str() == Some(type_name(*t)))?,
            required: field["required"].as_bool()?,
            help: String::new(),
        })
    };
    info["config"].as_array().into_iter().flatten().filter_map(field).collect()
}

fn read(kind: ConfigType, value: &Value) -> Option<ConfigValue> {
    Some(match kind {
        ConfigType::Text => ConfigValue::Text(value.as_str()?.to_owned()),
        ConfigType::Flag => ConfigValue::Flag(value.as_bool()?),
        ConfigType::Integer => ConfigValue::Integer(integer(value)?),
        ConfigType::Decimal => {
            ConfigValue::Decimal(decimal::from_number_or_text(value)?.normalize().to_string())
        }
        ConfigType::Texts => {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            ConfigValue::Texts(value.as_array()?.iter().map(text).collect::<Option<_>>()?)
        }
    })
}

const fn type_name(kind: ConfigType) -> &'static str {
    match kind {
        ConfigType::Text => "text",
        ConfigType::Flag => "flag",
        ConfigType::Integer => "integer",
        ConfigType::Decimal => "decimal",
        ConfigType::Texts => "texts",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> PolicyInfo {
        let field = |key: &str, type_| ConfigField {
            key: key.into(),
            type_,
            required: false,
            help: String::new(),
        };
        PolicyInfo {
            name: "acme/fees".into(),
            version: "1.0.0".into(),
            summary: String::new(),
            policies: Vec::new(),
            config: vec![
                field("tiers", ConfigType::Texts),
                field("floor", ConfigType::Decimal),
                field("rate", ConfigType::Integer),
                field("open", ConfigType::Flag),
                field("note", ConfigType::Text),
            ],
            keys: Vec::new(),
        }
    }

    fn read(config: Value) -> Result<Vec<ConfigEntry>, String> {
        entries_of_stored(&info_as_json(&info()), &config)
    }

    #[test]
    fn a_configuration_becomes_sorted_entries_of_the_declared_types() {
        let config = json!({"tiers": ["0=1"], "floor": 0.50, "rate": 7, "open": true, "note": "1"});
        let entry = |key: &str, value| ConfigEntry { key: key.into(), value };
        let expected = vec![
            entry("floor", ConfigValue::Decimal("0.5".into())),
            entry("note", ConfigValue::Text("1".into())),
            entry("open", ConfigValue::Flag(true)),
            entry("rate", ConfigValue::Integer(7)),
            entry("tiers", ConfigValue::Texts(vec!["0=1".into()])),
        ];
        assert_eq!(read(config), Ok(expected));
        let text = vec![entry("floor", ConfigValue::Decimal("12".into()))];
        assert_eq!(read(json!({"floor": "12.00"})), Ok(text));
    }

    #[test]
    fn a_member_of_another_type_is_named() {
        for (config, named) in [
            (json!({"other": 1}), "no configuration `other`"),
            (json!({"rate": 1.5}), "`rate` is not integer"),
            (json!({"floor": "a"}), "`floor` is not decimal"),
            (json!({"tiers": ["a", 1]}), "`tiers` is not texts"),
            (json!([]), "not an object"),
        ] {
            let problem = read(config).unwrap_err();
            assert!(problem.contains(named), "{problem}");
        }
    }
}
