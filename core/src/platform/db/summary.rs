//! The name of a statement in a trace: its first write and the table, or the first table it reads.
//! Taken from its text, which never holds a value.

use std::borrow::Cow;

use crate::platform::telemetry::{SpanKind, Spans};

/// A span of the statement with this name.
pub(super) fn spans(name: impl FnOnce() -> Cow<'static, str>) -> Spans {
    let mut spans = Spans::begin(SpanKind::Client, name);
    spans.describe(|span| span.set("db.system.name", "postgresql"));
    spans
}

/// `insert buy_order`, `select client` ...
pub(super) fn summary(sql: &str) -> String {
    let (mut before, mut read) = ("", None);
    let mut words = sql.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let next = words.peek().copied().unwrap_or_default();
        let write = match word {
            "insert" if next == "into" => words.nth(1).map(|table| ("insert", table)),
            "delete" if next == "from" => words.nth(1).map(|table| ("delete", table)),
            // Not that of a lock or of a conflict.
            "update" if !["for", "key", "do"].contains(&before) => Some(("update", next)),
            _ => None,
        };
        if let Some((action, table)) = write {
            return named(action, table);
        }
        if word == "from" && read.is_none() && next.starts_with(|c: char| c.is_ascii_lowercase()) {
            read = Some(next);
        }
        before = word;
    }
    named("select", read.unwrap_or_default())
}

fn named(action: &str, table: &str) -> String {
    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let table: String = table.chars().take_while(is_name).collect();
    if table.is_empty() { action.to_owned() } else { format!("{action} {table}") }
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn a_statement_is_named_by_what_it_writes_or_reads_first() {
        for (sql, name) in [
            ("select 1", "select"),
            ("select a from client where b", "select client"),
            ("select a from (select b from c) d", "select c"),
            ("insert into event (a) values ($1)", "insert event"),
            ("insert into event(a) values ($1)", "insert event"),
            ("insert into a values (1) on conflict (b) do update set c = 1", "insert a"),
            ("update delivery d set a = 1", "update delivery"),
            ("delete from refresh_token where a", "delete refresh_token"),
            ("with a as (select b from c for update skip locked) select d from a", "select c"),
            (
                "with a as (select b from c for no key update of c), d as (\n insert into e (f) select g \
              from h)\nselect 1",
                "insert e",
            ),
        ] {
            assert_eq!(summary(sql), name, "{sql}");
        }
    }
}
