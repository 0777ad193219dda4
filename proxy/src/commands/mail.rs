//! `rampart mail list`.

use clap::Subcommand;

use super::{Call, Page, StartupError, Target};

const COLUMNS: &str =
    "CREATED createdAt, ID id, PARTNER partner, USER user, KIND kind, STATE state, SUBJECT subject";

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
        #[command(flatten)]
        page: Page,
    },
}

impl Call for Mail {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        let Self::List { partner, kind, page } = self;
        page.print(target, &["mail"], [("partner", partner), ("kind", kind)], COLUMNS)
    }
}
