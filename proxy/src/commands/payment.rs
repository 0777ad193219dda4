//! `rampart payment`, and `rampart reconciliation` of payments with statements.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use http::Method;
use rampart_core::platform::clock::Clock;
use serde::Serialize;
use serde_json::json;

use super::{Body, Call, ObjectArgs, Page, StartupError, Target, path, query, read_file};
use crate::output;
use crate::startup_error::Context as _;

pub(super) const PAYMENTS: &str = "\
    RECORDED recordedAt, ID id, PARTNER partner, KIND kind, AMOUNT amount, CURRENCY currency, \
    STATE state, ORDER orderId, CONNECTOR connector, REFERENCE providerReference";

pub(super) const SUGGESTIONS: &str = "\
    ORDER orderId, REASONS reasons, PARTNER partner, SIDE side, AMOUNT fiatAmount, \
    CURRENCY fiatCurrency, CREATED createdAt";

/// Payments: what was reported of money and coins.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
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
    /// Match an unmatched payment, or one in suspense, to its order.
    Match {
        /// The payment's id.
        id: String,
        /// The order's number.
        #[serde(rename = "orderId")]
        order: u64,
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
        /// The key of a refund whose answer was lost, to make no second one; a new key if left out.
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Record a payment that you have seen.
    #[command(visible_alias = "record")]
    Create(Box<NewPayment>),
}

/// A payment that an operator has seen.
#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewPayment {
    /// The connector of what operators report.
    #[arg(skip = "manual")]
    connector: &'static str,
    /// received, refunded, payout-sent and so on.
    kind: String,
    /// Above zero.
    amount: serde_json::Number,
    /// A currency's code, or an asset's code or CAIP-19 id.
    currency: String,
    /// The bank's or the chain's own name for it: the same one is the same payment.
    #[arg(long)]
    #[serde(rename = "providerReference")]
    reference: String,
    /// For the payment and the audit.
    #[arg(long)]
    reason: String,
    /// The partner's slug; the order's if not given, or nobody's.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    partner: Option<String>,
    /// The order's number.
    #[arg(long)]
    #[serde(rename = "orderId", skip_serializing_if = "Option::is_none")]
    order: Option<u64>,
    /// Time at which it happened, such as 2026-03-01T12:00:00Z; now if not given.
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    occurred_at: Option<String>,
}

impl Call for Payment {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { .. } => target.list("payments", self, PAYMENTS),
            Self::Show(payment) => target.call("GET payments/{id}", payment),
            Self::Suggestions { .. } => target.list("payments/{id}/suggestions", self, SUGGESTIONS),
            Self::Match { .. } => target.call("POST payments/{id}/match", self),
            Self::Refund { id, reason, amount, idempotency_key } => {
                let mut body = json!({ "reason": reason });
                if let Some(amount) = amount {
                    body["amount"] = json!(amount);
                }
                let key = match idempotency_key {
                    Some(key) => key.clone(),
                    None => Clock::system().uuid().context("no key can be made")?.to_string(),
                };
                // Before the call: its answer may be lost, and the command stopped.
                output::note(format_args!("after a lost answer: --idempotency-key {key}"));
                let path = path(&["payments", id, "refund"]);
                target.send(Method::POST, &path, Body::Once(body, key))
            }
            Self::Create(new) => target.call("POST payments", new),
        }
    }
}

pub(super) const RECONCILIATIONS: &str = "\
    CREATED createdAt, ID id, CONNECTOR connector, BY actor, MATCHED matched, RECORDED recorded, \
    DIFFERENCES differences";

/// Statements of accounts beside the books.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Reconciliation {
    /// Lay a statement beside the books: what matches, what is new, what differs.
    Create {
        /// The statement.
        file: PathBuf,
        /// The connector whose account it is of.
        #[arg(long)]
        connector: String,
        /// The statement's form; by the file's extension if not given.
        #[arg(long)]
        format: Option<Format>,
    },
    /// List reconciliations, newest first.
    List {
        /// The connector whose accounts they are of.
        #[arg(long)]
        connector: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show a reconciliation with its differences.
    Show(ObjectArgs),
}

/// A statement's form.
#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
pub(crate) enum Format {
    /// ISO 20022 camt.053, XML.
    Camt053,
    /// Lines with named columns.
    Csv,
}

impl Call for Reconciliation {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::Create { file, connector, format } => {
                let text = read_file(file)?;
                let by_name = file.extension().is_some_and(|name| name.eq_ignore_ascii_case("csv"));
                let content_type = match format {
                    Some(Format::Csv) => "text/csv",
                    None if by_name => "text/csv",
                    Some(Format::Camt053) | None => "application/xml",
                };
                let path =
                    format!("reconciliations{}", query([("connector", Some(connector.clone()))]));
                let body = Body::File(content_type, text);
                target.send(Method::POST, &path, body)
            }
            Self::List { .. } => target.list("reconciliations", self, RECONCILIATIONS),
            Self::Show(made) => target.call("GET reconciliations/{id}", made),
        }
    }
}
