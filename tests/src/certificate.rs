//! A self-signed certificate for loopback, and clients that trust it.

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The certificate of every edge that was given no other.
pub static CERTIFICATE: LazyLock<Certificate> = LazyLock::new(Certificate::make);

/// A certificate with its key.
pub struct Certificate {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Certificate {
    /// A new one, for `localhost` and 127.0.0.1.
    pub fn make() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        Self { certificate, key }
    }

    /// Writes `cert.pem` and `key.pem` into `folder`.
    pub fn write(&self, folder: &Path) {
        fs::write(folder.join("key.pem"), self.key_pem()).unwrap();
        fs::write(folder.join("cert.pem"), self.pem()).unwrap();
    }

    /// Its text.
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// The text of its key.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Its bytes, as a handshake shows them.
    pub fn der(&self) -> &CertificateDer<'static> {
        self.certificate.der()
    }

    /// The configuration of a TLS client that trusts this certificate alone and offers
    /// `protocols` by ALPN.
    pub fn client(&self, protocols: &[&str]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }

    /// The configuration of a TLS server that shows this certificate and takes `protocols` by
    /// ALPN.
    pub fn server(&self, protocols: &[&[u8]]) -> ServerConfig {
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.der().clone()], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        config
    }
}
