//! The service's self-description: documentation, error codes and the OpenAPI document.

pub mod docs;
pub mod errors;
pub mod help;
pub mod logo;
pub mod openapi;
