//! `rampart delivery list|redeliver`.

use clap::Subcommand;
use http::Method;

use super::Target;
use super::query::{query, segment};
use super::table::Listing;
use crate::operator::Body;
use crate::startup_error::StartupError;

/// Columns of a table of deliveries: their heads, and members.
const COLUMNS: &[(&str, &str)] = &[
    ("CREATED", "createdAt"),
    ("ID", "id"),
    ("PARTNER", "partner"),
    ("TYPE", "type"),
    ("ORDER", "orderId"),
    ("STATE", "state"),
    ("ATTEMPTS", "attempts"),
    ("STATUS", "lastStatus"),
    ("NEXT", "nextAttemptAt"),
    ("URL", "url"),
];

/// Deliveries of webhooks and callbacks.
#[derive(Debug, Subcommand)]
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
        /// The last id of the page before.
        #[arg(long, value_name = "ID")]
        before: Option<String>,
        /// Most deliveries, up to 200.
        #[arg(long)]
        limit: Option<u16>,
        #[command(flatten)]
        listing: Listing,
        #[command(flatten)]
        target: Target,
    },
    /// Deliver an event again.
    #[command(visible_alias = "resend")]
    Redeliver {
        /// The delivery's id.
        id: String,
        #[command(flatten)]
        target: Target,
    },
}

impl Delivery {
    /// Does it.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub(crate) fn run(self) -> Result<(), StartupError> {
        match self {
            Self::List { partner, state, order, before, limit, listing, target } => {
                let criteria = query([
                    ("partner", partner),
                    ("state", state),
                    ("order", order),
                    ("before", before),
                    ("limit", limit.map(|limit| limit.to_string())),
                ]);
                let found = target.ask(async |o| o.get(&format!("deliveries{criteria}")).await)?;
                listing.print(&found, &found, COLUMNS);
                Ok(())
            }
            Self::Redeliver { id, target } => {
                let path = format!("deliveries/{}/redeliver", segment(&id));
                target.run(async |o| o.call(Method::POST, &path, Body::None).await)
            }
        }
    }
}
