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
    /// The value after.
    pub(super) to: Value,
}

impl Difference {
    /// The members of `after` that differ from `before`.
    pub(super) fn between(subject: &str, before: &Value, after: &Value) -> Vec<Self> {
        let (before, after) = (leaves(before), leaves(after));
        let differ = after.into_iter().filter_map(|(member, to)| {
            let from = before.get(&member).cloned().unwrap_or_default();
            (from != to).then(|| Self { subject: subject.to_owned(), member, from, to })
        });
        differ.collect()
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
        let before = json!({"fee": 1.5, "buy": {"min": 10, "status": "enabled"}, "countries": []});
        let after = json!({"fee": 1.5, "buy": {"min": 20, "status": "enabled"}, "countries": ["NL"],
            "name": "Acme"});
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
            ]
        );
        assert!(Difference::between("routes", &after, &after).is_empty());
    }
}
