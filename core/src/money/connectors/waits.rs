//! The end of waiting leases: an edge that stops does not keep connectors waiting.

use tokio::sync::watch;

/// Waiting leases of this edge.
#[derive(Debug)]
pub struct LeaseWaits(watch::Sender<bool>);

impl Default for LeaseWaits {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl LeaseWaits {
    /// Has every waiting lease answer at once, and later ones never wait: the edge stops.
    pub fn end(&self) {
        self.0.send_replace(true);
    }

    /// True once they are ended.
    pub(super) fn have_ended(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when they are ended.
    pub(super) async fn ended(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|ended| *ended).await;
    }
}
