//! Decisions of operators about a user or an order, with their reasons, as the audit has them.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use http::Method;
use maud::{Markup, html};
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::audit;
use super::list::heads;
use super::view::{Cell, rows_of, text};
use super::visit::{Refused, Visit};
use crate::http::html::components::table;

/// Newest decisions of each kind that are shown.
const SHOWN: &str = "20";
const COLUMNS: &[(&str, Cell)] = &[
    ("When", Cell::Time("/at")),
    ("By", Cell::Text("/actor")),
    ("What", Cell::Text("/action")),
    ("Decision", Cell::Text("/change")),
    ("Reason", Cell::Text("/reason")),
];

/// The newest decisions about a target, by their names in the audit. Nothing for a role that does
/// not see the audit.
pub(super) async fn decisions(
    visit: &Visit<'_>,
    target: &str,
    actions: &[&str],
) -> Result<Markup, Refused> {
    if !visit.may(&Method::GET, audit::LIST.call) {
        return Ok(html! {});
    }
    let (mut rows, mut more) = (Vec::new(), Vec::new());
    for action in actions.iter().copied() {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("target", target), ("action", action), ("limit", SHOWN)])
            .finish();
        let (found, next) = visit.rows(&format!("{}?{query}", audit::LIST.call)).await?;
        rows.extend(found.iter().map(decision));
        more.push((action, next));
    }
    rows.sort_by_key(|row| Reverse(text(row, "/at").parse::<DateTime<Utc>>().ok()));
    let heads: Vec<_> = heads(COLUMNS).collect();
    Ok(html! {
        @if !rows.is_empty() {
            h2 { "Decisions" }
            (table("Decisions", &heads, &rows_of(visit, &rows, COLUMNS)))
        }
        @for (action, next) in &more { (audit::LIST.more(&[], next.as_deref(), action)) }
    })
}

/// A row of the audit, with its reason apart from what was decided.
fn decision(entry: &Value) -> Value {
    let detail = &entry["detail"];
    // That of an account stands beside the account's id.
    let change = detail.get("change").unwrap_or(detail);
    let members = change.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| *name != "reason");
    let members: Map<_, _> = members.map(|(name, value)| (name.clone(), value.clone())).collect();
    json!({
        "at": entry["at"],
        "actor": entry["actor"],
        "action": entry["action"],
        "change": members,
        "reason": change["reason"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_stands_apart_from_what_was_decided() {
        let of = |detail: Value| {
            let row = decision(&json!({"detail": detail}));
            (text(&row, "/change"), text(&row, "/reason"))
        };
        let user = json!({"verification": {"identity": "verified"}, "reason": "seen"});
        assert_eq!(of(user), ("verification=identity=verified".to_owned(), "seen".to_owned()));
        let account = json!({"accountId": "1", "change": {"verified": true, "reason": "bank"}});
        assert_eq!(of(account), ("verified=yes".to_owned(), "bank".to_owned()));
        assert_eq!(of(json!({"event": "hold"})), ("event=hold".to_owned(), String::new()));
    }
}
