//! Reading of a request's members, which collects every violation of the stage.
//!
//! JSON is parsed strictly (section 1 of the contract): UTF-8, one document, no duplicate member,
//! depth at most [`DEPTH_MAX`], numbers with their exact decimal text.

mod json;
pub mod strict;

use std::borrow::Cow;

use rampart_types::Country;
use serde_json::{Map, Value};

pub use self::json::{DEPTH_MAX, document_bytes, exceeds_memory, parse};
use crate::platform::error::{Code, Refusal, Result, Violation};

/// Most members for a linear search of a name; above it, hashing is faster.
const LINEAR_SEARCH_MAX: usize = 16;

/// The members of a request and the violations found so far.
#[derive(Debug)]
pub struct Fields<'a> {
    members: Cow<'a, Map<String, Value>>,
    refusal: Refusal,
}

impl<'a> Fields<'a> {
    /// The members of a JSON object.
    ///
    /// # Errors
    /// ER048 when the document is not an object.
    pub fn from_object(document: &'a Value) -> Result<Self> {
        match document {
            Value::Object(members) => Ok(Self::new(Cow::Borrowed(members))),
            _ => Err(crate::platform::error::Error::with_detail(
                Code::RequestMalformed,
                "send a JSON object",
            )),
        }
    }

    /// The parameters of a query; the first of several with the same name.
    pub fn of_query(query: Option<&str>) -> Self {
        let mut members = Map::new();
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or("").as_bytes()) {
            members.entry(name).or_insert_with(|| Value::String(value.into_owned()));
        }
        Self::new(Cow::Owned(members))
    }

    fn new(members: Cow<'a, Map<String, Value>>) -> Self {
        Self { members, refusal: Refusal::new() }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        if self.members.len() > LINEAR_SEARCH_MAX {
            return self.members.get(name);
        }
        self.members.iter().find(|(sent, _)| *sent == name).map(|(_, value)| value)
    }

    /// The member as sent; `None` when it is absent or null.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// The member of a merge-patch body (RFC 7396): absent, null, or a value.
    pub fn member(&self, name: &str) -> Member<'_> {
        match self.get(name) {
            None => Member::Absent,
            Some(Value::Null) => Member::Null,
            Some(value) => Member::Value(value),
        }
    }

    /// Names of all members, as sent.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Adds a violation.
    pub fn refuse(&mut self, code: Code) {
        self.refusal.add(code, None);
    }

    /// Adds a violation by a member.
    pub fn refuse_member(&mut self, code: Code, name: &'static str) {
        self.refusal.add_violation(Violation { code, field: Some(name), detail: None });
    }

    /// Adds a violation by a member, with a detail for the solution's text.
    pub fn refuse_with(
        &mut self,
        code: Code,
        name: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) {
        let detail = Some(detail.into());
        self.refusal.add_violation(Violation { code, field: Some(name), detail });
    }

    /// True if no violation was found so far.
    pub fn is_clean(&self) -> bool {
        self.refusal.is_empty()
    }

    /// A required text: absent, null, empty or not a string is `code`.
    pub fn text(&mut self, name: &'static str, code: Code) -> Option<String> {
        match self.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            _ => {
                self.refuse_member(code, name);
                None
            }
        }
    }

    /// An optional text, absent or null; any other value that is not a string is `code`.
    pub fn text_or_null(&mut self, name: &'static str, code: Code) -> Option<String> {
        match self.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                self.refuse_member(code, name);
                None
            }
        }
    }

    /// A required value that passes `read`; `code` otherwise.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        code: Code,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(name).and_then(read);
        if value.is_none() {
            self.refuse_member(code, name);
        }
        value
    }

    /// An optional value, absent or null; any other must pass `read`, else it is `code`.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        code: Code,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(name).filter(|value| !value.is_null())?;
        let read = read(value);
        if read.is_none() {
            self.refuse_member(code, name);
        }
        read
    }

    /// A country, if sent: ER062 when it is empty, ER063 when ISO 3166-1 has no such two letters, and
    /// ER061 for anything else (section 13 of the contract).
    pub fn country(&mut self, name: &'static str) -> Option<Country> {
        let is_alpha_2 =
            |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
        let code = match self.value(name)? {
            Value::String(text) if text.is_empty() => Code::CountryMissing,
            Value::String(text) if is_alpha_2(text) => Code::CountryUnknown,
            _ => Code::CountryCodeInvalid,
        };
        self.required(name, code, |value| value.as_str()?.parse().ok())
    }

    /// The change that a member of a merge-patch body requests; a value must pass `read`, else it is
    /// `code`.
    pub fn change<T>(
        &mut self,
        name: &'static str,
        code: Code,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Change<T> {
        match self.member(name) {
            Member::Absent => Change::Keep,
            Member::Null => Change::Clear,
            Member::Value(_) => self.optional(name, code, read).map_or(Change::Keep, Change::Set),
        }
    }

    /// The request, after every member was read.
    ///
    /// # Errors
    /// All violations found. `None` without a violation is ER048: a rule did not add its code.
    pub fn finish<T>(self, request: Option<T>) -> Result<T> {
        match request {
            Some(request) if self.refusal.is_empty() => Ok(request),
            _ if self.refusal.is_empty() => Err(Code::RequestMalformed.into()),
            _ => Err(self.refusal.into()),
        }
    }
}

/// A member of a merge-patch body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Member<'a> {
    /// Not sent: keep what is stored.
    Absent,
    /// Sent as null: clear it.
    Null,
    /// Sent with a value.
    Value(&'a Value),
}

/// The change of a stored value by a member of a merge-patch body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// The value stays.
    Keep,
    /// The value is removed.
    Clear,
    /// The value is replaced.
    Set(T),
}

impl<T> Change<T> {
    /// True if the value changes.
    pub const fn is_sent(&self) -> bool {
        !matches!(self, Self::Keep)
    }

    /// The new value, if any.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Keep | Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }
}

/// `true`, `false`, `1` or `0`, as the offer's flags allow.
pub fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => match number.as_str() {
            "1" => Some(true),
            "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// A non-empty string.
pub fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A whole number within 32 bits; `3600.0` is not one.
pub fn integer(value: &Value) -> Option<i32> {
    match value {
        Value::Number(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_violation_of_the_stage_is_found() {
        let document = json!({"a": 1, "b": "", "c": null});
        let mut fields = Fields::from_object(&document).unwrap();
        fields.text("a", Code::EmailInvalid);
        fields.text("b", Code::EmailTaken);
        fields.text_or_null("c", Code::EmailMissing);
        let error = fields.finish(Some(())).unwrap_err();
        assert!(
            error.is(Code::EmailInvalid)
                && error.is(Code::EmailTaken)
                && !error.is(Code::EmailMissing)
        );
    }

    #[test]
    fn absent_null_and_value_are_distinguished() {
        let document = json!({"null": null, "value": 7, "wrong": "x"});
        let mut fields = Fields::from_object(&document).unwrap();
        let mut change = |name| fields.change(name, Code::IntendedAmountInvalid, integer);
        assert_eq!(change("absent"), Change::Keep);
        assert_eq!(change("null"), Change::Clear);
        assert_eq!(change("value"), Change::Set(7));
        assert_eq!(change("wrong"), Change::Keep);
        assert!(fields.finish(Some(())).unwrap_err().is(Code::IntendedAmountInvalid));
    }

    #[test]
    fn a_member_is_found_among_few_and_among_many() {
        for count in [0, 1, LINEAR_SEARCH_MAX, LINEAR_SEARCH_MAX + 1, 100] {
            let names = (0..count).map(|at| (format!("m{at}"), Value::from(at)));
            let document = Value::Object(names.collect());
            let fields = Fields::from_object(&document).unwrap();
            for at in 0..count {
                assert_eq!(fields.value(&format!("m{at}")), Some(&Value::from(at)));
            }
            assert_eq!(fields.value("m"), None);
        }
    }

    /// A member of a stored object, or of a patch: absent, null or a number.
    fn member() -> impl Strategy<Value = Option<Value>> {
        prop_oneof![
            Just(None),
            Just(Some(Value::Null)),
            any::<i32>().prop_map(|n| Some(Value::from(n))),
        ]
    }

    /// An object of the members that are not absent.
    fn object(members: &[Option<Value>; 3]) -> Value {
        let named = ["a", "b", "c"].into_iter().zip(members);
        let present = named.filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        Value::Object(present.collect())
    }

    /// RFC 7396, section 2, for an object of scalars.
    fn merge_patch(mut target: Map<String, Value>, patch: &Value) -> Map<String, Value> {
        for (name, value) in patch.as_object().unwrap() {
            match value {
                Value::Null => _ = target.remove(name),
                value => _ = target.insert(name.clone(), value.clone()),
            }
        }
        target
    }

    /// Applies the changes of a patch to an object.
    fn apply(mut target: Map<String, Value>, patch: &Value) -> Map<String, Value> {
        let mut fields = Fields::from_object(patch).unwrap();
        for name in ["a", "b", "c"] {
            match fields.change(name, Code::IntendedAmountInvalid, integer) {
                Change::Keep => {}
                Change::Clear => _ = target.remove(name),
                Change::Set(value) => _ = target.insert(name.to_owned(), value.into()),
            }
        }
        fields.finish(Some(target)).unwrap()
    }

    proptest! {
        #[test]
        fn changes_are_those_of_rfc_7396(
            stored in [any::<i32>(), any::<i32>(), any::<i32>()],
            patch in [member(), member(), member()],
        ) {
            let stored = object(&stored.map(|n| Some(n.into())));
            let stored = stored.as_object().unwrap().clone();
            let patch = object(&patch);
            let once = apply(stored.clone(), &patch);
            prop_assert_eq!(&once, &merge_patch(stored, &patch));
            prop_assert_eq!(&apply(once.clone(), &patch), &once, "a patch is idempotent");
        }
    }
}
