//! The policy kinds. Everything that differs by kind is in one file each; this one dispatches.

pub(crate) mod compiled;
pub(crate) mod fee;
pub(crate) mod method_order;
pub(crate) mod probes;
pub(crate) mod request_size;
pub(crate) mod scalars;
pub(crate) mod signature;

pub use self::fee::{Charge, FeeLine, FeePolicy, FeeSchedule};
pub use self::method_order::{METHODS_MAX, MethodOrderPolicy, Ranking};
pub use self::signature::SignaturePolicy;

use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker};

use self::compiled::Linked;
use self::probes::ProbeFuel;
use self::request_size::RequestSize;
use crate::bindings::log;
use crate::bindings::meta;
use crate::bindings::types::{CallContext, ConfigEntry};
use crate::host::call::{Call, CallClass, run};
use crate::host::keys::KeyRing;
use crate::host::rejection::Rejection;
use crate::host::report::CallReport;

/// The files of a first policy of a kind, which `rampart policy new` writes.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// Its source in Rust.
    pub rust: &'static str,
    /// Its source in C.
    pub c: &'static str,
    /// Its source in JavaScript.
    pub javascript: &'static str,
    /// Its test vectors.
    pub vectors: &'static str,
    /// Name and text of the guest crate's module of the kind.
    pub guest: (&'static str, &'static str),
}

/// The template with this kind's name, and the name of its module.
macro_rules! template {
    ($kind:literal, $module:literal) => {
        Template {
            rust: include_str!(concat!("../templates/rust/", $kind, ".rs")),
            c: include_str!(concat!("../templates/c/", $kind, ".c")),
            javascript: include_str!(concat!("../templates/javascript/", $kind, ".js")),
            vectors: include_str!(concat!("../templates/", $kind, ".json")),
            guest: (
                concat!($module, ".rs"),
                include_str!(concat!("../guests/rampart-guest/src/", $module, ".rs")),
            ),
        }
    };
}

/// A compiled policy of any kind. A call runs on the calling thread, in microseconds for a small
/// policy and at most until its deadline.
#[derive(Clone)]
pub enum Policy {
    /// Decides whether a payload is authentic.
    Signature(SignaturePolicy),
    /// States fees.
    Fee(FeePolicy),
    /// Orders payment methods.
    MethodOrder(MethodOrderPolicy),
}

impl Policy {
    /// Looks up the exports of a kind.
    ///
    /// # Errors
    /// When an export is missing or has another type.
    pub(crate) fn new(kind: PolicyKind, linked: Linked) -> wasmtime::Result<Self> {
        Ok(match kind {
            PolicyKind::Signature => Self::Signature(SignaturePolicy::new(linked)?),
            PolicyKind::Fee => Self::Fee(FeePolicy::new(linked)?),
            PolicyKind::MethodOrder => Self::MethodOrder(MethodOrderPolicy::new(linked)?),
        })
    }

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
        &self.linked().digest
    }

    /// Memory that it takes while it is loaded, in bytes, about.
    pub fn memory_bytes(&self) -> usize {
        self.linked().memory_bytes
    }

    /// The interfaces it imports, as `rampart:policy/log@0.1.0`.
    pub fn imports(&self) -> Vec<String> {
        let Linked { runtime, instance, .. } = self.linked();
        let ty = instance.component().component_type();
        ty.imports(&runtime.engine).map(|(name, _)| name.to_owned()).collect()
    }

    /// Creates an instance and drops it: the fixed cost of every call.
    pub fn start(&self) -> CallReport<()> {
        let Linked { runtime, instance, .. } = self.linked();
        let call = Call::new(runtime.limits, 0, KeyRing::default());
        run(runtime, instance, CallClass::Admission, call, |_, _| Ok(Ok(())), |(), _| Ok(()))
    }

    pub(crate) fn linked(&self) -> &Linked {
        match self {
            Self::Signature(policy) => &policy.0.linked,
            Self::Fee(policy) => &policy.0.linked,
            Self::MethodOrder(policy) => &policy.0.linked,
        }
    }

    /// Checks that a configuration leaves room for every probe in a call of its kind.
    ///
    /// # Errors
    /// The most that it may have.
    pub(crate) fn check_room(
        &self,
        context: &CallContext,
        config: &[ConfigEntry],
    ) -> Result<(), Rejection> {
        let limits = &self.linked().runtime.limits;
        let (largest, most) = match self {
            Self::Signature(_) => {
                (signature::largest_probe_bytes(), limits.signature_request_bytes_max)
            }
            Self::Fee(_) => (fee::largest_probe_bytes(), limits.request_bytes_max),
            Self::MethodOrder(_) => (method_order::largest_probe_bytes(), limits.request_bytes_max),
        };
        let room = most.saturating_sub(context.size_bytes() + largest);
        let size = config.size_bytes();
        match size <= room {
            true => Ok(()),
            false => Err(Rejection::new(format!(
                "the configuration has {size} bytes, at most {room} leave room for a request"
            ))),
        }
    }

    /// Runs every probe of its kind twice; the most fuel that one burnt.
    ///
    /// # Errors
    /// The probe that failed or was not deterministic.
    pub(crate) fn probe(
        &self,
        context: &CallContext,
        config: &[ConfigEntry],
    ) -> Result<ProbeFuel, Rejection> {
        match self {
            Self::Signature(policy) => policy.probe(context, config),
            Self::Fee(policy) => policy.probe(context, config),
            Self::MethodOrder(policy) => policy.probe(context, config),
        }
    }
}

/// A policy kind, as its exports tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// Decides whether a payload is authentic.
    Signature,
    /// States fees.
    Fee,
    /// Orders payment methods.
    MethodOrder,
}

impl PolicyKind {
    /// The kind in `describe`; none for those that came after the enum was frozen (`wit/README.md`).
    pub(crate) const fn declared(self) -> Option<meta::PolicyKind> {
        Some(match self {
            Self::Signature => meta::PolicyKind::Signature,
            Self::Fee => meta::PolicyKind::Fee,
            Self::MethodOrder => meta::PolicyKind::MethodOrder,
        })
    }

    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Signature, Self::Fee, Self::MethodOrder];

    /// Names of all kinds.
    pub const NAMES: [&str; 3] =
        [Self::Signature.as_str(), Self::Fee.as_str(), Self::MethodOrder.as_str()];

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

    /// The files of a first policy of this kind.
    pub const fn template(self) -> Template {
        match self {
            Self::Signature => template!("signature", "signature"),
            Self::Fee => template!("fee", "fee"),
            Self::MethodOrder => template!("method-order", "method_order"),
        }
    }

    /// Interfaces of the package that a policy of this kind may import.
    pub(crate) const fn granted_imports(self) -> &'static [&'static str] {
        match self {
            Self::Signature => signature::IMPORTS,
            Self::Fee => fee::IMPORTS,
            Self::MethodOrder => method_order::IMPORTS,
        }
    }

    /// The host functions behind those imports.
    pub(crate) fn linker(self, engine: &Engine) -> wasmtime::Result<Linker<Call>> {
        let mut linker = Linker::new(engine);
        log::add_to_linker::<Call, HasSelf<Call>>(&mut linker, |call| call)?;
        match self {
            Self::Signature => signature::add_to_linker(&mut linker)?,
            Self::Fee | Self::MethodOrder => {}
        }
        Ok(linker)
    }
}
