//! Plain HTTP values: a request, a reply, the error envelope, fields, uploads, HTML pages. Serving
//! them is the edge's business.

mod error_envelope;
pub mod fields;
pub(crate) mod html;
pub mod images;
pub mod reply;
pub mod request;
pub(crate) mod signed_link;
pub mod upload;
