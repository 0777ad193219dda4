//! The requests of scenarios. What a run fills in stands in double braces.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The header that asks for an error, as it is sent.
const FAULT: &str = "X-Rampart-Scenario";
/// Longest path in a label, in characters.
const LABEL_CHARS_MAX: usize = 64;
/// A wallet for bitcoins.
pub(super) const WALLET: &str = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq";
/// The smallest image, in base64.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAE=";
/// Endpoints that many scenarios use.
pub(super) const BUY_QUOTE: &str = "/api/v1/buy/quote";
pub(super) const BUY_CONFIRM: &str = "/api/v1/buy/confirm";
pub(super) const SELL_QUOTE: &str = "/api/v1/sell/quote";
pub(super) const SELL_CONFIRM: &str = "/api/v1/sell/confirm";
pub(super) const REGISTER: &str = "/api/v2/user";

/// One request of a scenario.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct ScenarioRequest {
    /// HTTP method.
    method: &'static str,
    /// Path and query.
    path: String,
    /// HTTP headers.
    headers: BTreeMap<&'static str, String>,
    /// The body as it is sent; null without one.
    body: Option<String>,
    /// Names for values of the answer, each with its place: a JSON Pointer (RFC 6901).
    saves: BTreeMap<&'static str, &'static str>,
    /// Times it is sent in a row; the last answer counts.
    times: u16,
    /// `true`: it is sent again and again, for some seconds, until the answer shows the state.
    poll: bool,
}

impl ScenarioRequest {
    /// A request without a credential.
    fn anonymous(method: &'static str, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            headers: BTreeMap::new(),
            body: None,
            saves: BTreeMap::new(),
            times: 1,
            poll: false,
        }
    }

    /// GET by the API key.
    pub(super) fn get(path: &str) -> Self {
        Self::anonymous("GET", path).header("X-Api-Key", "{{apiKey}}")
    }

    /// POST of JSON by the API key.
    pub(super) fn post(path: &str, body: &Value) -> Self {
        let request = Self::anonymous("POST", path).header("X-Api-Key", "{{apiKey}}");
        request.text(body.to_string())
    }

    /// PATCH of JSON by the API key.
    pub(super) fn patch(path: &str, body: &Value) -> Self {
        Self { method: "PATCH", ..Self::post(path, body) }
    }

    /// POST by the API key, without a body.
    pub(super) fn post_nothing(path: &str) -> Self {
        Self { method: "POST", ..Self::get(path) }
    }

    /// The same with this body.
    pub(super) fn text(self, body: impl Into<String>) -> Self {
        let request = self.header("Content-Type", "application/json");
        Self { body: Some(body.into()), ..request }
    }

    /// The same with this header.
    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, value.to_owned());
        self
    }

    /// The same without the API key.
    pub(super) fn without_key(mut self) -> Self {
        self.headers.remove("X-Api-Key");
        self
    }

    /// The same for the scenario's user.
    pub(super) fn for_user(self) -> Self {
        self.header("User-Identifier", "{{random}}")
    }

    /// The same, keeping a value of the answer under a name.
    pub(super) fn save(mut self, name: &'static str, pointer: &'static str) -> Self {
        self.saves.insert(name, pointer);
        self
    }

    /// The same, asking for an error: its answer has no value to save.
    pub(super) fn fault(self, error: &str) -> Self {
        Self { saves: BTreeMap::new(), ..self.header(FAULT, error) }
    }

    /// Method and path, and the header that asks for an error.
    pub(super) fn label(&self) -> String {
        let path: String = self.path.chars().take(LABEL_CHARS_MAX).collect();
        let cut = if path.len() < self.path.len() { "…" } else { "" };
        let asks = self.headers.get(FAULT).map(|error| format!(" {FAULT}: {error}"));
        format!("{} {path}{cut}{}", self.method, asks.unwrap_or_default())
    }

    /// The same, sent so many times.
    pub(super) fn times(self, times: u16) -> Self {
        Self { times, ..self }
    }

    /// The same, sent until its answer shows the scenario's state.
    pub(super) fn poll(self) -> Self {
        Self { poll: true, ..self }
    }
}

/// A body with members changed. `null` is sent as such.
pub(super) fn with(mut body: Value, changes: Value) -> Value {
    if let (Value::Object(body), Value::Object(changes)) = (&mut body, changes) {
        body.extend(changes);
    }
    body
}

/// The registration of the scenario's user. The sandbox's code of every mail is `000000`.
pub(super) fn registration() -> Value {
    json!({
        "identifier": "{{random}}",
        "email": "{{random}}@example.com",
        "emailCode": "000000",
        "country": "NL",
        "firstName": "Ada",
        "lastName": "Lovelace",
        "dateOfBirth": "1990-12-10",
        "privacyAgreement": true,
    })
}

/// Registers the scenario's user.
pub(super) fn user() -> ScenarioRequest {
    ScenarioRequest::post(REGISTER, &registration())
}

/// Registers the scenario's user and logs them in: `{{userToken}}`.
pub(super) fn logged_in() -> [ScenarioRequest; 2] {
    let password = "correct horse";
    let login = json!({ "emailAddress": "{{random}}@example.com", "password": password });
    [
        ScenarioRequest::post(REGISTER, &with(registration(), json!({ "password": password }))),
        ScenarioRequest::post("/api/v1/user/login", &login).save("userToken", "/token"),
    ]
}

/// An event of the scenario's user.
pub(super) fn user_event(event: &str) -> ScenarioRequest {
    ScenarioRequest::post("/api/v2/sandbox/user/events", &json!({ "event": event })).for_user()
}

/// A purchase that can be quoted.
pub(super) fn purchase() -> Value {
    json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100})
}

/// A quote of a purchase: `{{quote}}`.
pub(super) fn quote(changes: Value) -> ScenarioRequest {
    ScenarioRequest::post(BUY_QUOTE, &with(purchase(), changes)).save("quote", "/quote")
}

/// A quote of a sale: `{{quote}}`.
pub(super) fn sell_quote() -> ScenarioRequest {
    let sale = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.005});
    ScenarioRequest::post(SELL_QUOTE, &sale).save("quote", "/quote")
}

/// The confirm of a quote by the scenario's user.
pub(super) fn confirm(changes: Value) -> ScenarioRequest {
    let body = json!({
        "quote": "{{quote}}", "walletAddress": WALLET, "returnUrl": "https://shop.example/back"
    });
    ScenarioRequest::post(BUY_CONFIRM, &with(body, changes)).for_user()
}
