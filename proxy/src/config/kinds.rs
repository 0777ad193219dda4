//! The kinds of values that settings take, and the bounds of numbers. The library that reads them rounds
//! 1.5 to 2, takes `true` for 1 and 2 for `true`, and names types of Rust where a number fits none.

use std::collections::HashMap;

use ::config::{Value, ValueKind};

use super::reference::{self, Setting};
use crate::startup_error::StartupError;

/// Refuses a value in the place of a section, a value of another kind than its setting's, and a number
/// that is out of its bounds.
pub(super) fn check(tree: &HashMap<String, Value>) -> Result<(), StartupError> {
    for setting in reference::sections().into_iter().flat_map(|section| section.settings) {
        let reason = find(tree, &setting.key)?.and_then(|value| fault(&setting, value));
        if let Some(reason) = reason {
            return Err(format!("'{}' is {reason}", setting.key).into());
        }
    }
    Ok(())
}

/// The value of a key, if it is set.
///
/// # Errors
/// When a value stands in the place of a section. It is not shown: a section of secrets may have been
/// given one of them.
fn find<'a>(
    tree: &'a HashMap<String, Value>,
    key: &str,
) -> Result<Option<&'a Value>, StartupError> {
    let (mut table, mut begin) = (tree, 0);
    for (end, _) in key.match_indices('.') {
        table = match table.get(&key[begin..end]).map(|value| &value.kind) {
            Some(ValueKind::Table(inner)) => inner,
            Some(_) => return Err(format!("'{}' is a section, not a setting", &key[..end]).into()),
            None => return Ok(None),
        };
        begin = end + 1;
    }
    Ok(table.get(&key[begin..]))
}

/// The value and why it is not its setting's; `None` if nothing is wrong with its kind, nor with the
/// size of a whole number.
fn fault(setting: &Setting, value: &Value) -> Option<String> {
    let number = match &value.kind {
        ValueKind::I64(number) => Some(*number),
        ValueKind::String(text) => text.parse().ok(),
        _ => None,
    };
    let reason = match (setting.kind.as_str(), number, &value.kind) {
        ("integer", Some(number), _) => return out_of_bounds(setting, number),
        ("integer", None, _) => "not a whole number",
        ("boolean", _, ValueKind::Boolean(_) | ValueKind::String(_)) => return None,
        ("boolean", ..) => "not true or false",
        ("list", _, ValueKind::Boolean(_) | ValueKind::I64(_) | ValueKind::Float(_)) => {
            "not a text or a list of texts"
        }
        _ => return None,
    };
    Some(format!("{}, {reason}", shown(value)))
}

/// The number and the bounds of its setting that it is out of.
fn out_of_bounds(setting: &Setting, number: i64) -> Option<String> {
    let (min, max) = (setting.min?, setting.max?);
    let is_within = u64::try_from(number).is_ok_and(|number| (min..=max).contains(&number));
    (!is_within).then(|| format!("{number}, not between {min} and {max}"))
}

/// The value in the words of a sentence.
fn shown(value: &Value) -> String {
    match &value.kind {
        ValueKind::String(text) => format!("'{text}'"),
        // With its point, so that 2.0 is not shown as a whole number.
        ValueKind::Float(number) => format!("{number:?}"),
        ValueKind::Array(_) => "a list".to_owned(),
        ValueKind::Table(_) => "a section".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, source};

    fn read(text: &str, env: &[(&str, &str)]) -> Result<Config, String> {
        let env =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let read = source::merge(text, "", Some(env)).and_then(Config::read);
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_of_another_kind_is_refused_and_not_rounded() {
        for (text, sentence) in [
            ("edge = 3\n", "'edge' is a section, not a setting"),
            ("edge.tls = true\n", "'edge.tls' is a section, not a setting"),
            ("[[operators.oidc]]\n", "'operators.oidc' is a section, not a setting"),
            ("edge.threads = 1.5\n", "'edge.threads' is 1.5, not a whole number"),
            ("edge.threads = 2.0\n", "'edge.threads' is 2.0, not a whole number"),
            ("edge.threads = [2]\n", "'edge.threads' is a list, not a whole number"),
            ("edge.threads = 9999999999\n", "'edge.threads' is 9999999999, not between 1 and 1024"),
            ("edge.hsts_seconds = true\n", "'edge.hsts_seconds' is true, not a whole number"),
            ("edge.hsts_seconds = 'on'\n", "'edge.hsts_seconds' is 'on', not a whole number"),
            ("edge.hsts_seconds = -1\n", "'edge.hsts_seconds' is -1, not between 0 and 63072000"),
            (
                "database.statement_timeout_ms = 2.5\n",
                "'database.statement_timeout_ms' is 2.5, not a whole number",
            ),
            ("edge.tls.ocsp = 2\n", "'edge.tls.ocsp' is 2, not true or false"),
            ("edge.listen = 8443\n", "'edge.listen' is 8443, not a text or a list of texts"),
            (
                "policy.visible_headers = true\n",
                "'policy.visible_headers' is true, not a text or a list of texts",
            ),
        ] {
            assert_eq!(read(text, &[]).unwrap_err(), sentence);
        }
        for (text, sentence) in [
            ("yes", "'edge.threads' is 'yes', not a whole number"),
            ("-1", "'edge.threads' is -1, not between 1 and 1024"),
            ("9999999999", "'edge.threads' is 9999999999, not between 1 and 1024"),
        ] {
            assert_eq!(read("", &[("RAMPART__EDGE__THREADS", text)]).unwrap_err(), sentence);
        }
    }

    #[test]
    fn a_secret_in_the_place_of_its_section_is_not_shown() {
        for section in ["database", "keys", "admin", "mail", "operators.oidc"] {
            let sentence = format!("'{section}' is a section, not a setting");
            let name = format!("RAMPART__{}", section.replace('.', "__").to_uppercase());
            assert_eq!(read("", &[(&name, "hidden")]).unwrap_err(), sentence);
            assert_eq!(read(&format!("{section} = 'hidden'\n"), &[]).unwrap_err(), sentence);
        }
    }

    #[test]
    fn the_environment_says_numbers_and_booleans_in_texts() {
        let env = [("RAMPART__EDGE__THREADS", "3"), ("RAMPART__EDGE__TLS__OCSP", "0")];
        let config = read("", &env).unwrap();
        assert_eq!((config.edge.threads, config.edge.tls.ocsp), (3, false));
    }
}
