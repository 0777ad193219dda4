//! `rampart ledger check`.

use clap::Subcommand;
use serde_json::{Value, json};

use super::Target;
use crate::operator::Operator;
use crate::startup_error::StartupError;

/// The books: double entry, one book per client and currency.
#[derive(Debug, Subcommand)]
pub(crate) enum Ledger {
    /// Recompute everything: entries that do not balance, orders whose postings do not fit their
    /// state, accounts at providers that are not as their last reconciliation. Status 1, and one
    /// line each, if anything is off.
    Check {
        #[command(flatten)]
        target: Target,
    },
}

impl Ledger {
    /// Does it.
    ///
    /// # Errors
    /// One sentence for the operator, or one line for everything that is off.
    pub(crate) fn run(self) -> Result<(), StartupError> {
        let Self::Check { target } = self;
        target.run(async |operator| check(&operator).await)
    }
}

/// Checks page after page, up to the end.
async fn check(operator: &Operator) -> Result<Value, StartupError> {
    let (mut checked, mut problems, mut query) = (0, Vec::new(), String::new());
    loop {
        let page = operator.get(&format!("ledger/check{query}")).await?;
        checked += page["checked"].as_u64().unwrap_or(0);
        for found in page["problems"].as_array().into_iter().flatten() {
            let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
            problems.push(format!("{}: {}", text("subject"), text("problem")));
        }
        match page["next"].as_str() {
            Some(next) => query = format!("?after={next}"),
            None => break,
        }
    }
    match problems.is_empty() {
        true => Ok(json!({ "checked": checked, "problems": 0 })),
        false => Err(StartupError::from(problems.join("\n"))),
    }
}
