//! Proof that an offer is the partner's: none needed, a built-in signature, or a policy's verdict.

use rampart_plugins::contract::{PolicyKind, Purpose, SignedPayload};
use serde_json::Value;

use super::signature::{self, Signable};
use crate::Core;
use crate::auth::caller::Client;
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::policies::kinds::signature::{SignatureDecision, signed_payload, verify_signature};

/// Requirement of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignatureRequirement {
    /// Required if a covered field is set that needs one, or if the partner's policy demands it.
    ForCovered,
    /// Never required, because the partner itself calls. One that is sent must be valid (section
    /// 13 of the contract).
    Never,
}

/// The check that an offer must pass.
#[derive(Debug)]
pub(crate) enum Proof {
    /// No signature, and none required.
    NotNeeded,
    /// The built-in scheme.
    BuiltIn { canonical: String, signature: String },
    /// The partner's policy decides, with or without a signature.
    Policy(Box<SignedPayload>),
}

impl Proof {
    /// Reads the signature; ER339 if it is required and missing.
    pub(crate) fn read(
        fields: &mut Fields<'_>,
        input: &Input,
        client: &Client,
        requirement: SignatureRequirement,
    ) -> Self {
        let signature = fields.text_or_null("signature", Code::SignatureNotString);
        let signature = signature.filter(|signature| !signature.is_empty());
        if requirement == SignatureRequirement::Never && signature.is_none() {
            return Self::NotNeeded;
        }
        if client.tenant.policies.get(PolicyKind::Signature).is_some() {
            return Self::Policy(Box::new(signed_payload(Purpose::Offer, input)));
        }
        let signable = Signable::read(input);
        match signature {
            Some(signature) => Self::BuiltIn { canonical: signable.canonical(), signature },
            None => {
                let is_text = fields.value("signature").is_none_or(Value::is_string);
                if is_text && signable.needs_signature() {
                    fields.refuse_member(Code::SignatureRequired, "signature");
                }
                Self::NotNeeded
            }
        }
    }

    /// Checks that the offer is the partner's; returns the policy's decision, if any.
    ///
    /// # Errors
    /// ER331 and ER336 of the built-in scheme; a policy's as `verify_signature`.
    pub(crate) async fn check(
        self,
        core: &Core,
        client: &Client,
    ) -> Result<Option<SignatureDecision>> {
        match self {
            Self::NotNeeded => Ok(None),
            Self::BuiltIn { canonical, signature } => {
                let secrets = &client.tenant.signing_secrets;
                signature::check(secrets, core.clock.now(), &canonical, &signature)?;
                Ok(None)
            }
            Self::Policy(payload) => verify_signature(core, client, *payload).await,
        }
    }
}
