//! Roles of operators. Every endpoint of the operators' API declares those that may call it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of the break-glass owner, who is proven by the token of the configuration.
pub const BREAK_GLASS: &str = "admin";
/// Authors in the audit and in timelines of orders who are neither operators nor connectors.
pub const PROGRAMS: [&str; 4] = ["edge", "page", "sandbox", "user"];
/// Longest name of an operator, in characters.
const NAME_CHARS_MAX: usize = 63;

/// True for 1 to 63 of `a-z`, `0-9`, `-`, `_`, `.` and `@`, other than [`BREAK_GLASS`] and the names of
/// programs: what an operator does must not look as if an edge had done it.
pub fn is_operator_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.@".contains(c);
    let is_reserved = name == BREAK_GLASS || PROGRAMS.contains(&name);
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(allowed) && !is_reserved
}

/// A role of an operator. One who has several may do what any of them may.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[schemars(rename = "OperatorRole")]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads what names no person.
    Viewer,
    /// Reads users, their accounts and mail; sends deliveries again.
    Support,
    /// Decides about users and their documents.
    Compliance,
    /// Sets prices and terms, reports payments.
    Treasury,
    /// Administers partners, their credentials and policies.
    Platform,
    /// May do everything, and administers operators.
    Owner,
}

impl Role {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Viewer,
        Self::Support,
        Self::Compliance,
        Self::Treasury,
        Self::Platform,
        Self::Owner,
    ];

    /// The name, in JSON and as stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Support => "support",
            Self::Compliance => "compliance",
            Self::Treasury => "treasury",
            Self::Platform => "platform",
            Self::Owner => "owner",
        }
    }

    /// The role of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|role| role.as_str() == name)
    }

    /// True if an operator with the roles `held` may do what `needed` is declared for.
    pub fn permits(held: &[Self], needed: &[Self]) -> bool {
        held.contains(&Self::Owner) || needed.iter().any(|role| held.contains(role))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_may_do_everything_and_others_what_is_declared_for_them() {
        assert!(Role::permits(&[Role::Owner], &[]));
        assert!(Role::permits(&[Role::Viewer, Role::Treasury], &[Role::Treasury]));
        assert!(!Role::permits(&[Role::Viewer, Role::Treasury], &[Role::Compliance]));
        assert!(!Role::permits(&[Role::Viewer], &[]));
        assert!(!Role::permits(&[], Role::ALL));
    }

    #[test]
    fn names_lead_back_to_their_roles() {
        for role in Role::ALL {
            assert_eq!(Role::from_name(role.as_str()), Some(*role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
        assert_eq!(Role::from_name("admin"), None);
    }

    #[test]
    fn no_operator_has_the_name_of_another_author() {
        assert!(is_operator_name("ada") && is_operator_name("edge-2"));
        for name in ["admin", "edge", "page", "sandbox", "user", "", "Ada", &"a".repeat(64)] {
            assert!(!is_operator_name(name), "{name}");
        }
    }
}
