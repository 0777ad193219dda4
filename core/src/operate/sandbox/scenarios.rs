//! `GET /api/v2/sandbox/scenarios`: the magic values and their effects.

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::orders::status::OrderStatus;
use crate::trading::sandbox::Scenario;
use rampart_types::JsonDecimal;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/sandbox/scenarios";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const ERRORS: &'static [Code] = &[];
    const DOC: Doc = Doc {
        summary: "List the sandbox's scenarios",
        details: "Magic values: an order of a test client that carries one follows its path by \
                  itself. Screening has magic values of its own: the `partnerOrderIdentifier`s \
                  `sandbox-screening-review` and `sandbox-screening-block` for an order's wallet, \
                  the last names `Sandboxreview` and `Sandboxblock` for a user. Identity is passed \
                  or failed on the page of its reason. There is no such route for live clients.",
        answer: r#"[{"name": "denied", "description": "The payment is denied.",
            "partnerOrderIdentifier": "sandbox-denied", "fiatAmount": 101.02,
            "steps": ["payment-denied"], "status": "cancelled"}]"#,
        also: &[(404, Code::RouteNotFound)],
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = ();
    type Response = Json<Vec<ListedScenario>>;

    fn read(_: &Input, client: &Client) -> Result<()> {
        super::only_for_tests(client)
    }

    async fn call(_: &Core, _: Client, (): ()) -> Result<Json<Vec<ListedScenario>>> {
        Ok(Json(Scenario::ALL.into_iter().map(ListedScenario::from).collect()))
    }
}

/// A scenario of an order.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SandboxScenario")]
pub struct ListedScenario {
    /// Its name.
    name: &'static str,
    /// Its effect.
    description: &'static str,
    /// The `partnerOrderIdentifier` that selects it; any text may follow after a dash.
    partner_order_identifier: String,
    /// The fiat amount of a quote that selects it.
    fiat_amount: JsonDecimal,
    /// Simulated events, in order.
    steps: Vec<&'static str>,
    /// The order's status in the end.
    status: OrderStatus,
}

impl From<Scenario> for ListedScenario {
    fn from(scenario: Scenario) -> Self {
        Self {
            name: scenario.name(),
            description: scenario.description(),
            partner_order_identifier: scenario.reference(),
            fiat_amount: JsonDecimal(scenario.amount()),
            steps: scenario.steps().into_iter().map(|step| step.as_str()).collect(),
            status: scenario.final_status(),
        }
    }
}
