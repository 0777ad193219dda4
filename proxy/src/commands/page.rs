//! A page of a list: the arguments that lead to it, and its rows as they are printed.

use clap::Args;

use super::{StartupError, Target, path, query};
use crate::output;

/// A page of a list.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// Begin behind this row, which the page before has named.
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Most rows of the page.
    #[arg(long, value_name = "ROWS")]
    limit: Option<u16>,
}

impl Page {
    /// Prints the page of the rows that meet the criteria, in columns as [`Format::print`] has them.
    /// If another page follows, standard error says how to ask for it.
    ///
    /// [`Format::print`]: super::Format::print
    pub(crate) fn print<const N: usize>(
        self,
        target: &Target,
        list: &[&str],
        criteria: [(&str, Option<String>); N],
        columns: &str,
    ) -> Result<(), StartupError> {
        let page = [("after", self.after), ("limit", self.limit.map(|limit| limit.to_string()))];
        let path = path(list) + &query(criteria.into_iter().chain(page));
        let (rows, last) = target.settings.ask(async |admin| admin.page(&path).await)?;
        target.format.print(&rows, &rows, columns);
        if let Some(last) = last {
            output::note(&format!("more rows follow: --after {last}"));
        }
        Ok(())
    }
}
