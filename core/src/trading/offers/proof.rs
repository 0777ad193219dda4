//! What proves that an offer is its partner's.

use rampart_plugins::contract::{Purpose, SignedPayload};
use serde_json::Value;

use super::signature::{self, Signable};
use crate::Core;
use crate::auth::caller::Client;
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::policies;

/// When there must be a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Where a covered field is set that needs one, and wherever the partner's policy says so.
    ForCovered,
    /// Nowhere: the call is the partner's own. One that is sent must be good (section 13 of the
    /// contract).
    Never,
}

/// What is checked before an offer is believed.
#[derive(Debug)]
pub(crate) enum Proof {
    /// Nothing that needs a signature is set, and there is none.
    NotNeeded,
    /// The built-in scheme.
    BuiltIn { canonical: String, signature: String },
    /// The partner's policy decides, whether or not there is a signature.
    Policy(Box<SignedPayload>),
}

impl Proof {
    /// Reads the signature, and refuses with ER339 where one is needed and there is none.
    pub(crate) fn read(
        fields: &mut Fields<'_>,
        input: &Input,
        client: &Client,
        need: Need,
    ) -> Self {
        let signature = fields.text_or_null("signature", Code::SignatureNotString);
        let signature = signature.filter(|signature| !signature.is_empty());
        if need == Need::Never && signature.is_none() {
            return Self::NotNeeded;
        }
        if client.tenant.policies.signature.is_some() {
            return Self::Policy(Box::new(policies::signed_payload(Purpose::Offer, input)));
        }
        let signable = Signable::of(input);
        match signature {
            Some(signature) => Self::BuiltIn { canonical: signable.canonical(), signature },
            None => {
                let is_text = fields.value("signature").is_none_or(Value::is_string);
                if is_text && signable.needs_signature() {
                    fields.refuse(Code::SignatureRequired);
                }
                Self::NotNeeded
            }
        }
    }

    /// Whether the offer is the partner's; the policy's decision for the audit, if one had a say.
    ///
    /// # Errors
    /// ER331 and ER336 of the built-in scheme; a policy's as `policies::verify_signature`.
    pub(crate) async fn check(self, core: &Core, client: &Client) -> Result<Option<Value>> {
        match self {
            Self::NotNeeded => Ok(None),
            Self::BuiltIn { canonical, signature } => {
                let secrets = &client.tenant.signing_secrets;
                signature::check(secrets, core.clock.now(), &canonical, &signature)?;
                Ok(None)
            }
            Self::Policy(payload) => {
                let decision = policies::verify_signature(core, client, *payload).await?;
                Ok(decision.map(|decision| decision.decision))
            }
        }
    }
}
