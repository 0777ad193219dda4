//! Every setting as a list, read from the types that hold them: key, type, unit, default, bounds
//! and one sentence.

use rust_decimal::Decimal;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use super::Config;

/// Units by the end of a key.
const UNITS: [(&str, &str); 5] = [
    ("_bytes", "bytes"),
    ("_ms", "milliseconds"),
    ("_seconds", "seconds"),
    ("_days", "days"),
    ("_years", "years"),
];
/// Members of a schema that the settings' types set, beside those of JSON Schema.
const UNIT: &str = "x-unit";
const DEFAULT: &str = "x-default";
const BOUNDS: &str = "x-bounds";

/// Settings below one name.
#[derive(Debug)]
pub(crate) struct Section {
    /// First part of their keys.
    pub(crate) name: String,
    /// One sentence about them.
    pub(crate) description: String,
    /// Every key.
    pub(crate) settings: Vec<Setting>,
}

/// One setting.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Setting {
    /// Full name, such as `edge.threads`.
    pub(crate) key: String,
    /// One sentence.
    pub(crate) description: String,
    /// `boolean`, `integer`, `string`, `list`, `rate` or `secret`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Unit of a number.
    pub(crate) unit: Option<String>,
    /// A value must be given where the table that holds the key is.
    pub(crate) required: bool,
    /// Value without a setting; null where there is none, or where it differs by machine.
    pub(crate) default: Value,
    /// Behaviour without a setting, where `default` cannot say it.
    pub(crate) default_note: Option<String>,
    /// Least value.
    pub(crate) min: Option<u64>,
    /// Largest value.
    pub(crate) max: Option<u64>,
    /// Bounds that are not those of a number.
    pub(crate) bounds_note: Option<String>,
    /// All values, where there are few.
    pub(crate) values: Vec<String>,
}

impl Setting {
    /// The bounds in words; empty where there are none.
    pub(crate) fn bounds(&self) -> String {
        match (self.min, self.max, &self.bounds_note) {
            (Some(min), Some(max), _) => format!("{min} to {max}"),
            (.., Some(note)) => note.clone(),
            _ => self.values.join(", "),
        }
    }

    /// The default in words; `none` where there is none.
    pub(crate) fn default_text(&self) -> String {
        match (&self.default_note, &self.default) {
            (Some(note), _) => note.clone(),
            (None, _) if self.required => "required".to_owned(),
            (None, Value::Null) => "none".to_owned(),
            (None, Value::String(text)) => text.clone(),
            (None, Value::Array(values)) if values.iter().all(Value::is_string) => {
                values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
            }
            (None, value) => value.to_string(),
        }
    }
}

/// Every setting by section, in the order of the types.
pub(crate) fn sections() -> Vec<Section> {
    let schema = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<Config>();
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    let properties = schema.as_value()["properties"].as_object();
    let section = |(name, schema): (&String, &Value)| {
        let mut settings = Vec::new();
        collect(name, schema, defaults.get(name), false, &mut settings);
        Section { name: name.clone(), description: text(schema, "description"), settings }
    };
    properties.into_iter().flatten().map(section).collect()
}

/// Section and key of every secret; each may stand in a file of its own, named by `<key>_file`.
pub(super) fn secrets() -> Vec<(String, String)> {
    let settings = sections().into_iter().flat_map(|section| section.settings);
    let keys = settings.filter(|setting| setting.kind == "secret").map(|setting| setting.key);
    let split = |key: String| {
        let (section, key) = key.rsplit_once('.')?;
        Some((section.to_owned(), key.to_owned()))
    };
    keys.filter_map(split).collect()
}

/// Appends what `schema` describes under `key`: itself, or everything below it.
fn collect(
    key: &str,
    schema: &Value,
    default: Option<&Value>,
    required: bool,
    out: &mut Vec<Setting>,
) {
    if let Some(properties) = schema["properties"].as_object() {
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (name, schema) in properties {
            let default = default.and_then(|default| default.get(name));
            let required = required.iter().any(|required| required == name);
            collect(&format!("{key}.{name}"), schema, default, required, out);
        }
    } else if let Some(values) = schema.get("additionalProperties").filter(|v| v.is_object()) {
        let key = format!("{key}.<name>");
        match values["properties"].is_object() || values["items"]["properties"].is_object() {
            true => collect(&key, values, None, true, out),
            // A plain value has no words of its own.
            false => out.push(Setting {
                description: text(schema, "description"),
                ..setting(&key, values, None, false)
            }),
        }
    } else if let Some(items) = schema.get("items").filter(|items| items["properties"].is_object())
    {
        collect(&format!("{key}[]"), items, None, true, out);
    } else {
        let setting = setting(key, schema, default, required);
        let file = (setting.kind == "secret").then(|| secret_file(key));
        out.push(setting);
        out.extend(file);
    }
}

fn setting(key: &str, schema: &Value, default: Option<&Value>, required: bool) -> Setting {
    let note = schema[DEFAULT].as_str().map(str::to_owned);
    let default = default.filter(|_| note.is_none()).cloned().unwrap_or_default();
    Setting {
        key: key.to_owned(),
        description: text(schema, "description"),
        kind: kind(schema),
        unit: unit(key, schema),
        required,
        default,
        default_note: note,
        min: integer(schema, "minimum"),
        max: integer(schema, "maximum"),
        bounds_note: schema[BOUNDS].as_str().map(str::to_owned),
        values: values(schema),
    }
}

/// The key beside a secret's that names a file with it.
fn secret_file(key: &str) -> Setting {
    Setting {
        key: format!("{key}_file"),
        description: format!("File that holds `{key}`, in its place."),
        kind: "string".to_owned(),
        ..Setting::default()
    }
}

fn kind(schema: &Value) -> String {
    let name = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        other => other.as_str(),
    };
    match (schema["format"].as_str(), name) {
        (Some(format @ ("rate" | "secret")), _) => format,
        // One text may hold them all, and so may a file.
        (_, Some("array")) if schema["items"]["format"] == "secret" => "secret",
        (_, Some("array")) => "list",
        (_, Some(name)) => name,
        (_, None) => "string",
    }
    .to_owned()
}

fn unit(key: &str, schema: &Value) -> Option<String> {
    let by_end = || UNITS.iter().find(|(end, _)| key.ends_with(end)).map(|(_, unit)| *unit);
    schema[UNIT].as_str().or_else(by_end).map(str::to_owned)
}

/// The values of an enumeration, which has a schema for each; an optional one has null beside it.
fn values(schema: &Value) -> Vec<String> {
    let schema = schema["anyOf"].get(0).unwrap_or(schema);
    let each = schema["oneOf"].as_array().into_iter().flatten();
    each.filter_map(|value| value["const"].as_str()).map(str::to_owned).collect()
}

/// A bound, which JSON may write as `1.0`.
fn integer(schema: &Value, member: &str) -> Option<u64> {
    let number = schema.get(member)?.to_string();
    number.parse::<Decimal>().ok()?.normalize().try_into().ok()
}

/// A text of the schema on one line.
fn text(schema: &Value, member: &str) -> String {
    let words = schema[member].as_str().unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}
