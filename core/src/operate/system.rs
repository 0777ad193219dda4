//! The service's self-description: documentation, error codes and the OpenAPI document.

pub mod design;
pub mod docs;
pub mod errors;
pub mod help;
pub mod openapi;
