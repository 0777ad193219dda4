//! Signature policies: decides whether a partner's payload is authentic.

use wasmtime::component::{HasSelf, Linker};

use super::compiled::{Compiled, Linked};
use super::probes::{ProbeFuel, burnt_fuel, largest_bytes};
use super::request_size::{ELEMENT_BYTES, RequestSize};
use crate::bindings::crypto::{self, Algorithm};
use crate::bindings::signature::{
    Field, GuestIndices, Header, Purpose, SignedPayload, Signer, Verdict,
};
use crate::bindings::types::{CallContext, ConfigEntry};
use crate::host::call::{Call, CallClass, run, too_large};
use crate::host::keys::KeyRing;
use crate::host::rejection::Rejection;
use crate::host::report::CallReport;

/// Interfaces it may import.
pub(crate) const IMPORTS: &[&str] = &["types", "log", "crypto"];

const REPLAY_TOKEN_BYTES_MAX: usize = 255;

/// Decides whether a partner's payload is authentic. Cheap to clone, to be shared by threads.
#[derive(Clone)]
pub struct SignaturePolicy(pub(crate) Compiled<GuestIndices>);

/// Host functions of this kind alone.
pub(crate) fn add_to_linker(linker: &mut Linker<Call>) -> wasmtime::Result<()> {
    crypto::add_to_linker::<Call, HasSelf<Call>>(linker, |call| call)
}

impl SignaturePolicy {
    pub(crate) fn new(linked: Linked) -> wasmtime::Result<Self> {
        let exports = GuestIndices::new(&linked.instance)?;
        Ok(Self(Compiled { linked, exports }))
    }

    /// Verdict on a payload, with the keys bound to this partner and policy.
    ///
    /// `Authentic` means that the host itself verified a signature with the named key during this
    /// call. The window of `signed-at` and the reuse of `replay-token` are still for the caller.
    pub fn verify(
        &self,
        class: CallClass,
        context: &CallContext,
        config: &[ConfigEntry],
        payload: &SignedPayload,
        keys: &KeyRing,
    ) -> CallReport<Verdict> {
        let Compiled { linked: Linked { runtime, instance, .. }, exports } = &self.0;
        let size = context.size_bytes() + config.size_bytes() + payload.size_bytes();
        if size > runtime.limits.signature_request_bytes_max {
            return too_large(size);
        }
        let call = Call::new(runtime.limits, context.now, keys.clone());
        run(
            runtime,
            instance,
            class,
            call,
            |store, instance| {
                exports.load(&mut *store, instance)?.call_verify(store, context, config, payload)
            },
            |verdict, call| check_verdict(verdict, call.verified()),
        )
    }

    pub(crate) fn probe(
        &self,
        context: &CallContext,
        config: &[ConfigEntry],
    ) -> Result<ProbeFuel, Rejection> {
        burnt_fuel(
            &probe_payloads(),
            |_| false,
            |payload| {
                self.verify(CallClass::Admission, context, config, payload, &KeyRing::default())
            },
        )
    }
}

/// `verified` lists the signatures that the host itself found genuine during this call: a policy
/// that calls a payload authentic without having asked is not believed.
fn check_verdict(verdict: Verdict, verified: &[(String, Algorithm)]) -> Result<Verdict, String> {
    if let Verdict::Authentic(Signer { key, algorithm, replay_token, .. }) = &verdict {
        if !verified.iter().any(|(k, a)| k == key && a == algorithm) {
            return Err("authentic, but the host verified no signature with the named key".into());
        }
        if replay_token.as_ref().is_some_and(|t| t.is_empty() || t.len() > REPLAY_TOKEN_BYTES_MAX) {
            return Err(format!("a replay token is not 1 to {REPLAY_TOKEN_BYTES_MAX} bytes"));
        }
    }
    Ok(verdict)
}

impl RequestSize for SignedPayload {
    fn size_bytes(&self) -> usize {
        let fields = self.fields.iter().map(|f| ELEMENT_BYTES + f.name.len() + f.value.len());
        let headers = self.headers.iter().map(|h| ELEMENT_BYTES + h.name.len() + h.value.len());
        fields.sum::<usize>()
            + headers.sum::<usize>()
            + self.claimed.size_bytes()
            + self.method.len()
            + self.path.len()
            + self.query.len()
            + self.body.len()
    }
}

/// Size of the largest probe, in bytes.
pub(crate) fn largest_probe_bytes() -> usize {
    largest_bytes(&probe_payloads())
}

fn probe_payloads() -> Vec<SignedPayload> {
    let field = |name: &str, value: &str| Field { name: name.into(), value: value.into() };
    let unsigned = SignedPayload {
        purpose: Purpose::Offer,
        fields: vec![
            field("callbackUrl", "https://partner.example/callback?order=1"),
            field("fee", "1.5"),
            field("returnUrl", "https://partner.example/zurück"),
            field("walletAddress", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"),
        ],
        claimed: None,
        method: "POST".into(),
        path: "/api/v2/buy/offer".into(),
        query: String::new(),
        headers: vec![Header { name: "content-type".into(), value: b"application/json".to_vec() }],
        body: b"{}".to_vec(),
    };
    let forged = SignedPayload { claimed: Some("00".repeat(32)), ..unsigned.clone() };
    let garbage = SignedPayload { claimed: Some("t=,n=\u{1f512}".into()), ..unsigned.clone() };
    let onboarding = SignedPayload {
        purpose: Purpose::Onboarding,
        fields: vec![field("identifier", "sample"), field("locale", "de")],
        claimed: Some("AAAA".into()),
        method: "GET".into(),
        path: "/sell/onboarding".into(),
        query: "identifier=sample&locale=de&signature=AAAA".into(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    let bare = SignedPayload { fields: Vec::new(), ..onboarding.clone() };
    let payloads = [unsigned, forged, garbage, onboarding, bare];
    payloads.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::signature::Rejection;

    #[test]
    fn authentic_requires_a_signature_that_the_host_verified() {
        let signer = |key: &str, algorithm, token: Option<&str>| {
            Verdict::Authentic(Signer {
                key: key.into(),
                algorithm,
                signed_at: None,
                replay_token: token.map(Into::into),
            })
        };
        let verified = [("a".to_owned(), Algorithm::Ed25519)];
        let is_accepted = |verdict| check_verdict(verdict, &verified).is_ok();
        assert!(is_accepted(signer("a", Algorithm::Ed25519, None)));
        assert!(is_accepted(signer("a", Algorithm::Ed25519, Some("n"))));
        assert!(!is_accepted(signer("a", Algorithm::Ed25519, Some(""))));
        assert!(!is_accepted(signer("a", Algorithm::Ed25519, Some(&"n".repeat(256)))));
        assert!(!is_accepted(signer("a", Algorithm::HmacSha256, None)));
        assert!(!is_accepted(signer("b", Algorithm::Ed25519, None)));
        assert!(check_verdict(signer("a", Algorithm::Ed25519, None), &[]).is_err());
        assert!(check_verdict(Verdict::Rejected(Rejection::Stale), &[]).is_ok());
    }
}
