//! Values that are serialized once and sent in many responses.

use std::borrow::Cow;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// A value with its JSON, which is serialized when the value is constructed and copied into each
/// response. It must be a member of its own: `#[serde(flatten)]` does not work with it.
#[derive(Clone, Debug)]
pub struct Preserialized<T> {
    value: T,
    json: Box<RawValue>,
}

impl<T: Serialize> Preserialized<T> {
    /// Serializes the value.
    ///
    /// # Errors
    /// When the value cannot be represented in JSON.
    pub fn new(value: T) -> Result<Self, serde_json::Error> {
        Ok(Self { json: to_raw_value(&value)?, value })
    }
}

impl<T> Deref for Preserialized<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Serialize for Preserialized<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Preserialized<T> {
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
