//! Orders as they are read.

use http::Method;

use super::Row;
use super::fixtures::Fixtures;

pub(super) async fn rows(fixtures: &Fixtures) -> Vec<Row> {
    let read = |id: &str| {
        let path = format!("/api/v2/buy/orders/{id}");
        fixtures.shop.request(Method::GET, &path)
    };
    vec![
        Row::new("ER033", "no order", read("")),
        Row::new("ER034", "a long name", read(&"x".repeat(256))),
        Row::new("ER035", "an order of nobody", read("1742980455013377")).with_status(404),
    ]
}
