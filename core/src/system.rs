//! What the service says about itself.

pub mod errors;
pub mod openapi;
