//! Compiled components.

use std::sync::Arc;

use wasmtime::component::InstancePre;

use crate::host::call::Call;
use crate::host::runtime::Runtime;

/// A component with its imports linked, and its exports of one kind looked up.
#[derive(Clone)]
pub(crate) struct Compiled<E> {
    pub(crate) linked: Linked,
    pub(crate) exports: E,
}

/// A component with its imports linked.
#[derive(Clone)]
pub(crate) struct Linked {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) instance: InstancePre<Call>,
    /// SHA-256 of the component, in lower-case hex.
    pub(crate) digest: Arc<str>,
    /// Memory that it takes while it is loaded, in bytes, about.
    pub(crate) memory_bytes: usize,
}
