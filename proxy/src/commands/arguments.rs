//! Arguments that many commands share: the page of a list, and the members of a JSON object
//! (`level=2`, `verification.identity=verified`).

use clap::Args;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::StartupError;

/// A page of a list.
#[derive(Debug, Args, Serialize)]
pub(crate) struct Page {
    /// Begin behind this row, which the page before has named.
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Most rows of the page.
    #[arg(long, value_name = "ROWS")]
    limit: Option<u16>,
}

/// Members of an object that a command sends. They are the body of its call.
#[derive(Debug, Args)]
pub(crate) struct Members {
    /// A member of the request: a value that is JSON (`true`, `2.5`, `null`, `["NL"]`, `"007"`)
    /// counts as that, any other as text. A dot leads into an object: `buy.status=disabled`.
    #[arg(value_name = "MEMBER=VALUE", required = true)]
    members: Vec<String>,
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        body(&self.members).map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// The object with these members.
///
/// # Errors
/// When an argument is no member, or leads into a value that is no object.
fn body(members: &[String]) -> Result<Value, StartupError> {
    let mut body = Map::new();
    for member in members {
        let (path, value) = split(member)?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        insert(&mut body, path, value).ok_or_else(|| {
            format!("'{path}' is given twice, or both as a value and as an object")
        })?;
    }
    Ok(Value::Object(body))
}

/// Name and value of a member.
pub(super) fn split(member: &str) -> Result<(&str, &str), StartupError> {
    member.split_once('=').ok_or_else(|| format!("'{member}' is not MEMBER=VALUE").into())
}

/// Puts a value where the path leads; `None` where another one stands.
fn insert(object: &mut Map<String, Value>, path: &str, value: Value) -> Option<()> {
    let Some((first, rest)) = path.split_once('.') else {
        return object.insert(path.to_owned(), value).is_none().then_some(());
    };
    let inner = object.entry(first).or_insert_with(|| Value::Object(Map::new()));
    insert(inner.as_object_mut()?, rest, value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(members: &[&str]) -> Result<Value, String> {
        let members: Vec<_> = members.iter().map(|member| (*member).to_owned()).collect();
        body(&members).map_err(|error| error.to_string())
    }

    #[test]
    fn members_are_json_or_text_and_dots_lead_into_objects() {
        let made = object(&["level=2", "name=Ada", r#"code="007""#, "a.b=true", "a.c=null"]);
        let wanted = json!({
            "level": 2, "name": "Ada", "code": "007", "a": {"b": true, "c": null},
        });
        assert_eq!(made, Ok(wanted));
    }

    #[test]
    fn a_member_without_a_value_or_twice_is_refused() {
        assert_eq!(object(&["level"]), Err("'level' is not MEMBER=VALUE".to_owned()));
        for (members, name) in [(["a=1", "a=2"], "a"), (["a=1", "a.b=2"], "a.b")] {
            let twice = format!("'{name}' is given twice, or both as a value and as an object");
            assert_eq!(object(&members), Err(twice));
        }
    }
}
