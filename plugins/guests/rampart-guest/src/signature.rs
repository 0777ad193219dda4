//! Policies that decide whether a partner's payload is authentic.

use std::marker::PhantomData;

use crate::bindings::about::exports::rampart::policy::meta;
use crate::bindings::signature::exports::rampart::policy::signature::Guest;
pub use crate::bindings::signature::exports::rampart::policy::signature::{
    Field, Header, Purpose, Rejection, SignedPayload, Signer, Verdict,
};
pub use crate::bindings::signature::rampart::policy::crypto::{
    Algorithm, CryptoError, DigestAlgorithm, digest, verify,
};
pub use crate::{About, CallContext, Config, PolicyError, Problem, Setting, SettingType};
use crate::{ConfigEntry, about};

/// Decides whether a payload is authentic. Keys stay in the host: [`verify`] takes their names.
pub trait SignaturePolicy {
    /// Its description, shown to the operator.
    const ABOUT: About;

    /// Checks settings beyond their type. Called when they change, never for a request.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    fn validate(_config: &Config) -> Result<(), Problem> {
        Ok(())
    }

    /// The verdict. The host accepts `Authentic` only for a key with which [`verify`] returned true.
    ///
    /// # Errors
    /// When the policy has no output; the payload is then refused.
    fn judge(
        context: CallContext,
        config: Config,
        payload: SignedPayload,
    ) -> Result<Verdict, PolicyError>;
}

/// Exports a [`SignaturePolicy`] as the component.
#[macro_export]
macro_rules! signature_policy {
    ($policy:ty) => {
        type Exported = $crate::signature::Exported<$policy>;
        $crate::bindings::about::export!(Exported with_types_in $crate::bindings::about);
        $crate::bindings::signature::export!(Exported with_types_in $crate::bindings::signature);
    };
}

#[doc(hidden)]
pub struct Exported<P>(PhantomData<P>);

impl<P: SignaturePolicy> meta::Guest for Exported<P> {
    fn describe() -> meta::PolicyInfo {
        about::describe(&P::ABOUT, meta::PolicyKind::Signature)
    }

    fn validate_config(config: Vec<ConfigEntry>) -> Result<(), Vec<meta::ConfigProblem>> {
        P::validate(&Config::new(config)).map_err(about::problems)
    }
}

impl<P: SignaturePolicy> Guest for Exported<P> {
    fn verify(
        context: CallContext,
        config: Vec<ConfigEntry>,
        payload: SignedPayload,
    ) -> Result<Verdict, PolicyError> {
        P::judge(context, Config::new(config), payload)
    }
}
