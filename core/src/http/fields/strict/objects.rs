//! JSON whose structures are objects. `serde_json` also takes an array for one, by the order of its
//! members: then `[]` would be a change without members, and a document that says object would lie.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

/// A value that is read so, all the way down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objects<'a>(pub(super) &'a Value);

impl<'de> IntoDeserializer<'de, Error> for Objects<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Hands scalars to `serde_json`, which knows the forms of its numbers.
macro_rules! scalars {
    ($($method:ident)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
                self.0.$method(visitor)
            }
        )*
    };
}

impl<'de> Deserializer<'de> for Objects<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                let mut items = SeqDeserializer::new(items.iter().map(Objects));
                let value = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(value)
            }
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| (name.as_str(), Objects(value)));
                let mut members = MapDeserializer::new(members);
                let value = visitor.visit_map(&mut members)?;
                members.end()?;
                Ok(value)
            }
            scalar => scalar.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.0.is_array() {
            return Err(Error::invalid_type(Unexpected::Seq, &visitor));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_unit_struct(name, visitor)
    }

    scalars! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit
        deserialize_identifier
    }

    forward_to_deserialize_any! { seq tuple tuple_struct map ignored_any }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Map, json};

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        #[serde(default)]
        text: Option<String>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        inner: Option<Inner>,
        #[serde(default)]
        list: Vec<Inner>,
        number: Option<i32>,
        any: Option<Map<String, Value>>,
    }

    #[test]
    fn an_array_is_no_object_at_any_depth() {
        for wrong in [
            json!([]),
            json!([null, [], 1, null]),
            json!({"inner": []}),
            json!({"inner": ["a"]}),
            json!({"list": [[]]}),
            json!({"list": [{}, ["a"]]}),
        ] {
            assert!(Outer::deserialize(Objects(&wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn all_else_is_read_as_serde_json_reads_it() {
        for right in [
            json!({}),
            json!({"inner": null, "list": [], "number": -7}),
            json!({"inner": {"text": "a"}, "list": [{}, {"text": null}]}),
            json!({"any": {"a": [1, [2.50, "b"], {"c": null}]}}),
            json!({"number": 1.5}),
            json!({"number": "1"}),
            json!({"unknown": 1}),
        ] {
            let (strict, plain) = (Outer::deserialize(Objects(&right)), Outer::deserialize(&right));
            let text = |read: Result<Outer, Error>| read.map_err(|error| error.to_string());
            assert_eq!(text(strict), text(plain), "{right}");
        }
    }
}
