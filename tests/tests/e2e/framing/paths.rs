//! Paths that are not in normal form are not found, never rewritten.

use super::After::Kept;
use super::{Target, answered, granted};

#[tokio::test]
async fn paths_that_two_servers_read_differently_are_not_found() {
    let target = Target::start("paths").await;
    let paths = [
        "//api/v1/prices",
        "/api//v1/prices",
        "/api/v1//prices",
        "/./api/v1/prices",
        "/api/./v1/prices",
        "/api/v1/prices/.",
        "/api/v2/../v1/prices",
        "/api/v1/prices/..",
        "/../api/v1/prices",
        "/api/v2/%2e%2e/v1/prices",
        "/api/v2/%2E./v1/prices",
        "/api/%2e/v1/prices",
        "/api%2fv1/prices",
        "/api%2Fv1%2Fprices",
        "/api%5cv1/prices",
        "/api\\v1\\prices",
        "/api/v1/prices%00",
        "/api/v1/prices%0d%0a",
        "/api/v1/prices%",
        "/api/v1/prices%zz",
        "/api/v1/prices;x=y",
        "/API/v1/prices",
        "/api/v1/prices/",
        "/api/v1/price",
        "/",
    ];
    let get = |path| target.request(&format!("GET {path}"), "\r\n");
    target.check(paths.map(|path| answered(get(path), 404, "ER998", Kept))).await;
    target.check([granted(get("/api/v1/prices?a=/../b"), Kept)]).await;
}

#[tokio::test]
async fn an_escaped_control_character_is_the_endpoints_business() {
    let target = Target::start("controls").await;
    let get = |id| target.request(&format!("GET /api/v2/buy/orders/{id}"), "\r\n");
    let ids = ["%00", "a%01", "%0d%0a", "%7f"];
    target.check(ids.map(|id| answered(get(id), 400, "ER034", Kept))).await;
}
