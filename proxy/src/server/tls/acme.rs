//! The certificate that edges obtain by ACME, and the certificates that answer its challenges
//! (RFC 8737).

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rampart_core::platform::acme::{AcmeState, Certificate, Challenge};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

use super::{Certificates, log_unchanged, stapling};
use crate::startup_error::{Context as _, StartupError};

/// The protocol of a handshake in which an authority looks for a challenge.
pub(super) const PROTOCOL: &[u8] = b"acme-tls/1";
const UNUSABLE: &str = "the certificate obtained by ACME cannot be used";

/// The certificates that answer challenges, by the name in the handshake.
pub(super) type Challenges = ArcSwap<HashMap<String, Arc<CertifiedKey>>>;

impl Certificates {
    /// Takes what edges share, now and whenever it changes. What cannot be used is logged, and what was
    /// there before stays.
    pub(super) async fn follow_acme(&self, mut states: watch::Receiver<Arc<AcmeState>>) {
        loop {
            let now = Arc::clone(&states.borrow_and_update());
            if let Err(bad) = self.take_acme(&now) {
                log_unchanged(&bad);
            }
            if states.changed().await.is_err() {
                return;
            }
        }
    }

    fn take_acme(&self, state: &AcmeState) -> Result<(), StartupError> {
        let answer =
            |challenge: &Challenge| Ok((challenge.domain.clone(), Arc::new(answering(challenge)?)));
        let challenges: Result<_, StartupError> = state.challenges.iter().map(answer).collect();
        self.challenges.store(Arc::new(challenges?));
        if let Some(certificate) = &state.certificate {
            let next = Arc::new(certified(certificate)?);
            self.live.rcu(|live| {
                let (files, shared) = live.split_at(self.pairs.len());
                let earlier = shared.first().unwrap_or(&next);
                let files = files.iter().cloned();
                files.chain([stapling::kept(earlier, &next)]).collect::<Vec<_>>()
            });
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
