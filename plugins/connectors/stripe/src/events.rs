//! News of the account, from a webhook or from polling. Both only say which object has changed: it is
//! read anew, so that nothing depends on their order, their number or who sent them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rampart_connector::ClientError;
use serde_json::Value;
use tokio::time::timeout;

use crate::Connector;
use crate::api::{ApiError, Event, Metadata, Refund};
use crate::facts;

/// Longest wait for an edge to take a fact; it is reported again later.
const REPORT_TIMEOUT: Duration = Duration::from_secs(20);
/// Status of an edge that had another fact under the same id.
const CONFLICT: u16 = 409;

/// News that could not be taken, and may be later.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotTaken(String);

impl From<ApiError> for NotTaken {
    fn from(error: ApiError) -> Self {
        Self(error.to_string())
    }
}

/// Events that were passed over since the start, by their cause: one for each collection of objects at
/// most.
#[derive(Debug, Default)]
pub(crate) struct PassedOver(Mutex<BTreeMap<String, u64>>);

impl PassedOver {
    /// Counts one; how many there are of its cause.
    fn count(&self, cause: &str) -> u64 {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(cause.to_owned()).or_default();
        *count += 1;
        *count
    }
}

impl Connector {
    /// Reports what an event means. One about nothing of ours means nothing.
    ///
    /// # Errors
    /// When it has to be taken again later.
    pub(crate) async fn take(&self, event: &Event) -> Result<(), NotTaken> {
        let taken = match self.object_of(event).await {
            // An object that is gone, or that nobody can name, will not come back.
            Err(TakeError::Api(ApiError::Missing(what) | ApiError::Refused(what))) => {
                tracing::warn!(
                    event = event.id,
                    kind = event.kind,
                    what,
                    "an event without object"
                );
                Ok(())
            }
            Err(TakeError::Api(error @ (ApiError::Forbidden(_) | ApiError::Unreadable(_)))) => {
                self.pass_over(event, &error.to_string()).await
            }
            Err(TakeError::Api(error)) => Err(error.into()),
            Err(TakeError::Edge(error)) => Err(error),
            Ok(()) => Ok(()),
        };
        if let Err(error) = &taken {
            tracing::warn!(event = event.id, kind = event.kind, %error, "an event is taken later");
        }
        taken
    }

    /// Tells an operator of an event whose object the key may not read, or has a form that cannot be, and
    /// goes on: every one behind it would wait for the permission, or for another version.
    async fn pass_over(&self, event: &Event, cause: &str) -> Result<(), NotTaken> {
        self.report(&facts::passed_over(event, cause)).await?;
        let count = self.passed_over.count(cause);
        let (event, kind) = (&event.id, &event.kind);
        tracing::error!(event, kind, cause, count, "an event is passed over");
        Ok(())
    }

    async fn object_of(&self, event: &Event) -> Result<(), TakeError> {
        let object = &event.data.object;
        let id = object.id();
        match &*event.kind {
            "payment_intent.succeeded" | "payment_intent.canceled" => self.take_intent(id).await,
            "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" => {
                let refund = self.stripe.refund(id).await?;
                self.take_refund(&refund).await
            }
            "charge.refunded" => {
                let Some(intent) = object.payment_intent() else { return Ok(()) };
                for refund in self.stripe.refunds(intent).await? {
                    self.take_refund(&refund).await?;
                }
                Ok(())
            }
            kind if kind.starts_with("charge.dispute.") => self.take_dispute(id, event).await,
            _ => Ok(()),
        }
    }

    /// Reports a payment that has arrived, or that nobody can make any more.
    pub(crate) async fn take_intent(&self, id: &str) -> Result<(), TakeError> {
        let intent = self.stripe.intent(id).await?;
        for fact in [facts::received(&intent), facts::failed(&intent)].into_iter().flatten() {
            self.report(&fact).await?;
        }
        Ok(())
    }

    /// Reports a refund that has succeeded, or failed for good.
    pub(crate) async fn take_refund(&self, refund: &Refund) -> Result<(), TakeError> {
        if let Some(report) = facts::refund_failed(refund) {
            tracing::error!(refund = refund.id, "a refund has failed: give the money back by hand");
            return Ok(self.report(&report).await?);
        }
        let payment = self.metadata_of(refund.payment_intent.as_deref()).await?;
        match facts::refunded(refund, &payment) {
            Some(fact) => Ok(self.report(&fact).await?),
            None => Ok(()),
        }
    }

    async fn take_dispute(&self, id: &str, event: &Event) -> Result<(), TakeError> {
        let dispute = self.stripe.dispute(id).await?;
        let payment = self.metadata_of(dispute.payment_intent.as_deref()).await?;
        let opened = facts::disputed(&dispute, &payment);
        let is_end = event.kind == "charge.dispute.closed";
        let closed_at = is_end.then_some(event.created);
        let end = facts::dispute_closed(&dispute, &payment, closed_at);
        for fact in [opened, end].into_iter().flatten() {
            self.report(&fact).await?;
        }
        Ok(())
    }

    /// Our notes on a payment; none without one.
    async fn metadata_of(&self, intent: Option<&str>) -> Result<Metadata, ApiError> {
        match intent {
            Some(id) => Ok(self.stripe.intent(id).await?.metadata),
            None => Ok(Metadata::default()),
        }
    }

    /// Reports a fact. One that the edge knows otherwise, or refuses for its form, is left to its log
    /// and ours: it will not take it later either.
    async fn report(&self, fact: &Value) -> Result<(), NotTaken> {
        let id = fact["id"].as_str().unwrap_or_default();
        match timeout(REPORT_TIMEOUT, self.edge.event(fact)).await {
            Ok(Ok(is_known)) => {
                tracing::info!(id, is_known, "a fact is reported");
                Ok(())
            }
            Ok(Err(ClientError::Refused { status: CONFLICT, .. })) => {
                tracing::warn!(id, "the edge knows another fact of this id");
                Ok(())
            }
            Ok(Err(error @ ClientError::Refused { status: 400 | 413 | 422, .. })) => {
                tracing::error!(id, %error, "the edge cannot read a fact");
                Ok(())
            }
            Ok(Err(error)) => Err(NotTaken(error.to_string())),
            Err(_) => Err(NotTaken("the edge does not answer".to_owned())),
        }
    }
}

/// An object that could not be read, or not be reported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TakeError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Edge(#[from] NotTaken),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_over_is_counted_by_its_cause() {
        let passed_over = PassedOver::default();
        assert_eq!(["a", "b", "a"].map(|cause| passed_over.count(cause)), [1, 1, 2]);
    }
}
