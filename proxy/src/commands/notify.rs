//! `rampart delivery` and `rampart mail`.

use clap::Subcommand;
use serde::Serialize;

use super::{Call, ObjectArgs, Page, StartupError, Target};

pub(super) const DELIVERIES: &str = "\
    CREATED createdAt, ID id, PARTNER partner, TYPE type, ORDER orderId, STATE state, \
    ATTEMPTS attempts, STATUS lastStatus, NEXT nextAttemptAt, URL url";

/// Deliveries of webhooks and callbacks.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Delivery {
    /// List deliveries, newest first.
    List {
        /// The partner's slug.
        #[arg(long)]
        partner: Option<String>,
        /// pending, delivered, or another state that the list shows.
        #[arg(long)]
        state: Option<String>,
        /// The order's number.
        #[arg(long)]
        order: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show one with its request and its attempts.
    Show(ObjectArgs),
    /// Deliver an event again.
    #[command(visible_alias = "resend")]
    Redeliver(ObjectArgs),
}

impl Call for Delivery {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List { .. } => target.list("deliveries", self, DELIVERIES),
            Self::Show(delivery) => target.call("GET deliveries/{id}", delivery),
            Self::Redeliver(delivery) => target.call("POST deliveries/{id}/redeliver", delivery),
        }
    }
}

pub(super) const MAIL: &str =
    "CREATED createdAt, ID id, PARTNER partner, USER user, KIND kind, STATE state, SUBJECT subject";

/// Mail to users and partners.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Mail {
    /// List mail, newest first.
    List {
        /// The partner's slug.
        #[arg(long)]
        partner: Option<String>,
        /// The mail's kind, as the list shows it.
        #[arg(long)]
        kind: Option<String>,
        #[command(flatten)]
        page: Page,
    },
}

impl Call for Mail {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        target.list("mail", self, MAIL)
    }
}
