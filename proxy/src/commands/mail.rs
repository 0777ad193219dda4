//! `rampart mail list`.

use clap::Subcommand;

use super::Target;
use super::query::query;
use super::table::Listing;
use crate::startup_error::StartupError;

/// Columns of a table of mail: their heads, and members.
const COLUMNS: &[(&str, &str)] = &[
    ("CREATED", "createdAt"),
    ("ID", "id"),
    ("PARTNER", "partner"),
    ("USER", "user"),
    ("KIND", "kind"),
    ("STATE", "state"),
    ("SUBJECT", "subject"),
];

/// Mail to users and partners.
#[derive(Debug, Subcommand)]
pub(crate) enum Mail {
    /// List mail, newest first.
    List {
        /// The partner's slug.
        #[arg(long)]
        partner: Option<String>,
        /// The mail's kind, as the list shows it.
        #[arg(long)]
        kind: Option<String>,
        /// The last id of the page before.
        #[arg(long, value_name = "ID")]
        before: Option<String>,
        #[command(flatten)]
        listing: Listing,
        #[command(flatten)]
        target: Target,
    },
}

impl Mail {
    /// Does it.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub(crate) fn run(self) -> Result<(), StartupError> {
        let Self::List { partner, kind, before, listing, target } = self;
        let criteria = query([("partner", partner), ("kind", kind), ("before", before)]);
        let found = target.ask(async |o| o.get(&format!("mail{criteria}")).await)?;
        listing.print(&found, &found, COLUMNS);
        Ok(())
    }
}
