//! Values that were typed into a form.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use maud::{Markup, html};
use serde::Serialize;
use serde_json::Value;
use url::form_urlencoded;

use super::form::{COLUMNS, Input, SHOWN};
use crate::http::form::Form;

/// Hidden member with the `Idempotency-Key` of the call that a form makes.
pub(super) const CALL_KEY: &str = "callKey";

/// Names and values of a form, as a browser sent them or as they are shown at first.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Typed(BTreeMap<String, String>);

impl Typed {
    /// Reads a form in the encoding that the headers name; files are kept in base64.
    pub(super) fn sent(headers: &HeaderMap, body: &Bytes) -> Self {
        let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !media_type.is_some_and(|media_type| media_type.starts_with("multipart/form-data")) {
            return Self::read(body);
        }
        let (members, files) = Form::read_with_files(headers, body).into_parts();
        let files = files.into_iter().map(|(name, content)| (name, STANDARD.encode(content)));
        Self(members.into_iter().chain(files).collect())
    }

    /// Reads a form or a query; of several values of one name the last counts, but for the columns of
    /// a file, which are all kept, with commas between them.
    pub(super) fn read(text: &[u8]) -> Self {
        let mut typed = Self::default();
        for (name, value) in form_urlencoded::parse(text).into_owned() {
            let before = typed.0.get(&name).filter(|_| name == COLUMNS);
            let value = before.map_or(value.clone(), |before| format!("{before},{value}"));
            typed.0.insert(name, value);
        }
        typed
    }

    /// The members that a link may fill in.
    pub(super) fn of_link(&self) -> Self {
        let members = self.0.iter().filter(|(name, _)| may_be_linked(name));
        Self(members.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// A value; empty if it was not sent.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(super) fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// Fills the fields of a change with what the subject has.
    pub(super) fn fill(&mut self, inputs: &[Input], subject: &Value) {
        for input in inputs {
            if let Some(value) = input.shown(subject) {
                self.set(&format!("{SHOWN}{}", input.member), input.kept(&value));
                self.set(input.member, value);
            }
        }
    }

    /// Keeps the nonce of the form's first token as the key of its call: shown again and sent
    /// again, as after a lost answer, it makes the same call.
    pub(super) fn keep_call_key(&mut self) {
        if self.get(CALL_KEY).is_empty() {
            let nonce = self.get("csrfToken").split('.').next().unwrap_or_default().to_owned();
            self.set(CALL_KEY, nonce);
        }
    }

    /// The hidden members that keep what the fields showed at first, and the key of the call.
    pub(super) fn hidden(&self) -> Markup {
        let is_kept = |name: &str| name.starts_with(SHOWN) || name == CALL_KEY;
        html! {
            @for (name, value) in self.0.iter().filter(|(name, _)| is_kept(name)) {
                input type="hidden" name=(name) value=(value);
            }
        }
    }

    /// Replaces what the fields showed by the subject's present values.
    pub(super) fn renew(&mut self, inputs: &[Input], subject: &Value) {
        for input in inputs {
            if let Some(value) = input.shown(subject) {
                self.set(&format!("{SHOWN}{}", input.member), input.kept(&value));
            }
        }
    }
}

/// False for a text that somebody may sign, its signature, the key of a call, and what the fields
/// showed: those come with a form that was sent.
fn may_be_linked(name: &str) -> bool {
    let is_signed = name == "manifest" || name.starts_with("signed.");
    !(is_signed || name == CALL_KEY || name.starts_with("signature.") || name.starts_with(SHOWN))
}
