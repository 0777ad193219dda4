//! Lists as tables for people, and as JSON for programs.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use clap::Args;
use serde_json::Value;

use crate::output;

/// Space between two columns.
const GAP: usize = 2;

/// The form in which a list is printed.
#[derive(Debug, Args)]
pub(crate) struct Listing {
    /// Print JSON: also what a program gets that reads the output.
    #[arg(long, conflicts_with = "table")]
    json: bool,
    /// Print a table: also what a terminal gets.
    #[arg(long)]
    table: bool,
}

impl Listing {
    /// Prints `rows`, an array of objects, by the columns' heads and members; as JSON the whole
    /// answer.
    pub(crate) fn print(&self, answer: &Value, rows: &Value, columns: &[(&str, &str)]) {
        if self.table || !self.json && std::io::stdout().is_terminal() {
            output::text(&table(rows, columns));
        } else {
            output::line(format_args!("{answer:#}"));
        }
    }
}

/// The rows below the heads of their columns.
fn table(rows: &Value, columns: &[(&str, &str)]) -> String {
    let heads = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    let mut lines: Vec<Vec<String>> = vec![heads];
    for row in rows.as_array().into_iter().flatten() {
        lines.push(columns.iter().map(|(_, member)| cell(&row[*member])).collect());
    }
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or_default() + GAP
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let mut row = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            _ = write!(row, "{cell:width$}");
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// A value in a cell, an object by its id, without what would move the cursor.
pub(super) fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "-".to_owned(),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join(","),
        Value::Object(members) if members.contains_key("id") => cell(&members["id"]),
        other => other.to_string(),
    };
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_they_hold() {
        let rows = json!([
            {"name": "cards", "kinds": ["a", {"id": "b", "of": "x"}], "failures": 0, "last": null},
            {"name": "x\u{1b}[2J", "kinds": [], "failures": 12, "last": "now"},
        ]);
        let columns =
            [("NAME", "name"), ("KINDS", "kinds"), ("FAILURES", "failures"), ("LAST", "last")];
        let shown = table(&rows, &columns);
        assert_eq!(
            shown,
            "NAME   KINDS  FAILURES  LAST\ncards  a,b    0         -\nx[2J   -      12        now\n"
        );
        assert_eq!(table(&json!([]), &columns[..1]), "NAME\n");
    }
}
