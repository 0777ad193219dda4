//! Compilation of a component off the serving threads.

use rampart_plugins::contract::PolicyKind;
use rampart_plugins::{Policy, PolicyEngine};
use tokio::sync::oneshot;

use crate::platform::db::Pool;

/// Stack of a compiling thread, in bytes: its depth follows the nesting of the uploaded code.
const THREAD_STACK_BYTES: usize = 16 << 20;

/// A compilation without code.
pub(super) enum Failure {
    /// The component does not fit this edge's limits.
    Final(String),
    /// The machine could not compile it now.
    Transient(String),
}

/// Reads a component.
///
/// # Errors
/// When there is none, or the database cannot be used.
pub(super) async fn read(db: &Pool, digest: &str) -> Result<Vec<u8>, sqlx::Error> {
    let component =
        sqlx::query_scalar!("select component from policy_component where digest = $1", digest);
    component.fetch_one(db).await
}

/// Compiles on a thread with a stack that is deep enough.
pub(super) async fn compile(
    engine: PolicyEngine,
    kind: PolicyKind,
    component: Vec<u8>,
) -> Result<Policy, Failure> {
    let (sender, compiled) = oneshot::channel();
    std::thread::Builder::new()
        .name("policy-compiler".into())
        .stack_size(THREAD_STACK_BYTES)
        .spawn(move || drop(sender.send(engine.load(kind, &component))))
        .map_err(|error| Failure::Transient(format!("no thread to compile on: {error}")))?;
    match compiled.await {
        Ok(Ok(policy)) => Ok(policy),
        Ok(Err(rejection)) if rejection.is_transient() => {
            Err(Failure::Transient(rejection.to_string()))
        }
        Ok(Err(rejection)) => Err(Failure::Final(rejection.to_string())),
        Err(_) => Err(Failure::Transient("the compiler panicked".into())),
    }
}
