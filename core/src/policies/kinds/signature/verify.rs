//! Verification of signed payloads by the partner's policy.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use rampart_plugins::contract::{
    Field, Header, PolicyKind, Purpose, Rejection, SignedPayload, Signer, Verdict,
};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Core;
use crate::auth::caller::Client;
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::platform::settings::CREDENTIAL_HEADERS;
use crate::policies::evaluate::context::Attributes;
use crate::policies::evaluate::{count_outcome, evaluate};
use crate::policies::replay_tokens::ReplayToken;
use crate::policies::runtime;

/// Longest distance of a claimed signing time from now, either way.
const SIGNED_AT_WINDOW: TimeDelta = TimeDelta::seconds(300);

/// An authentic payload.
#[derive(Clone, Debug)]
pub struct SignatureDecision {
    decision: Value,
    replay_token: Option<ReplayToken>,
}

impl SignatureDecision {
    /// Consumes the payload's replay token, if it has one, in the transaction of the payload's
    /// effect: a request that fails can be made again. Returns the decision for the audit and a
    /// replay: `{kind, version, digest, rule, fuel, answer, now, requestId, input, key, algorithm}`;
    /// `input` is sealed.
    ///
    /// # Errors
    /// ER336 for a token that was used before; the database's.
    pub(crate) async fn consume(self, core: &Core, conn: &mut Connection) -> Result<Value> {
        if let Some(token) = &self.replay_token {
            token.consume(core, conn).await?;
        }
        Ok(self.decision)
    }
}

/// A request in the form of the contract. Its fields are the members of the JSON body that are set
/// and neither object nor array, without `signature`, which becomes `claimed`. Its headers are all
/// but credentials: [`verify_signature`] leaves those that a policy may see.
pub fn signed_payload(purpose: Purpose, input: &Input) -> SignedPayload {
    // The parsed document rewrites exponents; a signature covers the bytes sent.
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_slice(&input.body).unwrap_or_default();
    let fields = members.into_iter().filter(|(name, _)| name != "signature");
    let fields = fields.filter_map(|(name, raw)| {
        let value = scalar(input.document.get(&name)?, raw)?;
        Some(Field { name, value })
    });
    let claimed = input.document.get("signature").and_then(Value::as_str);
    // In the order received, each repeat directly after the first of its name.
    let sent = input.head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let sent = sent.filter(|(name, _)| !CREDENTIAL_HEADERS.contains(name));
    let headers = sent.map(|(name, value)| Header { name: name.to_owned(), value: value.to_vec() });
    SignedPayload {
        purpose,
        fields: fields.collect(),
        claimed: claimed.filter(|text| !text.is_empty()).map(str::to_owned),
        method: input.head.method.to_string(),
        path: input.head.path.clone(),
        query: input.head.query.clone().unwrap_or_default(),
        headers: headers.collect(),
        body: input.body.to_vec(),
    }
}

/// A string unchanged, a number in the digits sent, a boolean as its name.
fn scalar(value: &Value, raw: &RawValue) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) => Some(raw.get().to_owned()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Verifies a payload with the partner's policy; `None` when there is none and the built-in scheme
/// applies.
///
/// Its replay token is not consumed yet: [`SignatureDecision::consume`] does that.
///
/// # Errors
/// ER339 without a signature, ER338 for one the policy cannot read, ER336 for an
/// invalid one: wrong, of an unknown key, outside the time window, or not covering the
/// required members. ER324 when the policy fails: a signature fails closed.
pub async fn verify_signature(
    core: &Core,
    client: &Client,
    mut payload: SignedPayload,
) -> Result<Option<SignatureDecision>> {
    let visible = &core.settings.policy.visible_headers.0;
    payload.headers.retain(|header| visible.contains(&header.name));
    let identifier = payload.fields.iter().find(|field| field.name == "identifier");
    let identifier = identifier.map(|field| field.value.clone());
    let evaluation = evaluate(
        core,
        client,
        identifier.as_ref().map(String::as_bytes),
        payload,
        &Attributes::new(),
    )
    .await;
    let Some(evaluation) = evaluation.map_err(|_| Code::SignaturePolicyFailed)? else {
        return Ok(None);
    };
    match &evaluation.output {
        Verdict::Rejected(rejection) => Err(rejection_error(*rejection)),
        Verdict::Authentic(signer) => {
            let replay_token = fresh_token(core, client, signer)
                .inspect_err(|_| count_outcome(core, client, PolicyKind::Signature, "refused"))?;
            let mut decision = evaluation.decision;
            decision["key"] = signer.key.clone().into();
            decision["algorithm"] = runtime::algorithm_name(signer.algorithm).into();
            Ok(Some(SignatureDecision { decision, replay_token }))
        }
    }
}

/// The replay token, if the payload has one, after the check of the signing time, which is left to
/// the host.
fn fresh_token(core: &Core, client: &Client, signer: &Signer) -> Result<Option<ReplayToken>> {
    let now = core.clock.now();
    let signed_at = signer.signed_at.and_then(|at| DateTime::<Utc>::from_timestamp(at.into(), 0));
    if signed_at.is_some_and(|at| (now - at).abs() > SIGNED_AT_WINDOW) {
        return Err(rejection_error(Rejection::Stale));
    }
    // After that the time window refuses it. Without one only the token does, however late it comes.
    let until = signed_at.map(|at| at + SIGNED_AT_WINDOW * 2);
    let token = signer.replay_token.as_deref();
    Ok(token.map(|token| ReplayToken::new(client, token, until)))
}

fn rejection_error(rejection: Rejection) -> Error {
    let (code, detail): (Code, Cow<'static, str>) = match rejection {
        Rejection::MissingSignature => return Code::SignatureRequired.into(),
        Rejection::MalformedSignature => {
            (Code::SignatureNotString, "its form cannot be read".into())
        }
        Rejection::BadSignature => return Code::SignatureInvalid.into(),
        Rejection::UnknownKey => (Code::SignatureInvalid, "its key is not known here".into()),
        Rejection::Stale => {
            (Code::SignatureInvalid, "it was signed too long ago, or in the future".into())
        }
        Rejection::NotCovered => {
            (Code::SignatureInvalid, "it does not cover all that it must".into())
        }
    };
    Error::with_detail(code, detail)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, Method};

    use super::*;
    use crate::http::fields;
    use crate::http::request::Head;

    fn input(body: &'static str) -> Input {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-timestamp", "1"),
            ("x-signature", "sig"),
            ("digest", "b"),
            ("digest", "a"),
            ("authorization", "Bearer secret"),
            ("user-authorization", "Bearer secret"),
            ("x-api-key", "rk_test_a_b"),
            ("cookie", "a=b"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        Input {
            head: Head {
                method: Method::POST,
                path: "/api/v2/buy/offer".into(),
                query: None,
                headers,
                peer: [127, 0, 0, 1].into(),
                client_certificate: None,
                request_id: "r".into(),
            },
            body: Bytes::from_static(body.as_bytes()),
            upload: None,
            document: fields::parse(body.as_bytes()).unwrap(),
            params: Vec::new(),
            now: DateTime::UNIX_EPOCH,
            proven: http::Extensions::new(),
        }
    }

    #[test]
    fn a_payload_has_the_sent_members_sorted_and_no_credential() {
        let body = r#"{"returnUrl":"app:a","fee":1.50,"rate":1E0,"signature":"ab","fixedAmount":true,
            "callbackUrl":null,"extra":{"a":1}}"#;
        let payload = signed_payload(Purpose::Offer, &input(body));
        let fields: Vec<_> =
            payload.fields.iter().map(|f| (f.name.as_str(), f.value.as_str())).collect();
        assert_eq!(
            fields,
            [("fee", "1.50"), ("fixedAmount", "true"), ("rate", "1E0"), ("returnUrl", "app:a"),]
        );
        assert_eq!(payload.claimed.as_deref(), Some("ab"));
        let headers: Vec<_> = payload.headers.iter().map(|h| (&*h.name, &*h.value)).collect();
        assert_eq!(
            headers,
            [
                ("x-timestamp", &b"1"[..]),
                ("x-signature", b"sig"),
                ("digest", b"b"),
                ("digest", b"a")
            ]
        );
        assert_eq!(payload.body, body.as_bytes());
    }

    #[test]
    fn each_rejection_has_its_code() {
        for (rejection, code) in [
            (Rejection::MissingSignature, Code::SignatureRequired),
            (Rejection::MalformedSignature, Code::SignatureNotString),
            (Rejection::UnknownKey, Code::SignatureInvalid),
            (Rejection::BadSignature, Code::SignatureInvalid),
            (Rejection::Stale, Code::SignatureInvalid),
            (Rejection::NotCovered, Code::SignatureInvalid),
        ] {
            assert!(rejection_error(rejection).is(code), "{rejection:?}");
        }
    }
}
