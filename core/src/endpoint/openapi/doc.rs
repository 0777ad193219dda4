//! The part of a document that code cannot express: words, members, examples.
//!
//! ```text
//! use rampart_core::endpoint::openapi::doc::{Doc, Kind, Shape, optional, required};
//!
//! const DOC: Doc = Doc {
//!     summary: "Log a user in",
//!     body: Shape::Members(&[
//!         required("emailAddress", Kind::Text, "The user's e-mail address."),
//!         required("password", Kind::Text, "8 to 64 characters."),
//!         optional("stay", Kind::Boolean, "Stay logged in."),
//!     ]),
//!     request: r#"{"emailAddress": "ann@example.com", "password": "correct horse"}"#,
//!     answer: r#"{"uuid": "…", "token": "…", "refreshToken": "…"}"#,
//!     ..Doc::NONE
//! };
//! ```

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::platform::error::Code;

/// The words and examples of one endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Doc {
    /// Effect, in a few words and without a full stop.
    pub summary: &'static str,
    /// Everything else that a caller must know, in CommonMark.
    pub details: &'static str,
    /// The segments `{name}` of the path; one that is not here is any text.
    pub path: &'static [Member],
    /// The parameters of the query.
    pub query: &'static [Member],
    /// The members of the body.
    pub body: Shape,
    /// A body that is accepted, as JSON. Empty without a body.
    pub request: &'static str,
    /// The body of a success, as JSON. Empty without one.
    pub answer: &'static str,
    /// Errors whose status is not their code's own.
    pub also: &'static [(u16, Code)],
}

impl Doc {
    /// Nothing said yet. A contract test names the endpoints that still say nothing.
    pub const NONE: Self = Self {
        summary: "",
        details: "",
        path: &[],
        query: &[],
        body: Shape::None,
        request: "",
        answer: "",
        also: &[],
    };
}

/// The form of a body.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// None.
    None,
    /// An object.
    Members(&'static [Member]),
    /// An object with the members of all of these lists.
    Joined(&'static [&'static [Member]]),
    /// An array of objects.
    ListOf(&'static [Member]),
    /// The form from which a type is deserialized: see [`Shape::of`].
    Type(fn(&mut SchemaGenerator) -> Schema),
}

impl Shape {
    /// The form from which `T` is deserialized.
    pub const fn of<T: JsonSchema>() -> Self {
        Self::Type(SchemaGenerator::subschema_for::<T>)
    }

    /// Its JSON schema; `None` without a body.
    pub(super) fn schema(self, schemas: &mut SchemaGenerator) -> Option<Value> {
        match self {
            Self::Type(schema) => Some(schema(schemas).to_value()),
            Self::None => None,
            Self::Members(members) => Some(object(members)),
            Self::Joined(lists) => Some(object(&lists.concat())),
            Self::ListOf(members) => Some(json!({ "type": "array", "items": object(members) })),
        }
    }
}

/// One member of a body, or one parameter.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) about: &'static str,
    pub(super) required: bool,
}

impl Member {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// A member that must be there, with a value.
pub const fn required(name: &'static str, kind: Kind, about: &'static str) -> Member {
    Member { name, kind, about, required: true }
}

/// A member that may be absent or null.
pub const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Member {
    Member { name, kind, about, required: false }
}

/// The values that a member takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Anything at all: what is not understood does not count.
    Any,
    /// Any string.
    Text,
    /// Any string; these have a meaning.
    Known(&'static [&'static str]),
    /// A string of so many characters, the bounds included.
    Sized(usize, usize),
    /// A string of this form: a regular expression in the dialect of ECMA-262.
    Matching(&'static str),
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// A string of this format of JSON Schema: `uri`, `uuid`, `email`, `date`, `date-time`.
    Format(&'static str),
    /// A number, read as an exact decimal.
    Decimal,
    /// The same, or a string that spells one.
    DecimalOrText,
    /// A whole number, the bounds included.
    Integer(i64, i64),
    /// `true` or `false`.
    Boolean,
    /// The same, or `1` and `0`.
    Flag,
    /// A destination tag: an integer for XRP, a string otherwise.
    Tag,
    /// An array of these.
    List(&'static Self),
    /// An object with names of the sender's choice.
    Map(&'static Self),
    /// An object with these members.
    Object(&'static [Member]),
}

impl Kind {
    /// Its JSON schema.
    pub(super) fn schema(self) -> Value {
        match self {
            Self::Any => json!({}),
            Self::Text => json!({ "type": "string" }),
            Self::Known(texts) => json!({ "type": "string", "examples": texts }),
            Self::Sized(min, max) => {
                json!({ "type": "string", "minLength": min, "maxLength": max })
            }
            Self::Matching(pattern) => json!({ "type": "string", "pattern": pattern }),
            Self::OneOf(texts) => json!({ "type": "string", "enum": texts }),
            Self::Format(format) => json!({ "type": "string", "format": format }),
            Self::Decimal => json!({ "type": "number" }),
            Self::DecimalOrText => json!({ "type": ["number", "string"] }),
            Self::Integer(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Flag => json!({ "type": ["boolean", "integer"], "minimum": 0, "maximum": 1 }),
            Self::Tag => json!({ "type": ["string", "integer"] }),
            Self::List(item) => json!({ "type": "array", "items": item.schema() }),
            Self::Map(value) => {
                json!({ "type": "object", "additionalProperties": value.schema() })
            }
            Self::Object(members) => object(members),
        }
    }
}

fn object(members: &[Member]) -> Value {
    let properties: Map<_, _> =
        members.iter().map(|member| (member.name.to_owned(), property(member))).collect();
    let required: Vec<_> = members.iter().filter(|m| m.required).map(|m| m.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn property(member: &Member) -> Value {
    let mut schema = member.kind.schema();
    if !member.required {
        allow_null(&mut schema);
    }
    schema["description"] = json!(member.about);
    schema
}

fn allow_null(schema: &mut Value) {
    if schema.get("enum").is_some() {
        *schema = json!({ "anyOf": [schema.clone(), { "type": "null" }] });
        return;
    }
    match schema.get_mut("type") {
        Some(Value::Array(types)) => types.push(json!("null")),
        Some(one) => *one = json!([one.clone(), "null"]),
        None => {}
    }
}
