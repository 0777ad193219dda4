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
        let why = without_source(&e);
        StartupError::from(format!("the configuration{place} cannot be read: {why}"))
    };
    let builder = config::Config::builder().add_source(File::from_str(text, FileFormat::Toml));
    let mut earlier = builder.build().map_err(&unreadable)?;
    let environment =
        Environment::with_prefix("RAMPART").prefix_separator("__").separator("__").source(env);
    let later = config::Config::builder().add_source(environment);
    let mut later = later.build().map_err(&unreadable)?;
    for (section, key) in &reference::secrets() {
        let is_replaced = resolve_secret(&mut later.cache, section, key, false)?;
        resolve_secret(&mut earlier.cache, section, key, is_replaced)?;
    }
    for source in [&mut earlier, &mut later] {
        table(&mut source.cache).map_or(Ok(()), renamed::resolve)?;
    }
    let merged = config::Config::builder().add_source(earlier).add_source(later);
    let merged = merged.build().map_err(&unreadable)?;
    merged.cache.into_table().map_err(|e| one_line(&e).into())
}

/// The table of a section below `root`, if there is one.
fn section_table<'a>(root: &'a mut Value, section: &str) -> Option<&'a mut Map<String, Value>> {
    section.split('.').try_fold(table(root)?, |outer, name| table(outer.get_mut(name)?))
}

/// Puts a secret of one source in the place of the file that is named for it; true if the source sets
/// it. One that a later source replaces, in whichever form, is dropped unread: merging would leave a
/// file beside a value. Beside a value the empty name of a file is none: a command that is run in a
/// container can add to the environment there, and take nothing from it.
///
/// # Errors
/// When value and file are both set, the file cannot be read, or the secret is empty: whoever sends
/// nothing would know it.
fn resolve_secret(
    source: &mut Value,
    section: &str,
    key: &str,
    is_replaced: bool,
) -> Result<bool, StartupError> {
    let file_key = format!("{key}_file");
    let Some(table) = section_table(source, section) else { return Ok(false) };
    let secret = match (table.remove(key), table.remove(&file_key)) {
        (None, None) => return Ok(false),
        (Some(_), Some(file)) if !is_text(&file, str::is_empty) => {
            return Err(format!("'{section}.{key}' and '{section}.{file_key}' are both set").into());
        }
        _ if is_replaced => return Ok(true),
        (Some(secret), _) => secret,
        (None, Some(file)) => read_secret(&format!("{section}.{file_key}"), file)?,
    };
    if is_text(&secret, |text| text.trim().is_empty()) {
        return Err(format!("'{section}.{key}' is empty").into());
    }
    table.insert(key.to_owned(), secret);
    Ok(true)
}

/// The secret in the file that a setting names, less one line end.
fn read_secret(setting: &str, file: Value) -> Result<Value, StartupError> {
    let path = file.into_string().map_err(|e| one_line(&e))?;
    let unreadable = format!("'{setting}' names '{path}', which cannot be read");
    let text = std::fs::read_to_string(&path).context(&unreadable)?;
    if text.len() > SECRET_BYTES_MAX {
        return Err(format!("{unreadable}: it is larger than 8 KiB").into());
    }
    Ok(Value::from(text.trim_end_matches(['\r', '\n'])))
}

fn is_text(value: &Value, meets: impl Fn(&str) -> bool) -> bool {
    matches!(&value.kind, ValueKind::String(text) if meets(text))
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
    let (_, rest) = text.split_once(" does not have variant constructor")?;
    let (value, rest) = rest.rsplit_once(" for key `")?;
    // No value is left between the two where it is empty.
    let value = value.trim_start();
    let (key, _) = rest.split_once('`')?;
    let key = section.map_or_else(|| key.to_owned(), |name| format!("{name}.{key}"));
    let mut settings = reference::sections().into_iter().flat_map(|section| section.settings);
    let setting = settings.find(|setting| setting.key == key && !setting.values.is_empty())?;
    Some(format!("'{key}' is '{value}', not one of {}", setting.values.join(", ")))
}

/// The error on one line, less the line of the file that it shows, which may hold a secret.
fn without_source(error: &ConfigError) -> String {
    let text = error.to_string();
    let before_bar = |letter: char| letter == ' ' || letter.is_ascii_digit();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let shown = lines.filter(|line| !line.trim_start_matches(before_bar).starts_with('|'));
    shown.collect::<Vec<_>>().join(": ")
}

fn one_line(error: &ConfigError) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_toml_is_named_and_not_shown() {
        for line in ["url = postgres://a:hidden@db/rampart", "url = 'hidden", "url 'hidden'"] {
            let text = format!("[database]\n{line}\n");
            let read = merge(&text, " in 'rampart.toml'", Some(Map::new()));
            let sentence = read.unwrap_err().to_string();
            let begin = "the configuration in 'rampart.toml' cannot be read: TOML parse error at ";
            let is_named = sentence.starts_with(begin) && sentence.contains("line 2, column");
            assert!(is_named && !sentence.contains("hidden"), "{sentence}");
        }
    }
}
