//! What many answers show and few things change.

use std::borrow::Cow;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// A value with its JSON, which is written when the value is made and copied into each answer, as a
/// member of its own: `#[serde(flatten)]` cannot take it.
#[derive(Clone, Debug)]
pub struct WrittenOnce<T> {
    value: T,
    json: Box<RawValue>,
}

impl<T: Serialize> WrittenOnce<T> {
    /// Writes it.
    ///
    /// # Errors
    /// When the value has no form in JSON.
    pub fn new(value: T) -> Result<Self, serde_json::Error> {
        Ok(Self { json: to_raw_value(&value)?, value })
    }
}

impl<T> Deref for WrittenOnce<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Serialize for WrittenOnce<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for WrittenOnce<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        T::json_schema(schemas)
    }
}
