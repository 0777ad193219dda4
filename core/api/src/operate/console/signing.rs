//! Signatures of operators. The console shows the text to be signed, takes the signature, and never
//! sees the key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::action::Action;
use super::form::{FieldError, Input, Kind, Typed};
use crate::policies::manifest::{self, digest_hex};
use crate::policies::statement;

/// The key of a signed change.
pub(super) const SIGNER: Input = Input::new("signed.key", "Signing key").hint(
    "Its registered name, where such changes must be signed. Leave the next two empty at first: \
     the text to be signed is shown then.",
);
/// The statement about the change.
pub(super) const STATEMENT: Input = Input::new("signed.statement", "Statement").kind(Kind::Text);
/// The signature of the statement.
pub(super) const SIGNATURE: Input =
    Input::new("signed.value", "Signature of the statement").hint("In base64.");
/// The key of a signed version.
pub(super) const MANIFEST_SIGNER: Input = Input::new("signature.key", "Signing key").hint(
    "Its registered name, where versions must be signed. Leave the next two empty at first: the \
     manifest to be signed is shown then.",
);
/// The manifest of the version.
pub(super) const MANIFEST: Input = Input::new("manifest", "Manifest")
    .kind(Kind::Text)
    .hint("Once it is signed, it counts in place of the configuration above.");
/// The signature of the manifest.
pub(super) const MANIFEST_SIGNATURE: Input =
    Input::new("signature.value", "Signature of the manifest").hint("In base64.");

/// The statement that signs an action.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statement {
    /// Such as `policy.activate`.
    pub(super) action: &'static str,
    /// The members that the ids of the call are, in their order.
    pub(super) ids: &'static [&'static str],
}

impl Statement {
    /// The text about a call with these ids and this body, signed at this time.
    fn text(&self, ids: &[String], body: &Value, at: i64) -> String {
        let mut members = Map::new();
        members.insert("action".to_owned(), self.action.into());
        for (name, id) in self.ids.iter().zip(ids) {
            let number = id.parse::<i64>().ok().filter(|_| *name == "version");
            let value = number.map_or_else(|| Value::from(id.as_str()), Value::from);
            members.insert((*name).to_owned(), value);
        }
        if self.action == "policy.activate" {
            let percentage = body.get("percentage").cloned();
            members.insert("percentage".to_owned(), percentage.unwrap_or_else(|| json!(100)));
        }
        for name in ["algorithm", "notBefore", "notAfter"] {
            if let Some(value) = body.get(name) {
                members.insert(name.to_owned(), value.clone());
            }
        }
        let key = body.get("publicKey").or_else(|| body.get("key")).and_then(Value::as_str);
        if let Some(key) = key {
            let fingerprint = manifest::fingerprint(key);
            members.insert("fingerprint".to_owned(), fingerprint.into());
        }
        members.insert("at".to_owned(), at.into());
        Value::Object(members).to_string()
    }
}

/// A text that somebody is about to sign.
#[derive(Debug)]
pub(super) struct Unsigned {
    /// The field of the text, and that of its signature.
    fields: (&'static str, &'static str),
    text: String,
    /// The error that asks for the signature.
    error: &'static str,
}

impl Unsigned {
    /// The text of a form that names a key and has no signature yet.
    pub(super) fn of(
        action: &Action,
        ids: &[String],
        read: &Value,
        typed: &Typed,
        body: &Value,
        at: i64,
    ) -> Option<Self> {
        let waits = |key: Input, signature: Input| {
            let has = |input: Input| !typed.get(input.member).trim().is_empty();
            let takes = action.inputs.iter().any(|input| input.member == key.member);
            takes && has(key) && !has(signature)
        };
        if waits(MANIFEST_SIGNER, MANIFEST_SIGNATURE) {
            let fields = (MANIFEST.member, MANIFEST_SIGNATURE.member);
            let text = manifest_text(ids, read, body);
            let error = "Sign the text below with your key, put the signature here, choose the \
                         file again if there was one, and send it again.";
            return Some(Self { fields, text, error });
        }
        let statement = action.statement.filter(|_| waits(SIGNER, SIGNATURE))?;
        let fields = (STATEMENT.member, SIGNATURE.member);
        let error = "Sign the text below with your key within a quarter of an hour, put the \
                     signature here, and send it again.";
        Some(Self { fields, text: statement.text(ids, body, at), error })
    }

    /// Puts the text into its field; the error asks for the signature.
    pub(super) fn show(self, typed: &mut Typed) -> FieldError {
        let Self { fields: (member, signature), text, error } = self;
        typed.set(member, text);
        (signature, error.to_owned())
    }
}

/// Takes out of a body what its signed manifest says: the call refuses both together.
pub(super) fn leave_to_manifest(body: &mut Value) {
    let is_signed = body.pointer("/signature/value").is_some();
    if let Some(members) = body.as_object_mut().filter(|_| is_signed) {
        for name in ["config", "failClosed"] {
            members.remove(name);
        }
    }
}

/// The manifest of the next version: of the component that is uploaded, or the active one, with the
/// settings that were typed, or the active one's.
fn manifest_text(ids: &[String], read: &Value, body: &Value) -> String {
    let versions = read["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let newest = versions.first().and_then(|version| version["version"].as_i64()).unwrap_or(0);
    let active = versions.iter().find(|version| version["active"] == true);
    let of_active = |name: &str| active.and_then(|version| version.get(name)).cloned();
    let component = body["component"].as_str().and_then(|text| STANDARD.decode(text).ok());
    let digest = component.map(|bytes| Value::from(digest_hex(&bytes)));
    let digest = digest.or_else(|| of_active("digest")).unwrap_or_default();
    let setting = |name: &str| body.get(name).cloned().or_else(|| of_active(name));
    let manifest = json!({
        "partner": ids.first(),
        "kind": ids.get(1),
        "version": newest.saturating_add(1),
        "digest": digest,
        "config": setting("config").unwrap_or_else(|| json!({})),
        "failClosed": setting("failClosed").unwrap_or_else(|| json!(false)),
        // The form stages, and its own action activates.
        "activate": false,
    });
    manifest.to_string()
}

/// The bytes that are to be signed, and the way to sign them.
pub(super) fn to_be_signed(typed: &Typed) -> Markup {
    let texts = [(statement::DOMAIN, STATEMENT), (manifest::DOMAIN, MANIFEST)];
    let texts = texts.map(|(domain, input)| (domain, typed.get(input.member).trim()));
    let text = texts.into_iter().find(|(_, text)| !text.is_empty());
    let bytes = text.map(|(domain, text)| [domain, text].concat());
    html! {
        @if let Some(bytes) = &bytes {
            h2 { "To be signed" }
            p.hint {
                "Two lines, with no line break behind the second one. In a file, they are signed by "
                code { "openssl pkeyutl -sign -rawin -inkey KEY -in FILE | base64 -w0" }
            }
            pre tabindex="0" { (bytes) }
            dl { dt { "SHA-256" } dd { code { (digest_hex(bytes.as_bytes())) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_default()
    }

    #[test]
    fn a_statement_has_the_members_of_its_change() {
        let ids = ["acme", "fee", "2"].map(str::to_owned);
        let activate =
            Statement { action: "policy.activate", ids: &["partner", "kind", "version"] };
        let wanted = json!({"action": "policy.activate", "partner": "acme", "kind": "fee",
            "version": 2, "percentage": 100, "at": 7});
        assert_eq!(read(&activate.text(&ids, &json!({"reason": "x"}), 7)), wanted);
        let canary = read(&activate.text(&ids, &json!({"percentage": 10}), 7));
        assert_eq!(canary["percentage"], 10);
        let ids = ["acme", "12"].map(str::to_owned);
        let put = Statement { action: "verification-key.put", ids: &["partner", "key"] };
        let body = json!({"algorithm": "ed25519", "key": " PEM\n", "notAfter": "2100-01-01"});
        let wanted = json!({"action": "verification-key.put", "partner": "acme", "key": "12",
            "algorithm": "ed25519", "notAfter": "2100-01-01", "fingerprint": digest_hex(b"PEM"),
            "at": 7});
        assert_eq!(read(&put.text(&ids, &body, 7)), wanted);
    }

    #[test]
    fn a_manifest_is_of_the_next_version_and_takes_from_the_active_one() {
        let ids = ["acme", "fee"].map(str::to_owned);
        let history = json!({"versions": [
            {"version": 3, "active": false, "digest": "aa", "config": {}},
            {"version": 2, "active": true, "digest": "bb", "config": {"tiers": ["0=1"]},
                "failClosed": true},
        ]});
        let wanted = json!({"partner": "acme", "kind": "fee", "version": 4, "digest": "bb",
            "config": {"tiers": ["0=1"]}, "failClosed": true, "activate": false});
        assert_eq!(read(&manifest_text(&ids, &history, &json!({}))), wanted);
        let open = read(&manifest_text(&ids, &history, &json!({"failClosed": false})));
        assert_eq!(open["failClosed"], false);
        let body = json!({"component": STANDARD.encode("wasm"), "config": {}, "failClosed": true});
        let first = read(&manifest_text(&ids, &Value::Null, &body));
        assert_eq!((&first["version"], &first["failClosed"]), (&json!(1), &json!(true)));
        assert_eq!((&first["digest"], &first["config"]), (&json!(digest_hex(b"wasm")), &json!({})));
    }

    #[test]
    fn a_signed_manifest_says_the_settings_alone() {
        let typed = json!({"config": {}, "failClosed": true, "reason": "x", "signature":
            {"key": "release"}});
        let mut body = typed.clone();
        leave_to_manifest(&mut body);
        assert_eq!(body, typed);
        body["signature"]["value"] = "c2ln".into();
        leave_to_manifest(&mut body);
        let wanted = json!({"reason": "x", "signature": {"key": "release", "value": "c2ln"}});
        assert_eq!(body, wanted);
    }
}
