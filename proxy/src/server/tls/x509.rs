//! What a certificate says of itself, beyond what rustls tells.

use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The end of validity, in seconds since the epoch; `None` for what is no certificate.
pub(super) fn not_after(der: &[u8]) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

/// The subject, such as `C=NL, O=Acme Wallets, CN=acme`; `None` for what is no certificate.
pub(crate) fn subject(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(certificate.subject().to_string())
}
