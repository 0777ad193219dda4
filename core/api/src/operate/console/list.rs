//! Lists: a search with its criteria in the URL, page after page, and the same as a file.

mod file;

use http::Method;
use maud::{Markup, html};
use serde_json::Value;
use url::form_urlencoded;

use self::file::as_file;
use super::action::Subject;
use super::form::{COLUMNS, FieldError, Input, Typed};
use super::layout::Page;
use super::view::{Cell, rows_of, text};
use super::visit::{Refused, Visit, fill};
use crate::http::html::components::{
    Column, Tone, dialog, empty_state, error_summary, table, toast,
};
use crate::http::reply::Reply;

/// Rows of a page in a browser.
pub(super) const PAGE_ROWS: Option<usize> = Some(50);
/// Parameter that asks for a file.
const FORMAT: &str = "format";

/// A list of the operators' API.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) title: &'static str,
    /// The entry in the navigation.
    pub(super) section: &'static str,
    /// The page's path, with `{ids}` for a list of something that has a page itself.
    pub(super) page: &'static str,
    /// The call, with the same ids. Behind `#` stands the JSON pointer of the rows in its answer; in
    /// the row of this name in its answer, if the path has no place for the id.
    pub(super) call: &'static str,
    pub(super) criteria: &'static [Input],
    pub(super) columns: &'static [(&'static str, Cell)],
    /// Meaning of an empty list.
    pub(super) empty: &'static str,
}

impl List {
    /// The call without the pointer, as the table of endpoints has it, and the pointer.
    pub(super) fn call(&self) -> (&'static str, &'static str) {
        self.call.split_once('#').unwrap_or((self.call, ""))
    }

    /// Most rows of its page; all that the call has of what is one of a thing's few.
    fn page_rows(&self) -> Option<usize> {
        PAGE_ROWS.filter(|_| !self.call.contains(['{', '#']))
    }

    /// The query of the call: the criteria that were given, and where the page begins.
    fn query(&self, typed: &Typed, limit: Option<usize>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for name in self.criteria.iter().map(|input| input.member).chain(["after"]) {
            let value = typed.get(name).trim();
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        if let Some(limit) = limit {
            query.append_pair("limit", &limit.to_string());
        }
        query.finish()
    }

    /// The rows that the criteria ask for, at most `limit` or as many as a page of the call has, and
    /// the query of the next page.
    pub(super) async fn rows(
        &self,
        visit: &Visit<'_>,
        ids: &[String],
        typed: &Typed,
        limit: Option<usize>,
    ) -> Result<(Vec<Value>, Option<String>), Refused> {
        let (call, pointer) = self.call();
        let url = fill(call, ids);
        if pointer.is_empty() {
            return visit.rows(&format!("{url}?{}", self.query(typed, limit))).await;
        }
        let read = match ids.first() {
            Some(name) if !call.contains('{') => {
                visit.find(&url, |row| row["name"] == **name).await?
            }
            _ => visit.get(&url).await?,
        };
        let rows = read.pointer(pointer).and_then(Value::as_array).cloned();
        Ok((rows.unwrap_or_default(), None))
    }

    /// The page, with `above` over the criteria. A wrong criterion keeps what was typed.
    ///
    /// # Errors
    /// The refusal of the call, but for one of a criterion.
    pub(super) async fn show(
        &self,
        visit: &Visit<'_>,
        ids: &[String],
        typed: &Typed,
        above: &Markup,
    ) -> Result<Page, Refused> {
        let found = self.rows(visit, ids, typed, self.page_rows()).await;
        let (rows, next, refused) = match found {
            Ok((rows, next)) => (rows, next, None),
            Err(refused) if refused.status == http::StatusCode::UNPROCESSABLE_ENTITY => {
                (Vec::new(), None, Some(refused))
            }
            Err(refused) => return Err(refused),
        };
        let error = refused.as_ref().and_then(|refused| self.error_of(refused));
        let body = html! {
            (above)
            @if let Some(refused) = &refused { (complaint(refused, error.as_ref())) }
            @if !self.criteria.is_empty() { (self.filter(typed, error.as_ref())) }
            @if refused.is_none() { (self.table(visit, &rows)) }
            @if let Some(next) = &next {
                p { a.button href={ (fill(self.page, ids)) "?" (next) } { "Next page" } }
            }
            @if !rows.is_empty() { (self.export(ids, typed)) }
        };
        let title = [self.title, &ids.join(" ")].join(" ");
        let page = Page::new(title.trim_end(), self.section, body);
        Ok(match refused {
            Some(refused) => Page { status: refused.status, ..page },
            None => page,
        })
    }

    /// A refusal as the error of the criterion that it names.
    pub(super) fn error_of(&self, refused: &Refused) -> Option<FieldError> {
        let named = refused.reason.split(':').next();
        let input = self.criteria.iter().find(|input| Some(input.member) == named)?;
        Some((input.member, refused.reason.clone()))
    }

    fn filter(&self, typed: &Typed, error: Option<&FieldError>) -> Markup {
        html! {
            form.filter method="get" action=(self.page) {
                @for input in self.criteria { (input.show(typed, text_at(input, error))) }
                button { "Search" }
            }
        }
    }

    pub(super) fn table(&self, visit: &Visit<'_>, rows: &[Value]) -> Markup {
        let heads: Vec<_> = heads(self.columns).collect();
        html! {
            @if rows.is_empty() { (empty_state("Nothing here", self.empty)) }
            @else { (table(self.title, &heads, &rows_of(visit, rows, self.columns))) }
        }
    }

    /// A link to the rows behind those that another page shows of the list, such as “More payments”.
    /// `next` is the query of their page.
    pub(super) fn more(&self, ids: &[String], next: Option<&str>, name: &str) -> Markup {
        html! {
            @if let Some(next) = next {
                p { a.button href={ (fill(self.page, ids)) "?" (next) } { "More " (name) } }
            }
        }
    }

    /// The form that asks for the list as a file, by the same criteria.
    pub(super) fn export(&self, ids: &[String], typed: &Typed) -> Markup {
        let given = self.criteria.iter().map(|input| (input.member, typed.get(input.member)));
        dialog(
            "As a file (CSV)",
            &html! {
                form method="get" action=(fill(self.page, ids)) {
                    @for (name, value) in given.filter(|(_, value)| !value.is_empty()) {
                        input type="hidden" name=(name) value=(value);
                    }
                    (self.column_choice())
                }
            },
        )
    }

    /// The columns of a file, each with its box, and the button that asks for it.
    pub(super) fn column_choice(&self) -> Markup {
        html! {
            fieldset {
                legend { "Columns" }
                @for (name, _) in self.columns {
                    label.tick {
                        input type="checkbox" name=(COLUMNS) value=(name) checked;
                        span { (name) }
                    }
                }
            }
            button name=(FORMAT) value="csv" { "Save the file" }
        }
    }

    /// The list as a file, if the query asks for one.
    pub(super) async fn file(
        &'static self,
        visit: &Visit<'_>,
        ids: &[String],
        typed: &Typed,
    ) -> Result<Option<Reply>, Refused> {
        if typed.get(FORMAT) != "csv" || !visit.may(&Method::GET, self.call().0) {
            return Ok(None);
        }
        as_file(self, visit, ids, typed).await.map(Some)
    }
}

/// The refusal of a search above its criteria, with a link to the criterion that has the error.
pub(super) fn complaint(refused: &Refused, error: Option<&FieldError>) -> Markup {
    html! {
        @match error {
            Some((name, text)) => (error_summary("Please correct this", &[(*name, text.as_str())])),
            None => (toast(Tone::Bad, &refused.reason)),
        }
    }
}

/// The text of an error that is this criterion's.
pub(super) fn text_at<'e>(input: &Input, error: Option<&'e FieldError>) -> Option<&'e str> {
    error.filter(|(name, _)| *name == input.member).map(|(_, text)| text.as_str())
}

pub(super) fn heads<'a>(columns: &'a [(&'a str, Cell)]) -> impl Iterator<Item = Column<'a>> {
    columns.iter().map(|&(name, cell)| match cell.is_amount() {
        true => Column::Amount(name),
        false => Column::Text(name),
    })
}

/// A table with a heading, if there are rows.
pub(super) fn titled_table(
    visit: &Visit<'_>,
    title: &str,
    rows: &[Value],
    columns: &[(&str, Cell)],
) -> Markup {
    let heads: Vec<_> = heads(columns).collect();
    html! {
        @if !rows.is_empty() { h2 { (title) } (table(title, &heads, &rows_of(visit, rows, columns))) }
    }
}

/// A table with a heading, each row with the actions that the operator may do; nothing if there is no
/// row. `above` are the ids of what the rows belong to.
pub(super) fn with_actions(
    visit: &Visit<'_>,
    subject: &Subject,
    above: &[String],
    title: &str,
    columns: &[(&str, Cell)],
    rows: &[Value],
) -> Markup {
    let heads: Vec<_> = heads(columns).chain([Column::Text("Actions")]).collect();
    let cells = rows_of(visit, rows, columns).into_iter().zip(rows).map(|(mut cells, row)| {
        let ids: Vec<_> = above.iter().cloned().chain([text(row, "/id")]).collect();
        cells.push(html! { div.row { (subject.links(visit, &ids, row)) } });
        cells
    });
    let cells: Vec<_> = cells.collect();
    html! { @if !rows.is_empty() { h2 { (title) } (table(title, &heads, &cells)) } }
}
