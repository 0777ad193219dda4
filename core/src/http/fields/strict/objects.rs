//! JSON whose structures are objects. `serde_json` also takes an array for one, by the order of its
//! members: then `[]` would be a change without members, and a document that says object would lie.

use std::iter::Enumerate;
use std::slice;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Value, map};

use super::fault::Fault;

/// A value that is read so, all the way down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objects<'a>(pub(super) &'a Value);

/// The members of an object that are still to be read, and the value whose name was read last.
struct Members<'a> {
    rest: map::Iter<'a>,
    value: Option<(&'a str, &'a Value)>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        self.value = self.rest.next().map(|(name, value)| (name.as_str(), value));
        let read = |(name, _)| seed.deserialize(StrDeserializer::<Fault>::new(name));
        self.value.map(read).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let value = self.value.take();
        let (name, value) = value.ok_or_else(|| Fault::custom("a value without a name"))?;
        seed.deserialize(Objects(value)).map_err(|fault| fault.in_member(name))
    }
}

/// The items of an array that are still to be read.
struct Items<'a>(Enumerate<slice::Iter<'a, Value>>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let read = |(index, item)| {
            seed.deserialize(Objects(item)).map_err(|fault: Fault| fault.in_item(index))
        };
        self.0.next().map(read).transpose()
    }
}

/// Hands scalars to `serde_json`, which knows the forms of its numbers.
macro_rules! scalars {
    ($($method:ident)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
                Ok(self.0.$method(visitor)?)
            }
        )*
    };
}

impl<'de> Deserializer<'de> for Objects<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Array(items) => {
                let mut rest = Items(items.iter().enumerate());
                let value = visitor.visit_seq(&mut rest)?;
                match rest.0.len() {
                    0 => Ok(value),
                    _ => Err(Fault::invalid_length(items.len(), &"fewer items")),
                }
            }
            Value::Object(members) => {
                let mut rest = Members { rest: members.iter(), value: None };
                let value = visitor.visit_map(&mut rest)?;
                match rest.rest.len() {
                    0 => Ok(value),
                    _ => Err(Fault::invalid_length(members.len(), &"fewer members")),
                }
            }
            scalar => Ok(scalar.deserialize_any(visitor)?),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if self.0.is_array() {
            return Err(Fault::invalid_type(Unexpected::Seq, &visitor));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        Ok(self.0.deserialize_enum(name, variants, visitor)?)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        Ok(self.0.deserialize_unit_struct(name, visitor)?)
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
            assert_eq!(strict.ok(), plain.ok(), "{right}");
        }
    }
}
