//! Commands of the edge, carried out. A command's id is the idempotency key of a call that makes
//! something, so that one that was interrupted between any two steps is repeated without another effect.

use std::sync::Arc;

use rampart_connector::{ClientError, Command, Held, LeaseRequest, Outcome};
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;

use crate::Connector;
use crate::amounts;
use crate::api::{ApiError, Refund};
use crate::events::TakeError;

/// The kinds of commands that are carried out.
const KINDS: [&str; 3] = ["payment.create", "payment.cancel", "payment.refund"];
/// Commands that are at work at the same time.
const CONCURRENCY: u16 = 16;
/// Time of a lease in seconds. One that ends before the calls of its command costs another attempt,
/// which has the same key.
const LEASE_SECONDS: u16 = 60;
/// Longest wait of one lease, in seconds.
const WAIT_SECONDS: u16 = 20;
/// Time before a payment that could not be canceled is canceled again, in seconds.
const CANCEL_SECONDS: u32 = 30;

/// Leases commands and carries them out.
///
/// # Errors
/// One sentence when the edge refuses the connector.
pub(crate) async fn serve(connector: Arc<Connector>) -> Result<(), String> {
    let mut at_work = JoinSet::new();
    loop {
        while at_work.try_join_next().is_some() {}
        let busy = u16::try_from(at_work.len()).unwrap_or(CONCURRENCY);
        let Some(max) = CONCURRENCY.checked_sub(busy).filter(|max| *max > 0) else {
            at_work.join_next().await;
            continue;
        };
        let request = LeaseRequest {
            max,
            wait_seconds: WAIT_SECONDS,
            lease_seconds: LEASE_SECONDS,
            kinds: &KINDS,
        };
        let leased = connector.edge.lease(&request).await.map_err(|error| error.to_string())?;
        for command in leased {
            let connector = Arc::clone(&connector);
            at_work.spawn(async move {
                if let Err(error) = connector.finish(&command).await {
                    // Its lease ends, and it comes again.
                    tracing::error!(?command, %error, "the edge refuses a command's report");
                }
            });
        }
    }
}

/// A `payment.create`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewPayment {
    partner: Option<String>,
    order_id: i64,
    #[serde(with = "rust_decimal::serde::arbitrary_precision")]
    amount: Decimal,
    currency: String,
}

/// A `payment.refund`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewRefund {
    #[serde(with = "rust_decimal::serde::arbitrary_precision")]
    amount: Decimal,
    currency: String,
    provider_reference: String,
}

/// A `payment.cancel`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancellation {
    provider_reference: String,
}

/// The reason that a command came to no outcome.
#[derive(Debug, thiserror::Error)]
enum Interrupted {
    /// It is somebody else's by now.
    #[error("the lease is lost")]
    Lost,
    /// The edge refuses a call about it.
    #[error(transparent)]
    Edge(#[from] ClientError),
    /// The provider did not do it.
    #[error(transparent)]
    Provider(#[from] ApiError),
    /// A fact about it could not be read or reported.
    #[error(transparent)]
    Fact(#[from] TakeError),
    /// Money may have left by it: only another attempt finds out.
    #[error("{0}")]
    Unknown(String),
}

impl Connector {
    /// Carries a command out and reports its outcome.
    async fn finish(&self, command: &Command) -> Result<(), ClientError> {
        let outcome = match self.carry_out(command).await {
            Ok(outcome) => outcome,
            Err(Interrupted::Lost) => return Ok(()),
            Err(Interrupted::Edge(error)) => return Err(error),
            // A result would say that nothing has left: it has none, and comes again.
            Err(Interrupted::Unknown(reason)) => {
                tracing::error!(?command, reason, "nobody knows if it is done");
                return Ok(());
            }
            Err(Interrupted::Provider(ApiError::Refused(reason) | ApiError::Missing(reason))) => {
                rejected(reason)
            }
            Err(error @ (Interrupted::Provider(_) | Interrupted::Fact(_))) => {
                Outcome::Retry { reason: error.to_string(), retry_after_seconds: None }
            }
        };
        match &outcome {
            Outcome::Done { .. } => tracing::info!(?command, "done"),
            Outcome::Rejected { reason, .. } | Outcome::Retry { reason, .. } => {
                tracing::warn!(?command, reason, "not done");
            }
        }
        match self.edge.report(command, &outcome).await? {
            Held::Yes => {}
            Held::No => tracing::info!(?command, "the lease is lost"),
        }
        Ok(())
    }

    async fn carry_out(&self, command: &Command) -> Result<Outcome, Interrupted> {
        match &*command.kind {
            "payment.create" => self.create(command).await,
            "payment.cancel" => self.cancel(command).await,
            "payment.refund" => self.give_back(command).await,
            other => Ok(rejected(format!("{other}: this connector does not do that"))),
        }
    }

    /// Makes the payment that the payer's card is then charged by. Nothing is charged here.
    async fn create(&self, command: &Command) -> Result<Outcome, Interrupted> {
        let payment: NewPayment = match command.body() {
            Ok(payment) => payment,
            Err(error) => return Ok(unreadable(&error)),
        };
        let Some(count) = amounts::to_smallest(payment.amount, &payment.currency) else {
            return Ok(not_exact(payment.amount, &payment.currency));
        };
        let mut members = vec![
            ("amount", count.to_string()),
            ("currency", payment.currency.to_ascii_lowercase()),
            ("payment_method_types[]", "card".to_owned()),
            ("metadata[order]", payment.order_id.to_string()),
            ("metadata[command]", command.id.clone()),
        ];
        members.extend(payment.partner.map(|partner| ("metadata[partner]", partner)));
        let intent = self.stripe.create_intent(&members, &command.id).await?;
        let Some(token) = intent.client_secret else {
            let reason = "the provider gave no token for the payer".to_owned();
            return Ok(Outcome::Retry { reason, retry_after_seconds: None });
        };
        let result = json!({ "clientToken": token, "providerReference": intent.id });
        Ok(Outcome::Done { result })
    }

    /// Has nobody pay any more. A payment that was made before is reported.
    async fn cancel(&self, command: &Command) -> Result<Outcome, Interrupted> {
        let Cancellation { provider_reference: id } = match command.body() {
            Ok(cancellation) => cancellation,
            Err(error) => return Ok(unreadable(&error)),
        };
        let done = Outcome::Done { result: json!({ "providerReference": id }) };
        let reason = match self.stripe.cancel_intent(&id).await {
            Ok(_) => return Ok(done),
            Err(ApiError::Refused(reason)) => reason,
            Err(error) => return Err(error.into()),
        };
        // It may have been canceled before: the payment itself says how it is.
        match &*self.stripe.intent(&id).await?.status {
            "canceled" => Ok(done),
            "succeeded" => {
                self.take_intent(&id).await?;
                Ok(rejected("the payment was made before".to_owned()))
            }
            // The card is being charged, or was until now: the payment may be made yet.
            _ => Ok(Outcome::Retry { reason, retry_after_seconds: Some(CANCEL_SECONDS) }),
        }
    }

    /// Gives a payment back, once.
    async fn give_back(&self, command: &Command) -> Result<Outcome, Interrupted> {
        let wanted: NewRefund = match command.body() {
            Ok(wanted) => wanted,
            Err(error) => return Ok(unreadable(&error)),
        };
        let Some(count) = amounts::to_smallest(wanted.amount, &wanted.currency) else {
            return Ok(not_exact(wanted.amount, &wanted.currency));
        };
        let earlier = self.earlier_refund(command, &wanted).await.map_err(|error| match error {
            error @ (ApiError::Passing(_) | ApiError::Forbidden(_)) => {
                Interrupted::Unknown(error.to_string())
            }
            error => perhaps_made(error),
        })?;
        let refund = match earlier {
            Some(refund) => refund,
            None => {
                let asked = json!({ "refundOf": wanted.provider_reference });
                // Nobody else may have the command when the money leaves.
                if self.edge.checkpoint(command, &asked, LEASE_SECONDS).await? == Held::No {
                    return Err(Interrupted::Lost);
                }
                let members = [
                    ("payment_intent", wanted.provider_reference),
                    ("amount", count.to_string()),
                    ("metadata[command]", command.id.clone()),
                ];
                self.stripe.create_refund(&members, &command.id).await.map_err(perhaps_made)?
            }
        };
        let told = self.take_refund(&refund).await;
        told.map_err(|error| Interrupted::Unknown(error.to_string()))?;
        if matches!(refund.status.as_deref(), Some("failed" | "canceled")) {
            return Ok(rejected("the provider could not give the money back".to_owned()));
        }
        Ok(Outcome::Done { result: json!({ "providerReference": refund.id }) })
    }

    /// The refund that an earlier attempt at the command has made. The provider forgets idempotency
    /// keys after a day, and its refunds never.
    async fn earlier_refund(
        &self,
        command: &Command,
        wanted: &NewRefund,
    ) -> Result<Option<Refund>, ApiError> {
        if command.attempt <= 1 {
            return Ok(None);
        }
        let refunds = self.stripe.refunds(&wanted.provider_reference).await?;
        let is_ours = |refund: &Refund| refund.metadata.command.as_ref() == Some(&command.id);
        Ok(refunds.into_iter().find(is_ours))
    }
}

/// The end of a call that makes a refund: what nobody knows of it is no reason for a result.
fn perhaps_made(error: ApiError) -> Interrupted {
    match error {
        ApiError::Unknown(reason) => Interrupted::Unknown(reason),
        error @ ApiError::Unreadable(_) => Interrupted::Unknown(error.to_string()),
        error => Interrupted::Provider(error),
    }
}

fn rejected(reason: String) -> Outcome {
    Outcome::rejected(reason)
}

fn unreadable(error: &serde_json::Error) -> Outcome {
    rejected(format!("the command cannot be read: {error}"))
}

fn not_exact(amount: Decimal, currency: &str) -> Outcome {
    rejected(format!("{amount} {currency} is no amount that a card can be charged exactly"))
}

#[cfg(test)]
mod tests;
