//! Every page for people, on a telephone in the light and on a desk in the dark: axe finds nothing,
//! nothing is too wide or too heavy, and it looks as its picture does.

mod console;
mod details;
mod docs;
mod names;
mod passkeys;
mod portal;
mod shoppers;
mod steps;
mod transfer;

use rampart_tests::browser::Browser;
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::screens::{Part, look};

/// A browser that looks at one page after the other, and what it has found.
struct Visitor {
    browser: Browser,
    findings: Vec<String>,
}

impl Visitor {
    async fn start() -> Self {
        Self::on(Browser::start().await)
    }

    const fn on(browser: Browser) -> Self {
        Self { browser, findings: Vec::new() }
    }

    /// Looks at the page that is shown.
    async fn look(&mut self, name: &str) {
        self.findings.extend(look(&self.browser, name, Part::Top).await);
    }

    /// Looks at all of the page, below what shows without scrolling.
    async fn look_whole(&mut self, name: &str) {
        self.findings.extend(look(&self.browser, name, Part::Whole).await);
    }

    /// Opens a page and looks at it.
    async fn visit(&mut self, name: &str, url: &str) {
        self.browser.open(url).await;
        self.look(name).await;
    }

    fn end(self) {
        assert!(self.findings.is_empty(), "{}", self.findings.join("\n"));
    }
}

/// An edge that shows the gallery, and on which an order goes on only when a test says so.
async fn edge() -> Edge {
    Edge::with(|setup: &mut Setup| {
        setup.set("pages.gallery", "true").set("sandbox.step_ms", "3600000");
    })
    .await
}

#[tokio::test]
async fn components_look_as_they_should() {
    let edge = edge().await;
    let mut visitor = Visitor::start().await;
    visitor.browser.open(&edge.url("/_design")).await;
    visitor.look_whole("design").await;
    visitor.end();
}
