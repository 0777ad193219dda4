//! `rampart reconciliation create|list|show`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use http::Method;

use super::{Body, Call, ObjectArgs, Page, StartupError, Target, query, read_file};

const COLUMNS: &str = "\
    CREATED createdAt, ID id, CONNECTOR connector, BY actor, MATCHED matched, RECORDED recorded, \
    DIFFERENCES differences";

/// Statements of accounts beside the books.
#[derive(Debug, Subcommand)]
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
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// ISO 20022 camt.053, XML.
    Camt053,
    /// Lines with named columns.
    Csv,
}

impl Call for Reconciliation {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::Create { file, connector, format } => {
                let text = read_file(&file)?;
                let by_name = file.extension().is_some_and(|name| name.eq_ignore_ascii_case("csv"));
                let content_type = match format {
                    Some(Format::Csv) => "text/csv",
                    None if by_name => "text/csv",
                    Some(Format::Camt053) | None => "application/xml",
                };
                let path = format!("reconciliations{}", query([("connector", Some(connector))]));
                let body = Body::File(content_type, text);
                target.run(async |admin| admin.call(Method::POST, &path, body).await)
            }
            Self::List { connector, page } => {
                page.print(target, &["reconciliations"], [("connector", connector)], COLUMNS)
            }
            Self::Show(reconciliation) => target.get(&["reconciliations", &reconciliation.id]),
        }
    }
}
