//! `rampart apply` and `rampart export`: the configuration as files.

mod document;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use http::Method;
use rampart_core::platform::counted::counted;
use serde_json::Value;

use self::document::Document;
use super::table::cell;
use super::{Body, ConfigFile, Run, StartupError, query};
use crate::output;

/// Apply partners, pairs, payment methods, prices, routes and active policies from TOML files: all of
/// them, or nothing.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// TOML files, and folders of them: `[partners.acme]`, `[pairs.BTC-EUR]`,
    /// `[paymentMethods.creditCard]`, `[prices.BTC-EUR]`, `[[routes]]`.
    #[arg(short, long = "file", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// Show the differences, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print the answer of the API as JSON; without it, text for people, in a pipe too.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: ConfigFile,
}

impl Run for Apply {
    fn run(self) -> Result<(), StartupError> {
        let document = Document::read(&self.files)?;
        let path =
            format!("configuration{}", query([("dryRun", self.dry_run.then(|| "true".into()))]));
        let body = Body::Json(document.configuration());
        let answer = self.settings.ask(async |o| o.call(Method::PUT, &path, body).await);
        let answer = answer.map_err(|error| document.locate(&error))?;
        if self.json {
            return output::answer(format!("{answer:#}\n"));
        }
        if let Some(approval) = answer["approval"].as_str() {
            return output::answer(format!(
                "nothing is applied yet: another operator must agree (rampart approval grant \
                 {approval}); then apply it again\n"
            ));
        }
        output::answer(changes(&answer))
    }
}

/// The changes, one a line.
fn changes(answer: &Value) -> String {
    let mut text = String::new();
    let changes = answer["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
    for change in changes {
        let [subject, member, from, to] =
            ["subject", "member", "from", "to"].map(|name| cell(&change[name]));
        // Writing to a string cannot fail.
        _ = writeln!(text, "{subject}  {member}: {from} -> {to}");
    }
    let counted = match changes.len() {
        0 => "no changes".to_owned(),
        count => counted(count, "change", "changes"),
    };
    let outcome = if answer["isApplied"] == true { "applied" } else { "not applied: a dry run" };
    _ = writeln!(text, "{counted}, {outcome}");
    text
}

/// Print the configuration as TOML: applied as it stands, it changes nothing.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Print it as JSON, as the API answers.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: ConfigFile,
}

impl Run for Export {
    fn run(self) -> Result<(), StartupError> {
        let configuration = self.settings.ask(async |o| o.get("configuration").await)?;
        if self.json {
            output::answer(format!("{configuration:#}\n"))
        } else {
            output::answer(format!("{}\n", document::toml(&configuration).trim_end()))
        }
    }
}
