//! Scopes: what an API key may be used for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A permission of an API key. Every endpoint for clients declares the one it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[schemars(inline)]
pub enum Scope {
    /// Everything, those of later versions included.
    #[serde(rename = "*")]
    All,
    /// Currencies, prices, payment methods and quotes.
    #[serde(rename = "quotes:read")]
    QuotesRead,
    /// Orders, savings plans and events.
    #[serde(rename = "orders:read")]
    OrdersRead,
    /// Offers, checkouts, confirms, changes of savings plans, simulated events.
    #[serde(rename = "orders:write")]
    OrdersWrite,
    /// Profiles, verification states and limits.
    #[serde(rename = "users:read")]
    UsersRead,
    /// Registration, logins, identifiers, accounts and verification.
    #[serde(rename = "users:write")]
    UsersWrite,
    /// Webhook endpoints, and sending events again.
    #[serde(rename = "webhooks:write")]
    WebhooksWrite,
}

rampart_types::named_values! {
    pub Scope {
        All = "*",
        QuotesRead = "quotes:read",
        OrdersRead = "orders:read",
        OrdersWrite = "orders:write",
        UsersRead = "users:read",
        UsersWrite = "users:write",
        WebhooksWrite = "webhooks:write",
    }
}

/// The scopes of one API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    /// The scopes as stored. None at all are all: keys that were issued before there were scopes.
    /// A name that this version does not know permits nothing.
    pub fn from_stored(names: &[String]) -> Self {
        if names.is_empty() {
            return Self(vec![Scope::All]);
        }
        Self(Scope::ALL.into_iter().filter(|s| names.iter().any(|n| n == s.as_str())).collect())
    }

    /// `true` if the key may be used where `scope` is needed.
    pub fn permit(&self, scope: Scope) -> bool {
        self.0.contains(&Scope::All) || self.0.contains(&scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(names: &[&str]) -> Scopes {
        Scopes::from_stored(&names.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_key_permits_its_scopes_alone() {
        for scope in Scope::ALL {
            assert!(stored(&[]).permit(scope), "{scope:?}");
            assert!(stored(&["*"]).permit(scope), "{scope:?}");
            assert!(stored(&[scope.as_str()]).permit(scope), "{scope:?}");
            assert!(!stored(&["orders:refund"]).permit(scope), "{scope:?}");
        }
        assert!(!stored(&["orders:read"]).permit(Scope::OrdersWrite));
        assert!(stored(&["orders:read", "users:read"]).permit(Scope::UsersRead));
    }

    #[test]
    fn the_names_on_the_wire_are_those_of_the_database() {
        for scope in Scope::ALL {
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.as_str());
        }
    }
}
