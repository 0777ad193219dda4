//! The connectors' API, as the connector of a test client uses it.

use http::Method;
use rampart_api::CONNECTOR_ENDPOINTS;
use rampart_tests::edge::Edge;
use rampart_tests::remote_connector::RemoteConnector;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use super::{Api, hold, purchase, register, unlimit, unlimited};

#[tokio::test]
async fn the_connectors_api_is_as_its_document_says() {
    let edge = unlimited().await;
    let api = Api {
        name: "connectors",
        endpoints: CONNECTOR_ENDPOINTS,
        // Checkpoints, results and events.
        endless_operations: 3,
        base: format!("http://{}", edge.connectors),
        document: "/connectors/v1/openapi.json",
        cases_per_operation: 10,
    };
    let planted = plant(&edge).await;
    hold(&edge, api, planted).await;
}

/// A test client whose money and coins a connector moves, and one of its orders.
async fn plant(edge: &Edge) -> Value {
    let partner = edge.partner("shop").await;
    let kinds = ["payment.create", "payment.cancel", "payment.refund", "payout.send"];
    let connector = RemoteConnector::add(edge, "everything", &kinds).await;
    let routes = json!({"routes": [
        {"partner": "shop", "method": "creditCard", "direction": "in", "connector": "everything"},
        {"partner": "shop", "asset": "BTC", "direction": "out", "connector": "everything"},
    ]});
    edge.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    let ann = registration("ann");
    let user = register(&partner, &ann).await;
    unlimit(edge, &user).await;
    let identifier = ann["identifier"].as_str().unwrap();
    json!({
        "apiKey": partner.secret("apiKey"),
        "token": connector.token,
        "identifier": identifier,
        "slug": "shop",
        "order": purchase(&partner, identifier).await,
    })
}
