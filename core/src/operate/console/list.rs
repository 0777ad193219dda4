//! Lists: a search with its criteria in the URL, page after page, and the same as a file.

mod file;

use http::Method;
use maud::{Markup, html};
use serde_json::Value;
use url::form_urlencoded;

use self::file::as_file;
use super::form::{COLUMNS, Input, Typed};
use super::layout::Page;
use super::view::{Cell, rows_of};
use super::visit::{Refused, Visit};
use crate::http::html::components::{Column, Tone, dialog, empty_state, table, toast};
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
    /// The page's path.
    pub(super) page: &'static str,
    /// The call.
    pub(super) call: &'static str,
    pub(super) criteria: &'static [Input],
    pub(super) columns: &'static [(&'static str, Cell)],
    /// What an empty list means.
    pub(super) empty: &'static str,
}

impl List {
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
    ///
    /// # Errors
    /// The refusal of the call.
    pub(super) async fn rows(
        &self,
        visit: &Visit<'_>,
        typed: &Typed,
        limit: Option<usize>,
    ) -> Result<(Vec<Value>, Option<String>), Refused> {
        visit.rows(&format!("{}?{}", self.call, self.query(typed, limit))).await
    }

    /// The page, with `above` over the criteria. A wrong criterion keeps what was typed.
    ///
    /// # Errors
    /// The refusal of the call, but for one of a criterion.
    pub(super) async fn show(
        &self,
        visit: &Visit<'_>,
        typed: &Typed,
        above: &Markup,
    ) -> Result<Page, Refused> {
        let (rows, next, refused) = match self.rows(visit, typed, PAGE_ROWS).await {
            Ok((rows, next)) => (rows, next, None),
            Err(refused) if refused.status == http::StatusCode::UNPROCESSABLE_ENTITY => {
                (Vec::new(), None, Some(refused))
            }
            Err(refused) => return Err(refused),
        };
        let body = html! {
            (above)
            @if let Some(refused) = &refused { (toast(Tone::Bad, &refused.reason)) }
            @if !self.criteria.is_empty() { (self.filter(typed)) }
            @if refused.is_none() { (self.table(&rows)) }
            @if let Some(next) = &next {
                p { a.button href={ (self.page) "?" (next) } { "Next page" } }
            }
            @if !rows.is_empty() { (self.export(typed)) }
        };
        let page = Page::new(self.title, self.section, body);
        Ok(match refused {
            Some(refused) => Page { status: refused.status, ..page },
            None => page,
        })
    }

    fn filter(&self, typed: &Typed) -> Markup {
        html! {
            form.filter method="get" action=(self.page) {
                @for input in self.criteria { (input.show(typed, None)) }
                button { "Search" }
            }
        }
    }

    /// The rows as a table.
    pub(super) fn table(&self, rows: &[Value]) -> Markup {
        let columns: Vec<_> = self.columns.iter().map(column).collect();
        html! {
            @if rows.is_empty() { (empty_state("Nothing here", self.empty)) }
            @else { (table(self.title, &columns, &rows_of(rows, self.columns))) }
        }
    }

    /// The form that asks for the list as a file, by the same criteria.
    pub(super) fn export(&self, typed: &Typed) -> Markup {
        let given = self.criteria.iter().map(|input| (input.member, typed.get(input.member)));
        dialog(
            "As a file (CSV)",
            &html! {
                form method="get" action=(self.page) {
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
    ///
    /// # Errors
    /// The refusal of the call.
    pub(super) async fn file(
        &'static self,
        visit: &Visit<'_>,
        typed: &Typed,
    ) -> Result<Option<Reply>, Refused> {
        if typed.get(FORMAT) != "csv" || !visit.may(&Method::GET, self.call) {
            return Ok(None);
        }
        as_file(self, visit, typed).await.map(Some)
    }
}

/// The head of a column.
pub(super) fn column<'a>((name, cell): &'a (&'a str, Cell)) -> Column<'a> {
    if cell.is_amount() { Column::Amount(name) } else { Column::Text(name) }
}
