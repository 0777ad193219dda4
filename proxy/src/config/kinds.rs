//! The kinds of values that settings take. The library that reads them rounds 1.5 to 2, and takes
//! `true` for 1 and 2 for `true`.

use std::collections::HashMap;

use ::config::{Value, ValueKind};

use super::reference::{self, Setting};
use crate::startup_error::StartupError;

/// Refuses a value in the place of a section, and a value of another kind than its setting's.
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

/// The value and why it is not its setting's; `None` if nothing is wrong with its kind.
fn fault(setting: &Setting, value: &Value) -> Option<String> {
    let reason = match (setting.kind.as_str(), &value.kind) {
        ("integer", ValueKind::I64(number)) if *number < 0 => {
            format!("not between {}", setting.bounds().replacen(" to ", " and ", 1))
        }
        ("integer", ValueKind::String(text)) if text.parse::<i64>().is_ok() => return None,
        ("integer", ValueKind::Boolean(_) | ValueKind::Float(_) | ValueKind::String(_)) => {
            "not a whole number".to_owned()
        }
        ("boolean", ValueKind::I64(_) | ValueKind::Float(_)) => "not true or false".to_owned(),
        ("list", ValueKind::Boolean(_) | ValueKind::I64(_) | ValueKind::Float(_)) => {
            "not a text or a list of texts".to_owned()
        }
        _ => return None,
    };
    Some(format!("{}, {reason}", shown(value)))
}

/// The value in the words of a sentence.
fn shown(value: &Value) -> String {
    match &value.kind {
        ValueKind::String(text) => format!("'{text}'"),
        ValueKind::Array(_) => "a list".to_owned(),
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
        let sentence = read("", &[("RAMPART__EDGE__THREADS", "yes")]).unwrap_err();
        assert_eq!(sentence, "'edge.threads' is 'yes', not a whole number");
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
