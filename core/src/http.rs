//! HTTP values without a server: request, reply, error envelope, fields, uploads, HTML pages. The
//! edge serves them.

pub mod cookie;
pub mod csv;
pub(crate) mod device;
pub(crate) mod error_envelope;
pub mod event_stream;
pub mod fields;
pub mod file_stream;
pub mod form;
pub mod html;
pub mod images;
pub mod language;
pub(crate) mod pdf;
pub mod plain_error;
pub mod reply;
pub mod request;
pub(crate) mod signed_link;
pub mod upload;
pub mod uri;

/// One of the APIs, each on a listener of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// The partners' API: errors are codes of the catalogue in one envelope.
    Partners,
    /// The operators' API: an error is a status and a reason.
    Operators,
    /// The connectors' API: errors as of the operators'.
    Connectors,
}
