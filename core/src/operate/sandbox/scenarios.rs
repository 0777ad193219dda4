//! `GET /api/v2/sandbox/scenarios`: the magic values, and what each of them does.

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::trading::orders::status::OrderStatus;
use crate::trading::sandbox::Scenario;
use rampart_types::JsonDecimal;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/sandbox/scenarios";
    const ERRORS: &'static [Code] = &[];
    const DOC: Doc = Doc {
        summary: "List the sandbox's scenarios",
        details: "Magic values: an order of a test client that carries one follows its path by \
                  itself. There is no such route for live clients.",
        answer: r#"[{"name": "denied", "description": "The payment is denied.",
            "partnerOrderIdentifier": "sandbox-denied", "fiatAmount": 101.02,
            "steps": ["payment-denied"], "status": "cancelled"}]"#,
        also: &[(404, Code::RouteNotFound)],
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = ();
    type Response = Json<Vec<Listed>>;

    fn read(_: &Input, client: &Client) -> Result<()> {
        super::only_for_tests(client)
    }

    async fn call(_: &Core, _: Client, (): ()) -> Result<Json<Vec<Listed>>> {
        Ok(Json(Scenario::ALL.into_iter().map(Listed::from).collect()))
    }
}

/// A scenario of an order.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Scenario")]
pub struct Listed {
    /// What it is called.
    name: &'static str,
    /// What it does.
    description: &'static str,
    /// Confirming with this starts it; anything may follow behind a dash.
    partner_order_identifier: String,
    /// So does confirming a quote over this much fiat.
    fiat_amount: JsonDecimal,
    /// What happens by itself, in order.
    steps: Vec<&'static str>,
    /// What the order then is.
    status: OrderStatus,
}

impl From<Scenario> for Listed {
    fn from(scenario: Scenario) -> Self {
        Self {
            name: scenario.name(),
            description: scenario.description(),
            partner_order_identifier: scenario.reference(),
            fiat_amount: JsonDecimal(scenario.amount()),
            steps: scenario.steps().into_iter().map(|step| step.as_str()).collect(),
            status: scenario.ends(),
        }
    }
}
