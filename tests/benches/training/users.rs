//! Users: registration, sessions, profile, verification, webhooks.

use http::Method;
use rampart_tests::user::registration;
use serde_json::json;

use super::trades::for_user;
use super::{Customer, LOGINS, USER_EVERY, sent};

/// Bytes of a document that is sent for a proof, in base64: the start of a PNG file, then padding.
const PROOF: &str = "iVBORw0KGgoAAAANSUhEUgAAAAE=";

impl Customer<'_> {
    /// Registers a user, who logs in and out if it is one of the first; the user's identifier.
    pub(super) async fn register(&self, round: u32) -> String {
        let user = registration(&format!("user{}x{round}x{}", self.number, std::process::id()));
        let identifier = user["identifier"].as_str().expect("a user has an identifier").to_owned();
        self.post("/api/v2/user", &user).await;
        if round / USER_EVERY >= LOGINS {
            return identifier;
        }
        let login = json!({"emailAddress": user["email"], "password": user["password"]});
        let session = self.post("/api/v1/user/login", &login).await;
        let token = format!("Bearer {}", session["token"].as_str().expect("a session has a token"));
        let as_session = |method, path: &str| {
            self.partner.request(method, path).header("user-authorization", &token)
        };
        sent(as_session(Method::GET, "/api/v1/user/info")).await;
        let second = format!("{identifier}2");
        let link = json!({"identifier": &second[1..]});
        sent(as_session(Method::POST, "/api/v2/user/link-identifier").json(&link)).await;
        sent(as_session(Method::POST, "/api/v1/user/logout").json(&json!({}))).await;
        identifier
    }

    /// Changes the user's profile, sends proofs, and registers a webhook for the partner.
    pub(super) async fn change(&self, user: &str) {
        let request = |method, path: &str| for_user(&self.partner, method, path, user);
        sent(request(Method::PATCH, "/api/v2/user").json(&json!({"lastName": "Byron"}))).await;
        let proof = json!({"name": "Ada Lovelace", "iban": "NL58ABNA0000000001", "proof": PROOF});
        sent(request(Method::POST, "/api/v1/user/verify/iban/photo").json(&proof)).await;
        for path in ["/api/v2/user/verification-status", "/api/v2/user/limit", "/api/v1/user/info"]
        {
            sent(request(Method::GET, path)).await;
        }
        let webhook = json!({"url": "http://127.0.0.1:9/hook", "events": ["order.paid"]});
        let made = self.post("/api/v2/webhooks", &webhook).await;
        let path =
            format!("/api/v2/webhooks/{}", made["id"].as_str().expect("a webhook has an id"));
        sent(self.partner.request(Method::DELETE, &path)).await;
    }
}
