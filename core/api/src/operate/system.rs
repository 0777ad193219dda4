//! The service's self-description: documentation, error codes, the OpenAPI document, public keys.

pub mod design;
pub mod docs;
pub mod errors;
pub mod help;
pub mod logo;
pub mod openapi;
pub mod signing_keys;
