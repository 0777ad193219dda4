//! Fields of a certificate that rustls does not tell.

use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The end of validity, in seconds since the epoch; `None` for what is no certificate.
pub(super) fn not_after(der: &[u8]) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

/// The subject, such as `C=NL, O=Acme Wallets, CN=acme`; `None` for what is no certificate, and where a
/// value holds an equals sign. Nothing is escaped: with it a value could spell out another subject.
pub(crate) fn subject(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let (subject, text) = (certificate.subject(), certificate.subject().to_string());
    (text.matches('=').count() == subject.iter_attributes().count()).then_some(text)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    #[test]
    fn no_value_spells_out_another_subject() {
        let subject_of = |values: &[&str]| {
            let mut parameters = CertificateParams::default();
            parameters.distinguished_name = DistinguishedName::new();
            let kinds = [DnType::OrganizationName, DnType::CommonName];
            for (kind, value) in kinds.into_iter().zip(values) {
                parameters.distinguished_name.push(kind, *value);
            }
            let key = KeyPair::generate().unwrap();
            let certificate = parameters.self_signed(&key).unwrap();
            subject(certificate.der())
        };
        let pinned = subject_of(&["Acme", "acme"]);
        assert_eq!(pinned.as_deref(), Some("O=Acme, CN=acme"));
        assert_eq!(subject_of(&["Acme, CN=acme"]), None);
        let with_comma = subject_of(&["Acme, Inc.", "acme"]);
        assert_eq!(with_comma.as_deref(), Some("O=Acme, Inc., CN=acme"));
    }
}
