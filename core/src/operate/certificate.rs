//! The certificate of the public listener, ordered by ACME: one edge orders it, all serve it. The
//! authority's challenge is answered in the TLS handshake (RFC 8737), by any edge.

mod authority;
mod store;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use self::authority::Authority;
pub(super) use self::store::{account_context, key_context};
use crate::Core;
use crate::platform::crypto::Secret;
use crate::platform::error::Result;
use crate::platform::settings;

/// Longest order, from the first request to the chain.
const ORDER_MAX: Duration = Duration::from_secs(180);

/// The certificate and the challenges that edges share, as this one read them last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ordered {
    /// The certificate, once there is one.
    pub certificate: Option<Arc<Certificate>>,
    /// Challenges of the order that is under way.
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

/// Orders of certificates.
#[derive(Debug)]
pub struct Certificates {
    authority: Option<Authority>,
    ordered: watch::Sender<Arc<Ordered>>,
}

impl Certificates {
    /// Nothing is read yet.
    ///
    /// # Errors
    /// One sentence: `acme.ca` cannot be used.
    pub fn new(settings: &settings::Acme) -> Result<Self, String> {
        Ok(Self { authority: Authority::new(settings)?, ordered: watch::Sender::default() })
    }

    /// What is served now and from now on.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Ordered>> {
        self.ordered.subscribe()
    }
}

impl Core {
    /// Orders a certificate when there is none or two thirds of its life are over, unless another edge
    /// does. A failure is stored: the next attempt waits a minute, and twice as long each time, up to
    /// a day.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn order_certificate(&self) -> Result<()> {
        let Some(authority) = &self.certificates.authority else { return Ok(()) };
        let Some(lease) = store::claim(&self.db, authority.domains()).await? else {
            return Ok(());
        };
        let ordering = timeout(ORDER_MAX, Box::pin(authority.order(self)));
        let failure = match ordering.await {
            Ok(Ok(issued)) => {
                store::keep(self, authority.domains(), lease, &issued).await?;
                self.metrics.acme_orders.with_label_values(&["ok"]).inc();
                tracing::info!(domains = authority.domains(), "a certificate was issued");
                return Ok(());
            }
            Ok(Err(failure)) => failure.to_string(),
            Err(_) => format!("it took longer than {} s", ORDER_MAX.as_secs()),
        };
        self.metrics.acme_orders.with_label_values(&["failed"]).inc();
        tracing::error!(domains = authority.domains(), failure, "no certificate was issued");
        store::postpone(&self.db, authority.domains(), lease).await
    }

    /// Reads the certificate and the challenges for this edge's listener.
    ///
    /// # Errors
    /// When the database cannot be used or the key cannot be opened; what was read before stays.
    pub async fn read_certificate(&self) -> Result<()> {
        let Some(authority) = &self.certificates.authority else { return Ok(()) };
        let ordered = store::read(self, authority.domains()).await?;
        self.certificates.ordered.send_if_modified(|known| {
            let is_other = **known != ordered;
            if is_other {
                *known = Arc::new(ordered);
            }
            is_other
        });
        Ok(())
    }
}
