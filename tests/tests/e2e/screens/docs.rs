//! The documentation and the pages of help.

use super::{Visitor, edge};

/// Pages, by the name of their picture.
const PAGES: [(&str, &str); 7] = [
    ("docs", "/docs"),
    ("docs-guide", "/docs/webhooks"),
    ("docs-errors", "/docs/errors"),
    ("docs-endpoint", "/docs/quoteBuy"),
    ("support", "/en-us/support"),
    ("faq", "/nl-nl/faq"),
    ("forgot-password", "/nl-nl/forgot-password"),
];

#[tokio::test]
async fn the_documentation_and_help_look_as_they_should() {
    let edge = edge().await;
    let mut visitor = Visitor::start().await;
    for (name, path) in PAGES {
        visitor.visit(name, &edge.url(path)).await;
    }
    visitor.end();
}
