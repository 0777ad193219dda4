//! Needs of a live partner besides settings: prices that end, a connector, routes to it.

use http::Method;
use serde_json::{Value, json};

use crate::answer::Answer;

/// Payment methods that are routed.
const METHODS: [&str; 3] = ["creditCard", "bankTransfer", "walletpay"];
/// Assets that are routed.
const ASSETS: [&str; 9] = ["BTC", "ETH", "LTC", "XRP", "XLM", "ADA", "SOL", "DOGE", "USDC"];
/// Every kind of command but `screening.check`: without a connector that takes it, no order waits for it.
const KINDS: [&str; 9] = [
    "payment.create",
    "payment.cancel",
    "payment.refund",
    "payout.send",
    "deposit.address",
    "transfer.send",
    "identity.start",
    "card.verify",
    "wallet-provider.verify",
];
/// Name of the connector.
pub const CONNECTOR: &str = "everything";

/// Makes it by calls of the operators' API, unless there are routes already. A path is below
/// `/admin/v1`. Gives the connector's token, if it was made now.
pub async fn prepare<C>(call: &mut C) -> Option<String>
where
    C: AsyncFnMut(Method, String, Value) -> Answer,
{
    let path = |path: &str| format!("/admin/v1/{path}");
    let routes = call(Method::GET, path("routes"), json!({})).await.json();
    if routes["routes"].as_array().is_some_and(|routes| !routes.is_empty()) {
        return None;
    }
    let connector = json!({ "name": CONNECTOR, "capabilities": KINDS });
    let made = call(Method::POST, path("connectors"), connector).await.assert_status(201).json();
    let mut routes = Vec::new();
    for direction in ["in", "out"] {
        let route = |leg: &str, of: &str| json!({"partner": null, leg: of, "direction": direction, "connector": CONNECTOR});
        routes.extend(METHODS.map(|method| route("method", method)));
        routes.extend(ASSETS.map(|asset| route("asset", asset)));
    }
    call(Method::PUT, path("routes"), json!({ "routes": routes })).await.assert_status(200);
    // Longer than any test moves its clock.
    let age = json!({"priceMaxAgeSeconds": 315_360_000});
    for asset in ASSETS {
        let pair = path(&format!("pairs/{asset}-EUR"));
        call(Method::PATCH, pair, age.clone()).await.assert_status(200);
    }
    made["token"].as_str().map(str::to_owned)
}

/// Makes a client of this body: the answer. A live one has all that it needs, and takes orders of
/// guests.
pub async fn partner<C>(body: Value, call: &mut C) -> Value
where
    C: AsyncFnMut(Method, String, Value) -> Answer,
{
    let path = "/admin/v1/partners".to_owned();
    let own = format!("{path}/{}", body["slug"].as_str().unwrap());
    let is_live = body["mode"] == "live";
    if is_live {
        prepare(call).await;
    }
    let made = call(Method::POST, path, body).await.assert_status(201).json();
    if is_live {
        let guests = json!({"guestOrders": {"allowed": true}});
        call(Method::PATCH, own, guests).await.assert_status(200);
    }
    made
}
