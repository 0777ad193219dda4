//! Shared implementations of the checked text types: they are encoded, on the wire and in a column,
//! by `Display`, and decoded by `FromStr` only.

/// Implements JSON and Postgres `text` encoding for a type with `Display` and `FromStr`.
/// Decoding runs the type's own check, so a bad row fails to decode instead of spreading.
/// The optional pattern goes into the OpenAPI document. A `borrowed` type is serialized from its
/// `as_str`, without an allocation: for types that are in every response.
macro_rules! text_form {
    ($type:ty) => {
        text_form!($type, collect_str, std::convert::identity, {"type": "string"});
    };
    ($type:ty, pattern $pattern:literal) => {
        text_form!(
            $type, collect_str, std::convert::identity, {"type": "string", "pattern": $pattern}
        );
    };
    ($type:ty, borrowed, pattern $pattern:literal) => {
        text_form!($type, serialize_str, Self::as_str, {"type": "string", "pattern": $pattern});
    };
    ($type:ty, $serialize:ident, $text:expr, $schema:tt) => {
        crate::inline_schema!($type, $schema);
        crate::text_column!($type);

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.$serialize($text(self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(source)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl sqlx::postgres::PgHasArrayType for $type {
            fn array_type_info() -> sqlx::postgres::PgTypeInfo {
                <String as sqlx::postgres::PgHasArrayType>::array_type_info()
            }

            fn array_compatible(column: &sqlx::postgres::PgTypeInfo) -> bool {
                <String as sqlx::postgres::PgHasArrayType>::array_compatible(column)
            }
        }

        impl sqlx::Encode<'_, sqlx::Postgres> for $type {
            fn encode_by_ref(
                &self,
                buffer: &mut sqlx::postgres::PgArgumentBuffer,
            ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
                <String as sqlx::Encode<'_, sqlx::Postgres>>::encode(self.to_string(), buffer)
            }
        }

        impl<'r> sqlx::Decode<'r, sqlx::Postgres> for $type {
            fn decode(
                value: sqlx::postgres::PgValueRef<'r>,
            ) -> Result<Self, sqlx::error::BoxDynError> {
                let text = <&str as sqlx::Decode<'r, sqlx::Postgres>>::decode(value)?;
                Ok(text.parse()?)
            }
        }
    };
}

/// Decodes a Postgres `text` column as an enum with `from_name`. An unknown name in a row fails to
/// decode.
#[macro_export]
macro_rules! enum_column {
    ($type:ty) => {
        $crate::text_column!($type);

        impl<'r> sqlx::Decode<'r, sqlx::Postgres> for $type {
            fn decode(
                value: sqlx::postgres::PgValueRef<'r>,
            ) -> Result<Self, sqlx::error::BoxDynError> {
                let name = <&str as sqlx::Decode<'r, sqlx::Postgres>>::decode(value)?;
                Self::from_name(name).ok_or_else(|| "unknown name".into())
            }
        }
    };
}

/// Gives an enum the names of its values: `ALL`, `NAMES`, `as_str` and `from_name`, from one list.
#[macro_export]
macro_rules! named_values {
    ($visibility:vis $type:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        #[allow(dead_code, reason = "few types need all four")]
        impl $type {
            /// Every value.
            $visibility const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];
            /// The name of every value, in the same order.
            $visibility const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];

            /// The name, on the wire and in the database.
            #[must_use]
            $visibility const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The value of this name.
            #[must_use]
            $visibility fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.as_str() == name)
            }
        }
    };
}

/// Implements `sqlx::Type` for a type that is stored in a Postgres `text` column.
#[macro_export]
macro_rules! text_column {
    ($type:ty) => {
        impl sqlx::Type<sqlx::Postgres> for $type {
            fn type_info() -> sqlx::postgres::PgTypeInfo {
                <str as sqlx::Type<sqlx::Postgres>>::type_info()
            }

            fn compatible(column: &sqlx::postgres::PgTypeInfo) -> bool {
                <str as sqlx::Type<sqlx::Postgres>>::compatible(column)
            }
        }
    };
}

/// Implements `Debug` for a type that holds what no log may show, or nothing of use to one: its name.
#[macro_export]
macro_rules! opaque_debug {
    ($type:ident) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($type), "(…)"))
            }
        }
    };
}

/// Implements `JsonSchema` for a type, inlined wherever the type occurs.
#[macro_export]
macro_rules! inline_schema {
    ($type:ty, $schema:tt) => {
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

/// Defines a zero-sized error: a fixed message, never the refused value.
macro_rules! refusal {
    ($(#[$doc:meta])* $name:ident, $message:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name;

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($message)
            }
        }

        impl std::error::Error for $name {}
    };
}

pub(super) use refusal;
pub(super) use text_form;
