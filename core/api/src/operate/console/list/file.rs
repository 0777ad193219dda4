//! A list as a file of values with commas between them (RFC 4180), made page after page while it is sent.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::StatusCode;
use serde_json::Value;

use super::List;
use crate::Core;
use crate::auth::caller::Caller as _;
use crate::http::csv;
use crate::http::file_stream::{Broken, FileStream};
use crate::http::reply::Reply;
use crate::http::request::Head;
use crate::operate::admin::login::session::Session;
use crate::operate::console::form::{COLUMNS, Typed};
use crate::operate::console::view::Cell;
use crate::operate::console::visit::{Refused, Visit};
use crate::platform::db::PoolKind;
use crate::platform::db::share_holder::run_for_operator;

/// Most rows of a file; its last line says if there are more.
const FILE_ROWS_MAX: usize = 1_000_000;

/// Rows of a call: as many as the call has on a page.
const CALL_ROWS: Option<usize> = None;

/// Columns of a file: their heads and members.
type Columns = Vec<(&'static str, Cell)>;

/// The rows that the criteria ask for, of all pages, in the columns that were chosen.
///
/// # Errors
/// 422 for a column that the list does not have; the refusal of the first call.
pub(super) async fn as_file(
    list: &'static List,
    visit: &Visit<'_>,
    ids: &[String],
    typed: &Typed,
) -> Result<Reply, Refused> {
    let columns = chosen(list.columns, typed.get(COLUMNS))?;
    let (rows, next) = list.rows(visit, ids, typed, CALL_ROWS).await?;
    let heads = line(columns.iter().map(|(name, _)| (*name).to_owned()));
    let rest = Rest {
        core: Arc::clone(visit.core),
        head: visit.head.clone(),
        operator: visit.session.operator.key_owner().into(),
        list,
        ids: ids.to_vec(),
        count: rows.len(),
        first: Some(heads + &lines(&columns, &rows)),
        columns,
        next,
    };
    let parts = stream::try_unfold(rest, Rest::part);
    let mut reply = Reply::with_body(StatusCode::OK, "text/csv; charset=utf-8", Bytes::new());
    reply.file = Some(FileStream::new(parts));
    let name = list.page.rsplit('/').next().unwrap_or("list");
    reply.set("content-disposition", format!("attachment; filename=\"{name}.csv\""));
    Ok(reply)
}

/// The columns of these names, with commas between them, in the order of the list; all of them if none
/// is named.
///
/// # Errors
/// 422 for a name that is no column's.
fn chosen(columns: &[(&'static str, Cell)], names: &str) -> Result<Columns, Refused> {
    let names: Vec<_> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let is_column = |name: &str| columns.iter().any(|(known, _)| *known == name);
    if let Some(unknown) = names.iter().find(|name| !is_column(name)) {
        let reason = format!("{COLUMNS}: there is no column {unknown}");
        return Err(Refused { status: StatusCode::UNPROCESSABLE_ENTITY, reason });
    }
    let is_chosen = |(name, _): &&(&'static str, Cell)| names.is_empty() || names.contains(name);
    Ok(columns.iter().filter(is_chosen).copied().collect())
}

/// The part of a file that is not sent yet.
struct Rest {
    core: Arc<Core>,
    head: Head,
    /// Identity of the operator who asked for it.
    operator: Arc<str>,
    list: &'static List,
    /// Ids in the list's path.
    ids: Vec<String>,
    columns: Columns,
    /// Rows so far.
    count: usize,
    /// The beginning, which was made before the answer.
    first: Option<String>,
    /// The query of the next page.
    next: Option<String>,
}

impl Rest {
    /// The next part with the rest behind it; `None` at the end.
    ///
    /// # Errors
    /// When the session has ended, or a call is refused.
    async fn part(self) -> Result<Option<(Bytes, Self)>, Broken> {
        // It is made after the answer, outside of what the listener has begun.
        let operator = Arc::clone(&self.operator);
        let made = run_for_operator(operator, Box::pin(self.next_part()));
        PoolKind::Operators.run(made).await
    }

    async fn next_part(mut self) -> Result<Option<(Bytes, Self)>, Broken> {
        if let Some(first) = self.first.take() {
            return Ok(Some((first.into(), self)));
        }
        let Some(next) = self.next.take() else { return Ok(None) };
        if self.count >= FILE_ROWS_MAX {
            let cut = format!("cut off after {} rows: narrow the search", self.count);
            return Ok(Some((line([cut].into_iter()).into(), self)));
        }
        let cut_short = |reason: &dyn Display| {
            tracing::warn!(list = self.list.call, %reason, "a file is cut short");
            Broken
        };
        // A session that ended meanwhile, and a role that was taken away, end the file too.
        let session = Session::find(&self.core, &self.head).await.map_err(|e| cut_short(&e))?;
        let session = session.ok_or_else(|| cut_short(&"the session has ended"))?;
        let visit = Visit { core: &self.core, head: &self.head, session: &session };
        let asked = Typed::read(next.as_bytes());
        let found = self.list.rows(&visit, &self.ids, &asked, CALL_ROWS).await;
        let (rows, next) = found.map_err(|refused| cut_short(&refused.status))?;
        self.count = self.count.saturating_add(rows.len());
        self.next = next;
        Ok(Some((lines(&self.columns, &rows).into(), self)))
    }
}

fn lines(columns: &[(&'static str, Cell)], rows: &[Value]) -> String {
    rows.iter().map(|row| line(columns.iter().map(|(_, cell)| cell.text(row)))).collect()
}

fn line(values: impl Iterator<Item = String>) -> String {
    let mut line = values.map(|value| csv::quoted(&value)).collect::<Vec<_>>().join(",");
    line.push_str("\r\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_values_and_no_formula() {
        let values = ["a,b", "=1+1", ""];
        let line = line(values.into_iter().map(str::to_owned));
        assert_eq!(line, "\"a,b\",'=1+1,\r\n");
    }

    #[test]
    fn columns_come_in_the_order_of_the_list_and_an_unknown_one_is_named() {
        let columns = [("Order", Cell::Text("/id")), ("Made", Cell::Time("/createdAt"))];
        let names = |chosen: Result<Columns, Refused>| {
            let chosen = chosen.map_err(|refused| refused.reason)?;
            Ok::<_, String>(chosen.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names(chosen(&columns, "")), Ok(vec!["Order", "Made"]));
        assert_eq!(names(chosen(&columns, "Made, Order,")), Ok(vec!["Order", "Made"]));
        assert_eq!(names(chosen(&columns, "Made")), Ok(vec!["Made"]));
        let unknown = Err("columns: there is no column Colour".to_owned());
        assert_eq!(names(chosen(&columns, "Made,Colour")), unknown);
    }
}
