//! The certificate that edges obtain by ACME, and the certificates that answer its challenges
//! (RFC 8737).

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use rampart_core::operate::acme::{AcmeState, Certificate, Challenge};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

use super::{log_unchanged, stapling};
use crate::startup_error::{Context as _, StartupError};

/// The protocol of a handshake in which an authority looks for a challenge.
pub(super) const PROTOCOL: &[u8] = b"acme-tls/1";
const UNUSABLE: &str = "the certificate obtained by ACME cannot be used";

/// Certificates for what edges share.
#[derive(Debug, Default)]
pub(super) struct AcmeCertificates {
    certificate: ArcSwapOption<CertifiedKey>,
    /// By the name in the handshake.
    challenges: ArcSwap<HashMap<String, Arc<CertifiedKey>>>,
}

impl AcmeCertificates {
    /// The certificate, once there is one.
    pub(super) fn certificate(&self) -> Option<Arc<CertifiedKey>> {
        self.certificate.load_full()
    }

    /// The certificate that answers the challenge for a name.
    pub(super) fn challenge(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        self.challenges.load().get(name?).cloned()
    }

    /// Replaces the certificate, if there is one, by what `stapled` makes of it.
    pub(super) fn attach(&self, stapled: impl Fn(&Arc<CertifiedKey>) -> Arc<CertifiedKey>) {
        self.certificate.rcu(|one| one.as_ref().map(&stapled));
    }

    /// Takes what edges share, now and whenever it changes. What cannot be used is logged, and what was
    /// there before stays.
    pub(super) async fn follow(&self, mut states: watch::Receiver<Arc<AcmeState>>) {
        loop {
            let now = Arc::clone(&states.borrow_and_update());
            if let Err(bad) = self.take(&now) {
                log_unchanged(&bad);
            }
            if states.changed().await.is_err() {
                return;
            }
        }
    }

    fn take(&self, state: &AcmeState) -> Result<(), StartupError> {
        let answer =
            |challenge: &Challenge| Ok((challenge.domain.clone(), Arc::new(answering(challenge)?)));
        let challenges: Result<_, StartupError> = state.challenges.iter().map(answer).collect();
        self.challenges.store(Arc::new(challenges?));
        if let Some(certificate) = &state.certificate {
            let mut next = certified(certificate)?;
            stapling::keep(self.certificate().as_ref(), &mut next);
            self.certificate.store(Some(Arc::new(next)));
        }
        Ok(())
    }
}

fn certified(certificate: &Certificate) -> Result<CertifiedKey, StartupError> {
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(certificate.chain.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(certificate.key.expose().as_bytes());
    let (chain, key) = (chain.context(UNUSABLE)?, key.context(UNUSABLE)?);
    CertifiedKey::from_der(chain, key, &ring::default_provider()).context(UNUSABLE)
}

/// A certificate of our own for the name, with the digest in the extension that the authority reads.
fn answering(challenge: &Challenge) -> Result<CertifiedKey, StartupError> {
    let made = || {
        let mut parameters = CertificateParams::new([challenge.domain.clone()])?;
        let extension = CustomExtension::new_acme_identifier(&challenge.digest);
        parameters.custom_extensions = vec![extension];
        let key = KeyPair::generate()?;
        Ok::<_, rcgen::Error>((parameters.self_signed(&key)?, key))
    };
    let (certificate, key) = made().context(UNUSABLE)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).context(UNUSABLE)?;
    let key = ring::default_provider().key_provider.load_private_key(key).context(UNUSABLE)?;
    // Not compared with its key: the library does not read certificates with this extension.
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}
