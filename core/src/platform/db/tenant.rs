//! The tenant whose rows the statements of a task may see.
//!
//! Row-level security shows a transaction the rows of `rampart.client_id`, and none without it. A
//! request sees its tenant's from the moment that it names it; the pools of workers, operators,
//! connectors and the snapshot see every tenant's.

use std::cell::Cell;

use rampart_types::ClientId;

use super::pool_kind::PoolKind;

tokio::task_local! {
    static CURRENT: Cell<Option<ClientId>>;
}

/// Runs the work of one request, whose tenant is known already or is named by [`enter`].
pub(crate) fn run<F: Future>(tenant: Option<ClientId>, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(Cell::new(tenant), work)
}

/// True if this task works for a request to the public listener.
pub(crate) fn is_request() -> bool {
    CURRENT.try_with(|_| ()).is_ok()
}

/// Names the tenant that the request says it is of, before its proof is looked up. A request keeps its first one: what it
/// asks of another tenant finds nothing.
pub(crate) fn enter(tenant: ClientId) {
    // Without a request there is nothing to name: workers name no tenant.
    let _ = CURRENT.try_with(|current| {
        if current.get().is_none() {
            current.set(Some(tenant));
        }
    });
}

/// The tenant that this task works for, if it is a request's and is named already.
pub(crate) fn current() -> Option<ClientId> {
    CURRENT.try_with(Cell::get).ok().flatten()
}

/// The statements that let a transaction of this task see what it may; empty where it may see no
/// tenant's rows.
pub(super) fn settings() -> String {
    if PoolKind::current().sees_all_tenants() {
        return "; set local rampart.all_tenants = 'on'".to_owned();
    }
    match current() {
        Some(tenant) => format!("; set local rampart.client_id = '{tenant}'"),
        None => String::new(),
    }
}
