//! Answers as tables for people, and as JSON for programs.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use clap::Args;
use serde_json::{Value, json};

use super::StartupError;
use crate::output;

/// Space between two columns.
const GAP: usize = 2;

/// The form in which an answer is printed.
#[derive(Debug, Args)]
pub(crate) struct Format {
    /// Print JSON: also what a program gets that reads the output.
    #[arg(long, global = true, conflicts_with = "table")]
    json: bool,
    /// Print a table: also what a terminal gets.
    #[arg(long, global = true)]
    table: bool,
}

impl Format {
    /// Prints `rows`, an array of objects, in these columns, each with its head and its member, as
    /// in `ID id, CREATED BY createdBy`; as JSON the whole answer.
    pub(crate) fn print(
        &self,
        answer: &Value,
        rows: &Value,
        columns: &str,
    ) -> Result<(), StartupError> {
        self.print_as(answer, || {
            let columns = columns.split(", ").filter_map(|column| column.rsplit_once(' '));
            table(rows, &columns.collect::<Vec<_>>())
        })
    }

    /// Prints an answer that is no list: a line for each member, or JSON. An empty one prints nothing.
    pub(crate) fn print_members(&self, answer: &Value) -> Result<(), StartupError> {
        if answer.is_null() {
            return Ok(());
        }
        self.print_as(answer, || members(answer))
    }

    /// Prints the answer as this table or as JSON.
    fn print_as(&self, answer: &Value, table: impl FnOnce() -> String) -> Result<(), StartupError> {
        if self.table || !self.json && std::io::stdout().is_terminal() {
            output::answer(table())
        } else {
            output::answer(format!("{answer:#}\n"))
        }
    }
}

/// A line for each member with its value, those of inner objects by their path.
fn members(answer: &Value) -> String {
    let mut lines = Vec::new();
    collect(String::new(), answer, &mut lines);
    aligned(&lines)
}

fn collect(path: String, value: &Value, lines: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let dot = if path.is_empty() { "" } else { "." };
            for (name, value) in members {
                collect(format!("{path}{dot}{}", cell(&json!(name))), value, lines);
            }
        }
        Value::Array(values)
            if values.iter().any(|value| value.is_object() || value.is_array()) =>
        {
            for (index, value) in values.iter().enumerate() {
                collect(format!("{path}[{index}]"), value, lines);
            }
        }
        Value::Object(_) => lines.push(vec![path, "-".to_owned()]),
        value => lines.push(vec![path, cell(value)]),
    }
}

/// The rows below the heads of their columns.
fn table(rows: &Value, columns: &[(&str, &str)]) -> String {
    let heads = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    let mut lines: Vec<Vec<String>> = vec![heads];
    for row in rows.as_array().into_iter().flatten() {
        lines.push(columns.iter().map(|(_, member)| cell(&row[*member])).collect());
    }
    aligned(&lines)
}

/// Lines of equally many cells, with columns as wide as their widest cell.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or_default() + GAP
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let mut row = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            _ = write!(row, "{cell:width$}");
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// A value in a cell, an object by its id, an amount with its currency, without what would move the
/// cursor.
pub(super) fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "-".to_owned(),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join(","),
        Value::Object(members) if members.contains_key("id") => cell(&members["id"]),
        Value::Object(members) if members.contains_key("currencyCode") => {
            format!("{} {}", cell(&value["amount"]), cell(&value["currencyCode"]))
        }
        other => other.to_string(),
    };
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_stand_by_their_paths() {
        let answer = json!({
            "id": 7, "limits": {"day": 250.5, "none": {}}, "tags": ["a", "b"],
            "timeline": [{"to": "paid"}, {"to": "sent\u{1b}[2J"}],
        });
        let shown = members(&answer);
        assert_eq!(
            shown,
            "id              7\nlimits.day      250.5\nlimits.none     -\ntags            a,b\n\
             timeline[0].to  paid\ntimeline[1].to  sent[2J\n"
        );
        assert_eq!(members(&json!("done")), "  done\n");
    }

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

    #[test]
    fn an_amount_has_its_currency_behind_it() {
        let amount = json!({"amount": 12.5, "currencyCode": "EUR"});
        assert_eq!(cell(&amount), "12.5 EUR");
        assert_eq!(cell(&json!([amount, {"currencyCode": "BTC"}])), "12.5 EUR,- BTC");
    }
}
