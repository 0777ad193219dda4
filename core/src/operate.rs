//! Operation: the operators' API, the sandbox, documentation, readiness.

pub mod admin;
pub mod readiness;
pub mod sandbox;
pub mod system;
