//! The portal of partners' staff.

use super::{Visitor, edge};
use crate::portal::joins;

/// Pages of the portal, by the name of their picture.
const PAGES: [(&str, &str); 11] = [
    ("overview", "/portal"),
    ("orders", "/portal/orders"),
    ("users", "/portal/users"),
    ("keys", "/portal/keys"),
    ("webhooks", "/portal/webhooks"),
    ("events", "/portal/events"),
    ("policies", "/portal/policies"),
    ("sandbox", "/portal/sandbox"),
    ("branding", "/portal/branding"),
    ("team", "/portal/team"),
    ("account", "/portal/account"),
];

#[tokio::test]
async fn the_portal_looks_as_it_should() {
    let edge = edge().await;
    edge.partner("portal").await;
    let mut visitor = Visitor::start().await;
    visitor.visit("portal-sign-in", &edge.url("/portal/sign-in")).await;
    joins(&visitor.browser, &edge, "owner").await;
    for (name, path) in PAGES {
        visitor.visit(&format!("portal-{name}"), &edge.url(path)).await;
    }
    visitor.end();
}
