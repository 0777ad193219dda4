//! The edge, the partner and the users of the table's requests.

use chrono::TimeDelta;
use http::Method;
use rampart_core::platform::clock::Clock;
use rampart_tests::caller::{Caller, Request};
use rampart_tests::edge::{Edge, UNLIMITED};
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::registration;
use serde_json::{Value, json};

/// Time since the expired items were issued.
const AGO: TimeDelta = TimeDelta::hours(2);

/// One edge, a partner with users, and the same service as it was some time ago.
pub(super) struct Fixtures {
    pub(super) edge: Edge,
    /// A test client by its token.
    pub(super) shop: Caller,
    /// The same by its API key.
    pub(super) key: Caller,
    pub(super) ada: Person,
    pub(super) eve: Person,
    /// The service in the past: everything that it issues has expired.
    earlier: TestContext,
}

/// A registered user of the shop.
#[derive(Clone)]
pub(super) struct Person {
    pub(super) email: String,
    pub(super) password: String,
    pub(super) identifier: String,
    pub(super) uuid: String,
    pub(super) token: String,
}

/// A body with members changed. `null` is sent as such.
pub(super) fn with(mut body: Value, changes: Value) -> Value {
    body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    body
}

impl Fixtures {
    pub(super) async fn set() -> Self {
        let edge = Edge::with(|setup| {
            let documents = setup.folder().join("documents").display().to_string();
            setup.set("documents.folder", documents);
            // For live partners; nobody listens there.
            setup.set("mail.smtp_url", "smtp://127.0.0.1:9");
        })
        .await;
        let key = edge.partner("shop").await;
        let rates = ["client", "quotes", "credentials", "login", "uploads"];
        let rates: Value = rates.map(|bucket| (bucket, UNLIMITED)).into_iter().collect();
        let rates = json!({"rateLimits": rates});
        edge.admin(Method::PATCH, "/admin/v1/partners/shop", rates).await.assert_status(200);
        let shop = key.authenticated().await;
        let (ada, eve) = (person(&key, "ada").await, person(&key, "eve").await);
        let clock = Clock::system();
        clock.advance(-AGO);
        let earlier = TestContext::beside(&edge, clock).await;
        Self { edge, shop, key, ada, eve, earlier }
    }

    /// The shop in the past, with fresh rates: attempts of the present lie in its future.
    pub(super) async fn earlier(&self) -> Partner {
        let forget = "delete from attempt_bucket";
        sqlx::query(forget).execute(self.earlier.db()).await.unwrap();
        self.earlier.known(&self.key)
    }

    /// POST of JSON by the shop's token.
    pub(super) fn post(&self, path: &str, body: &Value) -> Request {
        self.shop.request(Method::POST, path).json(body)
    }

    /// A request for Ada, by the shop's API key and her identifier.
    pub(super) fn ada(&self, method: Method, path: &str) -> Request {
        self.key.request(method, path).header("user-identifier", &self.ada.identifier)
    }

    /// POST of JSON for Ada.
    pub(super) fn ada_post(&self, path: &str, body: &Value) -> Request {
        self.ada(Method::POST, path).json(body)
    }

    /// A call of an operator that succeeds.
    pub(super) async fn operator(&self, method: Method, path: &str, body: Value) -> Value {
        let answer = self.edge.admin(method, path, body).await;
        assert!((200..300).contains(&answer.status()), "{path}: {}", answer.text());
        answer.json()
    }

    /// Another client with rates that no row reaches.
    pub(super) async fn partner(&self, slug: &str) -> Caller {
        self.edge.partner(slug).await
    }

    /// Another user of the shop.
    pub(super) async fn person(&self, name: &str) -> Person {
        person(&self.key, name).await
    }
}

async fn person(key: &Caller, name: &str) -> Person {
    let body = registration(name);
    let session = key.register(&body).await;
    let text = |member: &str| body[member].as_str().unwrap().to_owned();
    let of_session = |member: &str| session[member].as_str().unwrap().to_owned();
    Person {
        identifier: text("identifier"),
        uuid: of_session("uuid"),
        token: format!("Bearer {}", of_session("token")),
        email: text("email"),
        password: text("password"),
    }
}
