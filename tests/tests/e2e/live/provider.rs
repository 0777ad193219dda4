//! A sandboxed provider of identity checks and screenings, which the test plays over the connectors'
//! listener; its page is where the browser is sent.

use rampart_tests::browser::Browser;
use rampart_tests::edge::Edge;
use rampart_tests::receiver::Receiver;
use rampart_tests::remote_connector::RemoteConnector;
use serde_json::{Value, json};

/// The provider.
pub(super) struct IdentityProvider {
    connector: RemoteConnector,
    page: Receiver,
}

impl IdentityProvider {
    /// One that an edge commands.
    pub(super) async fn start(edge: &Edge) -> Self {
        let kinds = ["identity.start", "screening.check"];
        let connector = RemoteConnector::add(edge, "identity", &kinds).await;
        Self { connector, page: Receiver::start().await }
    }

    /// Finds nothing against the next wallet or person that is screened.
    pub(super) async fn clear(&self, subject: &str) {
        let check = self.connector.next("screening.check").await;
        assert_eq!(check["body"]["subject"], subject);
        self.connector.done(&check, json!({"decision": "clear", "reasons": []})).await;
    }

    /// Takes the check that the page at hand begins; the URL of the provider's page for it, and the
    /// command.
    pub(super) async fn begin(&self) -> (String, Value) {
        let start = self.connector.next("identity.start").await;
        let check = self.page.url("/check");
        self.connector.done(&start, json!({ "url": check })).await;
        (check, start)
    }

    /// Reports that the person of this command is known; the page that the person comes back to.
    pub(super) async fn end(&self, start: &Value) -> String {
        let event = json!({"id": "identity-1", "kind": "identity.completed",
            "occurredAt": "2026-03-01T12:00:00Z", "commandId": start["id"],
            "outcome": "verified"});
        self.connector.call("events", event).await;
        start["body"]["returnUrl"].as_str().unwrap().to_owned()
    }

    /// The whole check, in a browser that is at the page which begins it.
    pub(super) async fn verify(&self, browser: &Browser) {
        let (check, start) = self.begin().await;
        let link = format!("a[href=\"{check}\"]");
        browser.has(&link).await;
        browser.click(&link).await;
        browser.reaches(&check).await;
        browser.open(&self.end(&start).await).await;
    }
}
