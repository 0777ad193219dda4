//! Access to the tree of untyped settings.

use std::collections::HashMap;

use ::config::{Map, Value, ValueKind};

/// True if file or environment say something about the key of a section.
pub(super) fn is_set(tree: &HashMap<String, Value>, section: &str, key: &str) -> bool {
    match tree.get(section) {
        Some(Value { kind: ValueKind::Table(table), .. }) => table.contains_key(key),
        _ => false,
    }
}

/// The table that a value is.
pub(super) fn table(value: &mut Value) -> Option<&mut Map<String, Value>> {
    match &mut value.kind {
        ValueKind::Table(table) => Some(table),
        _ => None,
    }
}
