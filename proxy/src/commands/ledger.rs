//! `rampart ledger check|balances|entries|export`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Call, Page, StartupError, Target, query};
use crate::output;

pub(super) const BALANCES: &str = "\
    PARTNER partner, KIND kind, HOLDER holder, CURRENCY currency, BALANCE balance, \
    ACCOUNT accountId";
pub(super) const ENTRIES: &str =
    "OCCURRED occurredAt, ID id, PARTNER partner, KIND kind, ORDER orderId, PAYMENT paymentId";

/// The books: double entry, one book per partner and currency.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Ledger {
    /// Recompute everything: entries that do not balance, orders whose postings do not fit their
    /// state, accounts at providers that are not as their last reconciliation. Status 1, and one
    /// line each, if anything is off; 2 if that cannot be told.
    Check,
    /// List accounts with their balances, debit positive.
    Balances {
        /// The partner's slug; house for nobody's.
        #[arg(long)]
        partner: Option<String>,
        /// A currency's or asset's code.
        #[arg(long)]
        currency: Option<String>,
        /// Time of the balances, such as 2026-03-01T12:00:00Z; now if not given.
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// List entries; as JSON with their postings.
    Entries {
        /// The partner's slug; house for nobody's.
        #[arg(long)]
        partner: Option<String>,
        /// The order's number.
        #[arg(long)]
        order: Option<String>,
        /// The account's id.
        #[arg(long)]
        account: Option<String>,
        /// Earliest time.
        #[arg(long, value_name = "TIME")]
        from: Option<String>,
        /// Time before which they happened.
        #[arg(long, value_name = "TIME")]
        to: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Write entries to a file that other programs read.
    Export {
        /// The file's form.
        #[arg(long, default_value = "beancount")]
        format: Format,
        /// Earliest time.
        #[arg(long, value_name = "TIME")]
        from: Option<String>,
        /// Time before which they happened.
        #[arg(long, value_name = "TIME")]
        to: Option<String>,
        /// The file that is written.
        #[arg(long, value_name = "FILE")]
        #[serde(skip)]
        out: PathBuf,
    },
}

/// The form of an export.
#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// The text format of beancount.
    Beancount,
    /// One line a posting.
    Csv,
}

impl Call for Ledger {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::Check => target.run(async |admin| {
                let read = async |after: Option<String>| {
                    admin.get(&format!("ledger/check{}", query([("after", after)]))).await
                };
                check(read, output::line).await
            }),
            Self::Balances { .. } => target.list("ledger/balances", self, BALANCES),
            Self::Entries { .. } => target.list("ledger/entries", self, ENTRIES),
            Self::Export { out, .. } => target.save(out, "GET ledger/export", self),
        }
    }
}

/// Checks page after page, up to the end. What is off is reported as it is found: a later page may
/// not come.
async fn check(
    mut read: impl AsyncFnMut(Option<String>) -> Result<Value, StartupError>,
    mut report: impl FnMut(String),
) -> Result<Value, StartupError> {
    let (mut checked, mut problems, mut after) = (0, 0, None);
    loop {
        let page = read(after).await?;
        checked += page["checked"].as_u64().unwrap_or(0);
        let found = page["problems"].as_array();
        let none = "the answer has no 'problems': it is not of an edge of this version";
        for found in found.ok_or(none)? {
            let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
            report(format!("{}: {}", text("subject"), text("problem")));
            problems += 1;
        }
        match page["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => break,
        }
    }
    match problems {
        0 => Ok(json!({ "checked": checked, "problems": 0 })),
        _ => Err(StartupError::finding("the books are off by each line above".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_off_is_reported_although_a_later_page_does_not_come() {
        let read = async |after: Option<String>| match after {
            None => Ok(json!({"checked": 1, "next": "2",
                "problems": [{"subject": "order 7", "problem": "it owes"}]})),
            Some(_) => Err(StartupError::from("the admin listener does not answer")),
        };
        let mut reported = Vec::new();
        let failed = check(read, |problem| reported.push(problem)).await.unwrap_err();
        assert_eq!((failed.status(), reported), (2, vec!["order 7: it owes".to_owned()]));
    }
}
