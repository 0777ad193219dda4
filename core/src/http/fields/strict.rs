//! Strict reading, as the operators' API does it: a body or a query becomes a type that names every
//! member, and any other member is 422, so that a typing error is seen.

mod fault;
mod objects;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use self::objects::Objects;
use crate::http::request::Input;
use crate::platform::error::{Denial, Result};

/// Parses a body as JSON. An empty body is an empty object.
///
/// # Errors
/// 400 for a body that is not valid JSON.
pub(crate) fn parse(body: &[u8]) -> Result<Value> {
    if body.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    super::parse(body).map_err(|_| Denial::malformed("the body is not valid JSON").into())
}

/// Reads a member that is there, `null` or not, where one that is left out is `None`.
///
/// # Errors
/// The deserializer's.
pub fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// Reads the members of the body.
///
/// # Errors
/// 422 with the first member that is not valid, missing or unknown.
pub fn body<T: DeserializeOwned>(input: &Input) -> Result<T> {
    if !input.document.is_object() {
        return Err(Denial::unprocessable("the body is not a JSON object").into());
    }
    read(&input.document).map_err(|error| Denial::unprocessable(error).into())
}

/// Reads a value; an object, where the type is one.
///
/// # Errors
/// A sentence, after the path of the first member that is not valid, missing or unknown.
pub fn read<T: DeserializeOwned>(value: &Value) -> std::result::Result<T, String> {
    T::deserialize(Objects(value)).map_err(|fault| fault.to_string())
}

/// Reads the value of a member, which has this path in its document.
///
/// # Errors
/// A sentence, after the path in the document of the first member that is not valid, missing or
/// unknown.
pub fn read_at<T: DeserializeOwned>(path: &str, value: &Value) -> std::result::Result<T, String> {
    T::deserialize(Objects(value)).map_err(|fault| fault.in_member(path).to_string())
}

/// Reads the parameters of the query; of several with one name the last counts.
///
/// # Errors
/// 422 with the first parameter that is not valid or unknown.
pub fn query<T: DeserializeOwned>(input: &Input) -> Result<T> {
    let query = input.head.query.as_deref().unwrap_or_default();
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    let members = pairs.map(|(name, value)| (name.into_owned(), Value::String(value.into())));
    read(&Value::Object(members.collect())).map_err(|error| Denial::unprocessable(error).into())
}
