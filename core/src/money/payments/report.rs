//! A report of money or coins, and what it was recorded as.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::trading::orders::state::Cause;
use rampart_types::{ClientId, OrderId};

/// Longest reference of a provider, in characters.
pub const REFERENCE_CHARS_MAX: usize = rampart_statement::REFERENCE_CHARS_MAX;
/// Largest raw report, in bytes.
pub(crate) const RAW_BYTES_MAX: usize = 64 * 1024;

/// The kind of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaymentKind {
    /// Fiat arrived.
    Received,
    /// Fiat or coins were given back.
    Refunded,
    /// The payer disputes a payment, and the provider has taken it back.
    Disputed,
    /// The dispute is won: the provider has returned the payment.
    DisputeWon,
    /// The dispute is lost.
    DisputeLost,
    /// Coins were sent.
    PayoutSent,
    /// Coins are confirmed on chain.
    PayoutConfirmed,
    /// Coins were not sent, or came back.
    PayoutFailed,
    /// Coins arrived.
    DepositReceived,
    /// Fiat was sent.
    TransferSent,
    /// Fiat arrived at its recipient.
    TransferCompleted,
    /// Fiat came back.
    TransferReturned,
}

rampart_types::named_values! {
    pub PaymentKind {
        Received = "received",
        Refunded = "refunded",
        Disputed = "disputed",
        DisputeWon = "dispute-won",
        DisputeLost = "dispute-lost",
        PayoutSent = "payout-sent",
        PayoutConfirmed = "payout-confirmed",
        PayoutFailed = "payout-failed",
        DepositReceived = "deposit-received",
        TransferSent = "transfer-sent",
        TransferCompleted = "transfer-completed",
        TransferReturned = "transfer-returned",
    }
}

impl PaymentKind {
    /// Money or coins that come in, and may be wanted by nobody.
    pub(crate) const fn is_arrival(self) -> bool {
        matches!(self, Self::Received | Self::DepositReceived)
    }

    /// Coins or money that leave for a user, arrive there, or come back.
    pub(crate) const fn is_of_payout(self) -> bool {
        matches!(
            self,
            Self::PayoutSent
                | Self::PayoutConfirmed
                | Self::PayoutFailed
                | Self::TransferSent
                | Self::TransferCompleted
                | Self::TransferReturned
        )
    }
}

/// A report. Its form is valid; its content may be anything.
#[derive(Clone, Debug)]
pub struct Report {
    /// The tenant that it names; the order's, or else the house, without one.
    pub client: Option<ClientId>,
    /// The program that reports, `manual` for an operator.
    pub connector: String,
    /// The provider's own name for it, as [`rampart_statement::stored_reference`] has it: 1 to 255
    /// characters.
    pub provider_reference: String,
    /// The name of the payment that it gives back or disputes, or of the payout that came back, if that
    /// is another one: 1 to 255 characters.
    pub original_reference: Option<String>,
    /// Its kind.
    pub kind: PaymentKind,
    /// Above zero, in whole units of the currency or asset.
    pub amount: Decimal,
    /// A currency's code, or an asset's code or CAIP-19 id.
    pub currency: String,
    /// The order that it names.
    pub order: Option<OrderId>,
    /// The transaction on chain that it speaks of.
    pub transaction_id: Option<String>,
    /// When it happened, as the provider says.
    pub occurred_at: DateTime<Utc>,
    /// The connector's name, or the operator who reports.
    pub actor: String,
    /// The operator's words.
    pub reason: Option<String>,
    /// The report as it came, at most 64 KiB; stored sealed.
    pub raw: Option<String>,
}

impl Report {
    /// The provider's name for the payment that it gives back or disputes.
    pub(crate) fn payment_reference(&self) -> &str {
        self.original_reference.as_deref().unwrap_or(&self.provider_reference)
    }
}

/// The state of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentState {
    /// It is its order's.
    Matched,
    /// It has no order.
    Unmatched,
    /// Its order does not want it.
    Suspense,
}

rampart_types::named_values! {
    pub PaymentState {
        Matched = "matched",
        Unmatched = "unmatched",
        Suspense = "suspense",
    }
}

/// The result of recording a report.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The payment.
    pub payment: Uuid,
    /// The tenant whose book it is in.
    pub client: ClientId,
    /// It had been reported or booked by hand before, and nothing happened.
    pub duplicate: bool,
    /// Another amount, currency or order had been reported under its reference, and nothing
    /// happened.
    pub contradicts: bool,
    /// Its state.
    pub state: PaymentState,
    /// Causes of the changes of its order's state, to be counted after the commit.
    pub causes: Vec<Cause>,
}
