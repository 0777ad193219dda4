//! Differences between what is stored before and after.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A member that an application changes.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ConfigurationChange")]
pub(super) struct Difference {
    /// Section and name, such as `partners.acme`; `routes` for the routes.
    pub(super) subject: String,
    /// Path of the member, such as `buy.min`.
    pub(super) member: String,
    /// The value before; null for a new partner.
    pub(super) from: Value,
    /// The value after; null for one that is taken away.
    pub(super) to: Value,
}

impl Difference {
    /// The members that differ, those of `before` that `after` lacks last.
    pub(super) fn between(subject: &str, before: &Value, after: &Value) -> Vec<Self> {
        let (mut before, after) = (leaves(before), leaves(after));
        let change = |member: String, from: Value, to: Value| {
            (from != to).then(|| Self { subject: subject.to_owned(), member, from, to })
        };
        let changed = after.into_iter().filter_map(|(member, to)| {
            let from = before.remove(&member).unwrap_or_default();
            change(member, from, to)
        });
        let mut differ: Vec<_> = changed.collect();
        let removed = before.into_iter();
        differ.extend(removed.filter_map(|(member, from)| change(member, from, Value::Null)));
        differ
    }
}

/// The members of nested objects, by their paths.
pub(super) fn leaves(value: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    collect("", value, &mut found);
    found
}

fn collect(path: &str, value: &Value, found: &mut Map<String, Value>) {
    let Value::Object(members) = value else {
        found.insert(path.to_owned(), value.clone());
        return;
    };
    for (name, member) in members {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        collect(&path, member, found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_members_that_differ_are_changes() {
        let before = json!({"fee": 1.5, "buy": {"min": 10, "status": "enabled"}, "countries": [],
            "gates": {"card": "before-payment"}, "cap": null});
        let after = json!({"fee": 1.5, "buy": {"min": 20, "status": "enabled"}, "countries": ["NL"],
            "gates": {}, "name": "Acme"});
        let found = Difference::between("partners.acme", &before, &after);
        let told: Vec<_> = found
            .iter()
            .map(|one| (one.member.as_str(), one.from.clone(), one.to.clone()))
            .collect();
        assert_eq!(
            told,
            [
                ("buy.min", json!(10), json!(20)),
                ("countries", json!([]), json!(["NL"])),
                ("name", Value::Null, json!("Acme")),
                ("gates.card", json!("before-payment"), Value::Null),
            ]
        );
        assert!(Difference::between("partners.acme", &Value::Null, &json!({})).is_empty());
        assert!(Difference::between("routes", &after, &after).is_empty());
    }
}
