//! Members of a JSON object as arguments: `level=2`, `verification.identity=verified`.

use clap::Args;
use serde_json::{Map, Value};

use super::{Body, StartupError};

/// What a call changes or makes.
#[derive(Debug, Args)]
pub(crate) struct Members {
    /// A member of the request: a value that is JSON (`true`, `2.5`, `null`, `["NL"]`, `"007"`)
    /// counts as that, any other as text. A dot leads into an object: `buy.status=disabled`.
    #[arg(value_name = "MEMBER=VALUE", required = true)]
    members: Vec<String>,
}

impl Members {
    /// The body of the call.
    ///
    /// # Errors
    /// When an argument is no member, or leads into a value that is no object.
    pub(crate) fn body(&self) -> Result<Body, StartupError> {
        let mut body = Map::new();
        for member in &self.members {
            let (path, value) = member
                .split_once('=')
                .ok_or_else(|| StartupError::from(format!("'{member}' is not MEMBER=VALUE")))?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            insert(&mut body, path, value)
                .ok_or_else(|| StartupError::from(format!("'{path}' is given twice")))?;
        }
        Ok(Body::Json(Value::Object(body)))
    }
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

    fn body(members: &[&str]) -> Result<Value, String> {
        let members = members.iter().map(|member| (*member).to_owned()).collect();
        match (Members { members }).body() {
            Ok(Body::Json(body)) => Ok(body),
            Ok(_) => Err("no JSON".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn members_are_json_or_text_and_dots_lead_into_objects() {
        let made = body(&["level=2", "name=Ada", r#"code="007""#, "a.b=true", "a.c=null"]);
        let wanted = json!({
            "level": 2, "name": "Ada", "code": "007", "a": {"b": true, "c": null},
        });
        assert_eq!(made, Ok(wanted));
    }

    #[test]
    fn a_member_without_a_value_or_twice_is_refused() {
        assert_eq!(body(&["level"]), Err("'level' is not MEMBER=VALUE".to_owned()));
        assert_eq!(body(&["a=1", "a=2"]), Err("'a' is given twice".to_owned()));
        assert_eq!(body(&["a=1", "a.b=2"]), Err("'a.b' is given twice".to_owned()));
    }
}
