//! A list as a file of values with commas between them (RFC 4180).

use http::StatusCode;

use super::List;
use crate::http::reply::Reply;
use crate::operate::console::form::Typed;
use crate::operate::console::visit::{Refused, Visit};

/// Rows of one call.
const CALL_ROWS: usize = 200;
/// Most rows of a file; its last line says if there are more.
const FILE_ROWS_MAX: usize = 10_000;

/// The rows that the criteria ask for, of all pages.
///
/// # Errors
/// The refusal of a call.
pub(super) async fn as_file(
    list: &List,
    visit: &Visit<'_>,
    typed: &Typed,
) -> Result<Reply, Refused> {
    let heads = list.columns.iter().map(|(name, _)| (*name).to_owned());
    let mut text = line(heads);
    let (mut typed, mut count) = (typed.clone(), 0);
    loop {
        let (rows, next) = list.rows(visit, &typed, CALL_ROWS).await?;
        for row in &rows {
            text += &line(list.columns.iter().map(|(_, cell)| cell.text(row)));
        }
        count += rows.len();
        match next {
            Some(next) if count < FILE_ROWS_MAX => typed = Typed::read(next.as_bytes()),
            Some(_) => {
                text +=
                    &line([format!("cut off after {count} rows: narrow the search")].into_iter());
                break;
            }
            None => break,
        }
    }
    let mut reply = Reply::with_body(StatusCode::OK, "text/csv; charset=utf-8", text.into());
    let name = list.page.rsplit('/').next().unwrap_or("list");
    reply.set("content-disposition", format!("attachment; filename=\"{name}.csv\""));
    reply.set("x-content-type-options", "nosniff");
    Ok(reply)
}

fn line(values: impl Iterator<Item = String>) -> String {
    let mut line = values.map(|value| quoted(&value)).collect::<Vec<_>>().join(",");
    line.push_str("\r\n");
    line
}

/// A value in quotes, where a spreadsheet would otherwise calculate it.
fn quoted(value: &str) -> String {
    let is_formula = value.starts_with(['=', '+', '-', '@', '\t', '\r'])
        && value.parse::<rust_decimal::Decimal>().is_err();
    let value = if is_formula { format!("'{value}") } else { value.to_owned() };
    if value.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_values_and_no_formula() {
        let values = ["a,b", "say \"x\"", "=1+1", "-12.50", "+31612345678", ""];
        let line = line(values.into_iter().map(str::to_owned));
        assert_eq!(line, "\"a,b\",\"say \"\"x\"\"\",'=1+1,-12.50,+31612345678,\r\n");
    }
}
