//! The operators' API, as the break-glass owner uses it, who needs no second person.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use rampart_api::OPERATOR_ENDPOINTS;
use rampart_tests::caller::Caller;
use rampart_tests::edge::{ADMIN_TOKEN, Edge};
use rampart_tests::guests::component;
use rampart_tests::keys::ed25519;
use rampart_tests::remote_connector::RemoteConnector;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use super::{Api, WALLET, hold, purchase, register, unlimit, unlimited};

/// A bank account of the user that is looked at.
const IBAN: &str = "NL58ABNA0000000001";
/// An image, as far as its first bytes say.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x01";

#[tokio::test]
async fn the_operators_api_is_as_its_document_says() {
    let edge = unlimited().await;
    let api = Api {
        name: "operators",
        endpoints: OPERATOR_ENDPOINTS,
        endless_operations: OPERATOR_ENDPOINTS.len(),
        base: format!("http://{}", edge.admin),
        document: "/admin/v1/openapi.json",
        cases_per_operation: 1,
    };
    let mut planted = json!({ "token": ADMIN_TOKEN });
    for more in
        [shop(&edge).await, policies(&edge).await, screening(&edge).await, others(&edge).await]
    {
        planted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    }
    hold(&edge, api, planted).await;
}

async fn post(edge: &Edge, path: &str, body: Value) -> Value {
    edge.admin(Method::POST, path, body).await.assert_status(201).json()
}

async fn get(edge: &Edge, path: &str) -> Value {
    edge.admin(Method::GET, path, Value::Null).await.assert_status(200).json()
}

/// A test client with a user who orders, one who is looked at, one who is changed, and one who is
/// erased.
async fn shop(edge: &Edge) -> Value {
    let partner = edge.partner("shop").await;
    let hook = json!({"url": "http://127.0.0.1:9/hook"});
    partner.post("/api/v2/webhooks", hook).await;
    let ann = registration("ann");
    let identifier = ann["identifier"].as_str().unwrap();
    let user = register(&partner, &ann).await;
    unlimit(edge, &user).await;
    let path = format!("/admin/v1/users/{user}/dca-codes");
    let plan = post(edge, &path, json!({"cryptoCurrency": "BTC", "walletAddress": WALLET})).await;
    let order = purchase(&partner, identifier).await;
    let (subject, proof, document) = subject(edge, &partner).await;
    let (erased, retained) = erased(edge, &partner).await;
    json!({
        "apiKey": partner.secret("apiKey"),
        "identifier": identifier,
        "order": order,
        "plan": plan["code"],
        "subject": subject,
        "account": IBAN,
        "proof": proof,
        "document": document,
        "spare": register(&partner, &registration("spare")).await,
        "erased": erased,
        "retained": retained,
    })
}

/// A registration with the image of a document.
fn identified(name: &str) -> Value {
    let mut body = registration(name);
    body["identityDocument"] = json!([{"documentType": "passport", "documentSide": "front",
        "data": STANDARD.encode(IMAGE)}]);
    body
}

/// A user with a document and a bank account that was shown on a photo: the ids of all three.
async fn subject(edge: &Edge, partner: &Caller) -> (String, Value, Value) {
    let bob = identified("bob");
    let user = register(partner, &bob).await;
    let photo = json!({"name": "Ada Lovelace", "iban": IBAN, "proof": STANDARD.encode(IMAGE)});
    let request = partner.request(Method::POST, "/api/v1/user/verify/iban/photo");
    let request = request.header("user-identifier", bob["identifier"].as_str().unwrap());
    request.json(&photo).send().await.assert_status(200);
    let path = format!("/admin/v1/users/{user}");
    let mut accounts = get(edge, &format!("{path}/accounts")).await;
    let document = get(edge, &path).await["documents"][0]["id"].take();
    (user, accounts[0]["proofs"][0]["id"].take(), document)
}

/// A user who has ordered and was erased, and the document that is kept: their ids.
async fn erased(edge: &Edge, partner: &Caller) -> (String, Value) {
    let eve = identified("eve");
    let user = register(partner, &eve).await;
    purchase(partner, eve["identifier"].as_str().unwrap()).await;
    let path = format!("/admin/v1/users/{user}");
    let document = get(edge, &path).await["documents"][0]["id"].take();
    edge.admin(Method::PATCH, &path, json!({"deleted": true})).await.assert_status(200);
    (user, document)
}

/// A partner with two versions of a fee policy.
async fn policies(edge: &Edge) -> Value {
    edge.partner("ruled").await;
    edge.partner("spare").await;
    let policy = component("tiered-fee");
    let path = "/admin/v1/partners/ruled/policies/fee";
    edge.admin_bytes(Method::PUT, path, policy.clone()).await.assert_status(200);
    let encoded = STANDARD.encode(policy);
    post(edge, &format!("{path}/versions"), json!({ "component": encoded })).await;
    json!({ "component": encoded, "publicKey": ed25519(7).1 })
}

/// A screening of a live partner's user that waits for an operator.
async fn screening(edge: &Edge) -> Value {
    let live = edge.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    let screener = RemoteConnector::add(edge, "screener", &["screening.check"]).await;
    live.post("/api/v2/user", registration("ida")).await.assert_status(200);
    let check = screener.next("screening.check").await;
    screener.done(&check, json!({"decision": "review", "reasons": ["a name on a list"]})).await;
    let waiting = get(edge, "/admin/v1/screenings?state=review").await;
    json!({ "screening": waiting[0]["id"] })
}

/// Operators, a connector and a reconciliation.
async fn others(edge: &Edge) -> Value {
    let operator = async |name: &str, role: &str| {
        let made = json!({ "name": name, "roles": [role] });
        post(edge, "/admin/v1/operators", made).await["token"].take()
    };
    let spare = json!({"name": "spare", "capabilities": ["payment.create"]});
    post(edge, "/admin/v1/connectors", spare).await;
    let statement = Bytes::from_static(
        b"date,amount,currency,reference,providerReference\n\
        2026-03-01,7.00,EUR,lunch,bank-1\n",
    );
    let path = "/admin/v1/reconciliations?connector=manual";
    let made = edge.admin_bytes(Method::POST, path, statement).await.assert_status(201).json();
    operator("spare", "viewer").await;
    json!({
        "reconciliation": made["id"],
        "ada": operator("ada", "owner").await,
        "bob": operator("bob", "owner").await,
        "compliance": operator("eve", "compliance").await,
    })
}
