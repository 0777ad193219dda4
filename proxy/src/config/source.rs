//! The sources of settings, file and environment, merged into one tree of untyped values.

use std::collections::HashMap;
use std::path::Path;

use config::{ConfigError, Environment, File, FileFormat, Map, Value, ValueKind};

use super::{SECTIONS, reference, renamed};
use crate::startup_error::{Context as _, StartupError};

/// Largest file that holds one secret, in bytes.
const SECRET_BYTES_MAX: usize = 8 * 1024;

/// Merges file and environment (this process's, unless `env` stands in for it).
pub(super) fn gather(
    file: Option<&Path>,
    env: Option<Map<String, String>>,
) -> Result<HashMap<String, Value>, StartupError> {
    let Some(path) = file else { return merge("", "", env) };
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .context(format_args!("the configuration file '{shown}' cannot be read"))?;
    merge(&text, &format!(" in '{shown}'"), env)
}

/// Merges settings in TOML, which are at `place`, and the environment (this process's, unless `env`
/// stands in for it).
pub(super) fn merge(
    text: &str,
    place: &str,
    env: Option<Map<String, String>>,
) -> Result<HashMap<String, Value>, StartupError> {
    let unreadable = |e: ConfigError| {
        StartupError::from(format!("the configuration{place} cannot be read: {}", one_line(&e)))
    };
    let builder = config::Config::builder().add_source(File::from_str(text, FileFormat::Toml));
    let mut earlier = builder.build().map_err(&unreadable)?;
    let environment =
        Environment::with_prefix("RAMPART").prefix_separator("__").separator("__").source(env);
    let later = config::Config::builder().add_source(environment);
    let mut later = later.build().map_err(&unreadable)?;
    let secrets = reference::secrets();
    for (section, key) in &secrets {
        drop_replaced_secret(&mut earlier.cache, &mut later.cache, section, key)?;
    }
    for source in [&mut earlier, &mut later] {
        table(&mut source.cache).map_or(Ok(()), renamed::resolve)?;
    }
    let merged = config::Config::builder().add_source(earlier).add_source(later);
    let merged = merged.build().map_err(&unreadable)?;
    let mut root = merged.cache;
    for (section, key) in &secrets {
        if let Some(table) = section_table(&mut root, section) {
            take_secret(table, section, key)?;
            refuse_empty(table, section, key)?;
        }
    }
    root.into_table().map_err(|e| one_line(&e).into())
}

/// The table of a section below `root`, if there is one.
fn section_table<'a>(root: &'a mut Value, section: &str) -> Option<&'a mut Map<String, Value>> {
    section.split('.').try_fold(table(root)?, |outer, name| table(outer.get_mut(name)?))
}

/// Drops a secret from the earlier source that the later one sets, in whichever form: merging would
/// leave a file beside a value.
fn drop_replaced_secret(
    earlier: &mut Value,
    later: &mut Value,
    section: &str,
    key: &str,
) -> Result<(), StartupError> {
    let is_replaced = sets_secret(later, section, key)?;
    if sets_secret(earlier, section, key)?
        && is_replaced
        && let Some(table) = section_table(earlier, section)
    {
        table.remove(key);
        table.remove(&format!("{key}_file"));
    }
    Ok(())
}

/// True if a source sets a secret, as value or as file; refuses both at once. Beside a value the
/// empty name of a file is none: a command that is run in a container can add to the environment
/// there, and take nothing from it.
fn sets_secret(source: &mut Value, section: &str, key: &str) -> Result<bool, StartupError> {
    let file_key = format!("{key}_file");
    let Some(table) = section_table(source, section) else { return Ok(false) };
    let file = table.get(&file_key).map(|value| &value.kind);
    let is_empty = matches!(file, Some(ValueKind::String(path)) if path.is_empty());
    if file.is_some() && !is_empty && table.contains_key(key) {
        return Err(format!("'{section}.{key}' and '{section}.{file_key}' are both set").into());
    }
    Ok(file.is_some() || table.contains_key(key))
}

/// Replaces `<key>_file` by what the file holds, less one line end.
fn take_secret(
    table: &mut Map<String, Value>,
    section: &str,
    key: &str,
) -> Result<(), StartupError> {
    let file_key = format!("{key}_file");
    let Some(path) = table.remove(&file_key) else {
        return Ok(());
    };
    // Beside a value it is empty, or `sets_secret` has refused it.
    if table.contains_key(key) {
        return Ok(());
    }
    let path = path.into_string().map_err(|e| one_line(&e))?;
    let unreadable = format!("'{section}.{file_key}' names '{path}', which cannot be read");
    let text = std::fs::read_to_string(&path).context(&unreadable)?;
    if text.len() > SECRET_BYTES_MAX {
        return Err(format!("{unreadable}: it is larger than 8 KiB").into());
    }
    table.insert(key.to_owned(), Value::from(text.trim_end_matches(['\r', '\n'])));
    Ok(())
}

/// Refuses a secret that is empty, from a value or a file: whoever sends nothing would know it.
fn refuse_empty(table: &Map<String, Value>, section: &str, key: &str) -> Result<(), StartupError> {
    match table.get(key).map(|value| &value.kind) {
        Some(ValueKind::String(secret)) if secret.trim().is_empty() => {
            Err(format!("'{section}.{key}' is empty").into())
        }
        _ => Ok(()),
    }
}

/// True if file or environment say something about the key of a section.
pub(super) fn is_set(tree: &HashMap<String, Value>, section: &str, key: &str) -> bool {
    match tree.get(section) {
        Some(Value { kind: ValueKind::Table(table), .. }) => table.contains_key(key),
        _ => false,
    }
}

/// The table that a value is.
pub(super) fn table(value: &mut Value) -> Option<&mut Map<String, Value>> {
    match &mut value.kind {
        ValueKind::Table(table) => Some(table),
        _ => None,
    }
}

/// A section as its type; `section` is `None` for the tree itself.
pub(super) fn typed<T: serde::de::DeserializeOwned>(
    value: Value,
    section: Option<&str>,
) -> Result<T, StartupError> {
    value.try_deserialize().map_err(|e| {
        let text = one_line(&e);
        if let Some(sentence) = unknown(&text, section).or_else(|| wrong_value(&text, section)) {
            return StartupError::from(sentence);
        }
        let place = section.map_or_else(String::new, |name| format!("in section '{name}': "));
        StartupError::from(format!("the configuration is not valid: {place}{text}"))
    })
}

/// The sentence for a key that nobody reads, with those that are read beside it.
fn unknown(text: &str, section: Option<&str>) -> Option<String> {
    let (name, rest) = text.split_once("unknown field `")?.1.split_once('`')?;
    let expected = rest.split_once("expected")?.1.split(" for key").next()?;
    let of_binary: &[&str] = match section {
        // They were taken out of the tree before.
        None if !rest.contains(" for key") => &SECTIONS,
        _ => &[],
    };
    let expected = expected.split('`').skip(1).step_by(2);
    let known: Vec<_> = of_binary.iter().copied().chain(expected).collect();
    let place = section.map_or_else(String::new, |name| format!(" in section '{name}'"));
    Some(format!("there is no setting '{name}'{place}; known there: {}", known.join(", ")))
}

/// The sentence for a value that is none of its setting's, with those that are.
fn wrong_value(text: &str, section: Option<&str>) -> Option<String> {
    let (_, rest) = text.split_once(" does not have variant constructor ")?;
    let (value, rest) = rest.rsplit_once(" for key `")?;
    let (key, _) = rest.split_once('`')?;
    let key = section.map_or_else(|| key.to_owned(), |name| format!("{name}.{key}"));
    let mut settings = reference::sections().into_iter().flat_map(|section| section.settings);
    let setting = settings.find(|setting| setting.key == key && !setting.values.is_empty())?;
    Some(format!("'{key}' is '{value}', not one of {}", setting.values.join(", ")))
}

fn one_line(error: &ConfigError) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
