//! The certificate of the public listener, obtained by ACME: one edge obtains it, all serve it. The
//! authority's challenge is answered in the TLS handshake (RFC 8737), by any edge.

mod authority;
mod store;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use self::authority::Authority;
pub use self::store::{account_context, key_context};
use crate::Core;
use crate::platform::crypto::Secret;
use crate::platform::error::Result;
use crate::platform::settings;

/// Longest attempt, from the first request to the chain.
const ATTEMPT_MAX: Duration = Duration::from_secs(180);

/// The certificate and the challenges that edges share, as this one read them last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcmeState {
    /// The certificate, once there is one.
    pub certificate: Option<Arc<Certificate>>,
    /// Challenges of the attempt that is under way.
    pub challenges: Vec<Challenge>,
}

/// A certificate with its key.
#[derive(Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Its chain in PEM, the own one first.
    pub chain: String,
    /// Its key in PEM.
    pub key: Secret,
}

/// The proof that an authority looks for in a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Name in the handshake.
    pub domain: String,
    /// SHA-256 of the key authorization.
    pub digest: Vec<u8>,
}

/// The client of the authority, and what edges share of it.
#[derive(Debug)]
pub struct AcmeClient {
    authority: Option<Authority>,
    state: watch::Sender<Arc<AcmeState>>,
}

impl AcmeClient {
    /// Nothing is read yet.
    ///
    /// # Errors
    /// One sentence: `acme.ca` cannot be used.
    pub fn new(settings: &settings::Acme) -> Result<Self, String> {
        Ok(Self { authority: Authority::new(settings)?, state: watch::Sender::default() })
    }

    /// The served state, now and from now on.
    pub fn subscribe(&self) -> watch::Receiver<Arc<AcmeState>> {
        self.state.subscribe()
    }
}

impl Core {
    /// Obtains a certificate when there is none or two thirds of its life are over, unless another edge
    /// does. A failure is stored: the next attempt waits a minute, and twice as long each time, up to
    /// a day. One whose lease another edge has taken over counts there.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn obtain_certificate(&self) -> Result<()> {
        let Some(authority) = &self.acme.authority else { return Ok(()) };
        let Some(lease) = store::claim(&self.db, authority.domains()).await? else {
            return Ok(());
        };
        let attempt = timeout(ATTEMPT_MAX, Box::pin(authority.issue(self)));
        let stored = match attempt.await {
            Ok(Ok(issued)) => {
                let kept = store::keep(self, authority.domains(), lease, &issued).await;
                kept.map_err(|error| format!("it cannot be stored: {error}"))
            }
            Ok(Err(failure)) => Err(failure.to_string()),
            Err(_) => Err(format!("it took longer than {} s", ATTEMPT_MAX.as_secs())),
        };
        let Err(failure) = stored else {
            self.metrics.acme_orders.with_label_values(&["ok"]).inc();
            tracing::info!(domains = authority.domains(), "a certificate was issued");
            return Ok(());
        };
        let domains = authority.domains();
        let postponed = store::postpone(&self.db, domains, lease).await;
        if matches!(postponed, Ok(false)) {
            tracing::warn!(
                domains,
                failure,
                "another edge has taken over the order of a certificate"
            );
            return Ok(());
        }
        self.metrics.acme_orders.with_label_values(&["failed"]).inc();
        tracing::error!(domains, failure, "no certificate was issued");
        postponed?;
        Ok(())
    }

    /// Reads the certificate and the challenges for this edge's listener.
    ///
    /// # Errors
    /// When the database cannot be used or the key cannot be opened; what was read before stays.
    pub async fn read_acme_state(&self) -> Result<()> {
        let Some(authority) = &self.acme.authority else { return Ok(()) };
        let state = store::read(self, authority.domains()).await?;
        self.acme.state.send_if_modified(|known| {
            let is_other = **known != state;
            if is_other {
                *known = Arc::new(state);
            }
            is_other
        });
        Ok(())
    }
}
