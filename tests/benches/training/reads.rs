//! Reads of the catalogue, the prices, orders and documents; the operations and admin listeners.

use http::Method;
use serde_json::json;

use super::Customer;
use crate::environment::FIRST_ORDER;
use crate::paths::{CATALOGUE, PRICES};

/// Read several times a round, as partners do.
const OFTEN: [&str; 5] = [
    PRICES,
    "/api/v2/prices",
    CATALOGUE,
    "/api/v2/buy/payment-methods?countryCode=de&currencyPair=BTC-EUR",
    "/api/v1/system/currency-pairs",
];
const TIMES: usize = 8;
/// Read once a round.
const SELDOM: [&str; 9] = [
    "/api/v1/system/info",
    "/api/v2/client/info",
    "/api/v2/system/errors",
    "/api/v2/events",
    "/api/v2/webhooks",
    "/api/v2/sandbox/scenarios",
    "/api/v1/user/verify/amld5?locale=nl",
    "/openapi.json",
    "/docs",
];

impl Customer<'_> {
    pub(super) async fn read(&self) {
        for path in [OFTEN; TIMES].as_flattened() {
            self.partner.get(path).await.assert_status(200);
        }
        for path in SELDOM {
            self.partner.get(path).await.assert_status(200);
        }
        let edge = &self.side.edge;
        for path in ["/metrics", "/healthz", "/readyz"] {
            edge.ops(path).await.assert_status(200);
        }
        edge.admin(Method::GET, "/admin/v1/partners", json!({})).await.assert_status(200);
        self.read_orders().await;
    }

    /// Orders that the partner without policies has, by each of their two names.
    async fn read_orders(&self) {
        if self.partner.secret("apiKey") != self.side.database.plain["apiKey"] {
            return;
        }
        for order in FIRST_ORDER..FIRST_ORDER + 4 {
            let paths = [
                format!("/api/v2/buy/orders/{order}"),
                format!("/api/v2/buy/orders/order-{order}"),
                format!("/api/v2/buy/orders/{order}/timeline"),
            ];
            for path in &paths {
                self.authenticated.get(path).await.assert_status(200);
            }
        }
    }
}
