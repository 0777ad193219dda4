//! Members of the API's answers as they are shown on a page, and as text for a file.

use chrono::{DateTime, Utc};
use http::Method;
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use super::visit::{Visit, segment};
use crate::http::html::components::{Tone, address, badge, time};
use crate::operate::admin::overview::dependents::COUNTED_MAX;

/// Longest answer that is shown, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Pages that not every role sees: the beginning of their paths, and the call that each shows.
pub(super) const RESTRICTED: [(&str, &str); 5] = [
    ("/console/deliveries/", "/admin/v1/deliveries/{id}"),
    ("/console/ledger/reconciliations/", "/admin/v1/reconciliations/{id}"),
    ("/console/payments/", "/admin/v1/payments/{id}"),
    ("/console/screenings/", "/admin/v1/screenings/{id}"),
    ("/console/users/", "/admin/v1/users/{uuid}"),
];

/// The way a member of an answer is shown. Members are named by JSON pointers (RFC 6901).
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell {
    /// Words or a number.
    Text(&'static str),
    /// A number that is counted up to a bound.
    Count(&'static str),
    /// A state.
    Badge(&'static str),
    Time(&'static str),
    /// An amount, and its currency.
    Money(&'static str, &'static str),
    /// An amount of euros, in cents.
    Cents(&'static str),
    /// A link to the page of what it names, behind this path.
    Link(&'static str, &'static str),
    /// The same for what two members name; the second one is shown.
    LinkOfTwo(&'static str, &'static str, &'static str),
    /// An address or a long id, shortened.
    Address(&'static str),
    /// A list of words.
    Words(&'static str),
    /// A list of objects, a line each, with these members of them.
    Lines(&'static str, &'static [&'static str]),
    /// Anything else, as JSON.
    Json(&'static str),
}

impl Cell {
    /// The member.
    fn pointer(self) -> &'static str {
        match self {
            Self::Text(pointer)
            | Self::Count(pointer)
            | Self::Badge(pointer)
            | Self::Time(pointer)
            | Self::Money(pointer, _)
            | Self::Cents(pointer)
            | Self::Link(_, pointer)
            | Self::LinkOfTwo(_, _, pointer)
            | Self::Address(pointer)
            | Self::Words(pointer)
            | Self::Lines(pointer, _)
            | Self::Json(pointer) => pointer,
        }
    }

    /// True for an amount, which stands on the right.
    pub(super) const fn is_amount(self) -> bool {
        matches!(self, Self::Money(..) | Self::Cents(_))
    }

    /// The cell as the operator's roles see it: a link that leads to a page which they do not see is
    /// text alone.
    fn for_roles(self, visit: &Visit<'_>) -> Self {
        let Self::Link(page, pointer) = self else { return self };
        let call = RESTRICTED.iter().find(|(path, _)| *path == page).map(|(_, call)| call);
        match call.is_none_or(|call| visit.may(&Method::GET, call)) {
            true => self,
            false => Self::Text(pointer),
        }
    }

    /// The markup; a dash where there is nothing.
    fn show(self, of: &Value) -> Markup {
        let shown = text(of, self.pointer());
        if shown.is_empty() {
            return html! { span.hint { "–" } };
        }
        match self {
            Self::Text(_) | Self::Words(_) => html! { (shown) },
            Self::Count(_) => html! { (self.text(of)) },
            Self::Lines(..) => html! {
                @for line in self.text(of).lines() { span.money { (line) } br; }
            },
            Self::Badge(_) => state(&shown),
            Self::Time(_) => moment(&shown),
            Self::Money(..) | Self::Cents(_) => html! { span.money { (self.text(of)) } },
            Self::Link(path, _) => html! { a href={ (path) (segment(&shown)) } { (shown) } },
            Self::LinkOfTwo(path, kind, _) => {
                html! { a href={ (path) (segment(&text(of, kind))) "/" (segment(&shown)) } { (shown) } }
            }
            Self::Address(_) => address(&shown),
            Self::Json(pointer) => {
                let value = of.pointer(pointer).unwrap_or(&Value::Null);
                html! { code { (value) } }
            }
        }
    }

    /// The text for a file.
    pub(super) fn text(self, of: &Value) -> String {
        let shown = text(of, self.pointer());
        match self {
            Self::Count(_) if shown.parse().is_ok_and(|count: i64| count >= COUNTED_MAX) => {
                "1,000 or more".to_owned()
            }
            Self::Money(_, currency) if !shown.is_empty() => {
                format!("{shown} {}", text(of, currency)).trim_end().to_owned()
            }
            Self::Cents(pointer) => {
                let cents = of.pointer(pointer).and_then(Value::as_i64);
                let euros = cents.map(|cents| Decimal::new(cents, 2).normalize());
                euros.map(|euros| format!("{euros} EUR")).unwrap_or_default()
            }
            Self::Lines(pointer, members) => {
                let rows = of.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
                let lines = rows.map(|row| {
                    let parts = members.iter().map(|pointer| text(row, pointer));
                    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
                });
                lines.collect::<Vec<_>>().join("\n")
            }
            _ => shown,
        }
    }
}

/// A member as text; empty if there is none.
pub(super) fn text(of: &Value, pointer: &str) -> String {
    plain(of.pointer(pointer).unwrap_or(&Value::Null))
}

/// A value as a person writes it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(members) => {
            let pairs = members.iter().map(|(name, value)| format!("{name}={}", plain(value)));
            pairs.collect::<Vec<_>>().join("\n")
        }
    }
}

/// A state, in the colour of its meaning.
pub(super) fn state(name: &str) -> Markup {
    let tone = match name {
        "completed" | "verified" | "active" | "delivered" | "matched" | "clear" | "granted"
        | "live" | "used" | "open" | "enabled" | "ok" => Tone::Good,
        "blocked" | "failed" | "suspended" | "block" | "refused" | "disabled" => Tone::Bad,
        "suspense" | "unmatched" | "review" | "refunded" | "expired" | "stale" | "deviating"
        | "missing" | "maintenance" | "degraded" | "running" => Tone::Warning,
        "pending" | "in progress" | "upcoming" => Tone::Info,
        _ => Tone::Neutral,
    };
    badge(tone, name)
}

/// A time of an answer.
pub(super) fn moment(text: &str) -> Markup {
    match text.parse::<DateTime<Utc>>() {
        Ok(at) => time(at),
        Err(_) => html! { (text) },
    }
}

/// Names with their values; those without a value are left out.
pub(super) fn facts(visit: &Visit<'_>, of: &Value, cells: &[(&str, Cell)]) -> Markup {
    html! {
        dl {
            @for (name, cell) in cells {
                @if !cell.text(of).is_empty() {
                    dt { (name) } dd { (cell.for_roles(visit).show(of)) }
                }
            }
        }
    }
}

/// An answer's members, for somebody to copy.
pub(super) fn answered(answer: &Value) -> Markup {
    let text = format!("{answer:#}");
    let beginning = text.get(..text.floor_char_boundary(ANSWER_BYTES_MAX)).unwrap_or_default();
    html! {
        @match answer.as_object() {
            Some(members) if members.values().all(|value| !value.is_object() && !value.is_array()) => {
                p.hint { "A secret among this is shown here alone, and only now: copy it." }
                dl {
                    @for (name, value) in members {
                        dt { (name) } dd { code { (plain(value)) } }
                    }
                }
            }
            _ => {
                @if beginning.len() < text.len() {
                    p.hint { "Only the beginning is shown: the answer is longer than 64 KiB." }
                }
                pre tabindex="0" { (beginning) }
            }
        }
    }
}

/// The rows of a list below the names of its columns.
pub(super) fn rows_of(
    visit: &Visit<'_>,
    rows: &[Value],
    columns: &[(&str, Cell)],
) -> Vec<Vec<Markup>> {
    let shown: Vec<_> = columns.iter().map(|(_, cell)| cell.for_roles(visit)).collect();
    rows.iter().map(|row| shown.iter().map(|cell| cell.show(row)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_shown_and_nothing_is_markup() {
        let order: Value =
            serde_json::from_str(r#"{"a": {"b": 1.50}, "c": "<b>", "d": ["x", "y"], "e": "EUR"}"#)
                .unwrap();
        assert_eq!(Cell::Money("/a/b", "/e").text(&order), "1.50 EUR");
        assert_eq!(Cell::Text("/c").show(&order).into_string(), "&lt;b&gt;");
        assert_eq!(Cell::Words("/d").text(&order), "x, y");
        let cents = json!({"whole": 5000, "part": 1250, "none": null});
        let cents = ["/whole", "/part", "/none"].map(|pointer| Cell::Cents(pointer).text(&cents));
        assert_eq!(cents, ["50 EUR", "12.5 EUR", ""]);
        let counted = json!({"few": 999, "many": 1000});
        let counted = ["/few", "/many", "/none"].map(|pointer| Cell::Count(pointer).text(&counted));
        assert_eq!(counted, ["999", "1,000 or more", ""]);
        let link = Cell::Link("/console/users/", "/c").show(&order).into_string();
        assert_eq!(link, r#"<a href="/console/users/%3Cb%3E">&lt;b&gt;</a>"#);
        assert_eq!(Cell::Text("/z").text(&json!({})), "");
    }

    #[test]
    fn a_long_answer_is_cut_between_characters_and_says_so() {
        // Two bytes each, from an odd one on.
        let long = answered(&json!(["\u{e4}".repeat(ANSWER_BYTES_MAX)])).into_string();
        assert!(long.contains("Only the beginning") && long.len() < ANSWER_BYTES_MAX + 200);
        let short = answered(&json!(["\u{e4}"])).into_string();
        assert!(short.contains('\u{e4}') && !short.contains("Only the beginning"), "{short}");
    }
}
