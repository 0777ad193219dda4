//! The versions, cipher suites and key exchanges of TLS handshakes.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, SupportedCipherSuite, SupportedProtocolVersion};

use super::key_exchange::X25519MlKem768;
use super::read_chain;
use crate::config::{Tls, TlsVersion};
use crate::startup_error::{Context as _, StartupError};

/// The provider with X25519MLKEM768 before its own key exchanges, and the cipher suites of `edge.tls.ciphers`, in their order.
///
/// # Errors
/// One sentence: which name is unknown, and which there are, or that none is of a version that is
/// spoken.
pub(super) fn provider(tls: &Tls) -> Result<Arc<CryptoProvider>, StartupError> {
    let mut provider = rustls::crypto::ring::default_provider();
    provider.kx_groups.insert(0, &X25519MlKem768);
    if !tls.ciphers.is_empty() {
        let known = |name: &String| {
            let suite = provider.cipher_suites.iter().find(|suite| iana_name(suite) == *name);
            suite.copied().ok_or_else(|| unknown(name, &provider.cipher_suites))
        };
        provider.cipher_suites = tls.ciphers.iter().map(known).collect::<Result<_, _>>()?;
    }
    let has_tls13 = provider.cipher_suites.iter().any(|suite| suite.tls13().is_some());
    if tls.min_version == TlsVersion::Tls13 && !has_tls13 {
        return Err("'edge.tls.min_version' is 1.3, but 'edge.tls.ciphers' names no cipher suite \
                    of TLS 1.3"
            .into());
    }
    Ok(Arc::new(provider))
}

/// The name of a cipher suite as registered: rustls tells those of TLS 1.3 apart by their prefix.
fn iana_name(suite: &SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replace("TLS13_", "TLS_")
}

fn unknown(name: &str, suites: &[SupportedCipherSuite]) -> StartupError {
    let known: Vec<_> = suites.iter().map(iana_name).collect();
    let known = known.join(", ");
    format!("'edge.tls.ciphers' names '{name}', which is none of {known}").into()
}

/// The versions from `edge.tls.min_version` on.
pub(super) fn versions(tls: &Tls) -> Vec<&'static SupportedProtocolVersion> {
    match tls.min_version {
        TlsVersion::Tls12 => vec![&TLS13, &TLS12],
        TlsVersion::Tls13 => vec![&TLS13],
    }
}

/// Checks the certificates of clients that have one against the authorities in `path`, which come
/// with it.
///
/// # Errors
/// One sentence: why the file cannot be used.
pub(super) fn client_verifier(
    path: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<(Arc<dyn ClientCertVerifier>, Vec<CertificateDer<'static>>), StartupError> {
    let unusable = format!("'edge.tls.client_ca' is not usable: '{}'", path.display());
    let authorities = read_chain(path).context(&unusable)?;
    let mut roots = RootCertStore::empty();
    for certificate in &authorities {
        roots.add(certificate.clone()).context(&unusable)?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .context(&unusable)?;
    Ok((verifier, authorities))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cipher_suites_are_known_and_one_is_of_a_version_that_is_spoken() {
        let suites = |min_version, names: &[&str]| {
            let ciphers = names.iter().map(|&name| name.to_owned()).collect();
            let made = provider(&Tls { min_version, ciphers, ..Tls::default() });
            made.map(|made| made.cipher_suites.iter().map(iana_name).collect::<Vec<_>>())
        };
        let (new, old) = ("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
        let usable: [(TlsVersion, &[&str]); 4] = [
            (TlsVersion::Tls12, &[new]),
            (TlsVersion::Tls12, &[old]),
            (TlsVersion::Tls13, &[new]),
            (TlsVersion::Tls13, &[old, new]),
        ];
        for (min_version, names) in usable {
            assert_eq!(suites(min_version, names).unwrap(), names);
        }
        assert!(!suites(TlsVersion::Tls13, &[]).unwrap().is_empty());
        let refused = suites(TlsVersion::Tls13, &[old]).unwrap_err().to_string();
        let sentence = "'edge.tls.min_version' is 1.3, but 'edge.tls.ciphers' names no cipher \
                        suite of TLS 1.3";
        assert_eq!(refused, sentence);
        let unknown = suites(TlsVersion::Tls12, &[new, "NULL"]).unwrap_err().to_string();
        assert!(unknown.starts_with("'edge.tls.ciphers' names 'NULL', which is none of TLS_"));
    }
}
