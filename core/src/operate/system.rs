//! What the service says about itself.

pub mod docs;
pub mod errors;
pub mod openapi;
