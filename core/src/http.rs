//! HTTP values without a server: request, reply, error envelope, fields, uploads, HTML pages. The
//! edge serves them.

mod error_envelope;
pub mod fields;
pub(crate) mod html;
pub mod images;
pub mod reply;
pub mod request;
pub(crate) mod signed_link;
pub mod upload;
