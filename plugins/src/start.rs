//! What a policy uses and costs before it decides anything.

use wasmtime::component::InstancePre;

use crate::call::{Call, Lane, run};
use crate::engine::Shared;
use crate::failure::Called;
use crate::keys::KeyRing;
use crate::policy::{FeePolicy, MethodOrderPolicy, Policy, SignaturePolicy};

impl Policy {
    /// The interfaces it imports, as `rampart:policy/log@0.1.0`.
    pub fn imports(&self) -> Vec<String> {
        let (shared, instance) = self.parts();
        let ty = instance.component().component_type();
        ty.imports(&shared.wasm).map(|(name, _)| name.to_owned()).collect()
    }

    /// Makes an instance and drops it: the part of every call that is paid before the policy is
    /// asked.
    pub fn start(&self) -> Called<()> {
        let (shared, instance) = self.parts();
        let call = Call::new(shared.limits, 0, KeyRing::default());
        run(shared, instance, Lane::Admission, call, |_, _| Ok(Ok(())), |(), _| Ok(()))
    }

    /// What runs it, and the component with its imports linked.
    pub(crate) fn parts(&self) -> (&Shared, &InstancePre<Call>) {
        match self {
            Self::Signature(SignaturePolicy(compiled)) => (&compiled.shared, &compiled.instance),
            Self::Fee(FeePolicy(compiled)) => (&compiled.shared, &compiled.instance),
            Self::MethodOrder(MethodOrderPolicy(compiled)) => {
                (&compiled.shared, &compiled.instance)
            }
        }
    }
}
