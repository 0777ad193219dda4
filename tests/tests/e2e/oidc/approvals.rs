//! Approvals of operators who log in at the provider: a claim names them, and tells nobody apart.

use http::Method;
use rampart_tests::caller::Protocol;
use rampart_tests::edge::Edge;
use rampart_tests::oidc_provider::{OidcProvider, OperatorBrowser, location};
use serde_json::{Value, json};

use super::edge;

/// The claims of somebody who sets prices.
fn treasurer(name: &str) -> Value {
    json!({"preferred_username": name, "groups": ["rampart-money"]})
}

/// A provider with two of them, bob and carol.
async fn provider() -> OidcProvider {
    let people = ["bob", "carol"].map(|subject| {
        let mut claims = treasurer(subject);
        claims["sub"] = json!(subject);
        claims
    });
    OidcProvider::start(&people).await
}

/// A call with a bearer token: its status and its body.
async fn send(edge: &Edge, token: &str, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let request = Protocol::Http1.client().request(method, format!("http://{}{path}", edge.admin));
    let answer = request.bearer_auth(token).json(body).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default())
}

/// Sets the price that takes two persons.
async fn price(edge: &Edge, token: &str) -> (u16, Value) {
    let new = json!({"price": 41_234.56});
    send(edge, token, Method::PUT, "/admin/v1/prices/BTC-EUR", &new).await
}

/// Asks for the price, and gives the approval that it waits for.
async fn held(edge: &Edge, token: &str) -> String {
    let (status, body) = price(edge, token).await;
    assert_eq!(status, 202, "{body}");
    body["approval"].as_str().unwrap().to_owned()
}

async fn grant(edge: &Edge, token: &str, approval: &str) -> u16 {
    let url = format!("http://{}/admin/v1/approvals/{approval}/grant", edge.admin);
    let request = Protocol::Http1.client().post(url).bearer_auth(token);
    request.send().await.unwrap().status().as_u16()
}

/// The newest approval, as the holder of this token sees it.
async fn newest(edge: &Edge, token: &str) -> Value {
    let url = format!("http://{}/admin/v1/approvals", edge.admin);
    let answer = Protocol::Http1.client().get(url).bearer_auth(token).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.json::<Value>().await.unwrap()[0].clone()
}

/// The token of a new operator who sets prices.
async fn own_token(edge: &Edge, name: &str) -> String {
    let operator = json!({"name": name, "roles": ["treasury"]});
    let made = edge.admin(Method::POST, "/admin/v1/operators", operator).await;
    made.assert_status(201).json()["token"].as_str().unwrap().to_owned()
}

/// Logs in by a browser: the status of the page that ends it.
async fn log_in(provider: &OidcProvider, browser: &mut OperatorBrowser, subject: &str) -> u16 {
    let page = location(&browser.open("/console/login").await);
    let returned = provider.log_in(page.as_str(), subject).await;
    let back = format!("{}?{}", returned.path(), returned.query().unwrap());
    browser.open(&back).await.status().as_u16()
}

#[tokio::test]
async fn one_person_of_two_names_is_one_and_two_of_one_name_are_two() {
    let provider = provider().await;
    let edge = edge(&provider).await;
    let bob = provider.token("rampart", "bob").await;
    let approval = held(&edge, &bob).await;
    provider.change("bob", &treasurer("bobby")).await;
    provider.change("carol", &treasurer("bob")).await;
    let bobby = provider.token("rampart", "bob").await;
    let carol = provider.token("rampart", "carol").await;
    assert_eq!(held(&edge, &bobby).await, approval, "the same call of the same person");
    assert_eq!(grant(&edge, &bobby, &approval).await, 403);
    let (of_bobby, of_carol) = (newest(&edge, &bobby).await, newest(&edge, &carol).await);
    assert_eq!((&of_bobby["own"], &of_carol["own"]), (&json!(true), &json!(false)));
    assert_eq!(of_carol["requestedBy"], "bob");

    assert_eq!(price(&edge, &carol).await.0, 409, "the other one of the name waits with it");
    assert_eq!(grant(&edge, &carol, &approval).await, 204);
    assert_eq!(price(&edge, &carol).await.0, 409, "who has granted it has not asked for it");
    assert_eq!(price(&edge, &bobby).await.0, 200);
    assert_eq!(newest(&edge, &bobby).await["state"], "used");
}

#[tokio::test]
async fn an_account_that_came_under_an_operators_name_is_that_operator() {
    let provider = provider().await;
    let edge = edge(&provider).await;
    let own = own_token(&edge, "bob").await;
    let bob = provider.token("rampart", "bob").await;
    assert_eq!(newest(&edge, &bob).await, Value::Null, "the edge has learnt the name");
    provider.change("bob", &treasurer("bobby")).await;
    let bobby = provider.token("rampart", "bob").await;
    let approval = held(&edge, &own).await;
    assert_eq!(grant(&edge, &bobby, &approval).await, 403);
    let carol = provider.token("rampart", "carol").await;
    assert_eq!(grant(&edge, &carol, &approval).await, 204);
    assert_eq!(newest(&edge, &bobby).await["own"], true);
    assert_eq!(price(&edge, &bobby).await.0, 200, "asked for with the token of the same person");

    // Nobody becomes an operator by taking the name.
    provider.change("carol", &treasurer("bob")).await;
    let carol = provider.token("rampart", "carol").await;
    let (tokens, body) = ("/admin/v1/operators/bob/tokens", json!({}));
    assert_eq!(send(&edge, &carol, Method::POST, tokens, &body).await.0, 403);
    let disabled = json!({"disabled": true});
    let disabled = edge.admin(Method::PATCH, "/admin/v1/operators/bob", disabled).await;
    disabled.assert_status(204);
    assert_eq!(price(&edge, &bobby).await.0, 403, "disabled by the name of before");
}

#[tokio::test]
async fn what_somebody_has_granted_waits_again_once_the_provider_has_taken_the_role() {
    let provider = provider().await;
    let edge = edge(&provider).await;
    let ada = own_token(&edge, "ada").await;
    let mut browser = OperatorBrowser::new(&edge);
    assert_eq!(log_in(&provider, &mut browser, "bob").await, 200);
    let approval = held(&edge, &ada).await;
    let bob = provider.token("rampart", "bob").await;
    assert_eq!(grant(&edge, &bob, &approval).await, 204);
    let mut again = OperatorBrowser::new(&edge);
    assert_eq!(log_in(&provider, &mut again, "bob").await, 200);
    assert_eq!(newest(&edge, &ada).await["state"], "granted");
    assert_eq!(browser.open("/admin/v1/partners").await.status(), 200);

    provider.change("bob", &json!({"preferred_username": "bob", "groups": ["chess"]})).await;
    assert_eq!(log_in(&provider, &mut OperatorBrowser::new(&edge), "bob").await, 403);
    assert_eq!(newest(&edge, &ada).await["state"], "pending");
    let audit = "/admin/v1/audit?action=operator.lose-roles";
    let audit = edge.admin(Method::GET, audit, json!({})).await.assert_status(200).json();
    let lost = json!({"roles": [], "sessionsEnded": 2, "approvals": [approval]});
    assert_eq!(audit[0]["detail"], lost, "{audit}");
    assert_eq!(held(&edge, &ada).await, approval);
    for mut ended in [browser, again] {
        assert_eq!(ended.open("/admin/v1/partners").await.status(), 401);
    }
}
