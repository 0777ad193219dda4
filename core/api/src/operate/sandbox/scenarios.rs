//! `GET /api/v2/sandbox/scenarios`: a scenario for every code of the catalogue, for every state of
//! bought and sold orders, and for every outcome of an identity check, as requests that a program
//! can run with an API key alone.
//!
//! Most are requests that are wrong in the way that the code says. `faults` has the codes of
//! conditions that no client can bring about, `orders`, `sales` and `identity` the states.

mod clients;
mod confirms;
mod faults;
mod identity;
mod offers;
mod orders;
mod quotes;
mod recipe;
mod sales;
#[cfg(test)]
mod tests;
mod users;
mod verification;

use std::sync::LazyLock;

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use self::recipe::ScenarioRequest;
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use rampart_types::JsonDecimal;

/// Every scenario, those of orders first.
static SCENARIOS: LazyLock<Vec<ListedScenario>> = LazyLock::new(|| {
    let mut scenarios = orders::scenarios();
    scenarios.extend(sales::scenarios());
    scenarios.extend(identity::scenarios());
    scenarios.extend(clients::scenarios());
    scenarios.extend(users::scenarios());
    scenarios.extend(verification::scenarios());
    scenarios.extend(quotes::scenarios());
    scenarios.extend(offers::scenarios());
    scenarios.extend(confirms::scenarios());
    scenarios.extend(faults::scenarios());
    scenarios
});

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/sandbox/scenarios";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const TEST_ONLY: bool = true;
    const DOC: Doc = Doc {
        summary: "List the sandbox's scenarios",
        details: "At least one for every error code, every state of bought and sold orders, and \
                  every outcome of an identity check. Send the `requests` of a scenario in order. \
                  In paths, headers and bodies replace `{{apiKey}}` by the key of a test client, \
                  `{{random}}` by 36 random letters and digits, the same in all requests of one \
                  run, and any other name in double braces by what an earlier request `saves`. The \
                  last answer has the `code` with `httpStatus`, or shows `status` at `statusAt`; \
                  those before it are no errors.\n\n\
                  An order with a `partnerOrderIdentifier` or a `fiatAmount` of a scenario follows \
                  its `steps` by itself. Codes of conditions that nobody can bring about with a key \
                  are asked for by the header `X-Rampart-Scenario`, such as `ER008` or `ER999 503`: \
                  any request of a test client that is otherwise right is refused with an error \
                  that its operation declares. Screening has the `partnerOrderIdentifier`s \
                  `sandbox-screening-review` and `sandbox-screening-block` for an order's wallet, \
                  and the last names `Sandboxreview` and `Sandboxblock` for a user. There is no \
                  such route for live clients.",
        answer: r#"[{
            "name": "denied", "kind": "buyOrder", "description": "The payment is denied.",
            "code": null, "httpStatus": 200, "status": "cancelled", "statusAt": "/status",
            "partnerOrderIdentifier": "sandbox-denied", "fiatAmount": 101.02,
            "steps": ["payment-denied"],
            "requests": [{
                "method": "GET", "path": "/api/v2/buy/orders/{{order}}",
                "headers": {"X-Api-Key": "{{apiKey}}", "User-Identifier": "{{random}}"},
                "body": null, "saves": {}, "times": 1, "poll": true
            }]
        }, {
            "name": "ER010", "kind": "error", "description": "A pair that is not listed.",
            "code": "ER010", "httpStatus": 400, "status": null, "statusAt": null,
            "partnerOrderIdentifier": null, "fiatAmount": null, "steps": [],
            "requests": [{
                "method": "POST", "path": "/api/v1/buy/quote",
                "headers": {"X-Api-Key": "{{apiKey}}", "Content-Type": "application/json"},
                "body": "{\"currencyPair\":\"BTC-JPY\",\"paymentMethod\":\"creditCard\",\"fiatAmount\":100}",
                "saves": {}, "times": 1, "poll": false
            }]
        }]"#,
        also: &[(404, Code::RouteNotFound)],
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = ();
    type Response = Json<&'static [ListedScenario]>;

    fn read(_: &Input, _: &Client) -> Result<()> {
        Ok(())
    }

    async fn call(_: &Core, _: Client, (): ()) -> Result<Json<&'static [ListedScenario]>> {
        Ok(Json(&SCENARIOS))
    }
}

/// Requests that provoke an error or lead to a state.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SandboxScenario")]
pub struct ListedScenario {
    /// Its name, which no other has: of an error its code, with the status if the code has several.
    name: String,
    /// Kind of outcome: an error, a state, or one of an identity check.
    kind: Kind,
    /// Its effect, or the mistake in its last request.
    description: &'static str,
    /// The error code of the last answer; null if it is no error.
    code: Option<&'static str>,
    /// The HTTP status of the last answer.
    http_status: u16,
    /// The state that the last answer shows; null for an error.
    status: Option<&'static str>,
    /// Place of the state in that answer: a JSON Pointer (RFC 6901).
    status_at: Option<&'static str>,
    /// The `partnerOrderIdentifier` that selects it for any order; any text may follow after a dash.
    partner_order_identifier: Option<String>,
    /// The fiat amount of a quote that selects it.
    fiat_amount: Option<JsonDecimal>,
    /// Simulated events that such an order goes through by itself, in order.
    steps: Vec<&'static str>,
    /// Requests to send, in order.
    requests: Vec<ScenarioRequest>,
}

/// Kind of a scenario's outcome.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SandboxScenarioKind")]
enum Kind {
    /// An error code.
    Error,
    /// A state of a bought order.
    BuyOrder,
    /// A state of a sold order.
    SellOrder,
    /// An outcome of an identity check.
    Identity,
}

/// A state that the last answer of a scenario shows.
#[derive(Clone, Copy)]
struct Shown {
    status: &'static str,
    /// A JSON Pointer.
    pointer: &'static str,
}

impl ListedScenario {
    /// Requests of which the last is refused with the code and the status of its own.
    fn error(
        code: Code,
        description: &'static str,
        requests: impl Into<Vec<ScenarioRequest>>,
    ) -> Self {
        Self {
            name: code.as_str().to_owned(),
            kind: Kind::Error,
            description,
            code: Some(code.as_str()),
            http_status: code.status(),
            status: None,
            status_at: None,
            partner_order_identifier: None,
            fiat_amount: None,
            steps: Vec::new(),
            requests: requests.into(),
        }
    }

    /// The same error with another status, which its name then says.
    fn with_http_status(self, status: u16) -> Self {
        Self { name: format!("{}-{status}", self.name), http_status: status, ..self }
    }

    /// Requests of which the last shows a state.
    fn state(
        kind: Kind,
        name: &str,
        description: &'static str,
        shown: Shown,
        requests: impl Into<Vec<ScenarioRequest>>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            description,
            code: None,
            http_status: 200,
            status: Some(shown.status),
            status_at: Some(shown.pointer),
            partner_order_identifier: None,
            fiat_amount: None,
            steps: Vec::new(),
            requests: requests.into(),
        }
    }
}

/// The scenarios of a code as sentences: the mistake, and the request that is refused.
pub(in crate::operate) fn provoking(code: Code) -> impl Iterator<Item = (&'static str, String)> {
    let scenarios = SCENARIOS.iter().filter(move |one| one.code == Some(code.as_str()));
    scenarios.filter_map(|one| Some((one.description, one.requests.last()?.label())))
}
