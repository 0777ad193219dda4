//! `rampart payment list|show|suggestions|match|refund|create`.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::{Body, ObjectArgs, Page, Run, StartupError, Target, path};

const COLUMNS: &str = "\
    RECORDED recordedAt, ID id, PARTNER partner, KIND kind, AMOUNT amount, CURRENCY currency, \
    STATE state, ORDER orderId, CONNECTOR connector, REFERENCE providerReference";

const SUGGESTIONS: &str = "\
    ORDER orderId, REASONS reasons, PARTNER partner, SIDE side, AMOUNT fiatAmount, \
    CURRENCY fiatCurrency, CREATED createdAt";

/// Payments: what was reported of money and coins.
#[derive(Debug, Subcommand)]
pub(crate) enum Payment {
    /// List payments, newest first.
    List {
        /// The partner's slug; house for nobody's.
        #[arg(long)]
        partner: Option<String>,
        /// The order's number.
        #[arg(long)]
        order: Option<String>,
        /// matched, unmatched or suspense.
        #[arg(long)]
        state: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show one payment.
    #[command(visible_alias = "read")]
    Show(ObjectArgs),
    /// List orders that a payment may be meant for, best first.
    Suggestions {
        /// The payment's id.
        id: String,
        #[command(flatten)]
        page: Page,
    },
    /// Match a payment that nobody wants to the order that it was meant for.
    Match {
        /// The payment's id.
        id: String,
        /// The order's number.
        order: u64,
        #[command(flatten)]
        target: Target,
    },
    /// Give a payment back, all that is left of it or a part.
    Refund {
        /// The payment's id.
        id: String,
        /// For the refund and the audit.
        #[arg(long)]
        reason: String,
        /// A part of it.
        #[arg(long)]
        amount: Option<serde_json::Number>,
        #[command(flatten)]
        target: Target,
    },
    /// Record a payment that you have seen.
    #[command(visible_alias = "record")]
    Create(Box<NewPayment>),
}

/// A payment that an operator has seen.
#[derive(Debug, Args)]
pub(crate) struct NewPayment {
    /// received, refunded, payout-sent and so on.
    kind: String,
    /// Above zero.
    amount: serde_json::Number,
    /// A currency's code, or an asset's code or CAIP-19 id.
    currency: String,
    /// The bank's or the chain's own name for it: the same one is the same payment.
    #[arg(long)]
    reference: String,
    /// For the payment and the audit.
    #[arg(long)]
    reason: String,
    /// The partner's slug; the order's if not given, or nobody's.
    #[arg(long)]
    partner: Option<String>,
    /// The order's number.
    #[arg(long)]
    order: Option<u64>,
    /// Time at which it happened, such as 2026-03-01T12:00:00Z; now if not given.
    #[arg(long, value_name = "TIME")]
    occurred_at: Option<String>,
    #[command(flatten)]
    target: Target,
}

impl NewPayment {
    /// The call's body.
    fn body(&self) -> Value {
        let mut body = json!({
            "connector": "manual", "kind": self.kind, "amount": self.amount,
            "currency": self.currency, "providerReference": self.reference, "reason": self.reason,
        });
        for (name, value) in [
            ("partner", self.partner.clone().map(Value::from)),
            ("orderId", self.order.map(Value::from)),
            ("occurredAt", self.occurred_at.clone().map(Value::from)),
        ] {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        body
    }
}

impl Run for Payment {
    fn run(self) -> Result<(), StartupError> {
        let (path, body, target) = match self {
            Self::List { partner, order, state, page } => {
                let criteria = [("partner", partner), ("order", order), ("state", state)];
                return page.print("payments", criteria, COLUMNS);
            }
            Self::Show(payment) => return payment.send(Method::GET, "payments", &[]),
            Self::Suggestions { id, page } => {
                return page.print(&path(&["payments", &id, "suggestions"]), [], SUGGESTIONS);
            }
            Self::Match { id, order, target } => {
                (path(&["payments", &id, "match"]), json!({ "orderId": order }), target)
            }
            Self::Refund { id, reason, amount, target } => {
                let mut body = json!({ "reason": reason });
                if let Some(amount) = amount {
                    body["amount"] = amount.into();
                }
                (path(&["payments", &id, "refund"]), body, target)
            }
            Self::Create(new) => ("payments".to_owned(), new.body(), new.target),
        };
        target.send(Method::POST, &path, Body::Json(body))
    }
}
