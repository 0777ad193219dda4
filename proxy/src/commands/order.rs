//! `rampart order list|show|replay|event|prove-wallet`.

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use super::arguments::split;
use super::{Call, ObjectArgs, Page, StartupError, Target};
use crate::startup_error::Context as _;

pub(super) const COLUMNS: &str = "\
    DATE date, ID id, PARTNER partner, SIDE side, STATUS status, PAIR currencyPair, \
    FIAT fiatAmount, IDENTIFIER partnerOrderIdentifier";

/// Orders.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Order {
    /// List orders that meet every criterion, newest first.
    List(Box<Search>),
    /// Show an order with its timeline.
    Show(ObjectArgs),
    /// Replay the policy decisions of an order, and compare them.
    Replay(ObjectArgs),
    /// Apply an event to an order.
    Event {
        /// Its id.
        id: String,
        /// payment-received, payment-denied, coins-sent, confirmed-on-chain, paid-out, hold,
        /// release, refund or cancel.
        event: String,
        /// The event's members: `amount=…`, `reference=…`, `transactionId=…` or `reason=…`.
        #[arg(value_name = "MEMBER=VALUE")]
        members: Vec<String>,
    },
    /// Accept other proof than a signed message that an order's wallet is its user's.
    ProveWallet {
        /// The order's id.
        id: String,
        /// The proof that was seen, for the audit.
        #[arg(long)]
        reason: String,
    },
}

/// Criteria of a list of orders.
#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Search {
    /// The partner's slug.
    #[arg(long)]
    partner: Option<String>,
    /// buy or sell.
    #[arg(long)]
    side: Option<String>,
    /// Its status, such as pending or completed.
    #[arg(long)]
    status: Option<String>,
    /// The partner's own name for the order.
    #[arg(long, value_name = "TEXT")]
    partner_order_identifier: Option<String>,
    /// The wallet that the coins go to.
    #[arg(long, value_name = "ADDRESS")]
    wallet_address: Option<String>,
    /// The transaction that sent the coins.
    #[arg(long, value_name = "ID")]
    transaction_id: Option<String>,
    /// Earliest time, such as 2026-03-01T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Time before which they were made.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    #[command(flatten)]
    page: Page,
}

impl Call for Order {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List(search) => target.list("orders", search, COLUMNS),
            Self::Show(order) => target.call("GET orders/{id}", order),
            Self::Replay(order) => target.call("POST orders/{id}/replay", order),
            Self::Event { id, event, members } => {
                let event = json!({"id": id, "members": body(event, members)?});
                target.call("POST orders/{id}/events", &event)
            }
            Self::ProveWallet { .. } => target.call("POST orders/{id}/wallet-proof", self),
        }
    }
}

fn body(event: &str, members: &[String]) -> Result<Value, StartupError> {
    let mut body = json!({ "event": event });
    for member in members {
        let (name, value) = split(member)?;
        // An amount is a JSON number on the wire, the others are texts.
        body[name] = match name {
            "amount" => serde_json::from_str(value).context("amount is not a number")?,
            _ => value.into(),
        };
    }
    Ok(body)
}
