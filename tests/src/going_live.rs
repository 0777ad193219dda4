//! What a live partner needs besides settings: prices that end, a connector, routes to it.

use http::Method;
use serde_json::{Value, json};

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
    C: AsyncFnMut(Method, String, Value) -> (u16, Value),
{
    let path = |path: &str| format!("/admin/v1/{path}");
    let (_, routes) = call(Method::GET, path("routes"), json!({})).await;
    if routes["routes"].as_array().is_some_and(|routes| !routes.is_empty()) {
        return None;
    }
    let connector = json!({ "name": CONNECTOR, "capabilities": KINDS });
    let (status, made) = call(Method::POST, path("connectors"), connector).await;
    assert_eq!(status, 201, "{made}");
    let mut routes = Vec::new();
    for direction in ["in", "out"] {
        let route = |leg: &str, of: &str| json!({"partner": null, leg: of, "direction": direction, "connector": CONNECTOR});
        routes.extend(METHODS.map(|method| route("method", method)));
        routes.extend(ASSETS.map(|asset| route("asset", asset)));
    }
    let (status, put) = call(Method::PUT, path("routes"), json!({ "routes": routes })).await;
    assert_eq!(status, 200, "{put}");
    // Longer than any test moves its clock.
    let age = json!({"priceMaxAgeSeconds": 315_360_000});
    for asset in ASSETS {
        let pair = path(&format!("pairs/{asset}-EUR"));
        let (status, set) = call(Method::PATCH, pair, age.clone()).await;
        assert_eq!(status, 200, "{set}");
    }
    made["token"].as_str().map(str::to_owned)
}
