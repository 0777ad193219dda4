//! The WebAssembly host: engine, limits, calls, and the functions a policy may import.
//!
//! - `engine`: its public handle; `runtime`: the state that all calls share; `limits`: every bound
//! - `compile`: components to policies; `compiler`: in a child process; `native_code`: their machine
//!   code on disk; `rejection`: the checks of an upload, and their refusals
//! - `call`: one call in a fresh instance; `deadline`: its time limit; `report`: outcome and cost
//! - `crypto`, `keys`: signature checks with keys that a policy can use and never read
//! - `breaker`: a circuit breaker for failing policies

pub(crate) mod breaker;
pub(crate) mod call;
pub(crate) mod compile;
pub(crate) mod compiler;
pub(crate) mod crypto;
pub(crate) mod deadline;
pub(crate) mod engine;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod native_code;
pub(crate) mod rejection;
pub(crate) mod report;
pub(crate) mod runtime;
