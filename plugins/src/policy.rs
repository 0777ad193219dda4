//! A compiled policy of each kind. Calling one runs it on the calling thread, in microseconds for a
//! small policy and at most until its deadline.

use std::sync::Arc;

use wasmtime::component::InstancePre;

use crate::answer::{self, FeeSchedule, Ranking};
use crate::bindings::fee::{self, FeeRequest};
use crate::bindings::meta::PolicyKind;
use crate::bindings::method_order::{self, OrderRequest};
use crate::bindings::signature::{self, SignedPayload, Verdict};
use crate::bindings::types::{CallContext, ConfigEntry};
use crate::call::{Call, Lane, not_called, run};
use crate::engine::Shared;
use crate::failure::{Called, Cause, Failure};
use crate::keys::KeyRing;
use crate::request::{METHODS_MAX, Weigh};

/// A policy of any kind.
#[derive(Clone)]
pub enum Policy {
    /// Decides whether a payload is authentic.
    Signature(SignaturePolicy),
    /// States fees.
    Fee(FeePolicy),
    /// Orders payment methods.
    MethodOrder(MethodOrderPolicy),
}

/// States the fees of a quote or an order. Cheap to clone, to be shared by threads.
#[derive(Clone)]
pub struct FeePolicy(pub(crate) Compiled<fee::GuestIndices>);

/// Orders the payment methods of one user. Cheap to clone, to be shared by threads.
#[derive(Clone)]
pub struct MethodOrderPolicy(pub(crate) Compiled<method_order::GuestIndices>);

/// Decides whether a partner's payload is authentic. Cheap to clone, to be shared by threads.
#[derive(Clone)]
pub struct SignaturePolicy(pub(crate) Compiled<signature::GuestIndices>);

/// A component with its imports linked and the place of its exports looked up.
#[derive(Clone)]
pub(crate) struct Compiled<E> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) instance: InstancePre<Call>,
    pub(crate) exports: E,
    pub(crate) digest: Arc<str>,
}

impl Policy {
    /// Its kind.
    pub fn kind(&self) -> PolicyKind {
        match self {
            Self::Signature(_) => PolicyKind::Signature,
            Self::Fee(_) => PolicyKind::Fee,
            Self::MethodOrder(_) => PolicyKind::MethodOrder,
        }
    }

    /// SHA-256 of the component, in lower-case hex.
    pub fn digest(&self) -> &str {
        match self {
            Self::Signature(SignaturePolicy(compiled)) => &compiled.digest,
            Self::Fee(FeePolicy(compiled)) => &compiled.digest,
            Self::MethodOrder(MethodOrderPolicy(compiled)) => &compiled.digest,
        }
    }
}

impl PolicyKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Signature, Self::Fee, Self::MethodOrder];

    /// Its name in paths, rows and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Fee => "fee",
            Self::MethodOrder => "method-order",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl FeePolicy {
    /// The fees of one quote or order, checked but neither clamped nor summed.
    pub fn price(
        &self,
        context: &CallContext,
        config: &[ConfigEntry],
        request: &FeeRequest,
    ) -> Called<FeeSchedule> {
        self.price_in(Lane::Serving, context, config, request)
    }

    /// [`FeePolicy::price`] on another account than a request's.
    pub fn price_in(
        &self,
        lane: Lane,
        context: &CallContext,
        config: &[ConfigEntry],
        request: &FeeRequest,
    ) -> Called<FeeSchedule> {
        let Compiled { shared, instance, exports, .. } = &self.0;
        let weight = context.weight() + config.weight() + request.weight();
        if weight > shared.limits.request_bytes_max {
            return too_large(weight);
        }
        let call = Call::new(shared.limits, context.now, KeyRing::default());
        run(
            shared,
            instance,
            lane,
            call,
            |store, instance| {
                exports.load(&mut *store, instance)?.call_price(store, context, config, request)
            },
            |schedule, _| answer::fee_schedule(schedule),
        )
    }
}

impl MethodOrderPolicy {
    /// What to show to one user, in order. At most 64 methods, with unique ids.
    pub fn rank(
        &self,
        context: &CallContext,
        config: &[ConfigEntry],
        request: &OrderRequest,
    ) -> Called<Ranking> {
        self.rank_in(Lane::Serving, context, config, request)
    }

    /// [`MethodOrderPolicy::rank`] on another account than a request's.
    pub fn rank_in(
        &self,
        lane: Lane,
        context: &CallContext,
        config: &[ConfigEntry],
        request: &OrderRequest,
    ) -> Called<Ranking> {
        let Compiled { shared, instance, exports, .. } = &self.0;
        let weight = context.weight() + config.weight() + request.weight();
        if weight > shared.limits.request_bytes_max {
            return too_large(weight);
        }
        if request.methods.len() > METHODS_MAX {
            return not_called(Failure::new(
                Cause::Capacity,
                format!("more than {METHODS_MAX} methods"),
            ));
        }
        let call = Call::new(shared.limits, context.now, KeyRing::default());
        run(
            shared,
            instance,
            lane,
            call,
            |store, instance| {
                exports.load(&mut *store, instance)?.call_rank(store, context, config, request)
            },
            |ranking, _| answer::ranking(ranking, request),
        )
    }
}

impl SignaturePolicy {
    /// Whether the payload is authentic, for the keys bound to this partner and policy.
    ///
    /// `Authentic` means that the host itself verified a signature with the named key during this
    /// call. The window of `signed-at` and the reuse of `replay-token` are still for the caller.
    pub fn verify(
        &self,
        context: &CallContext,
        config: &[ConfigEntry],
        payload: &SignedPayload,
        keys: &KeyRing,
    ) -> Called<Verdict> {
        self.verify_in(Lane::Serving, context, config, payload, keys)
    }

    /// [`SignaturePolicy::verify`] on another account than a request's.
    pub fn verify_in(
        &self,
        lane: Lane,
        context: &CallContext,
        config: &[ConfigEntry],
        payload: &SignedPayload,
        keys: &KeyRing,
    ) -> Called<Verdict> {
        let Compiled { shared, instance, exports, .. } = &self.0;
        let weight = context.weight() + config.weight() + payload.weight();
        if weight > shared.limits.signature_request_bytes_max {
            return too_large(weight);
        }
        let call = Call::new(shared.limits, context.now, keys.clone());
        run(
            shared,
            instance,
            lane,
            call,
            |store, instance| {
                exports.load(&mut *store, instance)?.call_verify(store, context, config, payload)
            },
            |verdict, call| answer::verdict(verdict, call.verified()),
        )
    }
}

fn too_large<T>(weight: usize) -> Called<T> {
    let message = format!("a request of {weight} bytes is more than a policy may be given");
    not_called(Failure::new(Cause::Capacity, message))
}
